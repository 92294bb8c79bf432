"""A graph of streams over stored items: its live end in memory, and what came late by blocks.

Memory holds the items since the last cut. Before it they are packed in the store, in blocks from
cut to cut, each with the state of all scans at its beginning. A change further back replays its
block twice, as it was and as it is now: the difference of what both say is the revision. Where the
states at the end of the block are the same, that is all; else the next block follows, up to the
live end. So memory holds a block, whatever is changed.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from lasp_edge.event import Event, StreamItem
from lasp_edge.ordered.cells import CELL_US, CellId
from lasp_edge.ordered.cutting import CutPolicy
from lasp_edge.ordered.deltas import Delta, changed, differences, follow
from lasp_edge.ordered.graph import StreamGraph
from lasp_edge.ordered.inputs import (
    InputCell,
    Inputs,
    PlacedCell,
    columns_of,
    in_order,
    inserted_cells,
    put_cell,
)
from lasp_edge.ordered.item_store import BLOCK_US, FOR_EVER_US, Cut, EngineProgress, ItemStore
from lasp_edge.ordered.log import BEFORE_ALL_US
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.replays import BlockItems, BlockReplays, begun
from lasp_edge.ordered.waiting_cells import WaitingCells


class StreamPlan(NamedTuple):
    """Streams, as one evaluator runs them.

    Attributes:
        graph: returns the graph, before anything was taken.
        events: what it is made from.
        meanings: of each stream; see `lasp_edge.language.streaming.meanings_of`.
        entries: the operators' entries under which the graph is.
    """

    graph: Callable[[], StreamGraph]
    events: Inputs
    meanings: tuple[tuple[str, str], ...]
    entries: tuple[tuple[Any, ...], ...] = ()


class StreamChanges(NamedTuple):
    """What changed.

    Attributes:
        deltas: by stream; of events, too.
        retracted: the items that were there, and were taken back.
    """

    deltas: dict[str, Delta]
    retracted: list[StreamItem]


class Rebuilt(NamedTuple):
    """The outputs of streams that the last program did not have.

    Attributes:
        deltas: by stream, from nothing.
        since_us: the time from which on that is.
        end_us: the time up to which it is, excluded.
    """

    deltas: dict[str, Delta]
    since_us: int
    end_us: int = FOR_EVER_US


class StreamEngine:
    """The streams of a plan, evaluated over the items of a store.

    Args:
        plan: the streams.
        store: holds their items and states.
        live_most, live_us: when there is a cut; see `CutPolicy`.

    Attributes:
        cuts: says where they are.
        events: the names of those that the streams are made from.
        graph: the live end.
        waiting: the cells that it has not taken yet.
        since_us: the last cut; items before it are in the store alone.
        begun: what the streams gave of what is live, when it went on; whoever looks clears it.
        replays: the blocks that were replayed last.
    """

    def __init__(
        self, plan: StreamPlan, store: ItemStore, live_most: int, live_us: int | None = None
    ) -> None:
        self._plan, self._store = plan, store
        self.events, self.cuts = sorted(plan.events), CutPolicy(live_most, live_us)
        self.graph = plan.graph()
        self.waiting = WaitingCells(self.graph.nodes, plan.events, store)
        self.since_us = BEFORE_ALL_US
        self._cells: dict[CellId, InputCell] = {}
        self._cells_changed: set[CellId] = set()
        self._loaded: set[CellId] = set()
        self._inserted: dict[str, tuple[list[Place], list[Event[Any]]]] = {}
        self._young: dict[int, set[CellId]] = {}
        self._lasting: set[CellId] = set()
        self._newest_us = BEFORE_ALL_US
        self._count = 0
        self._stored: EngineProgress | None = None
        self._era = 0
        self.begun: dict[str, Delta] = {}
        self.replays = BlockReplays()

    @property
    def frontier_us(self) -> int | None:
        """Nothing older is expected."""
        return self.graph.frontier_us

    def begin(self, pruned_us: int = BEFORE_ALL_US) -> Rebuilt | None:
        """Go on where the store after.

        Args:
            pruned_us: what lies wholly before it may have left the store.

        Returns:
            What the streams say if the last program's were others.
        """
        progress = self._store.progress()
        if progress is None:
            return None
        if not self._resume(progress, pruned_us):
            return self._rebuild(progress)
        cells = self._cells_in(self.since_us, FOR_EVER_US)
        self._cells = self.waiting.restore(cells, progress.waiting)
        _note(self._young, self._cells)
        self._count = sum(map(len, self._cells.values()))
        items = inserted_cells(self._plan.events, self._cells)
        self.begun = self.graph.update(items, progress.frontier_us)
        return None

    def _resume(self, progress: EngineProgress, pruned_us: int) -> bool:
        """Go on at a cut, without the items since; return whether the program is the same.

        At the last cut; or, with another program, at the last one before which something may be
        gone. A stream that means what it did goes on there; one that is new begins there.
        """
        store, is_same = self._store, progress.meanings == self._plan.meanings
        store.enter(progress.era)
        cut = store.cut_at(progress.since_us if is_same else pruned_us)
        self._era = progress.era + (not is_same)
        store.enter(self._era)
        if cut.states is not None:
            known = [each[0] for each in self._plan.meanings if each in progress.meanings]
            self.graph.begin(cut.states, None if is_same else known)
            self.since_us = cut.time_us
        if is_same:
            self._stored = progress
        elif cut.states is not None:
            store.put_cut(Cut(cut.time_us, self.graph.cut(cut.time_us), FOR_EVER_US))
        return is_same

    def _rebuild(self, progress: EngineProgress) -> Rebuilt:
        """Take the items that another program's streams were made from, since the cut."""
        since_us, former_us = self.since_us, progress.frontier_us
        cells = self._cells_in(since_us, FOR_EVER_US)
        cells = self.waiting.restore(cells, progress.waiting)
        deltas: dict[str, Delta] = {}
        for where, cell in sorted(cells.items(), key=lambda each: each[0][::-1]):
            over_us = None if former_us is None else min(where.cell_us, former_us)
            deltas = follow(deltas, self.take([(where, cell)], over_us).deltas)
        return Rebuilt(follow(deltas, self.take([], former_us).deltas), since_us)

    def _cells_in(self, least_us: int, end_us: int) -> dict[CellId, InputCell]:
        """Return the stored cells that begin from one time to another, excluded."""
        return dict(
            each for event in self.events for each in self._store.cells(event, least_us, end_us)
        )

    def take(self, taken: Iterable[PlacedCell], frontier_us: int | None) -> StreamChanges:
        """Take cells of readings, or parts of cells; return what that changes.

        Args:
            taken: what is there, and what is taken back; what repeats changes nothing.
            frontier_us: nothing older is expected; it never goes back.
        """
        parts, found = list(taken), StreamChanges({}, [])
        while due := self.waiting.due():
            end_us = due[-1].cell_us + 1
            now = [each for each in parts if each[0].cell_us < end_us]
            parts = [each for each in parts if each[0].cell_us >= end_us]
            deltas, retracted = self._take(due, now, None)
            deltas = {at: each for at, each in deltas.items() if at not in self.waiting.events}
            found = StreamChanges(follow(found.deltas, deltas), found.retracted + retracted)
        deltas, retracted = self._take((), parts, frontier_us)
        return StreamChanges(follow(found.deltas, deltas), found.retracted + retracted)

    def _take(
        self, due: Iterable[CellId], taken: Iterable[PlacedCell], frontier_us: int | None
    ) -> StreamChanges:
        """Take cells that need wait no longer, and others; see `take`."""
        live: dict[str, Delta] = {event: {} for event in self.events}
        past: list[PlacedCell] = []
        retracted: list[StreamItem] = []
        self._load(due)
        for where, came in taken:
            if where.cell_us < self.since_us:
                past.append((where, came))
                continue
            cell = self._cells.get(where)
            if cell is None:
                if self.waiting.put(where, came, self.graph.frontier_us):
                    continue
                self._load(self.waiting.ended(where))
                cell = self._cells.setdefault(where, {})
            self._count -= len(cell)
            if self._put(where, cell, came, live[where.event], retracted):
                self._cells_changed.add(where)
            self._count += len(cell)
        return self._taken(live, past, retracted, frontier_us)

    def _load(self, waiting: Iterable[CellId]) -> None:
        """Put cells that wait no longer among the live ones; the graph takes them with the rest."""
        for where, cell in self.waiting.taken(waiting).items():
            self._cells[where] = cell
            self._loaded.add(where)
            self._count += len(cell)
            self._lasting.add(where)
            places, events = columns_of(self._plan.events, where, cell)
            of_event = self._inserted.setdefault(where.event, ([], []))
            of_event[0].extend(places)
            of_event[1].extend(events)

    def _taken(
        self,
        live: dict[str, Delta],
        past: list[PlacedCell],
        retracted: list[StreamItem],
        frontier_us: int | None,
    ) -> StreamChanges:
        """Evaluate new items of live cells, and those of cells before them; see `take`."""
        deltas = self._replayed(past, retracted)
        inserted, self._inserted = self._inserted, {}
        for event, columns in inserted.items():
            self.graph.insert(event, *in_order(*columns))
        deltas = follow(deltas, self.graph.update(live, frontier_us))
        old = self._last()
        for where in sorted(self._cells_changed):
            end_us = FOR_EVER_US if where in self._lasting else 0
            self._put_cell(where, self._cells[where], end_us)
        for where in sorted(old - self._cells_changed):
            self._store.keep_cell(where, self._cells[where], FOR_EVER_US)
        self._cells_changed.clear()
        self._loaded.clear()
        self._cut()
        self._put_progress()
        return StreamChanges(deltas, retracted)

    def _put(
        self,
        where: CellId,
        cell: InputCell,
        came: InputCell,
        delta: Delta,
        retracted: list[StreamItem],
    ) -> bool:
        """Put what came into its cell; see `put_cell`."""
        return put_cell(self._plan.events, where, cell, came, delta, retracted)

    def _graph(self, states: bytes | None) -> StreamGraph:
        return begun(self._plan.graph(), states)

    def _replayed(self, past: list[PlacedCell], retracted: list[StreamItem]) -> dict[str, Delta]:
        """Change items before the last cut; return how the streams change, up to the live end."""
        deltas: dict[str, Delta] = {}
        if not past:
            self.replays.forget()
        past = sorted(past, key=_cell_us)
        while past:
            cut = self._store.cut_at(_cell_us(past[0]))
            was = now = cut.states
            while cut.time_us != self.since_us:
                inside = [each for each in past if _cell_us(each) < cut.end_us]
                past = past[len(inside) :]
                if was == now and not inside:
                    break
                delta, was, now = self._block(cut, was, now, inside, retracted)
                deltas = follow(deltas, delta)
                cut = self._store.cut_at(cut.end_us)
                self._store.put_cut(cut._replace(states=now))
            else:
                if was != now:
                    deltas = follow(deltas, self._rebuilt(was, now))
        return deltas

    def _block(
        self,
        cut: Cut,
        was: bytes | None,
        now: bytes | None,
        inside: list[PlacedCell],
        retracted: list[StreamItem],
    ) -> tuple[dict[str, Delta], bytes, bytes]:
        """Replay a block as it was and as it is now.

        Returns:
            The difference of what both say, and the states of both at its end.
        """
        graph = self._plan.graph
        cells, items = self.replays.read(cut, self._plan.events, self._cells_in)
        old = self.replays.replayed(graph, cut._replace(states=was), items)
        changes: dict[str, Delta] = {}
        for where, came in inside:
            cell = cells.setdefault(where, {})
            if self._put(where, cell, came, changes.setdefault(where.event, {}), retracted):
                self._put_cell(where, cell, cut.end_us)
        items = items | {name: changed(items[name], delta) for name, delta in changes.items()}
        new = self.replays.replayed(graph, cut._replace(states=now), items)
        self.replays.changed(cut, BlockItems(cells, items))
        return differences(old.given, new.given), old.states, new.states

    def _rebuilt(self, was: bytes | None, now: bytes | None) -> dict[str, Delta]:
        """Let the live end go on from other states; return the difference of what it after."""
        frontier_us = self.graph.frontier_us
        items = inserted_cells(self._plan.events, self._cells_before())
        before = self._graph(was).update(items, frontier_us)
        self.graph = self._graph(now)
        after = self.graph.update(items, frontier_us)
        return differences(before, after)

    def _cells_before(self) -> dict[CellId, InputCell]:
        """Return the live cells as the store has them: without what is taken right now."""
        changed = dict[CellId, InputCell]()
        for where in self._cells_changed:
            event, _, cell_us = where
            changed[where] = dict(self._store.cells(event, cell_us, cell_us + 1)).get(where, {})
        found = self._cells | changed
        return {where: cell for where, cell in found.items() if where not in self._loaded}

    def _last(self) -> set[CellId]:
        """Return the live cells that have become old: they stay in the store until a cut."""
        _note(self._young, self._cells_changed - self._lasting)
        self._newest_us = max(self._young, default=self._newest_us)
        old_us = self._newest_us - BLOCK_US // 2
        old = set[CellId]()
        for cell_us in [each for each in self._young if each < old_us]:
            old |= self._young.pop(cell_us)
        self._lasting |= old
        return old

    def _cut(self) -> None:
        """Pack away all but the newest items, if there are many, as far as the frontier allows."""
        frontier_us, first_us = self.graph.frontier_us, self.waiting.first_us
        if frontier_us is None:
            return
        if first_us is not None:
            frontier_us = min(frontier_us, first_us)
        at_us = self.cuts.at_us(self._cells, self._count, frontier_us)
        if at_us <= max(self.since_us, 0):
            return
        before = self._store.cut_at(self.since_us) if self.since_us > 0 else None
        if before is not None:
            self._store.put_cut(before._replace(end_us=at_us))
        for where in [where for where in self._cells if where.cell_us < at_us]:
            cell = self._cells.pop(where)
            self._count -= len(cell)
            least_us = where.cell_us + CELL_US + BLOCK_US
            if where in self._lasting or least_us < at_us:
                self._store.keep_cell(where, cell, max(least_us, at_us))
        self._store.put_cut(Cut(at_us, self.graph.cut(at_us), FOR_EVER_US))
        self._lasting = {where for where in self._lasting if where in self._cells}
        self._young = {each: cells for each, cells in self._young.items() if each >= at_us}
        self.since_us = at_us
        self.cuts.restart()

    def _put_cell(self, where: CellId, cell: InputCell, block_end_us: int) -> None:
        """Store a cell until its block has ended, and longer than its items last."""
        least_us = where.cell_us + CELL_US + BLOCK_US
        self._store.put_cell(where, cell, max(least_us, block_end_us))

    def _put_progress(self) -> None:
        """Store how far the streams have come, with what else is stored."""
        frontier_us = self.graph.frontier_us
        known = self._plan.meanings, self._plan.entries, self.waiting.known
        progress = EngineProgress(self.since_us, frontier_us, self._era, *known)
        if progress != self._stored:
            self._store.put_progress(progress)
            self._stored = progress


def _note(young: dict[int, set[CellId]], cells: Iterable[CellId]) -> None:
    """Note live cells that are not old yet, by where they begin: half an hour of them."""
    for where in cells:
        young.setdefault(where[2], set()).add(where)


def _cell_us(part: PlacedCell) -> int:
    """Return where the cell begins that something belongs to."""
    return part[0].cell_us
