"""What follows from the shared variables on this device: derived sets, and handlers that waited.

The program's dataflow is fed with all that this device hears of the shared variables, its own
included, and makes the derived sets from it. Nothing of it is sent or stored: it is made anew from
what is. A handler that waits for a threshold is put in line when it is reached, and the core runs
it on its next tick, in a transaction like any other.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from crdts import Lattice, Replica
from crdts.plain import encoded
from lasp_edge.dataflow import News
from lasp_edge.language.declarations import Handler
from lasp_edge.language.derivations import dataflow_of
from lasp_edge.language.plan import Plan

MOST_ELEMENTS = 1_000
"""Results list at most so many elements of a set, the first in their order; all are counted."""


class Reached(NamedTuple):
    """A handler whose threshold was reached, and with which value."""

    variable: str
    handler: Handler
    value: Any


class Derived:
    """The derived sets of one device.

    Args:
        program: the program.
        replica: this life.

    Attributes:
        moved: derived variable -> how often it changed in this life.
    """

    __slots__ = ("_failures", "_flow", "_followed", "_reached", "moved")

    def __init__(self, program: Plan, replica: Replica) -> None:
        self._flow = dataflow_of(program, replica)
        self._followed = frozenset(program.followed)
        self._failures: dict[str, int] = {}
        self._reached: list[Reached] = []
        self.moved = dict.fromkeys(program.derivations, 0)
        for name in self.moved:
            self._flow.stream(name, self._note)
        for (name, threshold), handler in zip(
            program.awaited, program.functions.reached, strict=True
        ):
            self._flow.read(name, threshold).then(partial(self._reach, name, handler))

    def _note(self, news: News) -> None:
        self.moved[news.variable] += 1

    def _reach(self, variable: str, handler: Handler, value: Any) -> None:
        self._reached.append(Reached(variable, handler, value))

    def joined(self, name: str, state: Lattice) -> None:
        """Take what was joined into a shared variable."""
        if name in self._followed:
            self._flow.receive(name, state)

    @property
    def due(self) -> bool:
        """Whether a handler is to be run."""
        return bool(self._reached)

    def take_reached(self) -> Iterator[Reached]:
        """Yield the handlers that are to be run, those too that one of them makes due."""
        while self._reached:
            yield self._reached.pop(0)

    def take_failures(self) -> list[str]:
        """Return what was left aside since the last time, by reason."""
        before, self._failures = self._failures, self._flow.left_aside
        return [
            f"{name}: a function of the program failed"
            for name, total in self._failures.items()
            for _ in range(total - before.get(name, 0))
        ]

    def plain(self, name: str) -> dict[str, Any]:
        """Return a derived variable as plain data, for people."""
        value = self._flow.query(name)
        if isinstance(value, frozenset):
            elements = sorted(value, key=encoded)[:MOST_ELEMENTS]
            return {"parts": {"size": len(value)}, "elements": list(map(_plain, elements))}
        if type(value) in (int, float):
            return {"parts": {"value": value}}
        return {"parts": {}, "value": _plain(value)}


def _plain(value: Any) -> Any:
    """Return a value as JSON knows it: bytes in hexadecimal, sets in order, keys as text."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, frozenset):
        return [_plain(element) for element in sorted(value, key=encoded)]
    if isinstance(value, tuple | list):
        return list(map(_plain, value))
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    return value
