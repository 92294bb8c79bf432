"""Which windows a batch may have changed, as few spans of time: integer arithmetic only.

A window is recomputed where a pane of it was touched, where the frontier has passed its end, or
where it has become due (`lasp_edge.protocol.waiting`). All are spans of starts, computed on the
driver, and become `BETWEEN` predicates, by which Delta leaves unread all files but those that
matter. (It prunes an `IN` list by its least and greatest value only.)

    >>> class Minute(NamedTuple):
    ...     size_us: int = 50
    ...     span_us: int = 10
    >>> minute = Minute()
    >>> touched(minute, [100, 110, 400])
    [Span(first=60, last=110), Span(first=360, last=400)]
    >>> passed(minute, before=100, after=130)
    [Span(first=51, last=80)]
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


class SlidingShape(WindowShape, Protocol):
    """What of a window decides which of its starts a batch may have changed."""

    @property
    def name(self) -> str:
        """The window's."""

    @property
    def stream(self) -> int:
        """The id of its panes."""

    def start_of_first(self, time_us: int) -> int:
        """Return the start of the first window that holds a time."""


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


def become_due(
    window: WindowShape, frontier: int | None, before: int | None, after: int | None
) -> list[Span]:
    """Return the starts of the windows that have become due and that are not final.

    Their ends lie above the frontier, and in (before, after]; None is bottom.
    """
    known = [each for each in (frontier, before) if each is not None]
    since = max(known, default=None)
    if after is None or (since is not None and after <= since):
        return []
    return passed(window, since, after)


def above(spans: Iterable[Span], floor_us: int | None) -> list[Span]:
    """Return what lies at or above the floor; None is no floor."""
    if floor_us is None:
        return list(spans)
    return [Span(max(span.first, floor_us), span.last) for span in spans if span.last >= floor_us]


def affected(
    windows: Iterable[SlidingShape],
    panes_us: Mapping[int, Iterable[int]],
    before: PassedFrontier,
    after: int | None,
    retain_us: int,
    due: Mapping[str, tuple[int | None, int | None]] = MappingProxyType({}),
) -> Starts:
    """Return the starts of the windows that were touched, have become due or that F has passed.

    The floor is that of the frontier before, so that whatever F passes becomes final, however far
    it moves at once.

    Args:
        windows: the program's windows.
        panes_us: the touched panes by stream.
        before: the frontier so far.
        after: the frontier now.
        retain_us: for how long after its end a window still takes late readings.
        due: of each window by name, the end up to which it was due before, and is now.
    """
    starts = {}
    for window in windows:
        wanted = touched(window, panes_us.get(window.stream, ()))
        wanted += passed(window, before.of(window.name), after)
        wanted += become_due(window, before.frontier_us, *due.get(window.name, (None, None)))
        least_us = floor_us(window, before.frontier_us, retain_us)
        starts[window.name] = joined(above(wanted, least_us))
    return {name: wanted for name, wanted in starts.items() if wanted}


def floor_us(window: WindowShape, frontier: int | None, retain_us: int) -> int | None:
    """Return the least start of the windows that are still recomputed; None for no floor.

    They end at most `retain_us` below the frontier. So a window that is not final yet is among
    them, however long it is.
    """
    return None if frontier is None else frontier - retain_us - window.size_us


def too_late(
    windows: Iterable[SlidingShape],
    rows: Mapping[int, Mapping[int, int]],
    frontier: int | None,
    retain_us: int,
) -> int:
    """Return how many rows of panes a window lacks because it is not recomputed any more.

    Args:
        windows: the program's windows.
        rows: how many there are of each pane, by stream.
        frontier: before them; None is bottom.
        retain_us: as in `affected`.
    """
    late: dict[tuple[int, int], int] = {}
    for window in windows:
        least_us = floor_us(window, frontier, retain_us)
        if least_us is None:
            return 0
        for pane_us, count in rows.get(window.stream, {}).items():
            if window.start_of_first(pane_us) < least_us:
                late[window.stream, pane_us] = count
    return sum(late.values())


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
