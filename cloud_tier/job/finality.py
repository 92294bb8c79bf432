"""How sure windows are in a step: how far F has come, which are due, which devices are missing.

The rules are those of `lasp_edge.protocol`, over all rows that were merged. What varies from step
to step is data: SQL compares a window's end with it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from cloud_tier.job.job import Job
from cloud_tier.job.lives import DeviceLives
from crdts.frontier import BOTTOM_US
from lasp_edge.protocol.accepted import Begun
from lasp_edge.protocol.frontier import (
    AwaitedDevices,
    Coverage,
    Liveness,
    advance,
    awaited,
    is_listening,
)
from lasp_edge.protocol.lost_stores import LackingStretches, LostStretch, touching
from lasp_edge.protocol.owed import owing
from lasp_edge.protocol.waiting import WindowWaiting
from lasp_edge.protocol.window_rows import listed

BEFORE_ALL_US: Final = -(2**63)
AFTER_ALL_US: Final = 2**63 - 1
"""Before and after the end of each window."""


class MissingUntil(NamedTuple):
    """The devices that are missing in the windows that end in a stretch of time.

    Attributes:
        after_us, until_us: the stretch; the former is excluded.
        devices: the first of their names, as a row has them.
        number: how many there are.
        left_out: the same of those that are left out of windows as far as F has passed them, or
            that may lack readings in them.
        left_out_number: how many these are.
        either: the same of those that are one or the other.
        either_number: how many these are.
    """

    after_us: int
    until_us: int
    devices: str
    number: int
    left_out: str
    left_out_number: int
    either: str
    either_number: int


class MissingDevices:
    """The devices that are missing in windows, by the windows' ends.

    They are those of `AwaitedDevices.before` and `AwaitedDevices.behind`, and those of which
    readings may be missing. They change where an end passes a device's promise, or a window of some
    size begins or ceases to share time with what a lost store had, and nowhere else. So the ends of
    a step's windows fall into few stretches, however many rows the windows have.

    Args:
        awaited: for whom windows wait.
        frontier: F; None is bottom.
        lacking: of which devices readings may be missing, and of which stretch.

    >>> from lasp_edge.protocol.frontier import AwaitedDevice
    >>> devices = (AwaitedDevice("a", 30, 30), AwaitedDevice("b", 12, 12))
    >>> missing = MissingDevices(AwaitedDevices(devices, 40), 10)
    >>> for each in missing.stretches(40, 10, [range(10, 60, 10)]):
    ...     print(each.until_us, repr(each.devices))
    12 ''
    30 'b'
    40 'a,b'
    9223372036854775807 ''
    """

    def __init__(
        self,
        awaited: AwaitedDevices,
        frontier: int | None,
        lacking: Sequence[tuple[str, LostStretch]] = (),
    ) -> None:
        devices, self._lacking = awaited.devices, lacking
        self._formers = sorted((each.former_us, each.device) for each in devices)
        self._lows = sorted((each.low_us, each.device) for each in devices)
        behind = awaited.behind(BEFORE_ALL_US if frontier is None else frontier)
        self._behind = sorted((at_us, device) for device, at_us in behind)
        promised = (*self._formers, *self._lows, *self._behind)
        self._promised_us = {at_us for at_us, _ in promised}

    def stretches(
        self,
        lead_us: int,
        size_us: int,
        ends: Iterable[range],
        begun: Sequence[tuple[str, LostStretch]] = (),
    ) -> Iterator[MissingUntil]:
        """Yield stretches that cover all time; two without an end between them are one.

        Args:
            lead_us: the furthest that any device has promised.
            size_us: of the windows.
            ends: of the windows.
            begun: see `StepFinality.begun_of`.
        """
        lacking = [*self._lacking, *begun]
        lost_us = {
            us for _, (since_us, until_us) in lacking for us in (since_us, until_us + size_us - 1)
        }
        changes_us = sorted({lead_us, *self._promised_us, *lost_us})
        end_of: dict[int, int] = {}
        for several in ends:
            at = 0
            while at < len(several):
                place = bisect_left(changes_us, several[at])
                end_of[place] = several[at]
                last = place == len(changes_us)
                at = len(several) if last else bisect_right(several, changes_us[place], at)
        after_us, places = BEFORE_ALL_US, sorted(end_of)
        for number, place in enumerate(places, 1):
            until_us = changes_us[place] if number < len(places) else AFTER_ALL_US
            missing = self._before(end_of[place], lead_us)
            left_out = _promised_before(self._behind, end_of[place])
            left_out |= touching(lacking, end_of[place] - size_us, end_of[place])
            either = _counted(missing | left_out)
            names = (*_counted(missing), *_counted(left_out), *either)
            yield MissingUntil(after_us, until_us, *names)
            after_us = until_us

    def _before(self, end_us: int, lead_us: int) -> set[str]:
        if end_us > lead_us:
            return set()
        return _promised_before(self._formers, end_us) or _promised_before(self._lows, end_us)


def _counted(devices: Collection[str]) -> tuple[str, int]:
    return listed(devices), len(devices)


def _promised_before(promised: Sequence[tuple[int, str]], end_us: int) -> set[str]:
    return {device for _, device in promised[: bisect_left(promised, (end_us, ""))]}


class StepFinality(NamedTuple):
    """How sure it is that a window is whole.

    Attributes:
        coverage: how far results are final, and over whom.
        due_us: window -> the end up to which it is due; None if no window is.
        missing: the devices that are missing in windows.
        lead_us: window -> the furthest that any device has promised.
        awaited: for whom windows, and rows of results over the fleet, wait.
        lacking: of which devices readings may be missing.
        begun: device -> the windows that lack readings of it, and from when on all are there.
    """

    coverage: Coverage
    due_us: Mapping[str, int | None]
    missing: MissingDevices
    lead_us: Mapping[str, int]
    awaited: AwaitedDevices
    lacking: LackingStretches = LackingStretches()
    begun: Mapping[str, Begun] = MappingProxyType({})

    def begun_of(self, stream: int) -> list[tuple[str, LostStretch]]:
        """Return the devices of which a window lacks readings, and until when."""
        return [
            (device, (BOTTOM_US, since_us))
            for device, each in self.begun.items()
            for of, since_us in each
            if of == stream
        ]


def finality_of(
    job: Job,
    frontier: int | None,
    liveness: Liveness,
    waiting: WindowWaiting,
    lives: DeviceLives,
    before: Mapping[str, LostStretch] = MappingProxyType({}),
) -> StepFinality:
    """Return how sure windows are.

    Args:
        job: the program over the lake.
        frontier: F so far; None is bottom.
        liveness: every promise and tick, and the member commands.
        waiting: since when windows wait.
        lives: of devices, before their present ones.
        before: the stretches of lost stores as they were known when rows were written last.
    """
    terms = (liveness, job.roster, job.dead_after_us)
    due_us = {name: waiting.due_us(wait_us) for name, wait_us in job.waits.items()}
    coverage = advance(frontier, *terms, job.listen_us)
    holding = awaited(*terms).led_by(coverage.frontier)
    led = {n: holding.led_by(waiting.ends_us.get(wait_us)) for n, wait_us in job.waits.items()}
    lead_us = {name: each.lead_us for name, each in led.items()}
    lacking = LackingStretches.of(lives.lost, before, lives.earlier, coverage.expected)
    lacking = lacking.with_those(owing(lives.owed, liveness))
    missing = MissingDevices(holding, coverage.frontier, lacking.lacking)
    begun = {device: each for device, each in lives.begun.items() if device in coverage.expected}
    return StepFinality(coverage, due_us, missing, lead_us, holding, lacking, begun)


def clock_us(job: Job, frontier: int | None, liveness: Liveness) -> int | None:
    """Return the time by which windows become due; None while nobody is late yet."""
    listening = liveness.listening
    is_first = is_listening(frontier, liveness, job.roster, job.listen_us)
    return None if listening is None or is_first else listening.now_us


def become_due(
    job: Job, before: WindowWaiting, waiting: WindowWaiting
) -> dict[str, tuple[int | None, int | None]]:
    """Return up to which end windows were due, and are now; without X they have rows anyhow."""
    return {
        name: (before.due_us(wait_us), waiting.due_us(wait_us))
        for name, wait_us in job.waits.items()
        if wait_us
    }
