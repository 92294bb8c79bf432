"""Thresholds: what a read waits for, and which ones may be waited for.

A threshold read waits until a variable is at or above a threshold. Its answer does not depend on
when anybody looked only if what was reached once stays reached, whatever comes later: if the
threshold is **monotone** for the variable. All others are refused, since they would be true on one
device and missed on the next. Which ones are:

| variable                                  | state, strict | at_least | at_most | cardinality |
|-------------------------------------------|---------------|----------|---------|-------------|
| GCounter                                  | yes           | yes      | no      | no          |
| Max                                       | yes           | yes      | no      | no          |
| Min                                       | yes           | no       | yes     | no          |
| PNCounter, registers, flags, all others   | yes           | no       | no      | no          |
| GSet                                      | yes           | no       | no      | yes         |
| TwoPSet, ORSet, ORMap, BoundedLWWSet      | yes           | no       | no      | no          |
| map, filter, union, intersection, product |               |          |         |             |
| - of sets that only grow                  | of a GSet     | no       | no      | yes         |
| - of any other                            | no            | no       | no      | no          |
| fold, fold_dynamic                        | no            | no       | no      | no          |
| bind_to                                   | as its source |          |         |             |

A *state* compares by the lattice's order, which no join and no removal ever undoes: `threshold <=
value` holds for an `ORSet` once its context has all dots of the threshold, live or removed. What
its elements are, how many, and the value of a counter that is also lowered, go both ways. No
threshold at all waits until something was written, which is monotone for every variable.

    >>> at_least(5), strict(GSet({"a"}))
    (at_least(5), strict(GSet(elements={'a'})))

Source: Lindsey Kuper, Ryan Newton, "LVars: Lattice-based Data Structures for Deterministic
Parallelism", FHPC 2013 (threshold reads).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from crdts import GCounter, GSet, Lattice, Max, Min
from crdts.plain import need_int
from lasp_edge.dataflow.nodes import Node, SetNode


class Threshold(ABC):
    """What a variable has to reach."""

    @abstractmethod
    def refusal(self, node: Node) -> str:
        """Return why this threshold is not monotone for the variable; "" where it is."""

    @abstractmethod
    def met(self, node: Node) -> bool:
        """Return whether the variable has reached this."""


@dataclass(frozen=True, slots=True)
class AnyWrite(Threshold):
    """Anything: the variable, or something that it is made from, was written."""

    def refusal(self, node: Node) -> str:  # noqa: ARG002 - it is monotone for all
        return ""

    def met(self, node: Node) -> bool:
        return node.written


@dataclass(frozen=True, slots=True, repr=False)
class Reached(Threshold):
    """A state in the lattice's order: `state <= value`, or `state < value` where it is strict."""

    state: Lattice
    strict: bool

    def refusal(self, node: Node) -> str:
        held = node.state
        if held is not None:
            if self.state.is_like(held):
                return ""
            return f"{node.name!r} is compared with a state of its own type, {type(held).__name__}"
        if not node.grows:
            return node.why_shrinks
        fits = isinstance(self.state, GSet)
        return "" if fits else f"{node.name!r} is a derived set that grows: compare it with a GSet"

    def met(self, node: Node) -> bool:
        held = node.state
        if held is not None:
            return self.state < held if self.strict else self.state <= held
        assert isinstance(node, SetNode)
        assert isinstance(self.state, GSet)
        reached = all(element in node for element in self.state)
        return reached and not (self.strict and node.size == len(self.state))

    def __repr__(self) -> str:
        return f"strict({self.state!r})" if self.strict else repr(self.state)


@dataclass(frozen=True, slots=True, repr=False)
class _Number(Threshold):
    """A number, for values of certain types only."""

    number: int

    def __repr__(self) -> str:
        return f"{self.word}({self.number})"

    @property
    @abstractmethod
    def word(self) -> str:
        """What it is called."""


class AtLeast(_Number):
    """The value of a `GCounter` or `Max` is not below a number."""

    word = "at_least"

    def refusal(self, node: Node) -> str:
        return _refusal(node, (GCounter, Max), "can fall again")

    def met(self, node: Node) -> bool:
        value = node.value
        return value is not None and value >= self.number


