"""Panes of windows with parameters: readings that come, and panes that are made anew.

Which panes a window has, and what each of them means, follows from what operators said
(`lasp_edge.language.regimes`). Where that changes, panes of another meaning are other panes: they
are built from the readings that the device still has, oldest first, some in each commit; and those
that nothing means any more are deleted.

A pane is built once. **Built means present**: some life of the device has an entry of it in the
store. What comes to a present pane is folded in; what comes to one that is not there builds it,
with all that is known of its time. So nothing of this need be remembered, and no crash can separate
it. Until everything is built the low watermark waits at the oldest pane that is not.

After a lost or older store the readings up to some time are doubtful: an earlier life had read that
far, and the history has holes there that nobody can fill. Such panes are never built.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple, Protocol

from crdts import ControlLog
from device_agent.agent import Agent
from device_agent.changes import BLOCK_US, Changes, PaneId, PaneRow
from device_agent.controlled.history import BlockReader, KeptReading, ReadingHistory, tags_of
from device_agent.facts import Facts
from device_agent.intake.intake import Intake
from device_agent.intake.pending import ControlledReading
from device_agent.panes.cache import PaneCache
from device_agent.panes.panes import NEVER_US, Panes
from device_agent.parts import Part
from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event
from lasp_edge.language.parameters import At
from lasp_edge.language.regimes import PanePiece, WindowRegimes, beyond
from lasp_edge.reasons import reason_of

BUILT_AT_ONCE_US: Final = 60 * BLOCK_US
"""Microseconds of one window that are built in a commit: two hours, at a reading a second some ten
milliseconds of work."""
MOST_BUILT: Final = 5_000
"""Panes that are remembered as built; of others the store is asked."""


class ControlledReader(BlockReader, Protocol):
    """What is asked of the store."""

    def panes_present(self, stream: int, first_us: int, end_us: int) -> set[int]:
        """Return the panes of a stream, from one time to another, that any life has begun."""

    def panes_named(self, panes: Iterable[PaneId]) -> list[tuple[PaneId, PaneRow]]:
        """Return those of these entries that are here."""


class Counted(NamedTuple):
    """A reading as a pane takes it."""

    key: str
    value: int
    time_us: int


class PaneCells:
    """What comes to which panes.

    Attributes:
        pieces: stream -> the piece of a window that its panes are of.
        cells: (start of a pane, stream) -> what comes to it.
    """

    __slots__ = ("cells", "pieces")

    def __init__(self) -> None:
        self.pieces: dict[int, PanePiece] = {}
        self.cells: dict[tuple[int, int], list[Counted]] = defaultdict(list)

    def __iter__(self) -> Iterator[tuple[PanePiece, int, list[Counted]]]:
        """Yield the piece, the start and what comes, of each pane by time."""
        for (pane_us, stream), counted in sorted(self.cells.items(), key=itemgetter(0)):
            yield self.pieces[stream], pane_us, counted


class ControlledWindows(Part):
    """Makes the panes of windows with parameters.

    Args:
        agent: what all parts share.
        intake: what has been read.
        panes, cache: the entries in memory.
    """

    name = "controlled"

    def __init__(self, agent: Agent, intake: Intake, panes: Panes, cache: PaneCache) -> None:
        self._agent, self._intake, self._panes, self._cache = agent, intake, panes, cache
        self._windows = [w for w in agent.plan.windows.values() if w.controls is not None]
        self._history = ReadingHistory(intake.identities)
        self._regimes: dict[str, WindowRegimes] = {}
        self._unbuilt: dict[str, list[PanePiece]] = {}
        self._gone: list[PanePiece] = []
        self._built: set[tuple[int, int]] = set()
        self._high_us = NEVER_US if intake.progress.high_us is None else intake.progress.high_us
        self._now_us = 0
        self._noted = agent.facts.built or 0
        self._changes = Changes()

    @property
    def waits(self) -> bool:
        """Whether the next commit has something to build or to delete."""
        return bool(self._gone) or any(self._unbuilt.values())

    def heard(self, log: ControlLog) -> None:
        """Take what operators said: plan what is to be built, and what is to be deleted."""
        functions, device = self._agent.plan.functions, self._agent.replica.device
        for window in self._windows:
            new = WindowRegimes(window, functions, log, device)
            old = self._regimes.get(window.name)
            self._regimes[window.name] = new
            known = [] if old is None else self._unbuilt[window.name]
            if old is None:
                before = WindowRegimes(window, functions, ControlLog(), device).pieces
                come = [] if self._noted == self._agent.control else beyond(new.pieces, before)
            else:
                come = beyond(new.pieces, old.pieces)
                self._gone += beyond(old.pieces, new.pieces)
            kept = beyond(known, beyond(known, new.pieces))
            self._unbuilt[window.name] = sorted([*kept, *self._still_known(come)], key=_by_time)
        self._agent.is_building = self.waits
        self._panes.planned.plan(
            piece for regimes in self._regimes.values() for piece in regimes.pieces
        )

    def _still_known(self, pieces: Iterable[PanePiece]) -> list[PanePiece]:
        """Return the panes in which there can be readings that the device still has."""
        floor_us, found = self._intake.progress.floor_us, []
        for piece in pieces:
            span_us = piece.span_us
            first_us = max(piece.first_us, floor_us // span_us * span_us)
            end_us = min(piece.end_us, (self._high_us // span_us + 1) * span_us)
            if first_us < end_us:
                found.append(piece._replace(first_us=first_us, end_us=end_us))
        return found

    def bounded_us(self, low_us: int | None) -> int | None:
        """Return a low watermark that has passed no pane that is still to be built."""
        firsts_us = [pieces[0].first_us for pieces in self._unbuilt.values() if pieces]
        return low_us if low_us is None else min([low_us, *firsts_us])

    def end_us(self, time_us: int) -> int:
        """Return the end of the last window that a reading of a time lies in."""
        ends_us = [
            starts[-1] + form.size_us
            for regimes in self._regimes.values()
            for form in regimes.forms
            if (starts := form.starts(time_us - form.size_us + 1, time_us))
        ]
        return max(ends_us, default=time_us)

    def tick(self, now_us: int) -> None:
        self._now_us = now_us

    def evaluate(self, store: ControlledReader) -> None:
        """Bring what was read to its panes, and build some, right before a commit."""
        self._intake.join()
        taken, self._intake.controlled = self._intake.controlled, []
        if not taken and not self.waits:
            return
        gone, self._gone = self._gone, []
        for piece in gone:
            self._panes.abandon(piece.stream, piece.first_us, piece.end_us)
        if gone:
            self._cache.ask_again()
        if taken:
            self._history.keep(taken, store)
            self._take(taken, store)
        self._build(store)
        self._agent.is_building = self.waits
        self._changes.identities.update(self._intake.identities.take_changed())

    def _take(self, taken: Sequence[ControlledReading], store: ControlledReader) -> None:
        """Fold what came into the panes that are there, and build those that are not."""
        cells = PaneCells()
        for regimes in self._regimes.values():
            event = regimes.window.source.name
            came = (KeptReading(*each[1:4]) for each in taken if each.event == event)
            self._count(regimes, came, cells)
        known_us, doubt_us = self._high_us, self._intake.highs.furthest_doubt_us()
        self._high_us = max(known_us, *(reading.time_us for reading in taken))
        by_window = {
            piece.stream: regimes for regimes in self._regimes.values() for piece in regimes.pieces
        }
        for piece, pane_us, counted in cells:
            at = (piece.stream, pane_us)
            is_there = pane_us > known_us or at in self._built or _is_doubtful(pane_us, doubt_us)
            if not is_there:
                is_there = bool(store.panes_present(*at, pane_us + 1)) or self._is_begun(*at)
            if is_there:
                self._fold(piece, pane_us, counted, store)
            else:
                end_us = pane_us + piece.span_us
                self._build_between(by_window[piece.stream], piece, pane_us, end_us, store)
            self._built.add(at)

    def _is_begun(self, stream: int, pane_us: int) -> bool:
        """Return whether memory has an entry of a pane that the store may not have yet."""
        return any(pane[:2] == (pane_us, stream) for pane in self._panes.entries)

    def _count(
        self, regimes: WindowRegimes, readings: Iterable[KeptReading], cells: PaneCells
    ) -> None:
        """Note to which panes readings come, and as what; where a function fails, to no pane."""
        window, append = regimes.window, cells.cells
        assert window.controls is not None
        asks = window.controls.value or window.controls.where or window.keyed
        regime = regimes.regime_at(NEVER_US)
        for reading in readings:
            time_us, value, key = reading.time_us, reading.quantised, ""
            if not regime.first_us <= time_us < regime.end_us:
                regime = regimes.regime_at(time_us)
                cells.pieces.update((piece.stream, piece) for piece in regime.pieces)
            if asks:
                answer = self._asked(regimes, reading, regime.at)
                if answer is None:
                    continue
                key, value = answer
            counted = Counted(key, value, time_us)
            for piece in regime.pieces:
                append[time_us - time_us % piece.span_us, piece.stream].append(counted)

    def _asked(
        self, regimes: WindowRegimes, reading: KeptReading, at: At
    ) -> tuple[str, int] | None:
        """Return key and value of a reading by the user's functions; None if it does not count."""
        window, device = regimes.window, self._agent.replica.device
        time_us, quantised, tags = reading
        real = window.resolution.real(quantised)
        event = Event(window.source.name, real, time_us, device, tags_of(tags))
        try:
            value = regimes.counted(event, quantised, at)
            if value is None:
                return None
            return self._agent.plan.functions.key(window.name, event), value
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            pass_interrupt(error)
            self._agent.counters.note(f"window {window.name}: {reason_of(error)}")
            return None

    def _fold(
        self, piece: PanePiece, pane_us: int, counted: Sequence[Counted], store: ControlledReader
    ) -> None:
        """Fold readings into the present replica's entries of a pane."""
        by_key: dict[str, list[Counted]] = defaultdict(list)
        for each in counted:
            by_key[each.key].append(each)
        fold = piece.fold
        for key, several in sorted(by_key.items()):
            pane = self._panes.own(piece.stream, key, pane_us)
            if pane not in self._panes.entries:
                self._cache.restore(store.panes_named([pane]))
            held = self._panes.partial(pane)
            partial = fold.lift_column(
                [each.value for each in several], [each.time_us for each in several]
            )
            joined = partial if held is None else fold.combine(held, partial)
            if not fold.within_limits(joined):
                self._agent.counters.note("window: a partial would be out of range")
                continue
            self._panes.fold_in(pane, joined, self._now_us, joined=True)

    def _build(self, store: ControlledReader) -> None:
        """Build the oldest panes of each window that are not there."""
        for name, pieces in self._unbuilt.items():
            if not pieces:
                continue
            piece = pieces[0]
            most_us = max(1, BUILT_AT_ONCE_US // piece.span_us) * piece.span_us
            end_us = min(piece.end_us, piece.first_us + most_us)
            self._build_between(self._regimes[name], piece, piece.first_us, end_us, store)
            if end_us == piece.end_us:
                pieces.pop(0)
            else:
                pieces[0] = piece._replace(first_us=end_us)
                pieces.sort(key=_by_time)
        if not any(self._unbuilt.values()) and self._noted != self._agent.control:
            self._noted = self._agent.control
            self._changes.facts.add(Facts(built=self._noted))

    def _build_between(
        self,
        regimes: WindowRegimes,
        piece: PanePiece,
        first_us: int,
        end_us: int,
        store: ControlledReader,
    ) -> None:
        """Build those panes of a piece, from one time to another, that are not there."""
        cells, event = PaneCells(), regimes.window.source.name
        self._count(regimes, self._history.readings(event, first_us, end_us, store), cells)
        present = store.panes_present(piece.stream, first_us, end_us)
        doubt_us = self._intake.highs.furthest_doubt_us()
        for other, pane_us, counted in cells:
            at = (other.stream, pane_us)
            if other.stream != piece.stream or not first_us <= pane_us < end_us:
                continue
            if pane_us in present or at in self._built or _is_doubtful(pane_us, doubt_us):
                continue
            self._fold(other, pane_us, counted, store)
            self._built.add(at)

    def give_up(self) -> None:
        """An evaluation has failed: build nothing more of what it was at."""
        for pieces in self._unbuilt.values():
            del pieces[:1]

    def take_changes(self) -> Changes | None:
        if not self._changes:
            return None
        taken, self._changes = self._changes, Changes()
        return taken

    def committed(self) -> None:
        if len(self._built) > MOST_BUILT:
            self._built.clear()

    def report(self) -> dict[str, Any]:
        unbuilt = [
            (piece.end_us - piece.first_us) // piece.span_us
            for pieces in self._unbuilt.values()
            for piece in pieces
        ]
        return {"panes_to_build": sum(unbuilt)}


def _by_time(piece: PanePiece) -> tuple[int, int]:
    return piece.first_us, piece.stream


def _is_doubtful(pane_us: int, doubt_us: int | None) -> bool:
    """Return whether an earlier life may have read what lies in a pane."""
    return doubt_us is not None and pane_us <= doubt_us
