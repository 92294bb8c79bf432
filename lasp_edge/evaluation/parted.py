"""Scans with local events at an evaluator: what is gathered of each, and kept in the store.

After each evaluation some places have all their answers: they are marked, and the scan goes on from
there, until no other place is whole. What is stored of a cell are its events in order, and a number
that grows whenever they change: the version of what is published.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple

from crdts.frontier import BOTTOM_US, Promise
from lasp_edge.evaluation.stored import HistoryId, HistoryRow
from lasp_edge.language.halves import marks_of, parted_scans, shares_stream
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import FLEET
from lasp_edge.ordered.answers import PartAnswer
from lasp_edge.ordered.cells import CELL_US, CellId, cell_of
from lasp_edge.ordered.deltas import Delta, compose_into
from lasp_edge.ordered.gathered import answers_of
from lasp_edge.ordered.gathering import Gathering, OrderedRecord, Promised, Waited
from lasp_edge.ordered.inputs import InputCell, TakenItem, inserted_cells
from lasp_edge.ordered.item_store import FOR_EVER_US
from lasp_edge.ordered.log import BEFORE_ALL_US
from lasp_edge.ordered.parted import sent_at
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import decoded, encoded
from lasp_edge.ordered.reopening import reopen
from lasp_edge.ordered.sent_outputs import OutputItem
from lasp_edge.protocol.frontier import Coverage
from lasp_edge.protocol.limits import LATEST_PANE_US
from lasp_edge.protocol.shares import short_stream, version_of

MOST_AN_HOUR: Final = 2_000
"""Events in order of a scan in an hour: behind them it stops, and that is counted."""
HOUR_US: Final = 3_600_000_000
MOST_FAILURES: Final = 100
"""Reasons that are counted apart, at most."""

SELDOM: Final = 64
"""A cell that is not answered for long is published again after this many rounds: an hour."""

RAISED_BITS: Final = 9
"""Bits by which the version grows faster each time that a cell is published again: it is above any
other one after two hours."""

StoredCells = Callable[[str, int, int], Iterable[tuple[CellId, InputCell]]]
"""Returns the stored cells of an input from one time to another."""


class SharedCell(NamedTuple):
    """The events in order of a scan and a cell.

    Attributes:
        number: it grows whenever they change.
        records: by place.
    """

    number: int
    records: Mapping[Place, OrderedRecord]


def packed_cell(cell: SharedCell) -> bytes:
    """Return the bytes of a cell in a store."""
    rows = tuple(
        (*place, *record[: _kept_fields(record)]) for place, record in sorted(cell.records.items())
    )
    return encoded((cell.number, rows))


def _kept_fields(record: OrderedRecord) -> int:
    """Return how many fields of a record are stored: without the last ones that are empty."""
    return len(record) - (0 if record.failed else 1 if record.lacks else 2)


def cell_in_store(packed: bytes) -> SharedCell:
    """Return the cell whose bytes a store has."""
    number, rows = decoded(packed)
    return SharedCell(number, {tuple(row[:4]): OrderedRecord(*row[4:]) for row in rows})


def _reasons(name: str, failures: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield for people what failed at events in order of a scan: parts of devices, or its step."""
    for device, why in failures:
        yield f"{name}: the part of {device} is refused: {why}" if device else f"{name}: {why}"


