"""Tentative within X, proven on real cores: `python -m simulations.tentative`.

Six devices, the real cores and a gateway's core, run on virtual time, a step a second. At one
moment a third of them loses its network, and comes back after an outage. A window of 10 s waits for
X seconds (`lasp_edge.protocol.waiting`). The law, for every draw of X and outage, also where the
gateway is killed meanwhile, or one clock is two hours fast:

- where the outage and the normal delay together are shorter than X no row is ever tentative
- else each first row comes when its window has waited for X, and at most a step later
- a tentative row names devices that are cut off, and no other, unless X is shorter than the delay
- after the outage no row is tentative any more, none was revised, and every window is that of a run
  without an outage: the sum and the number of devices of all readings

The normal delay is the longest time that a window waits where nothing fails. A gateway that is
killed loses what it has not committed, and devices say it again. Since when a window waits is
computed here from the promises that came, all of them, for each window by itself.

Prints the curve of X and outage, and then how many of `--draws` hold.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from random import Random
from typing import Final, NamedTuple

from device_agent.agent.settings import Settings
from device_agent.gateway.core import WaitingTerms
from lasp_edge import Program, folds
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.limits import NEVER, NEVER_US
from lasp_edge.protocol.status import FINAL, REVISED, TENTATIVE
from lasp_edge.protocol.window_rows import FleetRow
from lasp_edge.units import SECOND_US
from simulations.commands import parser_of, say
from simulations.fleet import START_US, STEP_US, Fleet
from simulations.world.faults import FaultRates

SIZE: Final = 6
NAMES: Final = tuple(f"pi-{number}" for number in range(SIZE))
CUT: Final = NAMES[::3]
"""The devices that lose their network."""
FAST: Final = NAMES[-1]
"""The device whose clock may be fast. What it measures is of windows in two hours."""
FAST_S: Final = 7_200
SPAN_S: Final = 10
"""Seconds of a window."""
SPAN_US: Final = SPAN_S * SECOND_US
FAULTS: Final = FaultRates(doubled=0.1, delayed=0.5, delay_steps=2)
"""What befalls messages all the time: half of them are late, by two seconds at most."""
WARM_S, AFTER_S = 35, 35
"""Seconds before the outage, and after it, in which devices measure."""
OUTAGES: Final = (0, 2, 5, 10, 20, 60)
WAITS: Final[tuple[int | None, ...]] = (0, 5, 10, 15, 30, None)
"""X in seconds; None for never."""
USUAL_S: Final = {False: 8.0, True: 15.0}
"""The normal delay in seconds, as the command prints it: of right clocks, and if one is fast."""
AGAIN_S: Final = Settings().keep_alive_us / SECOND_US
"""Seconds until a device says again what was lost with a gateway that is killed."""
SEEDS: Final = 3
"""Runs for each field of the curve."""


class Draw(NamedTuple):
    """What a run is made from.

    Attributes:
        seed: of what is measured, and of all that is drawn.
        wait_s: X; None for never.
        outage_s: how long a third of the devices is cut off.
        restart_s: seconds after the beginning of the outage at which the gateway is killed and
            started again; None for never.
        is_fast: the clock of one device is two hours fast.
    """

    seed: int
    wait_s: int | None
    outage_s: int
    restart_s: int | None = None
    is_fast: bool = False


class MadeRow(NamedTuple):
    """A row, and when it was made."""

    at_us: int
    row: FleetRow


class WaitRun(NamedTuple):
    """What came of a run.

    Attributes:
        rows: all rows in their order.
        since_us: the end of a window -> since when it waits.
        truth: the start of a window -> the sum of its readings, and from how many devices.
        end_us: the end of the last window that is looked at.
    """

    rows: list[MadeRow]
    since_us: dict[int, int]
    truth: dict[int, tuple[int, int]]
    end_us: int

    @property
    def first(self) -> dict[int, MadeRow]:
        """The first row of each window, by its end."""
        found: dict[int, MadeRow] = {}
        for made in self.rows:
            found.setdefault(made.row.end_us, made)
        return found

    def delays_s(self, status: str) -> list[float]:
        """Return for how long windows waited whose first row has this status, in seconds."""
        return [
            (made.at_us - self.since_us[end_us]) / SECOND_US
            for end_us, made in self.first.items()
            if made.row.status == status and end_us in self.since_us
        ]

    @property
    def tentative(self) -> int:
        """How many windows were tentative first."""
        return sum(made.row.status == TENTATIVE for made in self.first.values())


def plan() -> Plan:
    """Return the plan of a program with one window."""
    program = Program("waits")
    reading = program.event("reading")
    program.window("sums", source=reading, fold=folds.sum(), size_s=SPAN_S)
    return program.plan()


PLAN: Final = plan()


def run_of(draw: Draw) -> WaitRun:
    """Run a fleet through an outage, and on until every window of its readings is final."""
    wait_us = NEVER_US if draw.wait_s is None else draw.wait_s * SECOND_US
    terms = WaitingTerms(NAMES, 3_600 * SECOND_US, tentative_after_us=wait_us)
    settings = Settings(trust_clock=draw.is_fast)  # else the others would outvote it
    fleet = Fleet(PLAN, size=SIZE, seed=draw.seed, faults=FAULTS, settings=settings, terms=terms)
    try:
        return _Run(fleet, draw).ended()
    finally:
        fleet.close()


class _Run:
    """A run, step by step."""

    def __init__(self, fleet: Fleet, draw: Draw) -> None:
        self._fleet, self._draw, self._random = fleet, draw, Random(draw.seed)
        self._rows: list[MadeRow] = []
        self._seen: dict[int, int] = defaultdict(int)
        self._promised: dict[tuple[int, int], None] = {}
        self._truth: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        if draw.is_fast:
            clock = fleet.devices[FAST].clock
            clock.jump(FAST_S)
            clock.wrong = False  # nothing tells the device so
            fleet.befall("store_lost", FAST, 0)  # it never had another time
            fleet.world.wake(FAST, fleet.devices[FAST])

    def ended(self) -> WaitRun:
        """Return what came of it."""
        draw, fleet = self._draw, self._fleet
        for second in range(WARM_S + draw.outage_s + AFTER_S):
            if second == WARM_S and draw.outage_s:
                for name in CUT:
                    fleet.cut(name, draw.outage_s)
            if draw.restart_s is not None and second == WARM_S + draw.restart_s:
                fleet.befall("lander_crash", amount=0)
            self._measure()
            self._step()
        end_us = fleet.now_us // SPAN_US * SPAN_US
        for _ in range(120):
            frontier_us = fleet.lander.coverage.frontier
            if frontier_us is not None and frontier_us >= end_us:
                break
            self._measure()
            self._step()
        truth = {
            start_us: (sum(values.values()), len(values))
            for start_us, values in self._truth.items()
            if start_us < end_us
        }
        return WaitRun(self._rows, self._since_us(), truth, end_us)

    def _measure(self) -> None:
        fleet = self._fleet
        for name in NAMES:
            value = self._random.randint(0, 100)
            fleet.read(name, "reading", value)
            ahead_us = FAST_S * SECOND_US if self._draw.is_fast and name == FAST else 0
            start_us = (fleet.now_us + ahead_us) // SPAN_US * SPAN_US
            self._truth[start_us][name] += value

    def _step(self) -> None:
        fleet = self._fleet
        fleet.step()
        for at, rows in fleet.lander.revisions.items():
            for row in rows[self._seen[at.start_us] :]:
                self._rows.append(MadeRow(fleet.now_us, row))
            self._seen[at.start_us] = len(rows)
        for promise in fleet.lander.promises.entries.values():
            if promise.low_us is not None:
                self._promised[promise.heard_us, min(promise.low_us, promise.heard_us)] = None

    def _since_us(self) -> dict[int, int]:
        found = {}
        for start_us in self._truth:
            end_us = start_us + SPAN_US
            heard_us = [heard for heard, lead in self._promised if lead >= end_us]
            if heard_us:
                found[end_us] = min(heard_us)
        return found


def normal_s(seed: int, *, is_fast: bool = False) -> float:
    """Return the normal delay of a seed: how long windows wait where nothing fails."""
    return max(run_of(Draw(seed, None, 0, is_fast=is_fast)).delays_s(FINAL))


def broken(draw: Draw, found: WaitRun, usual_s: float) -> Iterator[str]:
    """Yield how a run breaks the law; `usual_s` is the normal delay."""
    wait_s = draw.wait_s
    usual_s += 0.0 if draw.restart_s is None else AGAIN_S
    if (wait_s is None or draw.outage_s + usual_s < wait_s) and found.tentative:
        yield f"{found.tentative} windows were tentative"
    for made in found.rows:
        if made.row.status == REVISED:
            yield f"the window at {_second(made)} was revised"
        is_slow = wait_s is not None and wait_s < usual_s
        if not is_slow and made.row.status == TENTATIVE and set(made.row.excluded) - set(CUT):
            yield f"the window at {_second(made)} waited for {', '.join(made.row.excluded)}"
    yield from _wrong_waits(wait_s, found) if wait_s else ()
    yield from _wrong_end(found)


def _wrong_waits(wait_s: int, found: WaitRun) -> Iterator[str]:
    for end_us, made in found.first.items():
        since_us = found.since_us.get(end_us)
        if since_us is None:
            yield f"the window at {_second(made)} was shown before anybody was done with it"
            continue
        waited_s = (made.at_us - since_us) / SECOND_US
        if waited_s > wait_s + STEP_US / SECOND_US:
            yield f"the window at {_second(made)} waited for {waited_s:g} s"
        if made.row.status == TENTATIVE and waited_s < wait_s:
            yield f"the window at {_second(made)} waited for {waited_s:g} s only"


def _wrong_end(found: WaitRun) -> Iterator[str]:
    current = {made.row.at.start_us: made for made in found.rows}
    for start_us, right in found.truth.items():
        made = current.get(start_us)
        if made is None:
            yield f"the window at {(start_us - START_US) / SECOND_US:g} s has no row"
        elif made.row.status == TENTATIVE:
            yield f"the window at {_second(made)} is tentative at the end"
        elif (made.row.partial[0], made.row.devices_in) != right:
            yield f"the window at {_second(made)} is {made.row.partial[0]}, {made.row.devices_in}"


def draw_of(number: int) -> Draw:
    """Return what a number stands for.

    In each third one the gateway is killed while windows wait, in each fourth a clock is fast.
    """
    random = Random(number)
    wait_s, outage_s = random.randint(6, 40), random.randint(0, 60)
    restart_s = random.randint(1, outage_s + 5) if number % 3 == 0 else None
    return Draw(1_000 + number, wait_s, outage_s, restart_s, is_fast=number % 4 == 1)


def troubles(draw: Draw) -> list[str]:
    """Return how a draw breaks the law."""
    return list(broken(draw, run_of(draw), USUAL_S[draw.is_fast]))


def curve() -> Iterator[str]:
    """Yield the lines of the table: windows that were tentative first, and the longest wait."""
    head = "".join(f"{f'{outage_s} s':>14}" for outage_s in OUTAGES)
    yield f"{'X, outage':>10}{head}"
    for wait_s in WAITS:
        cells = []
        for outage_s in OUTAGES:
            found = [run_of(Draw(seed, wait_s, outage_s)) for seed in range(SEEDS)]
            count = sum(each.tentative for each in found)
            longest_s = max((s for each in found for s in each.delays_s(TENTATIVE)), default=0.0)
            cells.append(f"{f'{count} ({longest_s:g} s)' if count else '0':>14}")
        name = NEVER if wait_s is None else f"{wait_s} s"
        yield f"{name:>10}{''.join(cells)}"


def _second(made: MadeRow) -> str:
    return f"{(made.row.at.start_us - START_US) / SECOND_US:g} s"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the curve, and try the law."""
    parser = parser_of("simulations.tentative", __doc__)
    parser.add_argument("--draws", type=int, default=400, help="of X and outage (default: 400)")
    parser.add_argument("--no-curve", action="store_true", help="only try the law")
    arguments = parser.parse_args(argv)
    right_s, fast_s = usual = [
        max(normal_s(seed, is_fast=is_fast) for seed in range(40)) for is_fast in (False, True)
    ]
    say(
        f"The normal delay: a window waits for {right_s:g} s at most where nothing fails, and for "
        f"{fast_s:g} s where a clock is fast."
    )
    if not arguments.no_curve:
        say(f"Windows that were tentative first, of {SEEDS} runs (the longest wait):")
        for line in curve():
            say(line)
    none, wrong = 0, 0
    for draw in map(draw_of, range(arguments.draws)):
        found = run_of(draw)
        none += not found.tentative
        troubles_found = list(broken(draw, found, usual[draw.is_fast]))
        wrong += bool(troubles_found)
        if troubles_found:
            say(f"{draw}: {troubles_found[0]}")
    held = arguments.draws - wrong
    say(f"{held} of {arguments.draws} draws hold; in {none} of them nothing was tentative.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
