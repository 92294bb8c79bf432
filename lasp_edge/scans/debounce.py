"""`debounce(for_s)`: a value once it has stayed for a while: chatter of a contact is left out.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.debounce(for_s=3), [0, 1, 0, 1, 1, 0], times_s=[0, 10, 11, 12, 20, 30])
    [0, 1, 0]

Laws: no two outputs in a row are the same; each was there, and nothing else, for `for_s` before its
output. Cost: a late event revises one result, and the next one.
"""

from copy import copy
from typing import Any

from lasp_edge.event import Event
from lasp_edge.folds.numbers import Resolution
from lasp_edge.ordered.plain import same
from lasp_edge.ordered.scan import Scan, Stepped
from lasp_edge.scans.arguments import microseconds


class SteadyValues(Scan):
    """A value that no other one followed for a time, if it is not the same as the output before.

    It comes when that time is over, by time alone.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.debounce(for_s=5), [1, 0, 1], times_s=[0, 2, 20])
    [0, 1]

    Args:
        for_s: how long it has to stay, in seconds.
    """

    name, zero, local = "debounce", ((), ()), True

    def __init__(self, for_s: float) -> None:
        self._for_us = microseconds(for_s, "debounce: for_s")

    def at(self, resolution: Resolution | None) -> Scan:
        made = copy(self)
        made.resolution = resolution
        return made

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        steady, waiting = state
        if waiting and same(waiting[1], event.value):
            return state, ()
        if not waiting and steady and same(steady[0], event.value):
            return state, ()
        return (steady, (event.time_us, event.value)), ()

    def due(self, state: Any) -> int | None:
        return state[1][0] + self._for_us if state[1] else None

    def ring(self, state: Any, at_us: int) -> Stepped:  # noqa: ARG002 - the contract
        steady, (_, value) = state
        return ((value,), ()), () if steady and same(steady[0], value) else (value,)

    @property
    def fingerprint(self) -> str:
        return f"{super().fingerprint} {self._for_us}"
