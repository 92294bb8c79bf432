"""Who is missing in rows of results over the fleet, by the rows' times: the rule of windows.

A row is that of a window which ends behind its time. One that the frontier has passed names the
devices that had not promised past it, and those of which a stretch of readings may be missing. A
tentative one names those that it was not waited for, where X is over for it. Of a row only its own
time counts, not the past that its state came from. At an event in order of a scan with local events
a row names those, too, without whose part that is stepped (`lasp_edge.ordered.gathering`).

    >>> from lasp_edge.protocol.frontier import AwaitedDevices
    >>> devices = AwaitedDevices((), 90, (("attic", 20), ("cellar", 90)))
    >>> absences = RowAbsences(lambda: devices, {})
    >>> absences.any_before(20), absences.any_before(21)
    (False, True)
    >>> absences.names((19, "", (), ()), "final"), absences.names((20, "", (), ()), "final")
    ((), ('attic',))
"""

from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import Final

from crdts.frontier import Promise
from lasp_edge.ordered.cells import CELL_US, cell_of
from lasp_edge.ordered.gathering import Gathering, OrderedRecord
from lasp_edge.ordered.places import Place
from lasp_edge.protocol.frontier import AwaitedDevices, reach_us
from lasp_edge.protocol.limits import LATEST_PANE_US
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.window_rows import listed

Stretch = tuple[str, tuple[int, int]]
"""A device, and from when until when readings of it may be missing; the end is excluded."""

NO_TIMES: Final = range(0)


