"""`distinct()`: a value when it comes for the first time, or for the first time in a while.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.distinct(), ["a", "b", "a", "c", "b"])
    ['a', 'b', 'c']
    >>> scan_outputs(scans.distinct(within_s=2), ["a", "a", "b", "a", "a"])
    ['a', 'b', 'a']

Law: applied twice, it gives what it gives once. Cost: a late event revises the results of its own
value; all behind it are stepped until both states remember the same.
"""

from copy import copy
from typing import Any

from lasp_edge.event import Event
from lasp_edge.folds.numbers import Resolution
from lasp_edge.ordered.plain import same
from lasp_edge.ordered.scan import Scan, Stepped
from lasp_edge.scans.arguments import microseconds


class FirstOccurrences(Scan):
    """A value that was no output before.

    The outputs so far are its state, which may have 64 KiB; a value that finds no room there is no
    output, and is counted.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.distinct(within_s=60), [1, 2, 1])
    [1, 2]

    Args:
        within_s: a value is an output again this many seconds after it was one; None: never.
    """

    name = "distinct"

    def __init__(self, within_s: float | None = None) -> None:
        self._within_us = None if within_s is None else microseconds(within_s, "distinct: within_s")

    def at(self, resolution: Resolution | None) -> Scan:
        made = copy(self)
        made.resolution = resolution
        return made

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        kept, value = state, event.value
        if self._within_us is not None:
            least_us = event.time_us - self._within_us
            kept = tuple([each for each in state if each[1] > least_us])
        known = [before for before, _ in kept]
        # Where nothing is equal, nothing is the same: one look, in place of a call for each.
        if value in known and any(same(before, value) for before in known):
            return kept, ()
        output_us = 0 if self._within_us is None else event.time_us
        return (*kept, (value, output_us)), (value,)

    @property
    def fingerprint(self) -> str:
        return f"{super().fingerprint} {self._within_us}"
