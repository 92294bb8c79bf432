"""The streams over a fleet, evaluated: at a gateway and in the job alike.

Items are taken as they come. Those that are later than what is waited for stay unstepped until the
frontier has passed them, or X is over (`lasp_edge.protocol.waiting`). Whatever is behind the
frontier is final.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from lasp_edge.evaluation.history import Read, StreamHistory
from lasp_edge.evaluation.rows import ResultBook
from lasp_edge.event import StreamItem
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import FLEET
from lasp_edge.ordered.cells import RETRACTED, Cell, CellId, Item, cell_of
from lasp_edge.ordered.deltas import Delta
from lasp_edge.ordered.engine import Rebuilt, StreamEngine
from lasp_edge.ordered.item_store import FOR_EVER_US
from lasp_edge.ordered.log import BEFORE_ALL_US
from lasp_edge.ordered.plain import decoded, encoded
from lasp_edge.ordered.sent_items import item_of

LIVE_ITEMS: Final = 50_000
"""Items in memory before there is a cut, some 700 bytes each: more are in the store alone."""

_UNTIL_AT_US: Final = 1
"""Where in the stream of the progress it is stored what the engine has taken: that stands at 0."""


class FleetHistory(StreamHistory):
    """What an evaluator's store holds of streams over a fleet: cells are the entries of devices.

    Attributes:
        unseen: items that are in the store and that the engine has not taken yet, by cell.
    """

    def __init__(self, plan: Plan, read: Read) -> None:
        super().__init__(plan, FLEET, read)
        self.unseen: dict[CellId, list[Item]] = {}

    @abstractmethod
    def stored_cells(self, event: str, least_us: int, end_us: int) -> Iterable[tuple[CellId, Cell]]:
        """Return the cells of an event that are stored, with least_us <= start < end_us."""

    def cells(self, event: str, least_us: int, end_us: int) -> Iterator[tuple[CellId, Cell]]:
        """Yield the cells of an event, of all devices, with least_us <= start < end_us."""
        for at, cell in self.stored_cells(event, least_us, end_us):
            for item in self.unseen.get(at, ()):
                cell.pop(item, None)
            yield at, cell

    def put_cell(self, where: CellId, cell: Cell, end_us: int) -> None:
        """Store nothing: the entries from which a cell is united are in the store as they came."""

    def until_us(self) -> int:
        """Return the time before which the engine has taken all that is stored."""
        for _, row in self._entries(self._progress, _UNTIL_AT_US, _UNTIL_AT_US + 1):
            return int(decoded(row.content))
        return FOR_EVER_US

    def put_until(self, until_us: int) -> None:
        """Store that time, as of this turn."""
        self._put(self._progress, _UNTIL_AT_US, FOR_EVER_US, encoded(until_us))


class FleetEvaluator:
    """The streams over a fleet, and the rows of their results.

    Args:
        engine: of the streams.
        history: what the store holds of them.
        books: the rows of each result.

    Attributes:
        failed: how often a function of the program failed, by reason.
    """

    def __init__(
        self, engine: StreamEngine, history: FleetHistory, books: Mapping[str, ResultBook]
    ) -> None:
        self._engine, self._history, self.books = engine, history, books
        self._waiting: list[StreamItem] = []
        self._until_us = FOR_EVER_US
        self._failing: set[tuple[str, object]] = set()
        self.failed: Counter[str] = Counter()

    def begin(self, pruned_us: int) -> None:
        """Go on where the store stands; streams that are new are made of what it holds.

        Args:
            pruned_us: what lies wholly before it may have left the store.
        """
        self._until_us = self._history.until_us()
        self._waiting = list(self._stored_behind(self._until_us))
        self._history.unseen = _by_cell(self._waiting)
        rebuilt = self._engine.begin(pruned_us)
        self._history.unseen = {}
        for book in self.books.values():
            book.begin(self._engine.since_us)
        if rebuilt is not None:
            self.compare(rebuilt._replace(since_us=max(rebuilt.since_us, pruned_us)))

    def _stored_behind(self, until_us: int) -> Iterator[StreamItem]:
        """Yield the stored items from a time on: they waited when the last process ended."""
        for event in self._engine.events:
            for (_, device, _), cell in self._history.cells(event, cell_of(until_us), FOR_EVER_US):
                for item, state in cell.items():
                    if item.time_us >= until_us:
                        yield taken_item(event, device, item, state)

    def compare(self, rebuilt: Rebuilt) -> None:
        """Bring what streams say again to the rows that differ."""
        changed = {
            name: book.changed(rebuilt.deltas.get(name, {}), rebuilt.since_us)
            for name, book in self.books.items()
        }
        self._bring(changed, self._engine.since_us)

    def advance(
        self,
        came: list[StreamItem],
        frontier_us: int | None,
        *,
        due_us: int | None = None,
        is_over: bool = False,
    ) -> None:
        """Evaluate what came.

        Args:
            came: items; what repeats changes nothing.
            frontier_us: nothing older is expected.
            due_us: items before this time are waited for no longer, though F has not passed them.
            is_over: nothing more is expected at all: timers ring ahead of time.
        """
        if is_over and not came and frontier_us is not None:
            newest_us = max((each.time_us for each in self._waiting), default=frontier_us)
            frontier_us = self._engine.horizon_us(max(frontier_us, newest_us))
        until_us = max(each for each in (frontier_us, due_us, BEFORE_ALL_US) if each is not None)
        unseen, waiting = _by_cell(self._waiting), [*self._waiting, *came]
        taken = [each for each in waiting if each.time_us < until_us]
        self._waiting = [each for each in waiting if each.time_us >= until_us]
        until_us = min(until_us, FOR_EVER_US)
        if until_us != self._until_us:
            self._until_us = until_us
            self._history.put_until(until_us)
        if taken or _is_later(frontier_us, self._engine.frontier_us):
            before_us = self._engine.since_us
            self._history.unseen = unseen
            outcome = self._engine.take(taken, frontier_us)
            self._history.unseen = {}
            self._bring(outcome.deltas, before_us)
            self._count_failures()

    def _bring(self, deltas: dict[str, Delta], before_us: int) -> None:
        """Bring the outputs of streams to their rows."""
        since_us, frontier_us = self._engine.since_us, self._engine.frontier_us
        for name, book in self.books.items():
            unfit = book.unfit
            book.take(book.fitting(deltas.get(name, {})), since_us, before_us, frontier_us)
            if book.unfit > unfit:
                self.failed[book.why] += book.unfit - unfit

    def _count_failures(self) -> None:
        """Count the functions that fail at a place where they did not before."""
        failing = self._engine.graph.failing
        for at in failing.keys() - self._failing:
            self.failed[f"{at[0]}: {failing[at]}"] += 1
        self._failing = set(failing)


def _is_later(frontier_us: int | None, than_us: int | None) -> bool:
    return frontier_us is not None and (than_us is None or frontier_us > than_us)


def _by_cell(taken: Iterable[StreamItem]) -> dict[CellId, list[Item]]:
    found: dict[CellId, list[Item]] = {}
    for each in taken:
        at = CellId(each.event, each.device, cell_of(each.time_us))
        found.setdefault(at, []).append(item_of(each))
    return found


def taken_item(event: str, device: str, item: Item, state: int) -> StreamItem:
    """Return an item of a cell as an engine takes it."""
    return StreamItem(event, *item, device, state == RETRACTED)
