"""Pane entries on their way to the lake: dirty until a frame that holds them has landed.

An entry belongs to one replica. Those of this life grow; those of earlier lives are frozen: sent
again unchanged while unacknowledged, never continued. Changed entries leave in byte-bounded frames
with numbers 1, 2, .. per replica, a few in flight; an entry is clean once a frame with its present
seq is acknowledged. Lost frames, lost acknowledgements, full queues and broker crashes are all
healed by sending dirty entries again.

An entry is due when its pane is over, or after `PATIENCE_US`, so that a slowly filling pane does
not travel with every reading.

Memory is a cache of the store (`evicted_us`: below this an entry may be in the store alone): at most about `KEPT_ENTRIES` entries; the oldest dirty ones are
always among them, because the low watermark speaks of them.
"""

from collections.abc import Iterable, Iterator
from random import Random

from crdts import Replica
from device_agent.changes import Changes, PaneId, PaneRow
from lasp_edge.fold import Partial
from lasp_edge.messages import (
    BLOCK_OVERHEAD_BYTES,
    FRAME_OVERHEAD_BYTES,
    PaneEntries,
    PaneFrame,
    entry_bytes,
)
from lasp_edge.program import Window

PATIENCE_US = 10_000_000
IN_FLIGHT = 8
KEPT_FLIGHTS = 64
FIRST_TIMEOUT_US = 5_000_000
LAST_TIMEOUT_US = 120_000_000
FRAME_BYTES = 16_384
KEPT_ENTRIES = 6_000
PAGE = 1_000
KEPT_OPEN_US = 3_600_000_000


Samples = tuple[list[int], list[int]]
"""Quantised values and their times."""


class _Entry:
    """A pane entry in memory."""

    __slots__ = ("due_us", "end_us", "partial", "seq", "sent")

    def __init__(self, row: PaneRow, due_us: int | None) -> None:
        self.seq = row.seq
        self.end_us = row.end_us
        self.partial = row.partial
        self.due_us = due_us
        self.sent: int | None = None

    def row(self) -> PaneRow:
        return PaneRow(self.seq, self.end_us, self.partial, self.due_us is not None)


class _Flight:
    """A frame that is not acknowledged yet."""

    __slots__ = ("due_us", "entries", "replica")

    def __init__(self, replica: Replica, entries: list[tuple[PaneId, int]], due_us: int) -> None:
        self.replica = replica
        self.entries = entries
        self.due_us = due_us


