"""`sessions(gap_s)`: what comes with less than a gap between, folded, once the gap is over.

    >>> from lasp_edge import scans
    >>> from lasp_edge import folds
    >>> from lasp_edge.testing import scan_outputs
    >>> runs = scans.sessions(gap_s=2, fold=folds.sum()).at(Resolution("1"))
    >>> scan_outputs(runs, [5, 7, 6], times_s=[1, 2, 10])
    [(1000000, 2000000, 12.0), (10000000, 10000000, 6.0)]
    >>> scan_outputs(runs, [5, 7], times_s=[1, 3])  # exactly a gap apart: two sessions
    [(1000000, 1000000, 5.0), (3000000, 3000000, 7.0)]
    >>> scan_outputs(scans.sessions(gap_s=2, so_far=True), [5, 7, 6], times_s=[1, 2, 10])
    [(1000000, 1000000, 1), (1000000, 2000000, 2), (10000000, 10000000, 1)]

Laws: sessions do not overlap, and lie at least a gap apart; their folds' combination is the fold
of all values. Cost: a late event revises the session that it falls into, and joins at most two.
"""

from copy import copy
from decimal import Decimal
from typing import Any

from lasp_edge.event import Event
from lasp_edge.folds.fold import Fold, as_fold
from lasp_edge.folds.numbers import Resolution
from lasp_edge.folds.sums import Count
from lasp_edge.ordered.scan import TIME, Scan, Stepped
from lasp_edge.scans.arguments import microseconds

FINER = 1_000
"""Steps of a fold's result in a step of its values: a mean lies between them."""
_ONE = Resolution("1")


class Sessions(Scan[tuple[Any, ...]]):
    """A session: the times of its first and last event in microseconds, then the fold's values.

    It comes a gap after its last event, by time alone.

    >>> from lasp_edge import Resolution, folds, scans
    >>> from lasp_edge.testing import scan_outputs
    >>> runs = scans.sessions(gap_s=2, fold=folds.sum()).at(Resolution("1"))
    >>> scan_outputs(runs, [5, 7, 6], times_s=[1, 2, 10])
    [(1000000, 2000000, 12.0), (10000000, 10000000, 6.0)]

    Args:
        gap_s: seconds without an event that end a session. Two events of one key that are exactly
            so far apart are in two sessions.
        fold: of its values, such as `folds.mean()`; their count, where it is left out. Other folds
            than `folds.count()` need events that are numbers, in steps of a resolution.
        so_far: the session so far comes after each of its events, in place of the whole one.
    """

    name, zero, local = "sessions", None, True

    def __init__(self, gap_s: float, fold: Any = None, *, so_far: bool = False) -> None:
        self._so_far = bool(so_far)
        self._gap_us = microseconds(gap_s, "sessions: gap_s")
        self._fold = Count() if fold is None else as_fold(fold)
        self._counts = isinstance(self._fold, Count)
        self._resolution = _ONE
        if self._counts:
            self.parts = self._parts()

    def at(self, resolution: Resolution | None) -> Scan:
        if resolution is None:
            if not self._counts:
                raise ValueError(f"sessions: {self._fold!r} needs events in steps of a resolution")
            return self
        made = copy(self)
        made._fold, made._resolution = self._fold.at(resolution), resolution  # noqa: SLF001
        made.parts = made._parts()  # noqa: SLF001
        return made

    def _parts(self) -> dict[str, str]:
        step, counts = format(Decimal(self._resolution.text) / FINER, "f"), _counts(self._fold)
        steps = {part: "1" if part in counts else step for part in self._fold.parts}
        return {"start_us": TIME, "end_us": TIME} | steps

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        value = 0 if self._counts else self._resolution.quantise(event.value)
        partial = self._fold.lift(value, event.time_us)
        begun_us = event.time_us
        if state is not None and event.time_us < state[1] + self._gap_us:
            begun_us, partial = state[0], self._fold.combine(state[2], partial)
        if not self._counts and not self._fold.within_limits(partial):
            raise ValueError(f"sessions: {self._fold!r} leaves the range of its columns")
        after = (begun_us, event.time_us, partial)
        return after, (self._row(after),) if self._so_far else ()

    def due(self, state: Any) -> int | None:
        return None if state is None or self._so_far else state[1] + self._gap_us

    @property
    def timed(self) -> bool:
        return not self._so_far

    def ring(self, state: Any, at_us: int) -> Stepped:  # noqa: ARG002 - the contract
        return None, (self._row(state),)

    def _row(self, state: Any) -> tuple[Any, ...]:
        start_us, end_us, partial = state
        lowered = self._fold.lower(partial, self._resolution)
        numbers = [lowered[part] for part in self._fold.parts]
        return (start_us, end_us, *[int(n) if isinstance(n, bool) else n for n in numbers])

    @property
    def fold(self) -> Fold:
        """The fold of a session's values."""
        return self._fold

    @property
    def fingerprint(self) -> str:
        fold = self._fold.fingerprint(self._resolution)
        so_far = " so far" if self._so_far else ""
        return f"{super().fingerprint} {self._gap_us} {fold}{so_far}"


def _counts(fold: Fold) -> set[str]:
    """Return the parts of a fold that are whole numbers, whatever the step of its samples.

    >>> from lasp_edge import folds
    >>> sorted(_counts(folds.struct(n=folds.distinct(), most=folds.max(), high=folds.any())))
    ['high', 'n']
    """
    sample = fold.lift(1)
    found, other = (fold.lower(sample, Resolution(step)) for step in ("1", "0.001"))
    return {
        part for part in fold.parts if isinstance(found[part], int) and found[part] == other[part]
    }
