"""Pane entries on their way to the lake: dirty until a frame that holds them has landed.

An entry belongs to one replica. Those of this life grow; those of earlier lives are frozen: sent
again unchanged while unacknowledged, never continued. Changed entries leave in byte-bounded frames
with numbers 1, 2, .. per replica, a few in flight; an entry is clean once a frame with its present
seq is acknowledged. Lost frames, lost acknowledgements, full queues and broker crashes are all
healed by sending dirty entries again.

An entry is due when its pane is over, or `PATIENCE_US` after it changed or was sent, so that a
slowly filling pane does not travel with every reading.

Memory is a cache of the store: it holds about `KEPT_ENTRIES` entries, the oldest dirty ones always
among them. Two numbers say what is not here: entries that end at or before `evicted_us` may be in
the store alone and are recalled before they are continued, and no dirty entry that is there alone
starts before `_stored_us`, so that the low watermark never speaks of what has not landed.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from random import Random
from typing import Any

from crdts import Replica
from device_agent.clock import is_time
from device_agent.state.changes import Changes, PaneId, PaneRow
from lasp_edge.folds.fold import Partial
from lasp_edge.language.declarations import Window
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.frames import PaneFrame
from lasp_edge.protocol.sizes import BLOCK_OVERHEAD_BYTES, FRAME_OVERHEAD_BYTES, entry_bytes

PATIENCE_US = 10_000_000
IN_FLIGHT = 4
KEPT_FLIGHTS = 8
"""Of so many frames that were given up a late acknowledgement still counts."""
FIRST_TIMEOUT_US = 5_000_000
LAST_TIMEOUT_US = 120_000_000
FRAME_BYTES = 16_384
KEPT_ENTRIES = 2_000
PAGE = 400
"""So many of the oldest dirty entries are read from the store at once, and stay in memory."""

NEVER_US = -(2**62)
"""Before every time."""


# Both are made by the thousand for a column: without the Python function of a NamedTuple's name.
_pane_id: Callable[[Iterable[Any]], PaneId] = functools.partial(tuple.__new__, PaneId)
_pane_row: Callable[[Iterable[Any]], PaneRow] = functools.partial(tuple.__new__, PaneRow)


class _Entry:
    """A pane entry in memory; `sent` is the seq that is in flight, if one is."""

    __slots__ = ("dirty", "due_us", "end_us", "partial", "sent", "seq")

    def __init__(self, row: PaneRow, due_us: int) -> None:
        self.seq, self.end_us, self.partial, self.dirty = row
        self.due_us = due_us
        self.sent: int | None = None

    def row(self) -> PaneRow:
        return PaneRow(self.seq, self.end_us, self.partial, self.dirty)


class _Flight:
    """A frame that is not acknowledged yet."""

    __slots__ = ("due_us", "entries", "sent_us")

    def __init__(self, entries: list[tuple[PaneId, int]], sent_us: int, due_us: int) -> None:
        self.entries = entries
        self.sent_us = sent_us
        self.due_us = due_us

    def is_late(self, now_us: int) -> bool:
        """Return whether to wait no longer; a clock that was set back says nothing of waiting."""
        return not self.sent_us <= now_us < self.due_us


class Panes:
    """A device's pane entries.

    Args:
        replica: this life.
        windows: the program's windows.
        jitter: spreads time-outs; seeded by the caller.

    Attributes:
        evicted_us: entries that end later are in memory, if this life has begun them.
    """

    def __init__(self, replica: Replica, windows: Iterable[Window], jitter: Random) -> None:
        self._replica = replica
        self._windows = {window.stream: window for window in windows}
        self._jitter = jitter
        self._entries: dict[PaneId, _Entry] = {}
        self._dirty: set[PaneId] = set()
        self._flights: dict[int, _Flight] = {}
        self._given_up: dict[int, _Flight] = {}
        self._number = 0
        self._seq = 0
        self._misses = 0
        self._high_us = NEVER_US
        self._stored_us: int | None = NEVER_US
        self.evicted_us = NEVER_US

    @property
    def streams(self) -> list[int]:
        """The streams of the program: entries of others stay in the store."""
        return sorted(self._windows)

    @property
    def seq(self) -> int:
        """The newest seq that this replica gave to an entry; 0 before the first."""
        return self._seq

    @property
    def held(self) -> int:
        """How many entries are in memory."""
        return len(self._entries)

    @property
    def dirty(self) -> int:
        """How many entries in memory are dirty."""
        return len(self._dirty)

    @property
    def in_flight(self) -> int:
        """How many frames wait for their acknowledgement."""
        return len(self._flights)

    @property
    def settled(self) -> bool:
        """Whether nothing is dirty, here or in the store."""
        return not self._dirty and self._stored_us is None

    def oldest_dirty_us(self) -> int | None:
        """Return a time before which no dirty pane starts, here or in the store; None: no such."""
        found = [] if self._stored_us is None else [self._stored_us]
        if self._dirty:
            found.append(min(self._dirty).pane_us)
        return min(found, default=None)

    def become(self, replica: Replica) -> None:
        """Go on as another replica: all entries so far are frozen."""
        self._replica = replica
        self._seq = 0

    def own(self, stream: int, key: str, pane_us: int) -> PaneId:
        """Return the id of this replica's entry."""
        return PaneId(pane_us, stream, key, self._replica.incarnation, self._replica.nonce)

    def partial(self, pane: PaneId) -> Partial:
        """Return what an entry holds; the fold's zero where it is not begun."""
        entry = self._entries.get(pane)
        return entry.partial if entry else self._windows[pane.stream].fold.zero

    def fold_in(self, pane: PaneId, partial: Partial, now_us: int, changes: Changes) -> None:
        """Fold new readings, as one partial, into this replica's entry."""
        window = self._windows[pane.stream]
        entry = self._entries.get(pane)
        self._seq += 1
        if entry is None:
            row = PaneRow(self._seq, pane.pane_us + window.span_us, partial, dirty=True)
            entry = self._entries[pane] = _Entry(row, now_us + PATIENCE_US)
        else:
            entry.seq, entry.partial = self._seq, window.fold.combine(entry.partial, partial)
            if not entry.dirty:
                entry.dirty, entry.due_us = True, now_us + PATIENCE_US
        self._dirty.add(pane)
        changes.panes[pane] = entry.row()

    def held_in(self, pane: PaneId) -> Partial | None:
        """Return what an entry holds; None where it is not begun."""
        entry = self._entries.get(pane)
        return entry.partial if entry else None

    def own_column(self, stream: int, starts_us: Sequence[int]) -> list[PaneId]:
        """Return the ids of this replica's entries without a key, one for each start."""
        rest = (stream, "", self._replica.incarnation, self._replica.nonce)
        return list(map(_pane_id, zip(starts_us, *map(repeat, rest))))  # noqa: B905 - repeat ends not

    def begun(self, panes: Iterable[PaneId]) -> list[Partial]:
        """Return what those entries hold that are begun."""
        entries = self._entries
        return [entries[pane].partial for pane in panes if pane in entries]

    def fold_in_column(
        self, panes: list[PaneId], partials: list[Partial], now_us: int, changes: Changes
    ) -> None:
        """Fold a partial into each of these entries of one stream: `fold_in`, by a shorter way."""
        entries, due_us = self._entries, now_us + PATIENCE_US
        span_us = self._windows[panes[0].stream].span_us
        for pane, partial in zip(panes, partials, strict=True):
            if pane in entries:
                self.fold_in(pane, partial, now_us, changes)
            else:
                self._seq += 1
                row = _pane_row((self._seq, pane[0] + span_us, partial, True))
                changes.panes[pane] = row
                entries[pane] = _Entry(row, due_us)
        self._dirty.update(panes)

    def advance(self, high_us: int) -> None:
        """Note how far the readings' own time has come: panes that are over are due."""
        self._high_us = max(self._high_us, high_us)

    def frames(self, now_us: int, *, everything: bool) -> Iterator[PaneFrame]:
        """Yield frames of due entries, oldest first, while few are in flight.

        Args:
            now_us: the time; unacknowledged frames are given up some seconds later.
            everything: send what is not due yet as well.
        """
        self._give_up_late(now_us)
        if len(self._flights) >= IN_FLIGHT or not self._dirty:
            return
        due = [pane for pane in self._dirty if everything or self._is_due(pane, now_us)]
        due = sorted(pane for pane in due if not self._is_in_flight(pane))
        while due and len(self._flights) < IN_FLIGHT:
            taken, due = self._cut(due)
            yield self._frame(taken, now_us)

    def acknowledged(self, numbers: Iterable[int], changes: Changes) -> None:
        """Clean the entries whose present seq was in these frames."""
        for number in numbers:
            flight = self._flights.pop(number, None) or self._given_up.pop(number, None)
            if flight:
                self._misses = 0
                for pane, seq in flight.entries:
                    self._landed(pane, seq, changes)

    def unsent(self, number: int) -> None:
        """Take note that a frame did not leave."""
        if number in self._flights:
            self._free(self._flights.pop(number))

    def lost(self) -> None:
        """Forget what is in flight: after a reconnect everything dirty is sent again."""
        for number in list(self._flights):
            self._give_up(number)

    def all_dirty(self, changes: Changes) -> None:
        """Make every entry dirty again, here and in the store: the lake is another one."""
        self.lost()
        self._given_up.clear()
        for entry in self._entries.values():
            entry.dirty, entry.due_us = True, NEVER_US
        self._dirty = set(self._entries)
        self._stored_us = NEVER_US
        changes.all_dirty = True
        changes.panes = {
            pane: row._replace(dirty=True) for pane, row in changes.panes.items()
        }  # else what was clean just before would be stored as clean just after

    def page_wanted(self) -> bool:
        """Return whether the store should give the next page of oldest dirty entries."""
        if self._stored_us is None:
            return False
        return self._stored_us == NEVER_US or len(self._dirty) < PAGE // 2

    def paged(self, rows: list[tuple[PaneId, PaneRow]]) -> None:
        """Take a page of the oldest dirty entries in the store; a short page is the last."""
        self.restore(rows)
        self._stored_us = rows[-1][0].pane_us if len(rows) >= PAGE else None

    def restore(self, rows: Iterable[tuple[PaneId, PaneRow]]) -> None:
        """Take stored entries into memory, unless they are there."""
        for pane, row in rows:
            if pane not in self._entries:
                self._entries[pane] = _Entry(row, NEVER_US)
                if row.dirty:
                    self._dirty.add(pane)

    def forget(self) -> None:
        """Let the oldest entries go where there are many; the store holds them all.

        The oldest dirty ones stay, and what is in flight.
        """
        if len(self._entries) <= KEPT_ENTRIES:
            return
        excess, oldest, evicted = len(self._entries) - KEPT_ENTRIES * 3 // 4, PAGE, []
        for pane in sorted(self._entries):  # they came nearly in this order
            entry = self._entries[pane]
            if entry.dirty and oldest:
                oldest -= 1
            elif entry.sent is None:
                evicted.append(pane)
                if len(evicted) == excess:
                    break
        self._evict(evicted)

    def _evict(self, panes: list[PaneId]) -> None:
        ends_us = [self._entries.pop(pane).end_us for pane in panes]
        self.evicted_us = max([self.evicted_us, *ends_us])
        dirty = self._dirty.intersection(panes)
        if dirty:
            self._dirty -= dirty
            stored_us = min(dirty).pane_us
            self._stored_us = (
                stored_us if self._stored_us is None else min(self._stored_us, stored_us)
            )

    def _landed(self, pane: PaneId, seq: int, changes: Changes) -> None:
        entry = self._entries.get(pane)
        if entry is None:
            return
        if entry.sent == seq:
            entry.sent = None
        if entry.seq == seq and entry.dirty:
            entry.dirty = False
            self._dirty.discard(pane)
            changes.panes[pane] = entry.row()

    def _give_up_late(self, now_us: int) -> None:
        late = [number for number, flight in self._flights.items() if flight.is_late(now_us)]
        for number in late:
            self._give_up(number)
        self._misses += bool(late)

    def _give_up(self, number: int) -> None:
        """Let a frame's entries be sent again; a late acknowledgement still counts."""
        flight = self._given_up[number] = self._flights.pop(number)
        self._free(flight)
        if len(self._given_up) > KEPT_FLIGHTS:
            del self._given_up[next(iter(self._given_up))]

    def _free(self, flight: _Flight) -> None:
        for pane, seq in flight.entries:
            entry = self._entries.get(pane)
            if entry is not None and entry.sent == seq:
                entry.sent, entry.due_us = None, NEVER_US

    def _is_in_flight(self, pane: PaneId) -> bool:
        entry = self._entries[pane]
        return entry.sent == entry.seq

    def _is_due(self, pane: PaneId, now_us: int) -> bool:
        entry = self._entries[pane]
        return entry.end_us <= self._high_us or is_time(now_us, entry.due_us, PATIENCE_US)

    def _cut(self, due: list[PaneId]) -> tuple[list[PaneId], list[PaneId]]:
        """Split off as many entries as surely fit into one frame; at least one."""
        size = FRAME_OVERHEAD_BYTES
        groups: set[tuple[int, int, int]] = set()
        for index, pane in enumerate(due):
            group = (pane.stream, pane.incarnation, pane.nonce)
            partial = self._entries[pane].partial
            binary = sum([len(part) for part in partial if isinstance(part, bytes)])
            size += entry_bytes(pane.key, len(partial), binary)
            size += 0 if group in groups else BLOCK_OVERHEAD_BYTES
            groups.add(group)
            if index and size > FRAME_BYTES:
                return due[:index], due[index:]
        return due, []

    def _frame(self, panes: list[PaneId], now_us: int) -> PaneFrame:
        self._number += 1
        groups: dict[tuple[int, int, int], list[PaneId]] = {}
        for pane in panes:
            groups.setdefault((pane.stream, pane.incarnation, pane.nonce), []).append(pane)
        blocks = tuple([self._block(*group, members) for group, members in groups.items()])
        for pane in panes:
            entry = self._entries[pane]
            entry.sent, entry.due_us = entry.seq, now_us + PATIENCE_US
        timeout_us = min(FIRST_TIMEOUT_US << min(self._misses, 10), LAST_TIMEOUT_US)
        due_us = now_us + round(timeout_us * self._jitter.uniform(0.75, 1.25))
        sent = [(pane, self._entries[pane].seq) for pane in panes]
        self._flights[self._number] = _Flight(sent, now_us, due_us)
        return PaneFrame(self._replica, self._number, blocks)

    def _block(self, stream: int, incarnation: int, nonce: int, panes: list[PaneId]) -> PaneEntries:
        entries = [self._entries[pane] for pane in panes]
        return PaneEntries(
            stream,
            entries[0].end_us - panes[0].pane_us,
            incarnation,
            nonce,
            tuple(zip(*[entry.partial for entry in entries], strict=True)),
            tuple([pane.key for pane in panes]),
            tuple([pane.pane_us for pane in panes]),
            tuple([entry.seq for entry in entries]),
        )
