"""Acting on a value: what a program does when a fold's value changes, or reaches a level.

Every device acts on its own, on what it knows of the fleet at that time. So two devices may act a
moment apart, and one that is cut off acts on what it received last. Nothing that is folded depends
on it, unless a handler makes it so.

    >>> from crdts import BoundedLWWSet
    >>> from lasp_edge import Program, folds
    >>> program = Program("greenhouse")
    >>> temperature = program.event("temperature", resolution="0.01")
    >>> samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples")
    >>> local = program.fold(samples, folds.mean(), "local")
    >>> everywhere = program.fold_dynamic(local, "everywhere")
    >>> program.alert("too warm", everywhere, above=28, below=27)
    >>> @program.on_value(everywhere, above=28, below=27, for_s=60)
    ... def warm(value, update):
    ...     print(f"{value.number} on {len(value.devices)} devices")
    >>> plan = program.plan()
    >>> print(plan.alerts["too warm"].trigger, "/", plan.reactions[0].trigger)
    above 28 below 27 / above 28 below 27 for 60 s
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from crdts import GCounter, PNCounter, Product
from lasp_edge.language.triggers import Trigger
from lasp_edge.variables import Variable


class FoldValue(NamedTuple):
    """What a fold is worth, as one device knows it.

    >>> from lasp_edge.examples.greenhouse import program
    >>> from lasp_edge.testing import replay
    >>> given = [("attic", "temperature", 21, 0, {"room": "attic"})]
    >>> value = replay(program, given).value("global_average")
    >>> value.number, dict(value.parts), value.devices, value.settled
    (21.0, {'mean': 21.0}, ('attic',), True)

    Attributes:
        name: the fold's target.
        key: of a fold with keys; else "".
        number: the part that is watched, or the only one, as results show it; None where there is
            no sample, or where there are several parts and none is watched.
        parts: all parts by name, as results show them.
        inputs: tells what it was made from: equal inputs, equal value.
        settled: every connected device holds the same.
        devices: which devices are in, sorted.
        missing: devices that are not connected and last held something else.
    """

    name: str
    key: str
    number: float | int | None
    parts: Mapping[str, float | int | None]
    inputs: str
    settled: bool
    devices: tuple[str, ...]
    missing: tuple[str, ...] = ()


Folded = Variable[FoldValue | GCounter | PNCounter | Product]
"""The target of a fold: made by it, or declared before as something that can hold its partial."""


class Watched(NamedTuple):
    """Which value is watched, and for what.

    Attributes:
        name: of the alert, or of the handler.
        variable: the fold's target.
        part: which part of it; "" where no single one is watched.
        trigger: what the part has to do; None: any change counts.
        every_us: least time between two calls for one key; None: the agent's interval.
        levels: the arguments of the condition where a parameter is one of them; `trigger` is that
            of the parameters' defaults then (see `lasp_edge.language.levels`).
    """

    name: str
    variable: str
    part: str
    trigger: Trigger | None = None
    every_us: int | None = None
    levels: tuple[tuple[str, Any], ...] = ()

    @property
    def identity(self) -> str:
        """The key of its state: another condition begins without one."""
        return "\x1f".join((self.name, self.variable, self.part, str(self.trigger or "")))


def fold_targets_named(named: list[Variable], targets: Mapping[str, Variable]) -> tuple[str, ...]:
    """Return which of the variables that a handler names are made by folds: it reads those."""
    return tuple(v.name for v in named if targets.get(v.name) is v)