class PartedScans:
    """The scans with local events of a program, at an evaluator.

    Args:
        plan: the program.
        read: reads what a store keeps of a stream.
        put: stores it.
        stored: returns the stored cells of an input.

    Attributes:
        numbers: scan and cell -> the number of what is stored of it: the version when it is
            published.
        shown: scan and cell -> the number that it had when devices last saw something else in it,
            since this process began.
        unpublished: the cells that have changed; whoever publishes them takes them out.
        failed: what has stopped a scan -> how often.
        least: the least number of a cell that changes: seconds of a clock, so that a store that was
            put back goes on above what it has published.
    """

    def __init__(
        self,
        plan: Plan,
        read: Callable[[int, int, int], Iterable[tuple[int, HistoryRow]]],
        put: Callable[[HistoryId, HistoryRow], None],
        stored: StoredCells,
    ) -> None:
        self._plan, self._read, self._put, self._stored = plan, read, put, stored
        self.scans = parted_scans(plan)
        self._streams = {name: shares_stream(plan, name) for name in self.scans}
        self._of_marks = {marks_of(f"{name}: "): name for name in self.scans}
        self.gathered: dict[str, Gathering] = {}
        self._cells: dict[str, dict[int, set[Place]]] = {}
        self.numbers: dict[tuple[str, int], int] = {}
        self.shown: dict[tuple[str, int], int] = {}
        self.unpublished: dict[tuple[str, int], None] = {}
        self.failed: Counter[str] = Counter()
        self._of_hour: Counter[tuple[str, int]] = Counter()
        self.least = 1
        self._repeated: dict[tuple[str, int], int] = {}
        self._overtaken: dict[str, dict[int, bool]] = {}
        self._passed_us = BEFORE_ALL_US

    def begin(self, floor_us: int = BEFORE_ALL_US) -> None:
        """Take what is stored; all that is not settled, with its answers.

        Args:
            floor_us: nothing before it is taken any more.
        """
        for name, stream in self._streams.items():
            records: dict[Place, OrderedRecord] = {}
            self._cells[name] = {}
            for cell_us, row in self._read(stream, BEFORE_ALL_US, FOR_EVER_US):
                number, found = cell_in_store(row.content)
                self.numbers[name, cell_us] = number
                self._cells[name][cell_us] = set(found)
                self._of_hour[name, cell_us // HOUR_US] += len(found)
                records |= found
            opened = {cell_of(place[0]) for place, each in records.items() if not each.answered}
            answers = self._answers(name, {each for each in opened if each >= floor_us})
            scan = self._plan.functions.streams[name]
            self.gathered[name] = Gathering(scan, records, answers)
        self.forget(floor_us)

    def _answers(self, name: str, cells: Collection[int]) -> dict[Place, dict[str, PartAnswer]]:
        """Return the stored answers in some cells."""
        leaf, found = f"{name}: leaf", dict[Place, dict[str, PartAnswer]]()
        for cell_us in cells:
            stored = dict(self._stored(leaf, cell_us, cell_us + 1))
            answers = inserted_cells({leaf: None}, stored)[leaf]
            content = {place: new for place, (_, new) in answers.items()}
            for place, answer in answers_of(content, self._cells[name].get(cell_us, ())):
                found.setdefault(place, {})[answer.device] = answer
        return found

    def forget(self, floor_us: int) -> None:
        """Let go of memory what is before a time and has no use any more; of the store it goes too.

        Args:
            floor_us: nothing before it is taken any more; where a cell begins.
        """
        for name, gathering in self.gathered.items():
            gathering.forget(floor_us)
            cells = self._cells[name]
            for cell_us in [each for each in cells if each < floor_us]:
                cells[cell_us] &= gathering.records.keys()
                if not cells[cell_us]:
                    del cells[cell_us]
                    self.numbers.pop((name, cell_us), None)
                    self.shown.pop((name, cell_us), None)

    @property
    def inputs(self) -> Iterable[str]:
        """The inputs of the streams that hold marks."""
        return self._of_marks

    def has(self, event: str) -> bool:
        """Return whether an input of the streams is what this marks."""
        return event in self._of_marks

    def marks(self, event: str, least_us: int, end_us: int) -> Iterator[tuple[CellId, InputCell]]:
        """Yield the stored marks as cells of an input."""
        stream = self._streams[self._of_marks[event]]
        for cell_us, row in self._read(stream, least_us, end_us):
            number, records = cell_in_store(row.content)
            marks = {
                sent_at(place): ((number, 0, 0), (event, record.mark, record.key, ""))
                for place, record in records.items()
                if record.mark
            }
            yield CellId(event, FLEET, cell_us), marks

    def settle(
        self,
        deltas: dict[str, Delta],
        take: Callable[[list[TakenItem]], dict[str, Delta]],
        waited: Waited,
        frontier_us: int | None,
    ) -> None:
        """Mark complete events in order, and those that follow from them, until no more are.

        Args:
            deltas: how the streams have changed; it is changed in place.
            take: lets the engine take marks, and returns how the streams change.
            waited: for whose answers.
            frontier_us: how far all that count had promised.
        """
        self._passed_us = BEFORE_ALL_US if frontier_us is None else frontier_us
        self._gather(deltas)
        while marks := self._marks(waited, frontier_us):
            found = take(marks)
            self._gather(found)
            for name, delta in found.items():
                compose_into(deltas.setdefault(name, {}), delta)

    def _gather(self, deltas: Mapping[str, Delta]) -> None:
        for name, gathering in self.gathered.items():
            gathered, root = (deltas.get(f"{name}: {part}", {}) for part in ("gathered", "root"))
            if gathered or root:
                gathering.take(gathered, root)
                self._store(name)
                # Devices may send ever new reasons.
                for reason in _reasons(name, gathering.failures):
                    if reason in self.failed or len(self.failed) < MOST_FAILURES:
                        self.failed[reason] += 1
                gathering.failures.clear()

    def _marks(self, waited: Waited, frontier_us: int | None) -> list[TakenItem]:
        found: list[TakenItem] = []
        for event, name in self._of_marks.items():
            answers = partial(self._answers, name)
            reopen(self.gathered[name], waited.promises.keys(), waited.floor_us, answers)
            marks = self.gathered[name].marks(waited, frontier_us)
            self._store(name)
            for place, mark in sorted(marks.items()):
                if self._of_hour[name, place[0] // HOUR_US] > MOST_AN_HOUR:
                    self.failed[f"{name}: over {MOST_AN_HOUR:,} events in order in an hour"] = 1
                    continue
                key = self.gathered[name].records[place].key
                # Its cell has a greater number once the mark is there.
                number = self._next(name, cell_of(place[0]))
                content = (event, mark, key, "") if mark else None
                found.append(OutputItem(event, sent_at(place), FLEET, (number, 0, 0), content))
        return found

    def _store(self, name: str) -> None:
        """Store the cells of which something has changed."""
        gathering, cells = self.gathered[name], self._cells[name]
        changed, gathering.changed = gathering.changed, set()
        news, gathering.news = {cell_of(place[0]) for place in gathering.news}, set()
        overtaken = self._overtaken.setdefault(name, {})
        for cell_us in sorted({cell_of(place[0]) for place in changed} | overtaken.keys()):
            here = cells.setdefault(cell_us, set())
            before = len(here)
            here |= {place for place in changed if cell_of(place[0]) == cell_us}
            self._of_hour[name, cell_us // HOUR_US] += len(here) - before
            records = {p: gathering.records[p] for p in here if p in gathering.records}
            if not records and overtaken.get(cell_us) and cell_us + CELL_US > self._passed_us:
                continue  # its events are still to come
            number = self.numbers[name, cell_us] = self._next(name, cell_us)
            if cell_us in news or cell_us in overtaken:
                overtaken.pop(cell_us, None)
                self.shown[name, cell_us] = number
                self.unpublished[name, cell_us] = None
            if cell_us in news:
                self._repeated.pop((name, cell_us), None)
            content = packed_cell(SharedCell(number, records))
            end_us = max(map(gathering.needed_until_us, records), default=0)
            at = HistoryId(cell_us, self._streams[name])
            self._put(at, HistoryRow(max(cell_us + CELL_US, end_us), content))

    def _next(self, name: str, cell_us: int) -> int:
        return max(self.least, self.numbers.get((name, cell_us), 0) + 1)

    def overtake(self, stream: int, cell_us: int, version: int, *, of_former: bool = True) -> None:
        """Publish a cell above a version of it that somebody else has published in this name.

        Args:
            stream: of the scan, as it travels.
            cell_us: the start of the cell.
            version: its version.
            of_former: another run did, perhaps of another store. A cell without events waits until
                they have come, or the frontier has passed: then it has none.
        """
        for name, each in self._streams.items():
            number = self.numbers.get((name, cell_us), 0)
            if short_stream(each) == stream and version >= version_of(number):
                self._overtake(name, cell_us, version, waits=of_former)

    def _overtake(self, name: str, cell_us: int, number: int, *, waits: bool) -> None:
        self.numbers[name, cell_us] = max(number, self.numbers.get((name, cell_us), 0))
        self._cells[name].setdefault(cell_us, set())
        self._overtaken.setdefault(name, {})[cell_us] = waits

    def publish_all(self) -> None:
        """Publish all again, but for cells whose events are still to come."""
        waits = self._overtaken
        for name, cell_us in self.numbers:
            if not waits.get(name, {}).get(cell_us):
                self.unpublished[name, cell_us] = None

    def repeat(self) -> None:
        """Publish again what some device may not have received, each cell ever less often.

        Each time by a version that is farther above the one before: somebody else may have
        published a greater one in this name, when nobody was here to hear it.
        """
        asked = {
            (name, cell_of(place[0]))
            for name, gathering in self.gathered.items()
            for place in gathering.asked()
        }
        self._repeated = {at: self._repeated.get(at, -1) + 1 for at in asked}
        for at, count in self._repeated.items():
            if count and (count & (count - 1) == 0 or count % SELDOM == 0):
                above = self.numbers[at] + (1 << RAISED_BITS * (count.bit_length() - 1))
                self._overtake(*at, version_of(above), waits=False)

    def settled_us(self, names: Iterable[str], frontier_us: int | None) -> int | None:
        """Return the time before which some scans are settled, under a frontier."""
        if frontier_us is None:
            return None
        return min([frontier_us, *(self.gathered[name].settled_us(frontier_us) for name in names)])

    def unanswered(self, before_us: int) -> tuple[str, ...]:
        """Return the scans with events in order before a time of which no device answered any."""
        first_us = {name: each.unanswered_us for name, each in self.gathered.items()}
        return tuple(name for name, us in first_us.items() if us is not None and us < before_us)

    def records(self, name: str, cell_us: int) -> dict[Place, OrderedRecord]:
        """Return the events in order of a cell."""
        known = self.gathered[name].records
        return {p: known[p] for p in self._cells[name].get(cell_us, ()) if p in known}


def promises_of(promises: Mapping[str, Promise], coverage: Coverage) -> dict[str, Promised | None]:
    """Return the newest promise of each device that counts; who is done promises everything."""
    _, expected, excluded = coverage
    return {
        device: _promised(promises.get(device)) for device in expected if device not in excluded
    }


def _promised(promise: Promise | None) -> Promised | None:
    if promise is None:
        return None
    (incarnation, _, beats), low_us, done, _ = promise
    low_us = BOTTOM_US if low_us is None else low_us
    return Promised(incarnation, beats, LATEST_PANE_US if done else low_us)


def made_of(plan: Plan, scans: Collection[str]) -> dict[str, frozenset[str]]:
    """Return of each stream over the fleet the scans with local events that it is made of."""
    found: dict[str, frozenset[str]] = {}
    for name, each in plan.fleet_streams.items():
        own = frozenset([name]) if name in scans else frozenset[str]()
        found[name] = own.union(*(found.get(source, frozenset()) for source in each.sources))
    return found
