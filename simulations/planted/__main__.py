"""Run the planted bugs: each must be found by the simulator within a number of seeds.

The last one is a canary, under which nothing is wrong: a harness that finds it is broken. Ends with
1 where a bug was not found, or the canary was, or a bug replaces what nobody uses.
"""

import sys
from collections.abc import Sequence

from simulations.commands import parser_of, say
from simulations.planted.bug import BUGS, PlantedBug, unused
from simulations.planted.hunt import CANARY, SEEDS, hunt
from simulations.world.faults import KINDS

CANARY_SEEDS = 30
"""Seeds under which the canary must live."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the bugs that were asked for, or all."""
    parser = parser_of("simulations.planted", __doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="some bugs; else all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds for each bug, at most")
    parser.add_argument("--without", default="", help="kinds of faults to leave out, by comma")
    parser.add_argument("--list", action="store_true", help="only say what each bug stands for")
    arguments = parser.parse_args(argv)
    unknown = sorted(set(arguments.names) - {*BUGS, CANARY.name})
    if unknown:
        parser.error(f"no planted bug {', '.join(unknown)}; see --list")
    known = {**BUGS, CANARY.name: CANARY}
    bugs = [known[name] for name in arguments.names or known]
    if arguments.list:
        for bug in bugs:
            say(f"{bug.name}\n    {bug.history}")
        return 0
    unwanted = arguments.without.split(",")
    kinds = tuple(kind for kind in KINDS if kind not in unwanted)
    wrong = [bug.name for bug in bugs if not _as_it_should(bug, arguments.seeds, kinds)]
    say(f"{len(bugs) - len(wrong)} of {len(bugs)} as they should be")
    return bool(wrong)


def _as_it_should(bug: PlantedBug, seeds: int, kinds: tuple[str, ...]) -> bool:
    """Run a bug, say what came of it, and return whether that is as it should be."""
    is_canary = bug is CANARY
    caught = hunt(bug, range(min(seeds, CANARY_SEEDS) if is_canary else seeds), kinds)
    idle = unused() if caught is None else caught.unused
    if caught is None:
        say(f"{'ok' if is_canary else 'NOT FOUND':>10}  {bug.name}")
    else:
        verdict = "RED" if is_canary else f"seed {caught.seed}"
        say(f"{verdict:>10}  {bug.name}: {caught.trouble[:110]}")
    if idle:
        say(f"{'UNUSED':>10}  {', '.join(idle)}")
    return (caught is None) == is_canary and not idle


if __name__ == "__main__":
    sys.exit(main())
