"""Spans of window starts, and of the panes that such windows consist of: integer arithmetic only.

They become `BETWEEN` predicates, by which Delta leaves unread all files but those that matter. (It
prunes an `IN` list by its least and greatest value only.)

    >>> joined([Span(0, 10), Span(11, 20), Span(40, 50)])
    [Span(first=0, last=20), Span(first=40, last=50)]
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
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


class PassedFrontier(NamedTuple):
    """How far the frontier has come, and which windows it has passed so far.

    Attributes:
        frontier_us: F; None is bottom.
        by_window: of windows by name, how far it has passed them for sure, where this may be less:
            while another program served them it moved on, and they stayed as they were.
    """

    frontier_us: int | None
    by_window: Mapping[str, int | None] = MappingProxyType({})

    def of(self, window: str) -> int | None:
        """Return how far it has passed a window."""
        return self.by_window.get(window, self.frontier_us)


Starts = Mapping[str, Sequence[Span]]
"""Which starts of each window to look at, by the window's name."""

EVERYTHING: Final = Span(EARLIEST_PANE_US, LATEST_PANE_US)


def floor_us(window: WindowShape, frontier: int | None, retain_us: int) -> int | None:
    """Return the least start of the windows that are still recomputed; None for no floor.

    They end at most `retain_us` below the frontier. So a window that is not final yet is among
    them, however long it is.
    """
    return None if frontier is None else frontier - retain_us - window.size_us


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
