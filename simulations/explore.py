"""Run simulated fleets from seed to seed, and say what was found: `python -m simulations.explore`.

A seed draws a fleet, a program, a workload and a schedule of faults. Each run ends healed and
settled, and is held against the truth. A failing seed prints the command that replays it, and its
schedule shrunk to the faults that matter. Every kind of fault must have been seen, or the run is
red. The last lines say what an hour of one processor gives, and how many seeds fit into the time
of a bare loop on the same machine: machines differ by that, and a busy one is slower.
"""

import argparse
import gc
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from simulations.commands import parser_of, say
from simulations.world.faults import KINDS
from simulations.world.local_events import synced
from simulations.world.run import RunOutcome, run
from simulations.world.scenario import Scenario, having, scenario_of
from simulations.world.shrink import EXTRAS, fails_alike, lines, shrunk

SEEDS = 400
"""Seeds of a run by default: each kind of fault is on in two of five, and surely seen."""
SYNCED_EVERY = 17
"""Every seventeenth seed has a scan over the fleet with local events: an odd number, for seeds that
are even, or multiples of four, differ from others in what befalls them and in what is demanded."""
BRIEF_STEPS, SYNCED_STEPS = 14, 12
"""The most steps with faults of a brief world, and of one with local events: there each event in
order takes an exchange, and all that it has follow one after the other once all is healed. All
faults of a world befall it, sooner one after the other: in a second of CPU that finds more planted
bugs than longer worlds that end before their last faults."""
WHOLE_EVERY, WHOLE_SYNCED_EVERY, FEW = 8, 32, 2
"""Of as many worlds one is whole, for what takes long to go wrong, and of those with local events,
which are the dearest; and each with so few structural faults, which is drawn for the last one."""
MESSAGES = ("loss", "doubled", "delayed", "unsent", "unanswered")
"""What befalls messages: it is counted apart from structural faults."""
RARE = 200
"""Seeds from which on every kind of fault must have been seen."""
GOAL_SEEDS, GOAL_FAULTS = 40_000, 1_000_000
"""What an hour of one processor is to give."""


BARE_ADDITIONS = 20_000_000
"""Additions of the bare loop; a fourth of them is measured before the seeds, and one after."""
COLLECTED_SEEDS = 20
"""Seeds between two collections of garbage: a world is a few megabytes of it, in circles."""


