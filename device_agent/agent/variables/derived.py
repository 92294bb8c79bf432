"""What follows from the shared variables on this device: derived sets, and reached thresholds.

The program's dataflow is fed with everything that this device hears of the shared variables, its
own contributions included. Derived sets are neither sent nor stored: a start makes them again.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from crdts import Lattice
from crdts.plain import encoded
from device_agent.agent.agent import Agent
from lasp_edge.language.plan import Plan

LISTED_ELEMENTS = 1_000
"""Elements of a set that results list, at most, the first in their order; all are counted."""


class Derived:
    """The derived sets of one device.

    Args:
        agent: what all parts share.

    Attributes:
        moved: derived variable -> how many times it changed since the start.
    """

    def __init__(self, agent: Agent) -> None:
        plan = agent.plan
        self._followed = frozenset(plan.followed)
        self._guard = agent.guard
        self._failures: dict[str, int] = {}
        self._errors: dict[str, BaseException] = {}
        self._reached: list[tuple[int, Any]] = []
        self.moved = dict.fromkeys(plan.derivations, 0)
        if not self._followed:
            return  # a device whose program derives nothing does without the dataflow engine
        from lasp_edge.language.derivations import dataflow_of  # noqa: PLC0415 - see above

        self._flow = dataflow_of(self._watched(plan), agent.replica)
        for name in self.moved:
            self._flow.stream(name, self._note)
        for index, (variable, threshold) in enumerate(plan.awaited):
            self._flow.read(variable, threshold).then(partial(self._reach, index))

    def _watched(self, plan: Plan) -> Plan:
        """Return the plan with functions whose errors are remembered."""
        derived = {
            name: self._guard.watched(function, partial(self._errors.__setitem__, name))
            for name, function in plan.functions.derived.items()
        }
        return replace(plan, functions=replace(plan.functions, derived=derived))

    def _note(self, news: Any) -> None:
        self.moved[news.variable] += 1

    def _reach(self, index: int, value: Any) -> None:
        self._reached.append((index, value))

    def follow(self, name: str, state: Lattice) -> None:
        """Take what was joined into a shared variable from which something follows."""
        self._guard.run(f"what follows from {name}", self._flow.receive, name, state)

    @property
    def due(self) -> bool:
        """Whether a threshold was reached whose handler has not run."""
        return bool(self._reached)

    def take_reached(self) -> Iterator[tuple[int, Any]]:
        """Yield (index in the plan, value) of each reached threshold, new ones included."""
        while self._reached:
            yield self._reached.pop(0)

    def count_failures(self) -> None:
        """Count what the program's functions failed for since the last time."""
        if not self._followed:
            return
        before, self._failures = self._failures, self._flow.left_aside
        for name, total in self._failures.items():
            times = total - before.get(name, 0)
            if times:
                error = self._errors.pop(name, ValueError("gives what is no element of a set"))
                self._guard.failed(name, error, times)

    def value(self, name: str) -> Any:
        """Return the value of a derived variable."""
        return self._flow.query(name)

    def plain(self, name: str) -> dict[str, Any]:
        """Return a derived variable as plain data, for people."""
        value = self.value(name)
        if isinstance(value, frozenset):
            elements = sorted(value, key=encoded)[:LISTED_ELEMENTS]
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
