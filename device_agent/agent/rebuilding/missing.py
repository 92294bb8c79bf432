"""Panes of windows with parameters, `value=` or `where=`: as readings come, and built again.

Which panes a window has, and what each of them means, follows from the operators' entries
(`lasp_edge.language.regimes`). Where that changes, panes of another meaning are other panes: they
are built from the readings that the device still has, oldest first, some in each commit; and those
that nothing means any more are deleted.

A pane is built once. **Built means present**: some life of the device has an entry of it in the
store. What comes to a present pane is folded in; what comes to one that is not there builds it,
with all that is known of its time. So nothing of this need be remembered, and no crash can separate
it. Until everything is built the low watermark waits at the oldest pane that is not.

After a lost or older store the readings up to some time are doubtful: an earlier life had read that
far, and the history has holes there that nobody can fill. Such panes are never built. What comes to
the last one of them counts there, beside what the earlier life had sent: but only under the log of
that time. Under a later one nothing is there that it could stand beside, so it is left out, and the
window names the device as missing.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from crdts import ControlLog
from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes, Facts
from device_agent.agent.intake.intake import Intake
from device_agent.agent.panes.cache import PaneCache
from device_agent.agent.panes.panes import NEVER_US, Panes, PartialOutOfRangeError
from device_agent.agent.parts import Part, StoreReader
from device_agent.agent.rebuilding.counting import (
    PaneReadings,
    ReadingColumn,
    ReadingCounter,
    columns_known,
    columns_of,
)
from device_agent.agent.stored_rows import BLOCK_US
from lasp_edge.event import StreamItem
from lasp_edge.language.plan import windows_of_streams
from lasp_edge.language.regimes import PanePiece, WindowRegimes, difference

BUILT_AT_ONCE_US: Final = 60 * BLOCK_US
"""Microseconds of one window that are built in a commit: two hours, at a reading a second some ten
milliseconds of work."""
MOST_BUILT: Final = 5_000
"""Panes that are remembered as built; of others the store is asked."""


class MissingPanes(Part):
    """Makes the panes of windows that are not plain.

    Args:
        agent: what all parts share.
        intake: what has been read.
        panes, cache: the entries in memory.
    """

    name = "missing panes"

    def __init__(self, agent: Agent, intake: Intake, panes: Panes, cache: PaneCache) -> None:
        self._agent, self._intake, self._panes, self._cache = agent, intake, panes, cache
        self._windows = agent.plan.windows_of_readings
        self._of_streams = windows_of_streams(agent.plan)
        self._plain = _plain_beside(agent)
        self._events = {window.source.name for window in self._windows}
        found = (agent.plan.functions, agent.replica.device, agent.counters.note)
        self._counter = ReadingCounter(*found)
        self._regimes: dict[str, WindowRegimes] = {}
        self._unbuilt: dict[str, list[PanePiece]] = {}
        self._gone: list[PanePiece] = []
        self._built: set[tuple[int, int]] = set()
        self._high_us = NEVER_US if intake.progress.high_us is None else intake.progress.high_us
        self._now_us = 0
        self._control, self._noted = 0, agent.facts.built or 0
        self._doubted = agent.facts.doubted or []
        self._changes = Changes()

    @property
    def waits(self) -> bool:
        """Whether the next commit has something to build or to delete."""
        return bool(self._gone) or any(self._unbuilt.values())

    def follow(self, log: ControlLog) -> None:
        """Take the operators' entries: plan what is to be built, and what is to be deleted."""
        functions, device = self._agent.plan.functions, self._agent.replica.device
        self._control = log.mark
        every = (*self._windows, *self._of_streams)
        unset = {each.name: WindowRegimes(each, functions, ControlLog(), device) for each in every}
        of_streams = [WindowRegimes(each, functions, log, device) for each in self._of_streams]
        for window in self._windows:
            new = WindowRegimes(window, functions, log, device)
            old = self._regimes.get(window.name)
            self._regimes[window.name] = new
            known = [] if old is None else self._unbuilt[window.name]
            if old is None and self._noted == self._control:
                come = []  # its panes are built under this log
            elif old is None:
                come = difference(new.pieces, unset[window.name].pieces)
            else:
                come = difference(new.pieces, old.pieces)
                self._gone += difference(old.pieces, new.pieces)
            kept = difference(known, difference(known, new.pieces))
            self._unbuilt[window.name] = sorted([*kept, *self._still_known(come)], key=_by_time)
        self._panes.planned.plan([*self._regimes.values(), *of_streams], unset.values())

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

    def is_due(self, now_us: int) -> bool:
        del now_us
        return self.waits

    def read(self, store: StoreReader, now_us: int) -> None:
        """Bring what was read to its panes, and build some."""
        self._now_us = now_us
        self._note_doubt()
        columns, corrected = self._intake.columns, self._intake.corrected
        of_windows = [each for each in columns if each.event in self._events and not each.retracted]
        taken = [item for column in of_windows for item in column.items]
        here = corrected
        if corrected:
            taken, corrected = _without_both(taken, corrected)
        gone, self._gone = self._gone, []
        for piece in gone:
            self._panes.abandon(piece.stream, piece.first_us, piece.end_us)
        if gone:
            self._cache.ask_again()
        self._correct(self._regimes.values(), corrected, store)
        self._correct(self._plain, here, store)
        if taken:
            self._take(taken, store)
        self._build(store)

    @property
    def _doubt_us(self) -> int | None:
        return self._intake.highs.furthest_doubt_us()

    def leaves_out(self, pane_us: int) -> bool:
        """Return whether nothing is to be made of a pane of a window over a stream.

        An earlier life may have read what lies in it, and under another log: nothing is there that
        the rest could stand beside.
        """
        doubt_us = self._doubt_us
        is_noted = self._doubted[:1] == [doubt_us] and self._doubted[1] != self._control
        return is_noted and _is_doubtful(pane_us, doubt_us)

    def _note_doubt(self) -> None:
        """Note under which log it was learnt that readings are doubtful."""
        doubt_us = self._doubt_us
        if doubt_us is not None and self._doubted[:1] != [doubt_us]:
            self._doubted = [doubt_us, self._control]
            self._changes.facts.add(Facts(doubted=self._doubted))

    def _take(self, taken: list[StreamItem], store: StoreReader) -> None:
        """Fold new readings into present panes, and build the missing ones."""
        cells, regimes_of = PaneReadings(), dict[int, WindowRegimes]()
        for regimes in self._regimes.values():
            self._counter.count(regimes, columns_of(taken, regimes.window.source.name), cells)
            regimes_of |= {piece.stream: regimes for piece in regimes.pieces}
        known_us, doubt_us = self._high_us, self._doubt_us
        self._high_us = max(known_us, *[item.time_us for item in taken])
        for piece, pane_us, by_key in cells:
            at, end_us = (piece.stream, pane_us), pane_us + piece.span_us
            is_doubtful = _is_doubtful(pane_us, doubt_us)
            is_there = at in self._built or (pane_us > known_us and not is_doubtful)
            is_there = is_there or bool(self._begun(piece.stream, pane_us, end_us, store))
            if is_there or (is_doubtful and self._doubted[1] == self._control):
                self._fold(piece, pane_us, by_key, store)
            elif is_doubtful:
                continue
            else:
                self._build_between(regimes_of[piece.stream], piece, pane_us, end_us, store)
            self._built.add(at)

    def _correct(
        self, windows: Iterable[WindowRegimes], corrected: list[StreamItem], store: StoreReader
    ) -> None:
        """Take readings out of the panes that have them; others are built without them."""
        cells = PaneReadings()
        for regimes in windows if corrected else ():
            self._counter.count(regimes, columns_of(corrected, regimes.window.source.name), cells)
        for piece, pane_us, by_key in cells:
            is_left_out = _is_doubtful(pane_us, self._doubt_us) and self.leaves_out(pane_us)
            begun = self._begun(piece.stream, pane_us, pane_us + piece.span_us, store)
            if begun and not is_left_out:
                self._fold(piece, pane_us, by_key, store, is_taken_back=True)

    def _fold(
        self,
        piece: PanePiece,
        pane_us: int,
        by_key: Mapping[str, ReadingColumn],
        store: StoreReader,
        *,
        is_taken_back: bool = False,
    ) -> None:
        """Fold readings into the present replica's entries of a pane, or out of them."""
        fold = piece.fold
        for key, (times_us, values) in sorted(by_key.items()):
            pane = self._panes.own(piece.stream, key, pane_us)
            try:
                partial = fold.lift_column(values, times_us)
                given = (fold.zero, partial) if is_taken_back else (partial, None)
                self._panes.change(pane, given[0], self._now_us, store, given[1])
            except PartialOutOfRangeError as error:  # it could not be sent
                self._agent.guard.say(str(error))

    def _begun(self, stream: int, first_us: int, end_us: int, store: StoreReader) -> set[int]:
        """Return the panes of a stream, from one time to another, that any life has begun."""
        here = {pane.pane_us for pane in self._panes.entries if pane.stream == stream}
        there = {pane.pane_us for pane, _ in store.panes_between(stream, first_us, end_us)}
        return there | {pane_us for pane_us in here if first_us <= pane_us < end_us}

    def _build(self, store: StoreReader) -> None:
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
        if not any(self._unbuilt.values()) and self._noted != self._control:
            self._noted = self._control
            self._changes.facts.add(Facts(built=self._noted))

    def _build_between(
        self,
        regimes: WindowRegimes,
        piece: PanePiece,
        first_us: int,
        end_us: int,
        store: StoreReader,
    ) -> None:
        """Build those panes of a piece, from one time to another, that no life has begun."""
        cells, event = PaneReadings(), regimes.window.source.name
        known = columns_known(self._intake.identities, event, first_us, end_us, store)
        self._counter.count(regimes, known, cells)
        begun = self._begun(piece.stream, first_us, end_us, store)
        doubt_us = self._doubt_us
        for other, pane_us, by_key in cells:
            is_wanted = other.stream == piece.stream and first_us <= pane_us < end_us
            if is_wanted and pane_us not in begun and not _is_doubtful(pane_us, doubt_us):
                self._built.add((piece.stream, pane_us))
                self._fold(piece, pane_us, by_key, store)

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


def _plain_beside(agent: Agent) -> list[WindowRegimes]:
    """Return the plain windows over events that others have, too, and that no stream corrects."""
    plan, kept = agent.plan, {window.source.name for window in agent.plan.windows_of_readings}
    return [
        WindowRegimes(window, plan.functions, ControlLog(), agent.replica.device)
        for window in plan.windows.values()
        if window.is_plain and window.source.name in kept - plan.evaluated_events
    ]


def _without_both(
    taken: list[StreamItem], corrected: list[StreamItem]
) -> tuple[list[StreamItem], list[StreamItem]]:
    """Return readings and corrections, without those that came with what takes them back."""
    back = {each._replace(retracted=False) for each in corrected}
    both = back & set(taken)
    left = [each for each in corrected if each._replace(retracted=False) not in both]
    return [each for each in taken if each not in both], left


def _by_time(piece: PanePiece) -> tuple[int, int]:
    return piece.first_us, piece.stream


def _is_doubtful(pane_us: int, doubt_us: int | None) -> bool:
    """Return whether an earlier life may have read what lies in a pane."""
    return doubt_us is not None and pane_us <= doubt_us