def main(argv: Sequence[str] | None = None) -> int:
    """Explore; return 1 where a seed failed, or a kind of fault was not seen."""
    parser = parser_of("simulations.explore", __doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, default=3_600, help="CPU seconds, at most")
    parser.add_argument("--seed", type=int, help="replay one seed and show its schedule")
    parser.add_argument("--only", default="", help="kinds of faults, by comma; else all")
    parser.add_argument("--without", default="", help="kinds of faults to leave out")
    parser.add_argument(
        "--having", default="", help=f"what each run is to have, by comma: {', '.join(EXTRAS)}"
    )
    arguments = parser.parse_args(argv)
    wanted = _names(arguments.only) or list(KINDS)
    unwanted = _names(arguments.without)
    unknown = {*wanted, *unwanted}.difference(KINDS)
    if unknown:
        parser.error(f"no fault {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    kinds = tuple(kind for kind in KINDS if kind in wanted and kind not in unwanted)
    extras = _names(arguments.having)
    if not set(extras) <= set(EXTRAS):
        parser.error(f"no run can have {arguments.having}; there are {', '.join(EXTRAS)}")

    def drawn(seed: int) -> Scenario:
        return _explored(having(scenario_of(seed, kinds), extras), is_whole=bool(extras))

    if arguments.seed is not None:
        return _replay(drawn(arguments.seed))
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    return _explore(list(map(drawn, seeds)), arguments, kinds)


def _explored(scenario: Scenario, *, is_whole: bool) -> Scenario:
    """Return the scenario as it is explored: some have local events, and most are brief.

    Args:
        scenario: as its seed draws it.
        is_whole: none is brief, as where it was asked what runs are to have.
    """
    if scenario.synced or scenario.seed % SYNCED_EVERY == 0:
        scenario = synced(scenario)
    most, every = BRIEF_STEPS, WHOLE_EVERY
    if scenario.synced:
        most, every = SYNCED_STEPS, WHOLE_SYNCED_EVERY
    is_whole = is_whole or scenario.seed // SYNCED_EVERY % every == 0
    if is_whole or len(scenario.schedule) <= FEW or scenario.steps <= most:
        return scenario

    def sooner(step: int) -> int:
        return -(-step * most // scenario.steps)

    schedule = tuple(
        sorted([fault._replace(step=sooner(fault.step)) for fault in scenario.schedule])
    )
    return replace(scenario, steps=most, schedule=schedule, joins_at=sooner(scenario.joins_at))


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _replay(scenario: Scenario) -> int:
    outcome = run(scenario)
    say("\n".join(lines(outcome.scenario)))
    say(f"settled after {outcome.settled_steps} steps; trace {outcome.trace[:16]}")
    if outcome.trouble:
        _show(outcome, "")
    return bool(outcome.trouble)


def _explore(
    scenarios: Sequence[Scenario], arguments: argparse.Namespace, kinds: tuple[str, ...]
) -> int:
    bare_s, run_s, seen = _bare_loop_s(), 0.0, Counter[str]()
    began_s = time.process_time()
    failed = done = 0
    for scenario in scenarios:
        before_s = time.process_time()
        outcome = run(scenario)
        run_s += time.process_time() - before_s  # shrinking is not counted
        done += 1
        if done % COLLECTED_SEEDS == 0:
            gc.collect()
        seen.update(outcome.seen)
        if outcome.trouble:
            failed += 1
            _show(outcome, _options(arguments))
        if time.process_time() - began_s > arguments.seconds:
            break
    unseen = [kind for kind in kinds if not seen[kind]] if done >= RARE else []
    _summary(seen, done, run_s, (bare_s + _bare_loop_s()) / 2)
    if unseen:
        say(f"RED: never seen in {done} seeds: {', '.join(unseen)}")
    say(f"{failed} of {done} seeds failed")
    return bool(failed or unseen)


def _options(arguments: argparse.Namespace) -> str:
    only = f" --only {arguments.only}" if arguments.only else ""
    only += f" --without {arguments.without}" if arguments.without else ""
    return only + (f" --having {arguments.having}" if arguments.having else "")


def _show(outcome: RunOutcome, options: str) -> None:
    """Print what went wrong in a run, how to replay it, and the faults that matter."""
    say(f"seed {outcome.scenario.seed}: {outcome.trouble[0]}")
    say(f"  replay: python -m simulations.explore --seed {outcome.scenario.seed}{options}")
    alike = fails_alike(outcome.trouble, lambda candidate: run(candidate).trouble)
    small = shrunk(outcome.scenario, alike)
    say("\n".join(f"  {line}" for line in lines(small)))


def _bare_loop_s() -> float:
    """Return the CPU seconds that a loop of additions takes here, now."""
    began_s, total = time.process_time(), 0
    while total < BARE_ADDITIONS // 4:
        total += 1
    return 4 * (time.process_time() - began_s)


def _summary(seen: Counter[str], done: int, cpu_s: float, bare_s: float) -> None:
    for kind, count in sorted(seen.items()):
        say(f"{kind:>18} {count:>9,}")
    faults = sum(count for kind, count in seen.items() if kind not in MESSAGES)
    hours = cpu_s / 3_600
    say(f"{done:,} seeds in {cpu_s:.1f} CPU-seconds, {faults:,} structural faults")
    say(f"an hour of one processor: {done / hours:,.0f} seeds (goal {GOAL_SEEDS:,}),")
    say(f"  {faults / hours:,.0f} structural faults (goal {GOAL_FAULTS:,})")
    say(f"a bare loop of {BARE_ADDITIONS:,} additions: {bare_s:.2f} CPU-seconds,")
    say(f"  in which {done / cpu_s * bare_s:.1f} seeds run")


if __name__ == "__main__":
    gc.freeze()
    gc.disable()  # `_explore` collects
    sys.exit(main())
