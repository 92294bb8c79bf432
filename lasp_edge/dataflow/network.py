"""The network: the nodes behind all variables, and how one change runs through them.

A change starts at one node and visits what is made from it by rank (`lasp_edge.dataflow.graph`),
each node once, and only where something changed.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from heapq import heappop, heappush

from lasp_edge.dataflow.graph import Graph
from lasp_edge.dataflow.nodes import Leaf, Node
from lasp_edge.dataflow.relation import Change


class Network:
    """Nodes by the names of their variables.

    Attributes:
        spreading: a change is on its way; nothing may be written meanwhile.
    """

    __slots__ = ("graph", "nodes", "spreading")

    def __init__(self) -> None:
        self.graph = Graph()
        self.nodes: dict[str, Node] = {}
        self.spreading = False

    def add(self, leaf: Leaf) -> None:
        """Add a leaf under a new name."""
        self.graph.add(leaf.name)
        self.nodes[leaf.name] = leaf

    def derive(self, node: Node, sources: Sequence[str]) -> dict[str, Change]:
        """Add a derived node, in place of the leaf of its name if there is one, and fill it.

        Returns:
            What that changed, by variable.

        Raises:
            ValueError: it would be made from itself; nothing is changed then.
        """
        old = self.nodes.get(node.name)
        if old is None:
            self.graph.add(node.name)
        self.graph.derive(node.name, sources)
        self.nodes[node.name] = node
        for reader in self.graph.readers[node.name]:
            assert old is not None
            self.nodes[reader].replace_source(old, node)
        # What the sources have is a change like any other, from nothing.
        changes = {source.name: source.whole() for source in node.sources}
        with self._spreading():
            change = node.step(changes)
        return {} if change is None else self.spread(node, change)

    @contextmanager
    def _spreading(self) -> Iterator[None]:
        self.spreading = True
        try:
            yield
        finally:
            self.spreading = False

    def spread(self, start: Node, change: Change) -> dict[str, Change]:
        """Run a change of `start` through all that is made from it; return what changed."""
        changes = {start.name: change}
        ahead: list[tuple[int, str]] = []
        self._line_up(start, ahead)
        with self._spreading():
            while ahead:
                _, name = heappop(ahead)
                while ahead and ahead[0][1] == name:
                    heappop(ahead)
                made = self.nodes[name].step(changes)
                if made is not None:
                    changes[name] = made
                    self._line_up(self.nodes[name], ahead)
        return changes

    def _line_up(self, node: Node, ahead: list[tuple[int, str]]) -> None:
        for reader in self.graph.readers[node.name]:
            heappush(ahead, (self.graph.rank[reader], reader))
