"""Which windows a batch may have changed, as few spans of time: integer arithmetic only.

A window is recomputed where a pane of it was touched or where the frontier has passed its end.
Both are spans of starts, computed on the driver, and both become `BETWEEN` predicates, by which
Delta leaves unread all files but those that matter. (It prunes an `IN` list by its least and
greatest value only.)

    >>> class Minute(NamedTuple):
    ...     size_us: int = 50
    ...     span_us: int = 10
    >>> minute = Minute()
    >>> touched(minute, [100, 110, 400])
    [Span(first=60, last=110), Span(first=360, last=400)]
    >>> passed(minute, before=100, after=130)
    [Span(first=51, last=80)]
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple, Protocol

from lasp_edge.protocol.limits import EARLIEST_PANE_US, LATEST_PANE_US

# Predicates of this many spans plan in some 10 ms; nearer spans are read as one beyond that.
_MOST: Final = 32


class WindowShape(Protocol):
    """What of a window decides which panes it holds: lengths in microseconds."""

    @property
    def size_us(self) -> int:
        """From its start to its end."""

    @property
    def span_us(self) -> int:
        """Length of a pane."""


class Span(NamedTuple):
    """Integers from `first` to `last`, both included."""

    first: int
    last: int


EVERYTHING: Final = Span(EARLIEST_PANE_US, LATEST_PANE_US)


def touched(window: WindowShape, panes_us: Iterable[int]) -> list[Span]:
    """Return the spans of starts of the windows that hold one of the panes."""
    reach_us = window.size_us - window.span_us
    return joined((Span(pane_us - reach_us, pane_us) for pane_us in panes_us), window.span_us)


def passed(window: WindowShape, before: int | None, after: int | None) -> list[Span]:
    """Return the starts of the windows whose end lies in (before, after]; None is bottom."""
    if after is None or after == before:
        return []
    lowest = EARLIEST_PANE_US if before is None else before - window.size_us + 1
    return [Span(lowest, after - window.size_us)]


def above(spans: Iterable[Span], floor_us: int | None) -> list[Span]:
    """Return what lies at or above the floor; None is no floor."""
    if floor_us is None:
        return list(spans)
    return [Span(max(span.first, floor_us), span.last) for span in spans if span.last >= floor_us]


def panes_of(window: WindowShape, starts: Iterable[Span]) -> list[Span]:
    """Return the spans of panes that the windows with these starts consist of."""
    reach_us = window.size_us - window.span_us
    return [Span(start.first, start.last + reach_us) for start in starts]


def joined(spans: Iterable[Span], gap_us: int = 1, most: int = _MOST) -> list[Span]:
    """Return the spans in order, those joined that overlap or lie nearer than `gap_us`.

    If more than `most` remain, those with the smallest gaps are joined too: what is recomputed
    without need does not change.
    """
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.first - merged[-1].last <= gap_us:
            merged[-1] = Span(merged[-1].first, max(merged[-1].last, span.last))
        else:
            merged.append(span)
    if len(merged) <= most:
        return merged
    gaps = [after.first - before.last for before, after in pairwise(merged)]
    return joined(merged, sorted(gaps)[len(merged) - most - 1], most)
