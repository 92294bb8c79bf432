"""The streams over a fleet, evaluated: at a gateway and in the job alike.

Items are taken as they come. Those that are later than what is waited for stay unstepped until the
frontier has passed them, or X is over (`lasp_edge.protocol.waiting`). One time says which of the
stored items were taken: those before it. The others wait. Whatever is behind the frontier is final.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from crdts.frontier import Promise
from lasp_edge.evaluation.history import Read, StreamHistory
from lasp_edge.evaluation.parted import PartedScans, made_of
from lasp_edge.evaluation.reconciling import reconcile
from lasp_edge.evaluation.rows import ResultBook
from lasp_edge.evaluation.stored import HistoryId, HistoryRow
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import FLEET, StreamRow
from lasp_edge.ordered.absences import RowAbsences
from lasp_edge.ordered.cells import CELL_US, CellId, cell_of
from lasp_edge.ordered.deltas import Delta
from lasp_edge.ordered.engine import Rebuilt, StreamEngine
from lasp_edge.ordered.gathering import Promised, Waited
from lasp_edge.ordered.inputs import InputCell, PlacedCell, TakenItem, in_cells
from lasp_edge.ordered.item_store import FOR_EVER_US
from lasp_edge.ordered.log import BEFORE_ALL_US
from lasp_edge.ordered.plain import decoded, encoded
from lasp_edge.protocol.frontier import Coverage

LIVE_ITEMS: Final = 50_000
"""Items in memory before there is a cut, some 700 bytes each: more are in the store alone."""

LIVE_US: Final = 86_400_000_000
"""How far items in memory may lie behind the frontier, in microseconds, before there is a cut: what
is old can leave no store without one, however few items come."""

NOBODY: Final[Mapping[str, Promised | None]] = MappingProxyType({})
"""No device counts."""

_TAKEN_AT_US: Final = 1
_FAILED_AT_US: Final = 2
"""Where in the stream of the progress it is stored what was taken, and what failed: the engine's
own is at 0."""


class FleetTerms(NamedTuple):
    """For whom rows over a fleet wait in a turn, and who is missing in them.

    Attributes:
        due_us: items before this time are waited for no longer, though F has not passed them.
        is_over: nothing more is expected at all: timers ring ahead of time.
        promises: of the devices that count, whose answers scans with local events wait for.
        answers_due_us: for answers before this time they wait no longer.
        absences: who is missing in rows; None: rows name whom they named.
        floor_us: no answer at an event before it is taken any more, after this turn.
    """

    due_us: int | None = None
    is_over: bool = False
    promises: Mapping[str, Promised | None] = NOBODY
    answers_due_us: int | None = None
    absences: RowAbsences | None = None
    floor_us: int = BEFORE_ALL_US


class FleetHistory(StreamHistory):
    """What an evaluator's store holds of streams over a fleet: cells are the entries of devices."""

    def __init__(self, plan: Plan, read: Read) -> None:
        super().__init__(plan, FLEET, read)
        self._taken_us: int | None = None
        self.parted = PartedScans(plan, self._entries, self._put_row, self.stored_cells)

    def _put_row(self, at: HistoryId, row: HistoryRow) -> None:
        self.changes[at] = row

    def taken(self) -> None:
        """Note that the engine has taken all that came with this turn."""

    @property
    def taken_us(self) -> int:
        """The engine has taken the items before it that are stored, and none from then on."""
        if self._taken_us is None:
            found = self._entries(self._progress, _TAKEN_AT_US, _TAKEN_AT_US + 1)
            self._taken_us = decoded(found[0][1].content) if found else BEFORE_ALL_US
        return self._taken_us

    def put_taken(self, taken_us: int) -> None:
        """Store up to when what is stored after this turn was taken."""
        if taken_us != self.taken_us:
            self._taken_us = taken_us
            self._put(self._progress, _TAKEN_AT_US, FOR_EVER_US, encoded(taken_us))

    def failed(self) -> dict[str, int]:
        """Return how often functions of the program failed, as it was stored, by reason."""
        found = self._entries(self._progress, _FAILED_AT_US, _FAILED_AT_US + 1)
        return dict(decoded(found[0][1].content)) if found else {}

    def put_failed(self, failed: Mapping[str, int]) -> None:
        """Store how often functions of the program failed, by reason."""
        content = encoded(tuple(failed.items()))
        self._put(self._progress, _FAILED_AT_US, FOR_EVER_US, content)

    @abstractmethod
    def stored_cells(
        self, event: str, least_us: int, end_us: int
    ) -> Iterable[tuple[CellId, InputCell]]:
        """Return the cells of an event that are stored, with least_us <= start < end_us."""

    def cells(self, event: str, least_us: int, end_us: int) -> Iterator[tuple[CellId, InputCell]]:
        """Yield the cells of an event with least_us <= start < end_us, of all devices.

        Without the items that wait: the engine has not taken them.
        """
        if self.parted.has(event):
            yield from self.parted.marks(event, least_us, end_us)
            return
        until_us = self.taken_us
        for at, cell in self.stored_cells(event, least_us, min(end_us, until_us)):
            if at.cell_us + CELL_US <= until_us:
                yield at, cell
            else:
                yield at, _before(cell, until_us)

    def put_cell(self, where: CellId, cell: InputCell, end_us: int) -> None:
        """Store nothing: the entries from which a cell is united are in the store as they came."""

    def keep_cell(self, where: CellId, cell: InputCell, end_us: int) -> None:
        """Store nothing: entries stay until no replay needs them."""


