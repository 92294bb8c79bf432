"""`last(n)`: the last n values, this one included.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.last(2), [5, 7, 6])
    [(5,), (5, 7), (7, 6)]
    >>> scan_outputs(scans.last(2, partial=False), [5, 7, 6])
    [(5, 7), (7, 6)]

Law: each output is the last n values up to its place. Cost: a late event revises n - 1 results.

Source: grouping of FlameStream (`lasp_edge.ordered.places`).
"""

from typing import Any

from lasp_edge.event import Event
from lasp_edge.ordered.scan import Scan, Stepped
from lasp_edge.scans.arguments import whole


class LastValues(Scan[tuple[Any, ...]]):
    """The last n values as a tuple, the newest at the end.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.last(2), [1, 2, 3])
    [(1,), (1, 2), (2, 3)]

    Args:
        n: how many.
        partial: the first n - 1 have outputs, too, as shorter tuples.
    """

    name, local = "last", True

    def __init__(self, n: int, *, partial: bool = True) -> None:
        self._n, self._partial = whole(n, "last: n"), bool(partial)

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        seen = (*state, event.value)
        if len(seen) == self._n:
            return seen[1:], (seen,)
        return seen, (seen,) if self._partial else ()

    @property
    def fingerprint(self) -> str:
        return f"{super().fingerprint} {self._n} {self._partial}"
