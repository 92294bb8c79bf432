"""`top(n)`: the n greatest values so far, whenever they change; or those of a span, at each event.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.top(2), [5, 7, 6, 4, 9])
    [(5,), (7, 5), (7, 6), (9, 7)]
    >>> scan_outputs(scans.top(2, within_s=2), [5, 7, 6, 4, 9])
    [(5,), (7, 5), (7, 6), (6, 4), (9, 4)]

Laws: each output is the n greatest values up to its place, greatest first; without a
span none comes twice in a row. Cost: a late event that is among the greatest revises the results
behind it until greater ones have driven it out.
"""

from typing import Any

from lasp_edge.event import Event
from lasp_edge.ordered.plain import same
from lasp_edge.ordered.scan import Scan, Stepped
from lasp_edge.scans.arguments import microseconds, whole


class TopValues(Scan[tuple[Any, ...]]):
    """The n greatest values so far as a tuple, greatest first, when they change.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.top(2), [1, 3, 2])
    [(1,), (3, 1), (3, 2)]

    Args:
        n: how many.
        within_s: of the values that came less than this many seconds ago, and after each event;
            None: of all.
    """

    name = "top"

    def __init__(self, n: int, within_s: float | None = None) -> None:
        self._n = whole(n, "top: n")
        self._within_us = None if within_s is None else microseconds(within_s, "top: within_s")

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        if self._within_us is not None:
            return self._of_span(state, event, event.time_us - self._within_us)
        after = tuple(sorted((*state, event.value), reverse=True)[: self._n])
        return (state, ()) if same(state, after) else (after, (after,))

    def _of_span(self, state: Any, event: Event[Any], since_us: int) -> Stepped:
        """Step with the values since a time; one that n later ones have reached never counts."""
        kept, above = [(event.time_us, event.value)], [event.value]
        for time_us, value in reversed(state):
            if time_us > since_us and (len(above) < self._n or value > above[-1]):
                kept.append((time_us, value))
                above = sorted((*above, value), reverse=True)[: self._n]
        return tuple(reversed(kept)), (tuple(above),)

    @property
    def fingerprint(self) -> str:
        span = "" if self._within_us is None else f" {self._within_us}"
        return f"{super().fingerprint} {self._n}{span}"
