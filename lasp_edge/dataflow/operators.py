"""Operators on sets: map, filter, union, intersection, product, each by its differences.

The first three are linear: the change of the result is the operator of the change. The other two
are bilinear: with the inputs as they are *after* the change, the change of `left x right` is
`d_left x right + left x d_right - d_left x d_right`. A pair of the result carries the tokens of
both sides, so it is live only while both are; and `union` adds up the terms, so an element stays
while one side has it. The relation, which counts derivations, decides what a reader sees.

A map of unequal elements to equal images thus unites their terms, and a removal finds its image by
the term and not by a place in some order.

A change costs as many steps as pairs change here; only `product` changes as many pairs as the other
side has.

Functions are the user's. What one of them fails for, or maps to something that is not an element,
is left aside and counted. Each is asked once for an element, as long as that element is there: so a
function that changes its mind does no harm.

Source: Frank McSherry et al., "Differential Dataflow", CIDR 2013; Christopher Meiklejohn, Peter Van
Roy, "Lasp: A Language for Distributed, Coordination-Free Programming", PPDP 2015 (the operators).
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from crdts import Sample
from crdts.derived_set import ElementTerm
from crdts.plain import need_element
from lasp_edge.dataflow.nodes import ChangesByName, SetNode
from lasp_edge.dataflow.relation import Change, Relation, Weights
from lasp_edge.errors import pass_interrupt

_NOTHING = object()
"""The image of an element that has none."""
_STILL = Change()


class Operator(SetNode):
    """A derived set. Define how a change of the inputs becomes weights; the rest follows."""

    word: str

    def __init__(self, name: str, sources: tuple[SetNode, ...]) -> None:
        super().__init__(name, sources)
        self.relation = Relation()

    @abstractmethod
    def weights(self, changes: ChangesByName) -> Weights:
        """Return the weights of the pairs that these changes make and take."""

    def step(self, changes: ChangesByName) -> Change | None:
        return self.relation.apply(self.weights(changes))

    @property
    def grows(self) -> bool:
        return all(source.grows for source in self.sources)

    @property
    def why_shrinks(self) -> str:
        shrinks = next(source for source in self.sources if not source.grows)
        return f"{self.name!r} is {self.word} of {shrinks.name!r}, and {shrinks.why_shrinks}"


class Mapped(Operator):
    """The images of the elements of one set."""

    word = "a map"

    def __init__(self, name: str, source: SetNode, function: Callable[[Any], Any]) -> None:
        super().__init__(name, (source,))
        self._function = function
        self._images: dict[Any, Any] = {}

    def image(self, element: Any) -> Any:
        """Return what the user's function makes of an element; it may raise anything."""
        made = self._function(element)
        return made if type(made) is Sample else need_element(made)

    def weights(self, changes: ChangesByName) -> Weights:
        change = changes[self.sources[0].name]
        weights: Weights = {}
        for (element, term), weight in change.pairs.items():
            image = self._image(element)
            if image is not _NOTHING:
                weights[image, term] = weights.get((image, term), 0) + weight
        for element in change.removed:
            self._images.pop(element, None)
        return weights

    def _image(self, element: Any) -> Any:
        if element not in self._images:
            try:
                self._images[element] = self.image(element)
            except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
                pass_interrupt(error)
                self._images[element] = _NOTHING
                self.failures += 1
        return self._images[element]


class Filtered(Mapped):
    """The elements of one set for which a predicate holds."""

    word = "a filter"

    def image(self, element: Any) -> Any:
        return element if self._function(element) else _NOTHING


class United(Operator):
    """The elements of either set."""

    word = "a union"

    def weights(self, changes: ChangesByName) -> Weights:
        weights: Weights = {}
        for source in self.sources:
            for pair, weight in changes.get(source.name, _STILL).pairs.items():
                weights[pair] = weights.get(pair, 0) + weight
        return weights


class Bilinear(Operator):
    """Pairs of the elements of two sets. Define which elements pair, and what a pair gives."""

    @staticmethod
    @abstractmethod
    def partners(element: Any, relation: Relation) -> Iterator[ElementTerm]:
        """Yield the pairs of the other side that `element` meets."""

    @staticmethod
    @abstractmethod
    def made_of(left: Any, right: Any) -> Any:
        """Return the element that these two make."""

    def weights(self, changes: ChangesByName) -> Weights:
        left, right = self.sources
        assert isinstance(left, SetNode)
        assert isinstance(right, SetNode)
        of_left = changes.get(left.name, _STILL).pairs
        of_right = changes.get(right.name, _STILL).pairs
        changed = Relation()
        changed.apply(dict.fromkeys(of_right, 1))
        weights: Weights = {}

        def meet(one: ElementTerm, other: ElementTerm, weight: int) -> None:
            pair = self.made_of(one[0], other[0]), one[1] | other[1]
            weights[pair] = weights.get(pair, 0) + weight

        for one, weight in of_left.items():
            for other in self.partners(one[0], right.relation):
                meet(one, other, weight)
            for other in self.partners(one[0], changed):
                meet(one, other, -weight * of_right[other])
        for other, weight in of_right.items():
            for one in self.partners(other[0], left.relation):
                meet(one, other, weight)
        return weights


class Intersected(Bilinear):
    """The elements of both sets."""

    word = "an intersection"

    @staticmethod
    def partners(element: Any, relation: Relation) -> Iterator[ElementTerm]:
        return ((element, term) for term in relation.terms(element))

    @staticmethod
    def made_of(left: Any, right: Any) -> Any:  # noqa: ARG004 - the two are equal
        return left


class Multiplied(Bilinear):
    """Every pair of an element of the left set and one of the right."""

    word = "a product"

    @staticmethod
    def partners(element: Any, relation: Relation) -> Iterator[ElementTerm]:  # noqa: ARG004 - all of them
        return relation.pairs()

    @staticmethod
    def made_of(left: Any, right: Any) -> Any:
        return left, right
