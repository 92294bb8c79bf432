"""The oracle: what a dataflow's variables are by definition, recomputed from its leaves.

It shares nothing with the engine but the definitions. A set is a plain Python set of pairs
(element, the writes it follows from), and every operator is one line of set algebra; a fold is a
`reduce`. It costs O(all there is) for every question, and so is only asked by tests and by those
who doubt.

Source: Todd Green, Grigoris Karvounarakis, Val Tannen, "Provenance Semirings", PODS 2007.
"""

from collections.abc import Mapping
from functools import reduce
from typing import Any

from crdts import IncrementalSet, Lattice
from lasp_edge.dataflow.definition import Definition


class Oracle:
    """The variables of a dataflow by definition.

    >>> from crdts import GSet
    >>> from lasp_edge.dataflow import Definition
    >>> definitions = {"even": Definition("filter", ("seen",), lambda n: n % 2 == 0)}
    >>> Oracle(definitions, {"seen": GSet({1, 2, 4})}).value("even")
    frozenset({2, 4})

    Args:
        definitions: the derived variables.
        states: the states of the leaves; for the target of a fold that others combine, the
            `OwnedMap` of all devices' partials.
    """

    def __init__(
        self, definitions: Mapping[str, Definition], states: Mapping[str, Lattice]
    ) -> None:
        self._definitions = definitions
        self._states = states

    def value(self, name: str) -> Any:
        """Return the value of a variable."""
        definition = self._definitions.get(name)
        if definition is None:
            return self._states[name].value
        if definition.operator == "bind_to":
            return self.value(*definition.sources)
        if definition.operator == "fold":
            return self._fold(definition)
        if definition.operator == "fold_dynamic":
            return self._fold_dynamic(definition)
        return frozenset(element for element, _ in self.pairs(name))

    def pairs(self, name: str) -> set[tuple[Any, frozenset[Any]]]:
        """Return a set's elements, each with the writes that it follows from."""
        definition = self._definitions.get(name)
        if definition is None:
            return self._of_leaf(name)
        operator, function = definition.operator, definition.function
        sides = [self.pairs(source) for source in definition.sources]
        if operator == "map":
            return {(function(element), writes) for element, writes in sides[0]}
        if operator == "filter":
            return {(element, writes) for element, writes in sides[0] if function(element)}
        if operator in ("bind_to", "union"):
            return set().union(*sides)
        both = {((a, b), here | there) for a, here in sides[0] for b, there in sides[1]}
        if operator == "intersection":
            return {(a, writes) for (a, b), writes in both if a == b}
        assert operator == "product"
        return both

    def _of_leaf(self, name: str) -> set[tuple[Any, frozenset[Any]]]:
        state = self._states[name]
        assert isinstance(state, IncrementalSet)
        return {(element, frozenset({(name, write)})) for write, element in state.tokens()}

    def _fold(self, definition: Definition) -> Any:
        fold, sampled = definition.fold, definition.function
        assert fold is not None
        partial = fold.zero
        for element in {element for element, _ in self.pairs(*definition.sources)}:
            sample = sampled(element)
            lifted = fold.lift(*sample) if isinstance(sample, tuple) else fold.lift(sample)
            partial = fold.combine(partial, lifted)
        return partial

    def _fold_dynamic(self, definition: Definition) -> Any:
        assert definition.fold is not None
        source, *members = definition.sources
        retired = {device for name in members for device in self._states[name].value}
        partials = self._states[source].value
        rows = [partials[device] for device in sorted(partials) if device not in retired]
        counted = [partial for ((_, _, partial),) in rows]
        return reduce(definition.fold.combine, counted, definition.fold.zero)
