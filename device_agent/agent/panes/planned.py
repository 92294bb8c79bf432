"""The streams that a device makes panes of: those of its windows, and what their folds are.

Streams of windows with parameters come and go with what operators say.
"""

from collections.abc import Iterable
from typing import Protocol

from lasp_edge.folds.fold import Fold
from lasp_edge.language.plan import Plan


class FoldedPanes(Protocol):
    """What must be known of a stream to fold readings into its panes."""

    @property
    def stream(self) -> int:
        """Its id."""

    @property
    def span_us(self) -> int:
        """Length of a pane."""

    @property
    def fold(self) -> Fold:
        """The fold of its partials."""


class PlannedStreams:
    """What is known of each stream.

    Args:
        plan: the program.

    Attributes:
        windows: stream -> its window, or piece of one.
        spans_us: stream -> length of a pane; rows of results are panes, too.
        pieces: the streams of windows with parameters. A sink that refuses one has not heard yet
            what operators said.
        is_new: they differ from those that were looked at last.
    """

    __slots__ = ("_fixed", "is_new", "pieces", "spans_us", "windows")

    def __init__(self, plan: Plan) -> None:
        self.windows: dict[int, FoldedPanes] = {w.stream: w for w in plan.windows.values()}
        self.spans_us = {each.stream: each.span_us for each in plan.pane_streams}
        self.pieces: frozenset[int] = frozenset()
        self.is_new = True
        self._fixed = (self.windows, self.spans_us)

    def plan(self, pieces: Iterable[FoldedPanes]) -> None:
        """Take these pieces for those of the windows with parameters, and no former ones."""
        windows, spans_us = self._fixed
        by_stream = {piece.stream: piece for piece in pieces}
        self.pieces, self.is_new = frozenset(by_stream), True
        self.windows = windows | by_stream
        self.spans_us = spans_us | {each.stream: each.span_us for each in by_stream.values()}
