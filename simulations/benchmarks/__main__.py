"""Print the cost table: `python -m simulations.benchmarks [--quick] [NAME ...]`.

Every figure is taken in this run, on this machine, in CPU seconds of one process. Peers run beside
ours in the same run and are skipped with a word where they are not installed; the extra `bench`
brings them. In brackets stands how many times better ours is than the peer on that line: above 1
ours is faster, or smaller. Ends with 1 where a goal is not met.
"""

import sys
from collections.abc import Iterator, Sequence
from importlib import import_module

from simulations.benchmarks.measure import HEAD, MET, MISSED, Line, show
from simulations.commands import parser_of

IN_CPU_S = (
    "ingest",
    "crdts",
    "sizes",
    "dynamic",
    "shared",
    "quantile",
    "wide_pane",
    "ordered",
    "gateway",
    "control",
    "fleet_order",
    "fleet_replay",
)
NAMES = (*IN_CPU_S, "start", "economy", "idle", "files", "local_events", "local_live")
"""The others start processes and take real time, or measure no time: they run where named."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables that were asked for, or all."""
    parser = parser_of("simulations.benchmarks", __doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller inputs")
    arguments = parser.parse_args(argv)
    unknown = sorted(set(arguments.names) - set(NAMES))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    goals: list[str] = []
    print(HEAD)
    for name in arguments.names or IN_CPU_S:
        lines = import_module(f"simulations.benchmarks.{name}").table(quick=arguments.quick)
        print(f"\n== {name}")
        for text in show(_noting(lines, goals)):
            print(text, flush=True)
    missed = sum(MISSED in goal for goal in goals)
    print(f"\n{len(goals) - missed} of {len(goals)} goals met")
    return 1 if missed else 0


def _noting(lines: Iterator[Line], goals: list[str]) -> Iterator[Line]:
    """Yield the lines, and add their goals to `goals`."""
    for line in lines:
        goals += [line.goal] if MET in line.goal or MISSED in line.goal else []
        yield line


if __name__ == "__main__":
    sys.exit(main())
