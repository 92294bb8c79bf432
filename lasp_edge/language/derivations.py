"""Dataflow in a program: sets that follow from shared sets, and handlers that wait for variables.

A program says which sets follow from which; every device makes them for itself from what it has
heard of the fleet, and none of it is sent. What is wrong is refused at once, by the very dataflow
that will run it: a sketch, in which nothing is ever written.

    >>> from crdts import ORSet
    >>> from lasp_edge import Program
    >>> from lasp_edge.dataflow import cardinality
    >>> program = Program("greenhouse")
    >>> doors = program.declare(ORSet(), "doors")
    >>> upstairs = program.filter(doors, lambda door: door.startswith("2"), "upstairs")
    >>> program.map(upstairs, lambda door: door[1:], "rooms").name
    'rooms'
    >>> program.on_threshold("rooms", cardinality(3))
    Traceback (most recent call last):
        ...
    ValueError: read 'rooms' for cardinality(3): 'rooms' is a map of 'upstairs', and 'upstairs' is \
a filter of 'doors', and elements of 'doors' (ORSet) can be removed
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from crdts import NOBODY, Replica
from lasp_edge.dataflow.definition import Definition
from lasp_edge.dataflow.engine import Dataflow, Named
from lasp_edge.language.declarations import Variable, named, need_key
from lasp_edge.language.plan import Plan

Reached = Callable[[Any, Any], None]
"""A handler `(value, update)`."""


class Derivation(NamedTuple):
    """How a derived set is made; `version` is of the meaning of its function."""

    definition: Definition
    version: int


class Awaited(NamedTuple):
    """A handler, and what it waits for."""

    variable: str
    threshold: Any
    handler: Reached


class Derivations(ABC):
    """The part of a program that says what follows from its shared variables.

    Attributes:
        variables: the program's variables by name.
        derivations: the derived sets by name, each after what it is made from.
        awaited: the handlers that wait, in the order of their declaration.
    """

    variables: dict[str, Variable]
    windows: Mapping[str, Any]
    _folds: Mapping[str, Any]
    _dynamic: Mapping[str, Any]

    def __init__(self) -> None:
        self.derivations: dict[str, Derivation] = {}
        self.awaited: list[Awaited] = []
        self._sketch = Dataflow(NOBODY)

    @abstractmethod
    def _own(self, variable: Any) -> Variable:
        """Return `variable` if it is one of the program.

        Raises:
            ValueError: it is not.
        """

    def map(
        self, source: Variable, function: Callable[[Any], Any], name: str, *, version: int = 1
    ) -> Variable:
        """Derive the images of a set's elements, on each device.

        Args:
            source: a shared set (`ORSet`, `GSet`, `TwoPSet`; of an `ORMap` the keys), or one that
                is derived from such.
            function: gives an element's image, and depends on nothing else. What it fails for is
                left aside and counted.
            name: a new name.
            version: raise it when the meaning of `function` changes.

        Raises:
            ValueError: something does not fit; nothing is declared then.
        """
        return self._derive("map", (source,), name, function, version)

    def filter(
        self, source: Variable, predicate: Callable[[Any], Any], name: str, *, version: int = 1
    ) -> Variable:
        """Derive those elements of a set for which `predicate` holds. Arguments as for `map`."""
        return self._derive("filter", (source,), name, predicate, version)

    def union(self, left: Variable, right: Variable, name: str) -> Variable:
        """Derive the elements that are in either set. Arguments as for `map`."""
        return self._derive("union", (left, right), name)

    def intersection(self, left: Variable, right: Variable, name: str) -> Variable:
        """Derive the elements that are in both sets. Arguments as for `map`."""
        return self._derive("intersection", (left, right), name)

    def product(self, left: Variable, right: Variable, name: str) -> Variable:
        """Derive all pairs of an element of either set, left first. Arguments as for `map`."""
        return self._derive("product", (left, right), name)

    def bind_to(self, name: str, source: Variable) -> Variable:
        """Derive what `source` is under a name of its own; `source` is any shared variable."""
        return self._derive("bind_to", (source,), name)

    def on_threshold(
        self, variable: Variable | str, threshold: Any = None
    ) -> Callable[[Reached], Reached]:
        """Decorate a handler `(value, update)` that runs when a variable has come so far.

        It runs once in each life of a device, on every device, with the value that it reached. So
        what it asks for should be right when it is asked for again, such as adding to a set.

        Args:
            variable: a shared variable, or one that is derived from such.
            threshold: as for `Dataflow.read`; None waits until something was written.

        Raises:
            ValueError: the variable could fall below the threshold again.
        """
        name = self._known(variable)
        self._sketch.read(name, threshold)

        def register(handler: Reached) -> Reached:
            if not callable(handler):
                raise ValueError(
                    f"on_threshold: a function (value, update) is needed, not {handler!r}"
                )
            self.awaited.append(Awaited(name, threshold, handler))
            return handler

        return register

    def dataflow(self, replica: Replica) -> Dataflow:
        """Return what runs on a device: the shared variables that something follows from."""
        flow = Dataflow(replica)
        for name in self.followed:
            bottom = self.variables[name].bottom
            assert bottom is not None
            flow.declare(bottom, name)
        for name, (definition, _) in self.derivations.items():
            _run(flow, definition, name)
        return flow

    @property
    def followed(self) -> tuple[str, ...]:
        """The shared variables that something follows from, or that somebody waits for."""
        used = [source for made, _ in self.derivations.values() for source in made.sources]
        used += [awaited.variable for awaited in self.awaited]
        return tuple(name for name in dict.fromkeys(used) if name not in self.derivations)

    def _known(self, variable: Any) -> str:
        """Return the name of a variable that the sketch knows from now on."""
        found = self.variables.get(variable) if isinstance(variable, str) else variable
        name = self._own(found).name
        bottom = self.variables[name].bottom
        if name not in self.derivations:
            folded = name in self._folds or name in self._dynamic
            if bottom is None or self.variables[name].dynamic or folded:
                raise ValueError(
                    f"{name!r} belongs to each device alone; what follows from variables needs one "
                    "that is shared by `declare`"
                )
            self._sketch.declare(bottom, name)
        return name

    def _derive(
        self,
        operator: str,
        sources: tuple[Variable, ...],
        name: str,
        function: Any = None,
        version: int = 1,
    ) -> Variable:
        if named(name, "variable") in self.variables or name in self.windows:
            raise ValueError(f"{operator}: the name {name!r} is taken")
        if function is not None and not callable(function):
            raise ValueError(f"{operator} {name!r}: a function is needed, not {function!r}")
        need_key(None, version, f"{operator} {name!r}")
        definition = Definition(operator, tuple(map(self._known, sources)), function)
        _run(self._sketch, definition, name)
        self.derivations[name] = Derivation(definition, version)
        self.variables[name] = Variable(name, None, dynamic=True)
        return self.variables[name]


def dataflow_of(plan: Plan, replica: Replica) -> Dataflow:
    """Return what runs on a device: the shared variables that something follows from."""
    flow = Dataflow(replica)
    for name in plan.followed:
        bottom = plan.variables[name].bottom
        assert bottom is not None
        flow.declare(bottom, name)
    for name, made in plan.derivations.items():
        function = plan.functions.derived.get(name)
        _run(flow, Definition(made.operator, made.sources, function), name)
    return flow


def _run(flow: Dataflow, definition: Definition, name: Named) -> None:
    """Declare a derived variable in a dataflow."""
    operator, sources, function, _ = definition
    if operator == "bind_to":
        flow.bind_to(name, *sources)
    elif function is not None:
        getattr(flow, operator)(*sources, function, name)
    else:
        getattr(flow, operator)(*sources, name)
