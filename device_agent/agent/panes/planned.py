"""The streams that a device makes panes of: those of its windows, and what their folds are.

Streams of windows with parameters come and go with what operators say.
"""

from collections.abc import Iterable
from typing import Protocol

from device_agent.agent.stored_rows import PaneId
from lasp_edge.folds.fold import Fold
from lasp_edge.language.item_stream import STATED
from lasp_edge.language.plan import Plan
from lasp_edge.language.regimes import WindowRegimes


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
        names: stream -> the name of its window.
        spans_us: stream -> length of a pane; rows of results are panes, too.
        by_operators: streams of windows with parameters that only their entries make. A sink that
            refuses one lacks such an entry yet.
        regimes: of the windows with parameters.
        patient: the streams whose panes wait for an interval's others also when they are over.
        leaving_us: for how long entries of a stream wait for others, where the program says it.
        is_new: they differ from those that were looked at last.
    """

    __slots__ = (
        "_fixed",
        "by_operators",
        "is_new",
        "leaving_us",
        "names",
        "patient",
        "regimes",
        "spans_us",
        "windows",
    )

    def __init__(self, plan: Plan) -> None:
        self.windows: dict[int, FoldedPanes] = {w.stream: w for w in plan.windows.values()}
        self.names = {w.stream: w.name for w in plan.windows.values()}
        self.spans_us = {each.stream: each.span_us for each in plan.sent_streams}
        self.patient = frozenset(each.stream for each in plan.item_streams.values())
        self.leaving_us = {
            each.stream: each.leave_us
            for each in plan.item_streams.values()
            if each.leave_us is not None
        }
        self.by_operators: frozenset[int] = frozenset()
        self.regimes: tuple[WindowRegimes, ...] = ()
        self.is_new = True
        self._fixed = (self.windows, self.spans_us)

    def has_readings(self, pane: PaneId) -> bool:
        """Return whether readings come to an entry; none to what a device states of shares."""
        return pane.key != STATED or pane.stream not in self.patient

    def waits_us(self, stream: int, patience_us: int) -> int:
        """Return for how long an entry of a stream waits for others after a reading.

        Args:
            stream: the entry's.
            patience_us: where the program does not say it.
        """
        return self.leaving_us.get(stream) or patience_us

    def plan(self, regimes: Iterable[WindowRegimes], unset: Iterable[WindowRegimes]) -> None:
        """Take these pieces for those of the windows with parameters, and no former ones.

        Args:
            regimes: of these windows.
            unset: the same without any entry of operators.
        """
        self.regimes, (windows, spans_us) = tuple(regimes), self._fixed
        by_stream: dict[int, FoldedPanes] = {
            piece.stream: piece for each in self.regimes for piece in each.pieces
        }
        known = {piece.stream for each in unset for piece in each.pieces}
        self.by_operators, self.is_new = frozenset(by_stream.keys() - known), True
        self.windows = windows | by_stream
        for each in self.regimes:
            self.names.update(dict.fromkeys([p.stream for p in each.pieces], each.window.name))
        self.spans_us = spans_us | {each.stream: each.span_us for each in by_stream.values()}

    def end_us(self, time_us: int) -> int:
        """Return the end of the last window with parameters that a reading of a time lies in."""
        ends_us = [
            starts[-1] + form.size_us
            for regimes in self.regimes
            for form in regimes.forms
            if (starts := form.starts(time_us - form.size_us + 1, time_us))
        ]
        return max(ends_us, default=time_us)
