"""`held_for(predicate, for_s)`: a condition that has held for a while, once for each time.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> hot = scans.held_for(lambda event: event.value > 80, for_s=5)
    >>> scan_outputs(hot, [85, 90, 70, 81, 82], times_s=[0, 9, 10, 20, 22])
    [(0,), (20000000,)]

Laws: the condition held at each event from an output's time until the output; between two outputs
it did not at one. Cost: a late event revises the stretch that it falls into, and at most makes two
of it.
"""

from collections.abc import Callable
from typing import Any

from lasp_edge.event import Event
from lasp_edge.ordered.scan import TIME, Scan, Stepped
from lasp_edge.scans.arguments import function, microseconds


class ConditionHeld(Scan[tuple[int, ...]]):
    """The time in microseconds since which a condition holds, once that is a while ago.

    It comes by time alone. A value holds until the next event.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(
    ...     scans.held_for(lambda event: event.value > 1, for_s=5), [2, 2, 0], times_s=[0, 3, 9]
    ... )
    [(0,)]

    Args:
        predicate: the condition, given the event.
        for_s: how long it has to hold, in seconds.
    """

    name, zero, local = "held_for", None, True
    parts = {"since_us": TIME}  # noqa: RUF012 - the contract

    def __init__(self, predicate: Callable[[Event[Any]], Any], for_s: float) -> None:
        self._predicate = function(predicate, "held_for: predicate")
        self._for_us = microseconds(for_s, "held_for: for_s")

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        if not self._predicate(event):
            return None, ()
        return ((event.time_us, False) if state is None else state), ()

    def due(self, state: Any) -> int | None:
        return None if state is None or state[1] else state[0] + self._for_us

    def ring(self, state: Any, at_us: int) -> Stepped:  # noqa: ARG002 - the contract
        return (state[0], True), ((state[0],),)

    @property
    def fingerprint(self) -> str:
        return f"{super().fingerprint} {self._for_us}"
