"""`differences()`: each value less the one before, such as a meter's consumption.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.differences(), [100, 130, 90])
    [30, -40]
    >>> scan_outputs(scans.differences(reset=True), [100, 130, 5, 25])
    [30, 5, 20]
    >>> scan_outputs(scans.differences().at(Resolution("0.1")), [0.1, 0.3])
    [0.2]

Laws: without resets, the outputs up to a place add up to the value there less the first one;
events in steps of a resolution differ by a whole number of steps. Cost: a late event revises one
result.
"""

from copy import copy
from typing import Any

from lasp_edge.event import Event
from lasp_edge.folds.numbers import Resolution
from lasp_edge.ordered.scan import Scan, Stepped


class ConsecutiveDifferences(Scan[float]):
    """This value less the one before; nothing for the first one.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.differences(reset=True), [100, 130, 20])
    [30, 20]

    Args:
        reset: a counter that fell was reset, and has counted from 0 since.
    """

    name, zero, local = "differences", None, True
    of_numbers = True

    def __init__(self, *, reset: bool = False) -> None:
        self._reset = bool(reset)

    def at(self, resolution: Resolution | None) -> Scan:
        made = copy(self)
        made.resolution = resolution
        made.parts = {"difference": resolution.text} if resolution else {}
        return made

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        resolution, value = self.resolution, event.value
        if resolution is not None:
            value = resolution.quantise(value)
        if state is None:
            return value, ()
        gone = value if self._reset and value < state else value - state
        return value, (gone if resolution is None else resolution.real(gone),)

    @property
    def fingerprint(self) -> str:
        step = self.resolution.canonical if self.resolution else ""
        return f"{super().fingerprint} {self._reset} {step}"