class AtMost(_Number):
    """The value of a `Min` is not above a number."""

    word = "at_most"

    def refusal(self, node: Node) -> str:
        return _refusal(node, (Min,), "can rise again")

    def met(self, node: Node) -> bool:
        value = node.value
        return value is not None and value <= self.number


class Cardinality(_Number):
    """A set has at least `number` elements."""

    word = "cardinality"

    def refusal(self, node: Node) -> str:
        if not node.is_set:
            return node.why_shrinks if node.state is None else f"{node.name!r} has no elements"
        return "" if node.grows else node.why_shrinks

    def met(self, node: Node) -> bool:
        assert isinstance(node, SetNode)
        return node.size >= self.number


def _refusal(node: Node, kinds: tuple[type[Lattice], ...], otherwise: str) -> str:
    if node.state is None:
        return node.why_shrinks if not node.grows else f"{node.name!r} is a set, and has no value"
    if isinstance(node.state, kinds):
        return ""
    return f"the value of {node.name!r} ({type(node.state).__name__}) {otherwise}"


def strict(state: Lattice) -> Threshold:
    """Return the threshold that waits for `state < value`.

    >>> from crdts import GSet, Replica
    >>> from lasp_edge.dataflow import Dataflow
    >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
    >>> rooms = dataflow.declare(GSet(), "rooms")
    >>> dataflow.read(rooms, strict(GSet({1}))).then(lambda value: print("reached:", value))
    >>> dataflow.update(rooms, GSet.add, 1)
    >>> dataflow.update(rooms, GSet.add, 2)
    reached: frozenset({1, 2})
    """
    return Reached(state.copy(), strict=True)


def at_least(number: int) -> Threshold:
    """Return the threshold that waits until a `GCounter` or `Max` is at least `number`.

    >>> from crdts import GCounter, Replica
    >>> from lasp_edge.dataflow import Dataflow
    >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
    >>> made = dataflow.declare(GCounter(), "made")
    >>> dataflow.read(made, at_least(5)).then(lambda value: print("reached:", value))
    >>> dataflow.update(made, GCounter.increment, 3)
    >>> dataflow.update(made, GCounter.increment, 4)
    reached: 7
    """
    return AtLeast(need_int(number, "at_least", least=-(2**63)))


def at_most(number: int) -> Threshold:
    """Return the threshold that waits until a `Min` is at most `number`.

    >>> from crdts import Min, Replica
    >>> from lasp_edge.dataflow import Dataflow
    >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
    >>> coldest = dataflow.declare(Min(), "coldest")
    >>> dataflow.read(coldest, at_most(0)).then(lambda value: print("reached:", value))
    >>> dataflow.update(coldest, Min.record, 4)
    >>> dataflow.update(coldest, Min.record, -2)
    reached: -2
    """
    return AtMost(need_int(number, "at_most", least=-(2**63)))


def cardinality(number: int) -> Threshold:
    """Return the threshold that waits until a set has at least `number` elements.

    >>> from crdts import GSet, Replica
    >>> from lasp_edge.dataflow import Dataflow
    >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
    >>> rooms = dataflow.declare(GSet(), "rooms")
    >>> dataflow.read(rooms, cardinality(2)).then(lambda value: print("reached:", value))
    >>> dataflow.update(rooms, GSet.add, 1)
    >>> dataflow.update(rooms, GSet.add, 2)
    reached: frozenset({1, 2})
    """
    return Cardinality(need_int(number, "cardinality"))


def threshold_of(given: Any) -> Threshold:
    """Return the threshold for what a user gave: None, a state, or a threshold.

    Raises:
        ValueError: it is something else.
    """
    if given is None:
        return AnyWrite()
    if isinstance(given, Lattice):
        return Reached(given.copy(), strict=False)
    if isinstance(given, Threshold):
        return given
    raise ValueError(
        "a threshold needs a state, strict(state), at_least(n), at_most(n) or cardinality(n), "
        f"got {given!r}"
    )
