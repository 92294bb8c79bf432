"""The graph of a dataflow: which variable is made from which, and in what order changes run.

It has no cycles, so it has an order in which every variable comes after all that it is made from.
Running a change in this order, each variable is touched once and sees its inputs all before or all
after the change, never a mixture (a *glitch*), however they come together again.

    >>> graph = Graph()
    >>> for name in "abc":
    ...     graph.add(name)
    >>> graph.derive("b", ["a"])
    >>> graph.derive("c", ["a", "b"])
    >>> graph.after("a")
    ['b', 'c']
    >>> graph.derive("a", ["c"])
    Traceback (most recent call last):
        ...
    ValueError: a variable cannot be made from itself, as in a -> c -> a

Source: Gregory Cooper, Shriram Krishnamurthi, "Embedding Dynamic Dataflow in a Call-by-Value
Language", ESOP 2006 (glitch freedom by height).
"""

from collections import deque
from collections.abc import Sequence


class Graph:
    """Variable -> those it is made from, and those made from it.

    Attributes:
        sources: name -> the names that it is made from; none for a leaf.
        readers: name -> the names made from it, in the order of their declaration.
        rank: name -> the length of the longest path to it from a leaf.
    """

    __slots__ = ("rank", "readers", "sources")

    def __init__(self) -> None:
        self.sources: dict[str, tuple[str, ...]] = {}
        self.readers: dict[str, list[str]] = {}
        self.rank: dict[str, int] = {}

    def add(self, name: str) -> None:
        """Add a leaf."""
        self.sources[name] = ()
        self.readers[name] = []
        self.rank[name] = 0

    def derive(self, target: str, sources: Sequence[str]) -> None:
        """Make the leaf `target` from `sources`.

        Raises:
            ValueError: one of them is made from `target`, or is it; nothing is changed then.
        """
        self.need_acyclic(target, sources)
        self.sources[target] = tuple(sources)
        for source in dict.fromkeys(sources):
            self.readers[source].append(target)
        self._lift(target)

    def need_acyclic(self, target: str, sources: Sequence[str]) -> None:
        """Check that `target` can be made from `sources`.

        Raises:
            ValueError: one of them is made from `target`, or is it; the cycle is in the message.
        """
        for source in sources:
            path = self._path(target, source)
            if path:
                cycle = " -> ".join([*path, target])
                raise ValueError(f"a variable cannot be made from itself, as in {cycle}")

    def after(self, name: str) -> list[str]:
        """Return all that is made from `name`, in the order in which changes run."""
        return self._reached(name, self.readers)

    def before(self, name: str) -> list[str]:
        """Return all that `name` is made from, in the order in which changes run."""
        return self._reached(name, self.sources)

    def _reached(
        self, name: str, steps: dict[str, list[str]] | dict[str, tuple[str, ...]]
    ) -> list[str]:
        found: set[str] = set()
        ahead = [name]
        while ahead:
            fresh = [step for step in steps[ahead.pop()] if step not in found]
            found.update(fresh)
            ahead += fresh
        return sorted(found, key=lambda reached: (self.rank[reached], reached))

    def _lift(self, name: str) -> None:
        """Raise the ranks of `name` and of all that is made from it, where they are too low."""
        ahead = [name]
        while ahead:
            lifted = ahead.pop()
            rank = 1 + max(self.rank[source] for source in self.sources[lifted])
            if rank > self.rank[lifted]:
                self.rank[lifted] = rank
                ahead += self.readers[lifted]

    def _path(self, start: str, end: str) -> list[str]:
        """Return a shortest path for data from `start` to `end`; [] without one."""
        came_from = {start: ""}
        ahead = deque([start])
        while ahead and end not in came_from:
            at = ahead.popleft()
            for reader in self.readers[at]:
                if reader not in came_from:
                    came_from[reader] = at
                    ahead.append(reader)
        path: list[str] = []
        at = end if end in came_from else ""
        while at:
            path.insert(0, at)
            at = came_from[at]
        return path