class Panes:
    """A device's pane entries.

    Args:
        replica: this life.
        windows: the program's windows.
        jitter: spreads time-outs; seeded by the caller.
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
        self._high_us = -(2**62)
        self.evicted_us = -(2**62)
        self.more_stored = True

    @property
    def streams(self) -> list[int]:
        """The streams of the program: entries of others stay in the store."""
        return sorted(self._windows)

    @property
    def dirty(self) -> int:
        """How many entries in memory are dirty."""
        return len(self._dirty)

    @property
    def settled(self) -> bool:
        """Whether nothing is dirty, here or in the store."""
        return not self._dirty and not self.more_stored

    def oldest_dirty_us(self) -> int | None:
        """Return the start of the oldest dirty pane."""
        return min(self._dirty).pane_us if self._dirty else None

    def holds(self, pane: PaneId) -> bool:
        """Return whether the entry is in memory."""
        return pane in self._entries

    def become(self, replica: Replica) -> None:
        """Go on as another replica: all entries so far are frozen."""
        self._replica = replica
        self._seq = 0

    def own(self, stream: int, key: str, pane_us: int) -> PaneId:
        """Return the id of this replica's entry."""
        return PaneId(pane_us, stream, key, self._replica.incarnation, self._replica.nonce)

    def restore(self, rows: Iterable[tuple[PaneId, PaneRow]], now_us: int) -> int:
        """Take stored entries into memory, unless they are there; return how many came."""
        came = 0
        for pane, row in rows:
            came += 1
            if pane not in self._entries:
                self._entries[pane] = _Entry(row, now_us if row.dirty else None)
                if row.dirty:
                    self._dirty.add(pane)
        return came

    def page_wanted(self) -> bool:
        """Return whether the store should give the next page of oldest dirty entries."""
        return self.more_stored and len(self._dirty) < PAGE // 2

    def paged(self, rows: list[tuple[PaneId, PaneRow]], now_us: int) -> None:
        """Take a page of the oldest dirty entries; a short page is the last."""
        self.more_stored = self.restore(rows, now_us) >= PAGE

    def fold_in(self, pane: PaneId, samples: Samples, now_us: int, changes: Changes) -> bool:
        """Fold samples into this replica's entry.

        Returns:
            False where the entry would leave its columns' range; nothing has changed then.
        """
        window = self._windows[pane.stream]
        partial = window.fold.lift_column(*samples)
        entry = self._entries.get(pane)
        total = window.fold.combine(entry.partial, partial) if entry else partial
        if not window.fold.within_limits(total):
            return False
        self._seq += 1
        if entry is None:
            end_us = pane.pane_us + window.span_us
            entry = _Entry(PaneRow(self._seq, end_us, total, dirty=True), now_us + PATIENCE_US)
            self._entries[pane] = entry
        entry.seq, entry.partial = self._seq, total
        if entry.due_us is None:
            entry.due_us = now_us + PATIENCE_US
        self._dirty.add(pane)
        changes.panes[pane] = entry.row()
        return True

    def advance(self, high_us: int) -> None:
        """Note how far the readings' own time has come: panes that are over are due."""
        self._high_us = max(self._high_us, high_us)

    def acknowledged(self, numbers: Iterable[int], changes: Changes) -> None:
        """Clean the entries whose present seq was in these frames."""
        for number in numbers:
            flight = self._flights.pop(number, None) or self._given_up.pop(number, None)
            for pane, seq in flight.entries if flight else ():
                self._landed(pane, seq, changes)
            self._misses = 0 if flight else self._misses

    def _landed(self, pane: PaneId, seq: int, changes: Changes) -> None:
        entry = self._entries.get(pane)
        if entry is None:
            return
        if entry.sent == seq:
            entry.sent = None
        if entry.seq == seq and entry.due_us is not None:
            entry.due_us = None
            self._dirty.discard(pane)
            changes.panes[pane] = entry.row()

    def all_dirty(self, now_us: int) -> None:
        """Make every entry dirty again: the lake is another one."""
        self.lost()
        self._given_up.clear()
        for pane, entry in self._entries.items():
            entry.due_us = now_us
            self._dirty.add(pane)
        self.more_stored = True

    def lost(self) -> None:
        """Forget what is in flight: after a reconnect everything dirty is sent again."""
        for number in list(self._flights):
            self._give_up(number)

    def _free(self, flight: _Flight) -> None:
        for pane, seq in flight.entries:
            entry = self._entries.get(pane)
            if entry is not None and entry.sent == seq:
                entry.sent = None

    def expire(self, now_us: int) -> None:
        """Give up frames that were not acknowledged in time."""
        late = [number for number, flight in self._flights.items() if flight.due_us <= now_us]
        for number in late:
            self._give_up(number)
        self._misses += bool(late)

    def _give_up(self, number: int) -> None:
        """Let a frame's entries be sent again; a late acknowledgement still counts."""
        flight = self._given_up[number] = self._flights.pop(number)
        self._free(flight)
        if len(self._given_up) > KEPT_FLIGHTS:
            del self._given_up[next(iter(self._given_up))]

    def frames(self, now_us: int, *, everything: bool) -> Iterator[PaneFrame]:
        """Yield frames of due entries, oldest first, while few are in flight.

        Args:
            now_us: the time; unacknowledged frames are given up some seconds later.
            everything: send what is not due yet as well.
        """
        self.expire(now_us)
        if len(self._flights) >= IN_FLIGHT or not self._dirty:
            return
        due = [pane for pane in self._dirty if self._is_due(pane, now_us, everything=everything)]
        due.sort()
        while due and len(self._flights) < IN_FLIGHT:
            taken, due = self._cut(due)
            yield self._frame(taken, now_us)

    def next_due_us(self) -> int | None:
        """Return when the next flight times out."""
        return min((flight.due_us for flight in self._flights.values()), default=None)

    def _is_due(self, pane: PaneId, now_us: int, *, everything: bool) -> bool:
        entry = self._entries[pane]
        if entry.sent == entry.seq or entry.due_us is None:
            return False
        over = entry.end_us <= self._high_us
        return everything or over or entry.due_us <= now_us

    def _cut(self, due: list[PaneId]) -> tuple[list[PaneId], list[PaneId]]:
        """Split off as many entries as surely fit into one frame; at least one."""
        size = FRAME_OVERHEAD_BYTES
        groups: set[tuple[int, int]] = set()
        for index, pane in enumerate(due):
            group = (pane.stream, pane.incarnation)
            size += entry_bytes(pane.key, len(self._entries[pane].partial))
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
        timeout_us = min(FIRST_TIMEOUT_US << min(self._misses, 10), LAST_TIMEOUT_US)
        due_us = now_us + round(timeout_us * self._jitter.uniform(0.75, 1.25))
        sent = [(pane, self._entries[pane].seq) for pane in panes]
        for pane, seq in sent:
            self._entries[pane].sent = seq
        self._flights[self._number] = _Flight(self._replica, sent, due_us)
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

    def forget(self) -> None:
        """Let entries go that the store holds and that are not needed soon."""
        if len(self._entries) <= KEPT_ENTRIES:
            return
        horizon_us = self._high_us - KEPT_OPEN_US
        kept_dirty = set(sorted(self._dirty)[:PAGE])
        for pane in sorted(self._entries):
            entry = self._entries[pane]
            if pane in kept_dirty or entry.sent is not None or entry.end_us > horizon_us:
                continue
            del self._entries[pane]
            self.evicted_us = max(self.evicted_us, entry.end_us)
            if pane in self._dirty:
                self._dirty.discard(pane)
                self.more_stored = True
