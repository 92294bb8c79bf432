"""`time_weighted_mean(every_s)`: the mean over time: each value counts for as long as it held.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> minutes = scans.time_weighted_mean(every_s=60, resolution="0.1")
    >>> scan_outputs(minutes, [10, 20, 40], times_s=[0, 45, 70])
    [12.5, 36.7, 40.0]

A value holds until the next one, but for at most `hold_s`. In the second minute above 20 held for
10 s and 40 for 50 s, and in the third one 40 for its first 10 s: then its hold was over.

Laws: an output is the integral over its interval by the time in which a value held; intervals begin
at multiples of `every_s` since the epoch. Cost: a late event revises the intervals up to the next
event.
"""

from copy import copy
from fractions import Fraction
from typing import Any

from lasp_edge.event import Event
from lasp_edge.folds.numbers import Resolution
from lasp_edge.ordered.scan import Scan, Stepped
from lasp_edge.scans.arguments import microseconds


class TimeWeightedMean(Scan[float]):
    """The mean of the value over each interval of time, at the interval's end.

    It comes by time alone. An interval in which no value held has no output.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.time_weighted_mean(every_s=10), [1, 3], times_s=[0, 5])
    [2.0, 3.0]

    Args:
        every_s: the length of an interval, in seconds.
        hold_s: how long a value holds at most, in seconds; as long as an interval, if it is left
            out.
        resolution: the step of the outputs, as decimal text; that of the readings, if it is left
            out.
    """

    name, zero, local = "time_weighted_mean", None, True

    def __init__(
        self, every_s: float, *, hold_s: float | None = None, resolution: str | None = None
    ) -> None:
        self._every_us = microseconds(every_s, "time_weighted_mean: every_s")
        self._hold_us = self._every_us
        if hold_s is not None:
            self._hold_us = microseconds(hold_s, "time_weighted_mean: hold_s")
        self._given = None if resolution is None else Resolution(resolution)
        self._set(Resolution("1"))

    def at(self, resolution: Resolution | None) -> Scan:
        if resolution is None:
            raise ValueError("time_weighted_mean: events in steps of a resolution are needed")
        made = copy(self)
        made._set(resolution)  # noqa: SLF001
        return made

    def _set(self, source: Resolution) -> None:
        self._source, self.resolution = source, self._given or source
        self.parts = {"mean": self.resolution.text}

    # A state is where the interval begins, the integral so far in steps and microseconds (a text:
    # it may be greater than a plain number), the microseconds in which a value held, and the time
    # and the steps of the last event, which hold from then on.
    def step(self, state: Any, event: Event[Any]) -> Stepped:
        steps = self._source.quantise(event.value)
        begin_us = event.time_us - event.time_us % self._every_us
        if state is None or state[0] != begin_us:
            return (begin_us, "0", 0, event.time_us, steps), ()
        integral, held_us = self._until(state, event.time_us)
        return (begin_us, str(integral), held_us, event.time_us, steps), ()

    def _until(self, state: Any, time_us: int) -> tuple[int, int]:
        """Return the integral and the time held in an interval, up to a time in it."""
        begin_us, integral, held_us, last_us, steps = state
        end_us = min(time_us, last_us + self._hold_us)
        span_us = max(0, end_us - max(begin_us, last_us))
        return int(integral) + steps * span_us, held_us + span_us

    def due(self, state: Any) -> int | None:
        return None if state is None else state[0] + self._every_us

    def ring(self, state: Any, at_us: int) -> Stepped:
        assert self.resolution is not None
        integral, held_us = self._until(state, at_us)
        _, _, _, last_us, steps = state
        goes_on = last_us + self._hold_us > at_us
        after = (at_us, "0", 0, last_us, steps) if goes_on else None
        if not held_us:
            return after, ()
        mean = Fraction(integral, held_us) * self._source.exact
        return after, (self.resolution.nearest(mean),)

    @property
    def fingerprint(self) -> str:
        assert self.resolution is not None
        shape = f"{self._every_us} {self._hold_us} {self.resolution.canonical}"
        return f"{super().fingerprint} {shape}"
