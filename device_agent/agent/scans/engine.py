"""The streams of one device: their live end in memory, and what came late, block by block.

Memory holds the items since the last cut. Before it they are packed in the store, in blocks from
cut to cut, each with the state of all scans at its beginning. A change further back replays its
block twice, as it was and as it is now: the difference of what both say is the revision. Where the
states at the end of the block are the same, that is all; else the next block follows, up to the
live end. So memory holds a block, whatever is changed.
"""

from collections.abc import Iterable
from typing import NamedTuple

from device_agent.agent.intake.pending import StreamItem
from device_agent.agent.scans.history import BLOCK_US, FOR_EVER_US, Cut, Standing, StreamHistory
from device_agent.agent.scans.items import CELL_US, PRESENT, RETRACTED, Cell, Item, cell_of
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import graph_of, meanings_of
from lasp_edge.ordered.deltas import Content, Delta, composed, minus
from lasp_edge.ordered.graph import StreamGraph
from lasp_edge.ordered.log import BEFORE_ALL_US

KEPT_PARTS = 8
"""Of the items that may be live, this part stays in memory at a cut, if it lies before the
frontier: most of what is late comes among them."""
AGAIN_PARTS = 4
"""After this part of them a cut is tried again that the frontier did not allow."""


class StreamChanges(NamedTuple):
    """What changed.

    Attributes:
        deltas: by stream; of events, too.
        retracted: the items that were there, and were taken back.
    """

    deltas: dict[str, Delta]
    retracted: list[StreamItem]


class Anew(NamedTuple):
    """What streams say that are not those of the last program.

    Attributes:
        deltas: by stream, from nothing.
        since_us: the time from which on that is.
    """

    deltas: dict[str, Delta]
    since_us: int


