"""`running(function, zero)`: what follows from everything so far, after each event.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.running(lambda total, event: total + event.value, 0), [5, 7, 6])
    [5, 12, 18]

Law: each output is the function, applied to all events up to its place, one after the other. Cost:
a late event revises all results behind it, unless the function forgets.
"""

from collections.abc import Callable
from typing import Any

from lasp_edge.event import Event
from lasp_edge.ordered.plain import check_plain, encoded
from lasp_edge.ordered.scan import Scan, Stepped
from lasp_edge.scans.arguments import function as checked_function


class RunningState(Scan):
    """A state that each event changes, an output after each.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.running(lambda most, event: max(most, event.value)), [1, 3, 2])
    [1, 3, 3]

    Args:
        function: gives the next state of a state and an event; both are plain values.
        zero: the state before the first event.
    """

    name = "running"

    def __init__(self, function: Callable[[Any, Event[Any]], Any], zero: Any = 0) -> None:
        self._function = checked_function(function, "running: function")
        check_plain(zero)
        self.zero = zero

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        after = self._function(state, event)
        return after, (after,)

    @property
    def fingerprint(self) -> str:
        return f"{super().fingerprint} {encoded(self.zero).hex()}"
