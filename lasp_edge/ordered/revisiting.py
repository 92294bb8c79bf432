"""An engine over a store that has items before the engine takes them, such as a lake.

What such a store holds of a cell is the truth, and it does not tell what of it is new: a batch may
be there, of which the rows are not. So the engine evaluates a block again as it is now, and whoever
has the rows compares them. Where the states at the end of the block are the same as they were, so
are the outputs of the blocks behind it.
"""

from collections.abc import Iterable, Iterator

from lasp_edge.ordered.engine import Rebuilt, StreamEngine
from lasp_edge.ordered.inputs import inserted_cells
from lasp_edge.ordered.item_store import FOR_EVER_US


class RevisitingEngine(StreamEngine):
    """The streams of a plan; items before the last cut are never taken, but revisited."""

    def resume(self, pruned_us: int) -> None:
        """Go on at the last cut: the items since are still to be taken, as if they were new.

        Args:
            pruned_us: what lies wholly before it may have left the store.
        """
        progress = self._store.progress()
        if progress is not None:
            self._resume(progress, pruned_us)

    def revisited(self, cells_us: Iterable[int], *, starts: bool) -> Iterator[Rebuilt]:
        """Evaluate blocks before the last cut again, and yield the outputs of each.

        Args:
            cells_us: where the cells begin that may have changed.
            starts: nothing since the cut was taken yet, and it is not known which rows are there:
                all blocks behind the first are evaluated, whether their states differ or not.
        """
        past = sorted(cells_us)
        while past:
            cut = self._store.cut_at(past[0])
            states = cut.states
            while cut.time_us != self.since_us:
                inside = [each for each in past if each < cut.end_us]
                past = past[len(inside) :]
                if states == cut.states and not inside and not starts:
                    break
                graph = self._graph(states)
                cells = self._cells_in(cut.time_us, cut.end_us)
                found = graph.update(inserted_cells(self._plan.events, cells), cut.end_us)
                yield Rebuilt(found, cut.time_us, cut.end_us)
                states = graph.cut(cut.end_us)
                cut = self._store.cut_at(cut.end_us)
                if states != cut.states:
                    self._store.put_cut(cut._replace(states=states))
            else:
                if states != cut.states:
                    frontier_us = self.graph.frontier_us
                    self.graph = self._graph(states)
                    items = inserted_cells(self._plan.events, self._cells)
                    found = self.graph.update(items, frontier_us)
                    if not starts:
                        yield Rebuilt(found, self.since_us, FOR_EVER_US)