class RowAbsences:
    """Who is missing in the rows of a turn, and which rows name a device that has come back.

    Args:
        awaited: returns for whom rows wait; it is asked once, and only where a row needs it.
        promises: of each device, by `lasp_edge.protocol.lost_stores.unvoided`.
        lacking: of which devices a stretch of readings may be missing, and until when.
        tentative: up to which time F has come and up to which rows are due, where rows wait for X;
            else rows that are not final name nobody.
        caught_up: the ends of windows that devices have promised past since F has passed them; see
            `lasp_edge.protocol.frontier.caught_up`.
        lost: those of `lacking` of which another store of the device had more.
        grown: the times of these that are known only now.
        floor_us: what is older stays as it is: late readings are not taken there any more.

    Attributes:
        again: the times of the final rows that may have to name others since this turn.
        is_more: whether a row that names nobody may have to name somebody since then.
        lost_us: device -> of which stretch of time readings of it may be missing.
        reached_us: rows before it may have been final, though an answer is open again.
    """

    def __init__(
        self,
        awaited: Callable[[], AwaitedDevices],
        promises: Mapping[str, Promise],
        lacking: Iterable[Stretch] = (),
        *,
        tentative: tuple[int | None, int | None] = (None, None),
        caught_up: range = NO_TIMES,
        lost: Iterable[Stretch] = (),
        grown: range = NO_TIMES,
        floor_us: int = 0,
    ) -> None:
        self._awaited, self._promises = awaited, promises
        self._lacking, self._lost, self._tentative = tuple(lacking), tuple(lost), tentative
        self.again, self.is_more = NO_TIMES, bool(grown)
        several = [range(caught_up.start - 1, caught_up.stop - 1), grown]
        if spans := [each for each in several if each]:
            first_us = min(each.start for each in spans)
            self.again = range(max(floor_us, first_us), max(each.stop for each in spans))
        self.lost_us = dict(self._lacking)
        self.gathered: tuple[Gathering, ...] = ()
        self.answered_us = frozenset[int]()
        self.reached_us: int | None = None

    def at_answers(
        self, gathered: Iterable[Gathering], frontier_us: int | None = None
    ) -> "RowAbsences":
        """Return the same for rows that are made of some scans with local events.

        Args:
            gathered: the events in order of the scans.
            frontier_us: see `reached_us`.
        """
        found = copy(self)
        found.gathered, found.reached_us = tuple(gathered), frontier_us
        found.answered_us = frozenset().union(*(each.completed_us for each in found.gathered))
        return found

    def not_waited(self, promises: Container[str]) -> frozenset[str]:
        """Return the devices that count and of which no promise is waited for."""
        return frozenset(at for at, _ in self._devices.promised if at not in promises)

    @cached_property
    def _devices(self) -> AwaitedDevices:
        frontier_us, due_us = self._tentative
        return self._awaited().led_by(frontier_us, due_us)

    @cached_property
    def _stretches(self) -> list[Stretch]:
        behind = [(device, (at_us, LATEST_PANE_US)) for device, at_us in self._devices.promised]
        return [*behind, *self._lacking]

    @cached_property
    def _first_us(self) -> int:
        """The first time at which somebody is missing."""
        return min([since_us for _, (since_us, _) in self._stretches], default=LATEST_PANE_US)

    @cached_property
    def _passed(self) -> "_NamesByTime":
        times_us = {time_us for _, span_us in self._stretches for time_us in span_us}
        return _NamesByTime(times_us, self._missing_at)

    def _missing_at(self, time_us: int) -> tuple[str, ...]:
        found = {at for at, (since_us, end_us) in self._stretches if since_us <= time_us < end_us}
        return tuple(sorted(found))

    @cached_property
    def _waited(self) -> "_NamesByTime":
        devices = self._devices
        times_us = {each.low_us for each in devices.devices} | {devices.lead_us}
        times_us.update(each.former_us for each in devices.devices)
        return _NamesByTime(times_us, lambda time_us: devices.before(time_us + 1))

    def any_before(self, frontier_us: int | None) -> bool:
        """Return whether a row before the frontier may name somebody, or a tentative one."""
        passed_us, due_us = self._tentative
        if due_us is not None and (passed_us is None or due_us > passed_us):
            return True
        if any(each.lacks_any for each in self.gathered):
            return True
        ends_us = [each for each in (frontier_us, self.reached_us) if each is not None]
        return bool(ends_us) and self._first_us < max(ends_us)

    def names(self, place: Place, status: str) -> tuple[str, ...]:
        """Return who is missing in a row of a status, sorted."""
        if status != TENTATIVE:
            found = self._passed.at(place[0])
        else:
            due_us = self._tentative[1]
            if due_us is None or place[0] >= due_us:
                return ()
            found = self._waited.at(place[0])
        for each in self.gathered:
            lacks = _lacked_at(each.records, place)
            if not lacks <= set(found):
                found = tuple(sorted({*found, *lacks}))
        return found

    @property
    def any_again(self) -> bool:
        """Whether a final row may have to name others, as devices have spoken."""
        return bool(self.again or self.answered_us)

    def is_again(self, time_us: int) -> bool:
        """Return whether a row of a time may do so."""
        return time_us in self.again or time_us in self.answered_us

    def again_before(self, end_us: int) -> Iterator[tuple[int, int]]:
        """Yield the spans of cells before a time that may hold such rows."""
        first_us, last_us = cell_of(self.again.start), min(end_us, self.again.stop)
        if first_us < last_us:
            yield first_us, last_us
        for cell_us in sorted({cell_of(each) for each in self.answered_us}):
            if cell_us < end_us and not (self.again and first_us <= cell_us < last_us):
                yield cell_us, cell_us + CELL_US

    def renames(self, place: Place, status: str, excluded: Iterable[str]) -> bool:
        """Return whether a row of a status is to name others than before.

        A device that it names has sent all up to its time since, or readings of another one may be
        missing, as is known now. One that counts no more, as it was retired, or is not in the
        roster, has sent nothing.
        """
        time_us, known, named = place[0], self._promises, {*excluded}
        lost = {at for at, (since_us, end_us) in self._lost if since_us <= time_us < end_us}
        if lost and listed(named | lost) != listed(named):
            return True
        sent = {each for each in named if time_us < reach_us(known.get(each))}
        return not sent <= set(self.names(place, status))


class _NamesByTime:
    """Names that change at few times.

    Args:
        times_us: when they may change.
        names: gives those at a time.
    """

    def __init__(self, times_us: Iterable[int], names: Callable[[int], tuple[str, ...]]) -> None:
        self._times_us, self._names = sorted(times_us), names
        self._found: dict[int, tuple[str, ...]] = {}

    def at(self, time_us: int) -> tuple[str, ...]:
        """Return the names at a time."""
        number = bisect_right(self._times_us, time_us)
        found = self._found.get(number)
        if found is None:
            found = self._found[number] = self._names(time_us)
        return found


def _lacked_at(records: Mapping[Place, OrderedRecord], place: Place) -> frozenset[str]:
    """Return whom the event in order lacks from which a row at a place was made."""
    time_us, device, tie, path = place
    for length in range(len(path), -1, -1):
        record = records.get((time_us, device, tie, path[:length]))
        if record is not None:
            return record.missing
    return frozenset()
