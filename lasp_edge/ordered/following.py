"""An engine whose scans have parameters: an entry of an operator changes them from a time on.

What an entry changes is evaluated twice, as it was and as it is now, block by block from the last
cut before it: the difference of what both say is the revision. So an entry that comes late costs
what a late reading costs that is followed by changes everywhere.
"""

from collections.abc import Iterable

from lasp_edge.ordered.deltas import Delta, differences, follow
from lasp_edge.ordered.engine import StreamEngine, StreamPlan
from lasp_edge.ordered.inputs import inserted_cells
from lasp_edge.ordered.replays import begun


class FollowingEngine(StreamEngine):
    """The streams of a plan, which follow the operators' entries."""

    def follow(self, plan: StreamPlan, since_us: int) -> dict[str, Delta]:
        """Go on with the same streams under other parameters; return how that changes them.

        Args:
            plan: the streams under the operators' present entries.
            since_us: no entry before it differs from those until now.
        """
        former, self._plan = self._plan.graph, plan
        deltas: dict[str, Delta] = {}
        cut = self._store.cut_at(since_us)
        was = now = cut.states
        while cut.time_us != self.since_us:
            items = inserted_cells(self._plan.events, self._cells_in(cut.time_us, cut.end_us))
            old, new = begun(former(), was), begun(plan.graph(), now)
            before, after = old.update(items, cut.end_us), new.update(items, cut.end_us)
            deltas = follow(deltas, differences(before, after))
            was, now = old.cut(cut.end_us), new.cut(cut.end_us)
            cut = self._store.cut_at(cut.end_us)
            self._store.put_cut(cut._replace(states=now))
        frontier_us = self.graph.frontier_us
        items = inserted_cells(self._plan.events, self._cells)
        before = begun(former(), was).update(items, frontier_us)
        self.graph = begun(plan.graph(), now)
        after = self.graph.update(items, frontier_us)
        self._put_progress()
        return follow(deltas, differences(before, after))

    def contents(self, names: Iterable[str], since_us: int) -> dict[str, Delta]:
        """Return the outputs of items from the last cut before a time on, from nothing."""
        found: dict[str, Delta] = {name: {} for name in names}
        cut = self._store.cut_at(since_us)
        blocks = [(cut.time_us, cut.end_us)]
        while blocks[-1][0] != self.since_us:
            cut = self._store.cut_at(cut.end_us)
            blocks.append((cut.time_us, cut.end_us))
        for at_us, end_us in blocks:
            is_live = at_us == self.since_us
            cells = self._cells if is_live else self._cells_in(at_us, end_us)
            graph = self._graph(self._store.cut_at(at_us).states)
            until_us = self.graph.frontier_us if is_live else end_us
            changes = graph.update(inserted_cells(self._plan.events, cells), until_us)
            for name, content in found.items():
                content.update(
                    (place, (None, new)) for place, (_, new) in changes.get(name, {}).items() if new
                )
        return found
