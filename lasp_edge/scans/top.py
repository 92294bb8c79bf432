"""`top(n)`: the n greatest values so far, whenever they change.

    >>> from lasp_edge.testing import said_by
    >>> said_by(TopValues(2), [5, 7, 6, 4, 9])
    [(5,), (7, 5), (7, 6), (9, 7)]

Laws: each output is the n greatest values up to its place, greatest first; none comes twice in a
row. Cost: a late event that is among the greatest revises the results behind it until greater ones
have driven it out.
"""

from typing import Any

from lasp_edge.event import Event
from lasp_edge.ordered.plain import same
from lasp_edge.ordered.scan import Scan, Stepped
from lasp_edge.scans.arguments import whole


class TopValues(Scan):
    """The n greatest values so far as a tuple, greatest first, when they change.

    Args:
        n: how many.
    """

    name = "top"

    def __init__(self, n: int) -> None:
        self._n = whole(n, "top: n")

    def step(self, state: Any, event: Event) -> Stepped:
        after = tuple(sorted((*state, event.value), reverse=True)[: self._n])
        return (state, ()) if same(state, after) else (after, (after,))

    @property
    def fingerprint(self) -> str:
        return f"{super().fingerprint} {self._n}"
