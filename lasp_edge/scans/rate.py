"""`rate(per_s)`: how fast a value changes: the difference to the one before, by the time between.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.rate(resolution="0.1"), [100, 130, 90], times_s=[0, 60, 80])
    [0.5, -2.0]
    >>> litres_an_hour = scans.rate(per_s=3600, reset=True)
    >>> scan_outputs(litres_an_hour, [100, 130, 5], times_s=[0, 60, 120])
    [1800.0, 300.0]

Laws: each output is the exact quotient, rounded once to the step; two readings of one time have
none between them, and the next one is compared with the second of them. Cost: a late event revises
one result.
"""

from fractions import Fraction
from typing import Any

from lasp_edge.event import Event
from lasp_edge.folds.numbers import Resolution
from lasp_edge.ordered.scan import Scan, Stepped
from lasp_edge.scans.arguments import microseconds


class ChangeRate(Scan[float]):
    """This value less the one before, for each `per_s` seconds between them.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.rate(per_s=60), [0, 1, 3], times_s=[0, 60, 120])
    [1.0, 2.0]
    >>> scan_outputs(scans.rate(), [1, 5, 2], times_s=[0, 0, 1])  # none between two of one time
    [-3.0]

    Args:
        per_s: the time in which the change is counted: 1 for a second, 3600 for an hour.
        reset: a counter that fell was reset, and has counted from 0 since.
        resolution: the step of the outputs, as decimal text.
    """

    name, zero, local = "rate", None, True
    of_numbers = True

    def __init__(self, per_s: float = 1, *, reset: bool = False, resolution: str = "0.001") -> None:
        self._per_us, self._reset = microseconds(per_s, "rate: per_s"), bool(reset)
        self.resolution = Resolution(resolution)
        self.parts = {"rate": self.resolution.text}

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        assert self.resolution is not None
        now = (event.time_us, event.value)
        if state is None or event.time_us == state[0]:
            return now, ()
        before, value = (Fraction(str(each)) for each in (state[1], event.value))
        gone = value if self._reset and value < before else value - before
        rate = gone * self._per_us / (event.time_us - state[0])
        return now, (self.resolution.nearest(rate),)

    @property
    def fingerprint(self) -> str:
        assert self.resolution is not None
        shape = f"{self._per_us} {self._reset} {self.resolution.canonical}"
        return f"{super().fingerprint} {shape}"
