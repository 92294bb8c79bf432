"""Sets that follow from shared sets, and handlers that wait for variables.

A program declares which sets follow from which; every device makes them for itself from the state
of the fleet that it holds, and none of them is sent. A wrong definition is refused at once, by the
dataflow that will run it: a sketch, in which nothing is ever written. Only a program that derives
sets or waits for variables imports this module, and with it the dataflow engine.

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

from typing import Any

from crdts import NOBODY, Replica
from lasp_edge.dataflow.engine import Dataflow
from lasp_edge.language.arguments import need_key
from lasp_edge.language.derivation import Awaited, Derivation
from lasp_edge.language.draft import Draft
from lasp_edge.language.plan import Plan
from lasp_edge.variables import Variable, named


class Derivations:
    """The derived sets and the waiting handlers of a draft."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._sketch = Dataflow(NOBODY)

    def derive(
        self, name: str, operator: str, sources: tuple[Any, ...], function: Any, version: int
    ) -> Variable:
        """Declare a derived set.

        `function` is that of a map or filter, else None; `version` is that of its meaning.

        Raises:
            ValueError: something does not fit; nothing is declared then.
        """
        draft, what = self._draft, f"{operator} {name!r}"
        if draft.is_taken(named(name, "variable"), events=False):
            raise ValueError(f"{operator}: the name {name!r} is taken")
        if operator in {"map", "filter"} and not callable(function):
            raise ValueError(f"{what}: a function is needed, not {function!r}")
        need_key(None, version, what)
        made = Derivation(operator, tuple(map(self._known, sources)), version)
        _run(self._sketch, name, made, function)
        draft.derivations[name] = made
        if function is not None:
            draft.derived[name] = function
        draft.variables[name] = Variable(name, None, dynamic=True)
        return draft.variables[name]

    def awaited(self, variable: Any, threshold: Any) -> Awaited:
        """Return what a handler waits for.

        Raises:
            ValueError: the variable could fall below the threshold again.
        """
        name = self._known(variable)
        self._sketch.read(name, threshold)
        return Awaited(name, threshold)

    def _known(self, variable: Any) -> str:
        """Return the name of a variable that the sketch knows from now on."""
        draft = self._draft
        found = draft.variables.get(variable) if isinstance(variable, str) else variable
        known = draft.variable(found)
        if known.name not in draft.derivations:
            if known.bottom is None or known.dynamic or draft.is_folded(known.name):
                raise ValueError(
                    f"{known.name!r} belongs to each device alone; what follows from variables "
                    "needs one that is shared by `declare`"
                )
            self._sketch.declare(known.bottom, known.name)
        return known.name


def dataflow_of(plan: Plan, replica: Replica) -> Dataflow:
    """Return what runs on a device: the shared variables that something follows from."""
    flow = Dataflow(replica)
    for name in plan.followed:
        bottom = plan.variables[name].bottom
        assert bottom is not None
        flow.declare(bottom, name)
    for name, made in plan.derivations.items():
        function = plan.functions.derived[name] if made.operator in {"map", "filter"} else None
        _run(flow, name, made, function)
    return flow


def _run(flow: Dataflow, name: str, made: Derivation, function: Any) -> None:
    """Declare a derived set in a dataflow."""
    if made.operator == "bind_to":
        flow.bind_to(name, *made.sources)
    elif function is not None:
        getattr(flow, made.operator)(*made.sources, function, name)
    else:
        getattr(flow, made.operator)(*made.sources, name)
