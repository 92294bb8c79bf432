"""`as_of(left, right, within_s)`: each event of one kind with the newest one of another.

    >>> from lasp_edge.testing import said_by
    >>> both = AsOfJoin("temperature", "humidity", within_s=60)
    >>> said_by(both, [20.0, 50, 21.5], names=["temperature", "humidity", "temperature"])
    [(21.5, 50)]

Two of one time meet, whichever stands first in the order: an event waits until its instant is over.

Law: each `left` has at most one output, with the `right` that is newest up to its time. Cost: a
late `left` brings one result; a late `right` revises those up to the next one.
"""

from typing import Any

from lasp_edge.event import Event
from lasp_edge.ordered.scan import Scan, Stepped
from lasp_edge.scans.arguments import microseconds


class AsOfJoin(Scan):
    """The value of each `left`, and that of the newest `right`, as a pair.

    It comes a microsecond after `left`, by time alone: see the module.

    Args:
        left: the event or stream, or its name, each event of which has an output.
        right: the one that is looked up.
        within_s: how old it may be, in seconds.
    """

    name, zero, local = "as_of", ((), ()), True

    def __init__(self, left: Any, right: Any, within_s: float) -> None:
        self._left, self._right = _name(left), _name(right)
        if self._left == self._right:
            raise ValueError(f"as_of: two different events are needed, not twice {self._left!r}")
        self._within_us = microseconds(within_s, "as_of: within_s")

    def step(self, state: Any, event: Event) -> Stepped:
        waiting, right = state
        now = (event.time_us, event.value)
        if event.name == self._right:
            return (waiting, now), ()
        return ((*waiting, now) if event.name == self._left else waiting, right), ()

    def due(self, state: Any) -> int | None:
        return state[0][0][0] + 1 if state[0] else None

    def ring(self, state: Any, at_us: int) -> Stepped:  # noqa: ARG002 - the contract
        waiting, right = state
        return ((), right), [
            (value, right[1])
            for time_us, value in waiting
            if right and time_us - right[0] <= self._within_us
        ]

    @property
    def fingerprint(self) -> str:
        return f"{super().fingerprint} {self._left} {self._right} {self._within_us}"


def _name(source: Any) -> str:
    """Return the name of an event or stream, given itself or its name."""
    name = source if isinstance(source, str) else getattr(source, "name", None)
    if not isinstance(name, str):
        raise ValueError(f"as_of: an event, a stream or its name is needed, not {source!r}")
    return name
