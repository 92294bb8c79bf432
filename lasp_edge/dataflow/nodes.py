"""Nodes: what a variable of a dataflow is made of, and what one step of a change does to it.

A **leaf** is a state that somebody writes; everything else is derived, and changes only because
what it is made from did. A node takes the changes of its inputs and gives its own, and costs what
those cost. `whole` is the change from nothing to what there is, with which a new reader begins; so
beginning is one more step and no second mechanism.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from crdts import IncrementalSet, Lattice
from crdts.plain import encoded
from lasp_edge.dataflow.relation import Change, Relation, Weights

ChangesByName = Mapping[str, Change]
"""What changed in this step, by variable."""


class Node(ABC):
    """What stands behind a variable's name.

    Attributes:
        sources: what it is made from; none for a leaf.
        failures: how often a function of the user's failed, and what it was given was left aside.
    """

    is_set = False
    """Whether it has elements."""

    def __init__(self, name: str, sources: tuple["Node", ...]) -> None:
        self.name = name
        self.sources = sources
        self.failures = 0

    @property
    def dynamic(self) -> bool:
        """Whether it belongs to this device alone."""
        return any(source.dynamic for source in self.sources)

    @property
    @abstractmethod
    def value(self) -> Any:
        """What it means to a reader; a set costs O(its elements)."""

    @property
    def state(self) -> Lattice | None:
        """The state that is here and only ever grows; None where there is no single one."""
        return None

    @property
    def grows(self) -> bool:
        """Whether it is a set from which no element ever goes."""
        return False

    @property
    def why_shrinks(self) -> str:
        """How an element or a greater value may go again, for a message."""
        return ""

    @property
    def written(self) -> bool:
        """Whether something that it is made from was written."""
        return any(source.written for source in self.sources)

    @property
    def complete(self) -> bool:
        """Whether no window that it is made from has a hole."""
        return all(source.complete for source in self.sources)

    @property
    def touched(self) -> int:
        """How many pairs it handled since the beginning."""
        return 0

    @abstractmethod
    def step(self, changes: ChangesByName) -> Change | None:
        """Take the sources' changes; return the change of this node, None where nothing changed."""

    @abstractmethod
    def whole(self) -> Change:
        """Return the change from nothing to what is here."""

    def replace_source(self, old: "Node", new: "Node") -> None:
        """Read `new`, which stands for the same variable, in place of `old`."""
        self.sources = tuple(new if source is old else source for source in self.sources)


class SetNode(Node):
    """A node with elements; `relation` holds them with their terms."""

    is_set = True
    relation: Relation

    @property
    def value(self) -> Any:
        return frozenset(self.relation)

    @property
    def touched(self) -> int:
        return self.relation.touched

    @property
    def size(self) -> int:
        """The number of elements."""
        return len(self.relation)

    def __contains__(self, element: object) -> bool:
        return element in self.relation

    def whole(self) -> Change:
        return self.relation.whole()


class Leaf(SetNode):
    """A state that is written to. As a set it keeps its relation from the first reader on."""

    def __init__(self, name: str, bottom: Lattice, *, dynamic: bool) -> None:
        super().__init__(name, ())
        self._dynamic = dynamic
        self._bottom = bottom.bottom()
        self._state = bottom.copy()
        self._related = False
        self.relation = Relation()
        self.is_set = isinstance(bottom, IncrementalSet)

    @property
    def dynamic(self) -> bool:
        return self._dynamic

    @property
    def value(self) -> Any:
        return self._state.value

    @property
    def state(self) -> Lattice:
        return self._state

    @property
    def bottom(self) -> Lattice:
        """The state it started with."""
        return self._bottom

    @property
    def size(self) -> int:
        return len(self._state)  # type: ignore[arg-type]  # only asked of sets

    def __contains__(self, element: object) -> bool:
        return element in self._state  # type: ignore[operator]  # only asked of sets that grow

    @property
    def grows(self) -> bool:
        return isinstance(self._state, IncrementalSet) and self._state.grows

    @property
    def why_shrinks(self) -> str:
        return f"elements of {self.name!r} ({type(self._state).__name__}) can be removed"

    @property
    def written(self) -> bool:
        return self._state != self._bottom

    @property
    def complete(self) -> bool:
        return not isinstance(self._state, IncrementalSet) or self._state.complete

    def join(self, delta: Lattice) -> Change | None:
        """Join `delta`; return what it changed, None where it was known."""
        if delta <= self._state:
            return None
        if not self._related:
            self._state |= delta
            return Change()
        assert isinstance(self._state, IncrementalSet)
        assert isinstance(delta, IncrementalSet)
        weights: Weights = {}
        for token, element, weight in self._state.join_tokens(delta):
            pair = element, frozenset({(self.name, token)})
            weights[pair] = weights.get(pair, 0) + weight
        return self.relation.apply(weights) or Change()

    def step(self, changes: ChangesByName) -> Change | None:  # noqa: ARG002 - it is made from nothing
        return None

    def whole(self) -> Change:
        if isinstance(self._state, IncrementalSet) and not self._related:
            self._related = True
            self.relation.apply(
                {
                    (element, frozenset({(self.name, token)})): 1
                    for token, element in self._state.tokens()
                }
            )
        return self.relation.whole()


class Mirror(SetNode):
    """The target of `bind_to`: its source under another name."""

    def __init__(self, name: str, source: Node) -> None:
        super().__init__(name, (source,))
        self.is_set = source.is_set

    @property
    def _source(self) -> Node:
        return self.sources[0]

    @property
    def relation(self) -> Relation:  # type: ignore[override]  # it has none of its own
        assert isinstance(self._source, SetNode)
        return self._source.relation

    @property
    def value(self) -> Any:
        return self._source.value

    @property
    def state(self) -> Lattice | None:
        return self._source.state

    @property
    def size(self) -> int:
        assert isinstance(self._source, SetNode)
        return self._source.size

    def __contains__(self, element: object) -> bool:
        assert isinstance(self._source, SetNode)
        return element in self._source

    @property
    def grows(self) -> bool:
        return self._source.grows

    @property
    def why_shrinks(self) -> str:
        return f"{self.name!r} is bound to {self._source.name!r}, and {self._source.why_shrinks}"

    @property
    def touched(self) -> int:
        return 0

    def step(self, changes: ChangesByName) -> Change | None:
        return changes.get(self._source.name)

    def whole(self) -> Change:
        return self._source.whole()


def in_order(elements: list[Any]) -> Iterator[Any]:
    """Yield elements in an order that all replicas share."""
    return iter(sorted(elements, key=encoded))
