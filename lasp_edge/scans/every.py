"""`every(n)`: count windows, each n values together, or the last n after each `step` of them.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.every(3), [1, 2, 3, 4, 5, 6, 7])
    [(1, 2, 3), (4, 5, 6)]
    >>> scan_outputs(scans.every(3, sum), [1, 2, 3, 4, 5, 6, 7])
    [6, 15]
    >>> scan_outputs(scans.every(3, step=2), [1, 2, 3, 4, 5, 6, 7])
    [(1, 2, 3), (3, 4, 5), (5, 6, 7)]

Law: without `step`, the outputs, one after the other, are a beginning of the values. Cost: a
late event moves the cut of all windows behind it, so it revises all of them.
"""

from collections.abc import Callable
from typing import Any

from lasp_edge.event import Event
from lasp_edge.ordered.scan import Scan, Stepped
from lasp_edge.scans.arguments import function, whole


class CountWindows(Scan):
    """Each n values, as a tuple, or what a function gives of that tuple.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.every(2, sum), [1, 2, 3, 4])
    [3, 7]

    Args:
        n: how many.
        of: gives a plain value of n values; None: the tuple itself.
        step: how many values are new in the next window, if not all are.
    """

    name = "every"

    def __init__(
        self,
        n: int,
        of: Callable[[tuple[Any, ...]], Any] | None = None,
        *,
        step: int | None = None,
    ) -> None:
        self._n = whole(n, "every: n")
        self._of = None if of is None else function(of, "every: of, as in every(5, sum),")
        self._step = self._n if step is None else whole(step, "every: step")
        if self._step > self._n:
            raise ValueError(f"every: step={step} would leave values out; it is {n} at most")

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        seen = (*state, event.value)
        if len(seen) < self._n:
            return seen, ()
        return seen[self._step :], (seen if self._of is None else self._of(seen),)

    @property
    def fingerprint(self) -> str:
        hops = "" if self._step == self._n else f" {self._step}"
        return f"{super().fingerprint} {self._n} {self._of is not None}{hops}"