class StreamEngine:
    """The streams of a plan, on one device.

    Args:
        plan: the plan.
        device: the device.
        history: what the store holds of them.
        live_most: items in memory from which on there is a cut.

    Attributes:
        graph: the live end.
        since_us: the last cut; items before it are in the store alone.
    """

    def __init__(self, plan: Plan, device: str, history: StreamHistory, live_most: int) -> None:
        self._plan, self._device, self._history = plan, device, history
        self._events = sorted(plan.streamed_events)
        self._live_most, self._kept = live_most, max(1, live_most // KEPT_PARTS)
        self._again = max(1, live_most // AGAIN_PARTS)
        self.graph = graph_of(plan, device)
        self.since_us = BEFORE_ALL_US
        self._cells: dict[tuple[str, int], Cell] = {}
        self._cells_changed: set[tuple[str, int]] = set()
        self._lasting: set[tuple[str, int]] = set()
        self._looked = 0
        self._count, self._next_cut = 0, live_most
        self._stood: Standing | None = None
        self._era, self._meanings = 0, meanings_of(plan)

    @property
    def frontier_us(self) -> int | None:
        """Nothing older is expected."""
        return self.graph.frontier_us

    def begin(self, pruned_us: int = BEFORE_ALL_US) -> Anew | None:
        """Go on where the store says.

        Args:
            pruned_us: what lies wholly before it may have left the store.

        Returns:
            What the streams say if the last program's were others.
        """
        standing = self._history.standing()
        if standing is None:
            return None
        self._era = standing.era
        self._history.enter(self._era)
        if standing.meanings != self._meanings:
            return self._begin_anew(standing, pruned_us)
        self._stood, self.since_us = standing, standing.since_us
        if self.since_us != BEFORE_ALL_US:
            cut = self._history.cut_at(self.since_us)
            assert cut.states is not None
            self.graph.begin(cut.states)
        for event in self._events:
            for cell_us, cell in self._history.cells(event, self.since_us, FOR_EVER_US):
                self._cells[event, cell_us] = cell
                self._count += len(cell)
        self.graph.update(_inserted(self._content(self._cells)), standing.frontier_us)
        return None

    def _begin_anew(self, standing: Standing, pruned_us: int) -> Anew:
        """Take the items that another program's streams were made from.

        From the last cut on before which something may be gone. A stream that means what it did
        goes on there; one that is new begins there.
        """
        history, former_us = self._history, standing.frontier_us
        cut = history.cut_at(pruned_us)
        cells = [
            (cell_us, event, cell)
            for event in self._events
            for cell_us, cell in history.cells(event, cut.time_us, FOR_EVER_US)
        ]
        self._era += 1
        history.enter(self._era)
        if cut.states is not None:
            known = [each[0] for each in self._meanings if each in standing.meanings]
            self.graph.begin(cut.states, known)
            self.since_us = cut.time_us
            history.put_cut(Cut(cut.time_us, self.graph.cut(cut.time_us), FOR_EVER_US))
        deltas: dict[str, Delta] = {}
        for cell_us, event, cell in sorted(cells, key=lambda each: each[:2]):
            taken = [StreamItem(event, *item, state == RETRACTED) for item, state in cell.items()]
            over_us = None if former_us is None else min(cell_us, former_us)
            deltas = _with(deltas, self.take(taken, over_us).deltas)
        return Anew(_with(deltas, self.take([], former_us).deltas), cut.time_us)

    def take(self, taken: Iterable[StreamItem], frontier_us: int | None) -> StreamChanges:
        """Take readings, and those that are taken back; return what that changes.

        Args:
            taken: what repeats changes nothing.
            frontier_us: nothing older is expected; it never goes back.
        """
        live: dict[str, Delta] = {}
        past: list[StreamItem] = []
        retracted: list[StreamItem] = []
        for each in taken:
            if each.time_us < self.since_us:
                past.append(each)
                continue
            where = (each.event, cell_of(each.time_us))
            cell = self._cells.setdefault(where, {})
            before = len(cell)
            delta = self._put(cell, each)
            self._count += len(cell) - before
            if delta is not None:
                self._cells_changed.add(where)
                live[each.event] = composed(live.get(each.event, {}), delta)
                if each.retracted and delta:
                    retracted.append(each)
        deltas = self._replayed(past, retracted) if past else {}
        deltas = _with(deltas, self.graph.update(live, frontier_us))
        self._last()
        for where in sorted(self._cells_changed):
            end_us = FOR_EVER_US if where in self._lasting else 0
            self._history.put_cell(*where, self._cells[where], end_us)
        self._cells_changed.clear()
        self._cut()
        self._stand()
        return StreamChanges(deltas, retracted)

    def horizon_us(self, high_us: int) -> int:
        """Return a time by which all timers that are set now have rung, if nothing comes more."""
        due_us = self.graph.due_us
        return max(high_us, due_us or high_us) + 1

    def _put(self, cell: Cell, taken: StreamItem) -> Delta | None:
        """Put an item into its cell; return how the event changes, None where nothing is new."""
        event, retracted = taken.event, taken.retracted
        item = Item(taken.time_us, taken.value, taken.tags)
        before = cell.get(item)
        if before == RETRACTED or (before == PRESENT and not retracted):
            return None
        cell[item] = RETRACTED if retracted else PRESENT
        if before is None and retracted:
            return {}  # it came before what it takes back
        made = item.event(event, self._device, self._plan.events[event].resolution)
        place = item.place(event, self._device)
        return {place: (made, None) if retracted else (None, made)}

    def _content(self, cells: dict[tuple[str, int], Cell]) -> dict[str, Content]:
        """Return the items of cells that are present, by event."""
        found: dict[str, Content] = {event: {} for event in self._events}
        for (event, _), cell in cells.items():
            resolution = self._plan.events[event].resolution
            found[event].update(
                (item.place(event, self._device), item.event(event, self._device, resolution))
                for item, state in cell.items()
                if state == PRESENT
            )
        return found

    def _graph(self, states: bytes | None) -> StreamGraph:
        graph = graph_of(self._plan, self._device)
        if states is not None:
            graph.begin(states)
        return graph

    def _replayed(self, past: list[StreamItem], retracted: list[StreamItem]) -> dict[str, Delta]:
        """Change items before the last cut; return how the streams change, up to the live end."""
        deltas: dict[str, Delta] = {}
        past = sorted(past, key=lambda each: each.time_us)
        while past:
            cut = self._history.cut_at(past[0].time_us)
            was = now = cut.states
            while cut.time_us != self.since_us:
                inside = [each for each in past if each.time_us < cut.end_us]
                past = past[len(inside) :]
                if was == now and not inside:
                    break
                delta, was, now = self._block(cut, was, now, inside, retracted)
                deltas = _with(deltas, delta)
                cut = self._history.cut_at(cut.end_us)
                self._history.put_cut(cut._replace(states=now))
            else:
                if was != now:
                    deltas = _with(deltas, self._rebuilt(was, now))
        return deltas

    def _block(
        self,
        cut: Cut,
        was: bytes | None,
        now: bytes | None,
        inside: list[StreamItem],
        retracted: list[StreamItem],
    ) -> tuple[dict[str, Delta], bytes, bytes]:
        """Replay a block as it was and as it is now.

        Returns:
            The difference of what both say, and the states of both at its end.
        """
        cells = {
            (event, cell_us): cell
            for event in self._events
            for cell_us, cell in self._history.cells(event, cut.time_us, cut.end_us)
        }
        old = self._graph(was)
        said = old.update(_inserted(self._content(cells)), cut.end_us)
        for each in inside:
            where = (each.event, cell_of(each.time_us))
            cell = cells.setdefault(where, {})
            delta = self._put(cell, each)
            if delta is not None:
                self._history.put_cell(*where, cell, cut.end_us)
                if each.retracted and delta:
                    retracted.append(each)
        new = self._graph(now)
        says = new.update(_inserted(self._content(cells)), cut.end_us)
        return _difference(said, says), old.cut(cut.end_us), new.cut(cut.end_us)

    def _rebuilt(self, was: bytes | None, now: bytes | None) -> dict[str, Delta]:
        """Let the live end go on from other states; return the difference of what it says."""
        frontier_us = self.graph.frontier_us
        items = _inserted(self._content(self._cells_before()))
        said = self._graph(was).update(items, frontier_us)
        self.graph = self._graph(now)
        says = self.graph.update(items, frontier_us)
        return _difference(said, says)

    def _cells_before(self) -> dict[tuple[str, int], Cell]:
        """Return the live cells as the store has them: without what is taken right now."""
        changed: dict[tuple[str, int], Cell] = {where: {} for where in self._cells_changed}
        for event, cell_us in changed:
            stored = self._history.cells(event, cell_us, cell_us + 1)
            changed[event, cell_us] = next((cell for _, cell in stored), {})
        return self._cells | changed

    def _last(self) -> None:
        """Let live cells that have become old stay in the store until there is a cut."""
        if len(self._cells) == self._looked:
            return
        self._looked = len(self._cells)
        newest_us = max(cell_us for _, cell_us in self._cells)
        old = {where for where in self._cells if where[1] < newest_us - BLOCK_US // 2}
        self._cells_changed |= old - self._lasting
        self._lasting |= old

    def _cut(self) -> None:
        """Pack away all but the newest items, if there are many, as far as the frontier allows."""
        frontier_us = self.graph.frontier_us
        if self._count < self._next_cut or frontier_us is None:
            return
        self._next_cut = self._count + self._again
        over_us = sorted(
            item.time_us
            for cell in self._cells.values()
            for item in cell
            if item.time_us < frontier_us
        )
        at_us = over_us[-self._kept] // CELL_US * CELL_US if len(over_us) > self._kept else 0
        if at_us <= max(self.since_us, 0):
            return
        before = self._history.cut_at(self.since_us) if self.since_us > 0 else None
        if before is not None:
            self._history.put_cut(before._replace(end_us=at_us))
        self._history.put_cut(Cut(at_us, self.graph.cut(at_us), FOR_EVER_US))
        for event, cell_us in [where for where in self._cells if where[1] < at_us]:
            cell = self._cells.pop((event, cell_us))
            self._count -= len(cell)
            if (event, cell_us) in self._lasting or not self._history.outlives(cell_us, at_us):
                self._history.put_cell(event, cell_us, cell, at_us)
        self._lasting = {where for where in self._lasting if where in self._cells}
        self.since_us, self._next_cut = at_us, self._live_most

    def _stand(self) -> None:
        """Store how far the streams have come, with what else is stored."""
        frontier_us = self.graph.frontier_us
        standing = Standing(self.since_us, frontier_us, self._era, self._meanings)
        if standing != self._stood:
            self._history.stand(standing)
            self._stood = standing


def _inserted(contents: dict[str, Content]) -> dict[str, Delta]:
    return {
        name: {place: (None, event) for place, event in content.items()}
        for name, content in contents.items()
    }


def _difference(said: dict[str, Delta], says: dict[str, Delta]) -> dict[str, Delta]:
    """Return how the streams change that said one thing, from nothing, and say another."""
    found = {
        name: minus(
            {place: new for place, (_, new) in says.get(name, {}).items()},
            {place: old for place, (_, old) in said.get(name, {}).items()},
        )
        for name in {**said, **says}
    }
    return {name: delta for name, delta in found.items() if delta}


def _with(first: dict[str, Delta], then: dict[str, Delta]) -> dict[str, Delta]:
    """Return the changes of two batches, one after the other."""
    for name, delta in then.items():
        first[name] = composed(first[name], delta) if name in first else delta
    return first
