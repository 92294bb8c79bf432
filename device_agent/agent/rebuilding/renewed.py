"""Panes of windows that a former program did not have: of the readings that the device still has.

A window that is new, or whose fold or span is another one, begins without panes; and one that is
changed and changed back lacks the readings that came in between. The store says of which streams
the panes were made last, so at a start it is known which windows these are. The identities of the
readings say what belongs into each pane, and the entries of all lives what is there: the present
replica adds the difference, where the fold has one (`rest_of`). Until all is built the low
watermark waits. Panes of a window over a stream are made of the stream's outputs, at once
(`device_agent.agent.scans.stream_panes`).

Readings that got their time on arrival are not kept, and where some were taken back, not all is
known. Then nothing is built. Of the time up to which a lost life had read not all is known, either:
only what lies wholly behind it is built. Frames state from when on all readings are in the panes of
such a window. A gateway names the device in the rows of windows that begin before.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from crdts import ControlLog
from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes, Facts, Restored
from device_agent.agent.intake.intake import Intake
from device_agent.agent.panes.panes import Panes, PartialOutOfRangeError
from device_agent.agent.parts import Part, StoreReader
from device_agent.agent.rebuilding.counting import PaneReadings, ReadingCounter, columns_known
from device_agent.agent.rebuilding.missing import BUILT_AT_ONCE_US
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.language.declarations import Window
from lasp_edge.language.plan import Plan
from lasp_edge.language.regimes import PanePiece, WindowRegimes

READINGS_AT_ONCE: Final = 7_200
"""Readings that are looked at in a commit for one window, about: some ten milliseconds of work."""

Begun = dict[int, int]
"""Stream of a window -> from when on all readings are in its panes."""


def rest_of(fold: Fold, whole: Partial, part: Partial) -> Partial | None:
    """Return what combines with a part to the whole; None where nothing of the kind is known.

    >>> from lasp_edge import folds
    >>> rest_of(folds.mean(), (3, 60), (1, 10)), rest_of(folds.max(), (9,), (7,))
    ((2, 50), (9,))
    """
    try:
        made = whole if fold.combines_itself else fold.algebra.rest(whole, part)
    except ValueError:  # the whole does not contain the part
        return None
    return made if fold.combine(part, made) == whole else None


def begun_by(plan: Plan, facts: Facts) -> Begun:
    """Return the windows of a program that lack readings which the device accepted before."""
    found, before = Begun(), dict(facts.begun or ())
    for window in plan.windows.values():
        if facts.streams is None or facts.high_us is None:
            continue
        since_us = before.get(window.stream, 0)
        if window.stream not in facts.streams:
            since_us = facts.high_us + 1
        if since_us > (facts.floor_us or 0) - window.size_us:
            found[window.stream] = since_us
    return found


class RenewedWindows(Part):
    """Adds to the panes of renewed windows what the device still has.

    Args:
        agent: what all parts share.
        restored: what the store held.
        intake: what has been read.
        panes: the entries in memory.

    Attributes:
        begun: the windows that lack readings, and of which all are there from when on.
    """

    name = "renewed windows"

    def __init__(self, agent: Agent, restored: Restored, intake: Intake, panes: Panes) -> None:
        self._agent, self._intake, self._panes = agent, intake, panes
        self.begun = panes.begun = begun_by(agent.plan, agent.facts)
        self._noted = agent.facts.begun or ()
        self._counter = ReadingCounter(
            agent.plan.functions, agent.replica.device, agent.counters.note
        )
        self._lack: set[int] = set()
        self._next_us: dict[str, int] = {}
        is_known = not any(source.stamped for source in restored.sources.values())
        if is_known and not restored.counters.get("retractions"):
            floor_us = intake.progress.floor_us  # of the pane that it cuts not all is known
            for window in self._windows():
                self._next_us[window.name] = -(-floor_us // window.span_us) * window.span_us

    def _windows(self) -> Iterator[Window]:
        """Yield the windows over events: those over streams are made again of these."""
        plan, begun = self._agent.plan, self.begun
        windows = (each for each in plan.windows.values() if each.stream in begun)
        return (each for each in windows if each.source.name not in plan.streams)

    @property
    def waits(self) -> bool:
        """Whether the next commit has something to build."""
        return bool(self._next_us)

    def bounded_us(self, low_us: int | None) -> int | None:
        """Return a low watermark that has passed no pane that is still to be built."""
        return low_us if low_us is None else min([low_us, *self._next_us.values()])

    def is_due(self, now_us: int) -> bool:
        del now_us
        return self.waits

    def read(self, store: StoreReader, now_us: int) -> None:
        """Build some panes of each window."""
        self._leave_out_doubtful()
        for window in list(self._windows()):
            left = READINGS_AT_ONCE
            while window.name in self._next_us and left > 0:
                left -= self._build_some(window, store, now_us)

    def _leave_out_doubtful(self) -> None:
        """Build nothing of what a lost life had read, and state from when on all is known."""
        for window in self._windows():
            first_us = self._sure_us(window)
            if first_us is None:
                continue
            if first_us >= self.begun[window.stream]:
                self._next_us.pop(window.name, None)
                self._begin(window, first_us)
            elif window.name in self._next_us:
                self._next_us[window.name] = max(first_us, self._next_us[window.name])

    def _sure_us(self, window: Window) -> int | None:
        """Return the first pane of which no lost life had read anything; None: all are such."""
        doubt_us = self._intake.highs.furthest_doubt_us()
        if doubt_us is None or doubt_us < self._intake.progress.floor_us:
            return None
        return (doubt_us // window.span_us + 1) * window.span_us

    def _begin(self, window: Window, begun_us: int | None) -> None:
        """Note from when on all readings are in a window's panes; None: in all of them."""
        if begun_us is None:
            del self.begun[window.stream]
        else:
            self.begun[window.stream] = begun_us

    def _build_some(self, window: Window, store: StoreReader, now_us: int) -> int:
        """Build the next panes of a window; return how many readings were looked at."""
        first_us, looked_at = self._next_us[window.name], 0
        end_us = first_us + max(1, BUILT_AT_ONCE_US // window.span_us) * window.span_us
        for regimes in self._regimes(window):
            looked_at += self._build(regimes, first_us, end_us, store, now_us)
        self._next_us[window.name] = end_us
        if end_us >= self.begun[window.stream]:
            del self._next_us[window.name]
            if window.stream not in self._lack:
                self._begin(window, self._sure_us(window))
        return looked_at

    def _regimes(self, window: Window) -> Iterable[WindowRegimes]:
        """Return the regimes of a window, under the present log where parameters change it."""
        if window.is_plain:
            functions, device = self._agent.plan.functions, self._agent.replica.device
            return [WindowRegimes(window, functions, ControlLog(), device)]
        return [each for each in self._panes.planned.regimes if each.window.name == window.name]

    def _build(
        self, regimes: WindowRegimes, first_us: int, end_us: int, store: StoreReader, now_us: int
    ) -> int:
        """Bring the panes of a window, from one time to another, to what the device still has."""
        window, cells = regimes.window, PaneReadings()
        reach_us = max(piece.span_us for piece in regimes.pieces)
        stretch = (first_us - reach_us, end_us + reach_us)
        known = columns_known(self._intake.identities, window.source.name, *stretch, store)
        self._counter.count(regimes, known, cells)
        present: dict[tuple[int, int, str], Partial] = {}
        for piece in regimes.pieces:
            present |= self._present(piece, first_us, end_us, store)
        for piece, pane_us, by_key in cells:
            for key, (times_us, values) in sorted(by_key.items()):
                if first_us <= pane_us < end_us:
                    every = piece.fold.lift_column(values, times_us)
                    there = present.get((piece.stream, pane_us, key))
                    if not self._complete(piece, key, pane_us, every, there, store, now_us):
                        self._lack.add(window.stream)
        return sum(len(column.times_us) for column in known.values())

    def _present(
        self, piece: PanePiece, first_us: int, end_us: int, store: StoreReader
    ) -> Mapping[tuple[int, int, str], Partial]:
        """Return what the entries of all lives hold together, by stream, pane and key."""
        entries = dict(store.panes_between(piece.stream, first_us, end_us))
        entries |= {
            pane: entry.row()
            for pane, entry in self._panes.entries.items()
            if pane.stream == piece.stream and first_us <= pane.pane_us < end_us
        }
        found: dict[tuple[int, int, str], Partial] = {}
        for pane, row in entries.items():
            at = (pane.stream, pane.pane_us, pane.key)
            before = found.get(at)
            found[at] = row.partial if before is None else piece.fold.combine(before, row.partial)
        return found

    def _complete(
        self,
        piece: PanePiece,
        key: str,
        pane_us: int,
        every: Partial,
        there: Partial | None,
        store: StoreReader,
        now_us: int,
    ) -> bool:
        """Let the entries of a pane hold all its readings; return whether that is possible."""
        if every == there:
            return True
        missing = every if there is None else rest_of(piece.fold, every, there)
        if missing is None:
            return False
        pane = self._panes.own(piece.stream, key, pane_us)
        try:
            self._panes.change(pane, missing, now_us, store)
        except PartialOutOfRangeError as error:  # it could not be sent
            self._agent.guard.say(str(error))
            return False
        return True

    def give_up(self) -> None:
        """An evaluation has failed: build nothing more; the missing readings stay stated."""
        self._next_us.clear()

    def take_changes(self) -> Changes | None:
        begun = tuple(sorted(self.begun.items()))
        if begun == self._noted:
            return None
        self._noted = begun
        return Changes(facts=Facts(begun=begun))

    def report(self) -> dict[str, Any]:
        windows, begun = self._agent.plan.windows.values(), self.begun
        return {"begun": {w.name: begun[w.stream] for w in windows if w.stream in begun}}