class FleetEvaluator:
    """The streams over a fleet, and the rows of their results.

    Args:
        engine: of the streams.
        history: what the store holds of them.
        books: the rows of each result.
        watched: results of which somebody looks at each row that is final.

    Attributes:
        final: the rows of those that became final, or were revised, since somebody took them.
        failed: how often a function of the program failed, by reason; those before `begin` are of
            what it takes from the store.
    """

    def __init__(
        self,
        engine: StreamEngine,
        history: FleetHistory,
        books: Mapping[str, ResultBook],
        watched: Container[str] = (),
    ) -> None:
        self._engine, self._history, self.books = engine, history, books
        self._watched, self.final = watched, list[StreamRow]()
        self._parted = history.parted
        of_streams = made_of(history.plan, self._parted.scans)
        self._scans = {name: of_streams[name] for name in books if of_streams[name]}
        self._since = dict.fromkeys(self._scans, BEFORE_ALL_US)
        self._waiting: dict[int, list[PlacedCell]] = {}
        self._failing: set[tuple[str, object]] = set()
        self._rebuilt: Rebuilt | None = None
        self.failed: Counter[str] = history.parted.failed

    def begin(self, pruned_us: int) -> None:
        """Go on where the store stands; streams that are new are made of what it holds.

        Their rows change with the first turn: only then it is known who is missing in them.

        Args:
            pruned_us: what lies wholly before it may have left the store.
        """
        self._parted.begin(pruned_us)
        self._wait_for(self._stored_behind(self._history.taken_us))
        rebuilt = self._engine.begin(pruned_us)
        began = rebuilt or Rebuilt(self._engine.begun, self._engine.since_us)
        reconcile(self._parted.gathered, began.deltas, began.since_us)
        self._engine.begun = {}
        for name, book in self.books.items():
            if name in self._scans:
                self._since[name] = self._kept_since(name, self._engine.frontier_us)
            book.begin(self._since.get(name, self._engine.since_us))
        if rebuilt is not None:
            self._rebuilt = rebuilt._replace(since_us=max(rebuilt.since_us, pruned_us))
        failing = self._engine.graph.failing
        self._failing = {at for at, why in failing.items() if _reason(at, why) in self.failed}
        self._count_failures()

    @property
    def is_settled(self) -> bool:
        """Whether nothing waits to be taken, and all events in order are answered."""
        gathered = self._parted.gathered.values()
        is_open = any(each.settled_us(FOR_EVER_US) < FOR_EVER_US for each in gathered)
        return not self._scans or not (is_open or any(self._waiting.values()))

    def settled_us(self, name: str) -> int | None:
        """Return the time before which the rows of a result are final."""
        frontier_us = self._engine.frontier_us
        return self._parted.settled_us(self._scans.get(name, ()), frontier_us)

    def _kept_since(self, name: str, frontier_us: int | None) -> int:
        """Return since when the rows of a result are in memory: those that are open, too."""
        settled_us = self._parted.settled_us(self._scans[name], frontier_us)
        least_us = BEFORE_ALL_US if settled_us is None else cell_of(settled_us)
        return max(self._since[name], min(self._engine.since_us, least_us))

    def _stored_behind(self, taken_us: int) -> Iterator[PlacedCell]:
        """Yield the stored items from a time on: they waited when the last process ended."""
        stored, least_us = self._history.stored_cells, cell_of(taken_us)
        for event in self._engine.events:
            for at, cell in stored(event, least_us, FOR_EVER_US):
                yield at, _from(cell, taken_us)

    def _wait_for(self, cells: Iterable[PlacedCell]) -> None:
        """Let items wait that are stored, or will be with this turn."""
        for at, cell in cells:
            if cell:
                self._waiting.setdefault(at.cell_us, []).append((at, cell))

    def _newest_us(self) -> int:
        """Return the time of the newest item that waits."""
        newest = self._waiting.get(max(self._waiting, default=0), ())
        return max([item.time_us for _, cell in newest for item in cell], default=BEFORE_ALL_US)

    def _ready(self, until_us: int) -> list[PlacedCell]:
        """Return the items before a time, by cell; they wait no longer."""
        ready: list[PlacedCell] = []
        for cell_us in sorted(each for each in self._waiting if each < until_us):
            cells = self._waiting.pop(cell_us)
            if cell_us + CELL_US <= until_us:
                ready += cells
                continue
            ready += [(at, early) for at, cell in cells if (early := _before(cell, until_us))]
            self._wait_for((at, _from(cell, until_us)) for at, cell in cells)
        return ready

    def compare(
        self,
        rebuilt: Rebuilt,
        before_us: int,
        frontier_us: int | None,
        absences: RowAbsences | None,
    ) -> None:
        """Bring rebuilt outputs of streams to the rows that differ.

        Args:
            rebuilt: what they say.
            before_us: the last cut before that.
            frontier_us: rows before this time are final.
            absences: who is missing in rows; None: rows name whom they named.
        """
        deltas, *span_us = rebuilt
        changed = {
            name: book.changed(deltas.get(name, {}), *span_us) for name, book in self.books.items()
        }
        self._bring(changed, before_us, frontier_us, absences)

    def advance(self, came: list[PlacedCell], frontier_us: int | None, terms: FleetTerms) -> None:
        """Evaluate what came, and bring it to the rows.

        Args:
            came: items; what repeats changes nothing.
            frontier_us: nothing older is expected.
            terms: for whom rows wait.
        """
        before_us, absences = self._engine.since_us, terms.absences
        rebuilt, self._rebuilt = self._rebuilt, None
        if rebuilt is not None:
            self.compare(rebuilt, before_us, self._engine.frontier_us, absences)
        deltas = self.step(came, frontier_us, due_us=terms.due_us, is_over=terms.is_over)
        if self._scans:
            deltas = deltas or {}
            self._history.taken()
            self.settle(deltas, terms)
        if deltas is not None or (absences is not None and absences.any_again):
            self._bring(deltas or {}, before_us, self._engine.frontier_us, absences)

    def settle(self, deltas: dict[str, Delta], terms: FleetTerms) -> None:
        """Mark complete events in order after a change of the streams, and add what they change."""
        waited = Waited(terms.promises, terms.answers_due_us, floor_us=terms.floor_us)
        if (absences := terms.absences) is not None:
            absent = absences.not_waited(terms.promises)
            waited = waited._replace(absent=absent, lost_us=absences.lost_us)
        with self._engine.replays.reading_once():
            self._parted.settle(deltas, self._take_marks, waited, self._engine.frontier_us)

    def _take_marks(self, marks: list[TakenItem]) -> dict[str, Delta]:
        found = self._engine.take(in_cells(marks), self._engine.frontier_us).deltas
        self._count_failures()
        return found

    def step(
        self,
        came: list[PlacedCell],
        frontier_us: int | None,
        *,
        due_us: int | None = None,
        is_over: bool = False,
    ) -> dict[str, Delta] | None:
        """Evaluate what came; return how the streams change, None where nothing could.

        Args:
            came: cells of items, or parts of cells; what repeats changes nothing.
            frontier_us: nothing older is expected.
            due_us: see `FleetTerms`.
            is_over: see `FleetTerms`.
        """
        self._wait_for(came)
        if is_over and not came and frontier_us is not None:
            frontier_us = self._engine.graph.horizon_us(max(frontier_us, self._newest_us()))
        # What was taken once stays taken, though X has become longer meanwhile.
        until_us = max(self._history.taken_us, frontier_us or BEFORE_ALL_US)
        if due_us and due_us > until_us:
            until_us = max(until_us, min(due_us, self._newest_us() + 1))
        taken, found = self._ready(until_us), None
        if taken or _is_later(frontier_us, self._engine.frontier_us):
            found = self._engine.take(taken, frontier_us).deltas
            self._count_failures()
        self._history.put_taken(until_us)
        return found

    def _bring(
        self,
        deltas: dict[str, Delta],
        before_us: int,
        frontier_us: int | None,
        absences: RowAbsences | None,
    ) -> None:
        """Bring the outputs of streams to their rows."""
        for name, book in self.books.items():
            unfit, of_name = book.unfit, absences
            if absences is not None and name in self._scans:
                gathered = [self._parted.gathered[scan] for scan in self._scans[name]]
                of_name = absences.at_answers(gathered, frontier_us)
            terms = self._terms(name, before_us, frontier_us)
            final = book.take(book.fitting(deltas.get(name, {})), *terms, of_name)
            if name in self._watched:
                self.final += [book.shown(*each) for each in final]
            if book.unfit > unfit:
                self.failed[book.why] += book.unfit - unfit
        for each in self._parted.gathered.values() if absences is not None else ():
            each.completed_us.clear()

    def _terms(
        self, name: str, before_us: int, frontier_us: int | None
    ) -> tuple[int, int, int | None]:
        """Return the last cut of a result's rows, the one before, and what is final of them."""
        if name not in self._scans:
            return self._engine.since_us, before_us, frontier_us
        before_us = self._since[name]
        self._since[name] = self._kept_since(name, frontier_us)
        settled_us = self._parted.settled_us(self._scans[name], frontier_us)
        return self._since[name], before_us, settled_us

    def _count_failures(self) -> None:
        """Count the functions that fail at a place where they did not before."""
        failing = self._engine.graph.failing
        for at in failing.keys() - self._failing:
            self.failed[_reason(at, failing[at])] += 1
        self._failing = set(failing)


def is_over(promises: Mapping[str, Promise], coverage: Coverage) -> bool:
    """Return whether all that are waited for have read their last reading, and sent it."""
    left = [promises.get(each) for each in coverage.expected if each not in coverage.excluded]
    return bool(left) and all(promise is not None and promise.done for promise in left)


def _reason(at: tuple[str, object], why: str) -> str:
    return f"{at[0]}: {why}"


def _before(cell: InputCell, time_us: int) -> InputCell:
    """Return the items of a cell before a time."""
    return {item: state for item, state in cell.items() if item.time_us < time_us}


def _from(cell: InputCell, time_us: int) -> InputCell:
    """Return the items of a cell from a time on."""
    return {item: state for item, state in cell.items() if item.time_us >= time_us}


def _is_later(frontier_us: int | None, than_us: int | None) -> bool:
    return frontier_us is not None and (than_us is None or frontier_us > than_us)
