"""Pane entries in memory: the partials of the windows' panes, one for each replica of this device.

An entry belongs to one replica. Entries of the present replica grow. Entries of earlier replicas
are frozen: they are sent again unchanged until they are acknowledged, and never continued, also
where the program of today has no such window. An entry is dirty for each sink in which its present
seq has not landed (`device_agent.agent.panes.sinks`).

Memory is a cache of the store: entries that end at or before `evicted_us` may be in the store alone
and are restored before they are continued (`device_agent.agent.panes.cache`).
"""

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import repeat
from typing import Any

from device_agent.agent.agent import Agent
from device_agent.agent.changes import (
    AbandonedPanes,
    Changes,
    EntryKey,
    PaneId,
    PaneRow,
    refusal,
    waits_for,
)
from device_agent.agent.panes.planned import PlannedStreams
from device_agent.agent.panes.unlanded import Unlanded
from lasp_edge.folds.columns import Partial
from lasp_edge.protocol.acks import Seqs

LEAST_PATIENCE_US = 10_000_000
"""Microseconds from a reading until its entry is due though the pane is not over, at least; else an
interval. So a slowly filling pane does not travel with every reading, and who sends seldom waits
until an interval's entries can leave together."""
NEVER_US = -(2**62)
"""Before every time."""


# Both are made by the thousand for a column: without the Python function of a NamedTuple's name.
_pane_id: Callable[[Iterable[Any]], PaneId] = functools.partial(tuple.__new__, PaneId)
_pane_row: Callable[[Iterable[Any]], PaneRow] = functools.partial(tuple.__new__, PaneRow)


class PaneEntry:
    """A pane entry in memory, see `PaneRow`.

    Attributes:
        due_us: dirty, it is due at this time at the latest.
        sent_us: when it was sent last, or refused; it says nothing before it was sent.
        tries: how often it was sent with its present seq.
    """

    __slots__ = ("dirty", "due_us", "end_us", "partial", "refused", "sent_us", "seq", "tries")

    def __init__(self, row: PaneRow, due_us: int) -> None:
        self.seq, self.end_us, self.partial, self.dirty, self.refused = row
        self.due_us = due_us
        self.sent_us = self.tries = 0

    def row(self) -> PaneRow:
        """Return it as it is stored."""
        return PaneRow(self.seq, self.end_us, self.partial, self.dirty, self.refused)


class Panes:
    """A device's pane entries in memory.

    Args:
        agent: what all parts share.

    Attributes:
        planned: the streams of the program; frozen entries may be of others, of a former one.
        entries: the entries.
        dirty: the ids of those that are dirty for a sink.
        bits: of all sinks: for them, an entry that changes is dirty.
        patience_us: from a reading until its entry is due though the pane is not over.
        seq: the newest seq that this replica gave to an entry; 0 before the first.
        high_us: how far the readings' own time has come: panes that end before are over.
        answered: entries of which only a sink's answer is new, which is worth no commit of its own
            where readings wait for one, too: after a crash they are sent again, and count once.
        evicted_us: entries that end later are in memory, if the present replica has begun them.
        unlanded: how old what has not landed of an entry can be.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.planned = PlannedStreams(agent.plan)
        self.entries: dict[PaneId, PaneEntry] = {}
        self.dirty: set[PaneId] = set()
        self.bits = 0
        self.patience_us = max(LEAST_PATIENCE_US, agent.settings.interval_us)
        self.seq = 0
        self.evicted_us = NEVER_US
        self.high_us = NEVER_US
        self.unlanded = Unlanded(agent.facts.promised_us)
        self._changes = Changes()
        self.answered: dict[PaneId, PaneRow] = {}
        self._answers_wait = agent.settings.commit_every_us > 0

    def abandon(self, stream: int, first_us: int, end_us: int) -> None:
        """Delete the entries of a stream from one time to another: they mean nothing any more."""
        entries = self.entries
        for pane in [
            pane for pane in entries if pane.stream == stream and first_us <= pane.pane_us < end_us
        ]:
            del entries[pane]
            self.dirty.discard(pane)
            self.answered.pop(pane, None)
        self._changes.abandon(AbandonedPanes(stream, first_us, end_us))

    def own(self, stream: int, key: str, pane_us: int) -> PaneId:
        """Return the id of this replica's entry."""
        replica = self._agent.replica
        return PaneId(pane_us, stream, key, replica.incarnation, replica.nonce)

    def own_column(self, stream: int, starts_us: Sequence[int]) -> list[PaneId]:
        """Return the ids of this replica's entries without a key, one for each start."""
        replica = self._agent.replica
        rest = (stream, "", replica.incarnation, replica.nonce)
        return list(map(_pane_id, zip(starts_us, *map(repeat, rest))))  # noqa: B905 - repeat ends not

    def partial(self, pane: PaneId) -> Partial | None:
        """Return what an entry holds; None where it is not begun."""
        entry = self.entries.get(pane)
        return entry.partial if entry else None

    def begun(self, panes: Iterable[PaneId]) -> list[Partial]:
        """Return what those entries hold that are begun."""
        entries = self.entries
        return [entries[pane].partial for pane in panes if pane in entries]

    def fold_in(
        self, pane: PaneId, partial: Partial, since_us: int, *, joined: bool = False
    ) -> None:
        """Fold new readings, as one partial, into this replica's entry.

        Args:
            pane: the entry.
            partial: of the new readings; `joined` with what the entry holds: of all its readings.
            since_us: when the first of them was read.
            joined: see `partial`.
        """
        entry = self.entries.get(pane)
        if entry is not None and not joined:
            partial = self.planned.windows[pane.stream].fold.combine(entry.partial, partial)
        self.seq += 1
        if entry is None:
            end_us = pane.pane_us + self.planned.spans_us[pane.stream]
            row = PaneRow(self.seq, end_us, partial, self.bits)
            entry = self.entries[pane] = PaneEntry(row, since_us + self.patience_us)
        else:
            entry.seq, entry.partial = self.seq, partial
            if entry.tries or not entry.dirty:
                entry.tries, entry.due_us = 0, since_us + self.patience_us
            entry.dirty, entry.refused = self.bits, 0
        self.dirty.add(pane)
        self.answered.pop(pane, None)
        self._changes.panes[pane] = entry.row()

    def fold_in_column(self, panes: list[PaneId], partials: list[Partial], since_us: int) -> None:
        """Fold a partial into each of these entries of one stream: `fold_in`, by a shorter way."""
        entries, due_us, rows = self.entries, since_us + self.patience_us, self._changes.panes
        span_us, bits = self.planned.windows[panes[0].stream].span_us, self.bits
        for pane, partial in zip(panes, partials, strict=True):
            if pane in entries:
                self.fold_in(pane, partial, since_us)
            else:
                self.seq += 1
                row = rows[pane] = _pane_row((self.seq, pane[0] + span_us, partial, bits, 0))
                entries[pane] = PaneEntry(row, due_us)
        self.dirty.update(panes)

    def advance(self, high_us: int) -> None:
        """Note how far the readings' own time has come: panes that are over are due."""
        self.high_us = max(self.high_us, high_us)

    def set_back(self, last_us: int) -> None:
        """Note that the readings' own time has come no further: a clock was ahead."""
        self.high_us = min(self.high_us, last_us)

    def key(self, pane: PaneId) -> EntryKey:
        """Return which version of an entry is here."""
        return EntryKey(pane.incarnation, pane.nonce, self.entries[pane].seq)

    def send_again(self, panes: Iterable[PaneId]) -> None:
        """Let these entries be due at once."""
        for pane in panes:
            self.entries[pane].due_us = NEVER_US

    def named(self, seqs: Seqs) -> list[PaneId]:
        """Return the dirty entries here whose present seq is named."""
        of = (seqs.incarnation, seqs.nonce)
        entries = self.entries
        return [pane for pane in self.dirty if pane[3:] == of and entries[pane].seq in seqs]

    def landed(self, panes: Iterable[PaneId], bit: int) -> int:
        """Note that entries have landed in a sink; return how many were dirty for it."""
        landed = 0
        for pane in panes:
            entry = self.entries[pane]
            if entry.dirty & bit:
                landed += 1
                entry.dirty, entry.refused = entry.dirty & ~bit, entry.refused & ~bit
                self._changed(pane, may_wait=self._answers_wait)
        return landed

    def refused(self, pane: PaneId, bit: int, reason: int, now_us: int, due_us: int) -> None:
        """Note that a sink did not take an entry, and when it is due again for those like it."""
        entry = self.entries[pane]
        if not entry.dirty & bit:
            return
        after = refusal(entry.refused, bit, reason)
        if entry.refused != after:
            entry.refused = after
            self._changed(pane, may_wait=self._answers_wait)
        if not waits_for(entry.dirty, after):
            entry.sent_us, entry.due_us = now_us, due_us

    def change_bits(self, bits: int, dirtied: int) -> None:
        """Note which sinks there are, and for which of them every entry is dirty.

        The caller changes the store's entries in the same way.
        """
        gone = self.bits & ~bits
        self.bits = bits
        self.unlanded.forget(gone | dirtied)
        for pane, entry in self.entries.items():
            entry.dirty = entry.dirty & ~gone | dirtied
            entry.refused &= ~(gone | dirtied)
            if dirtied:
                entry.tries, entry.due_us = 0, NEVER_US
            self._changed(pane)
        said = Changes(forgotten=gone, dirtied=dirtied)
        self.answered = {pane: said.applied(pane, row) for pane, row in self.answered.items()}

    def _changed(self, pane: PaneId, *, may_wait: bool = False) -> None:
        entry = self.entries[pane]
        if entry.dirty:
            self.dirty.add(pane)
        else:
            self.dirty.discard(pane)
        if may_wait and pane not in self._changes.panes:
            self.answered[pane] = entry.row()
        else:
            self.answered.pop(pane, None)
            self._changes.panes[pane] = entry.row()

    def restore(self, rows: Iterable[tuple[PaneId, PaneRow]]) -> int:
        """Take stored entries into memory, unless they are there; return how many are dirty."""
        before = len(self.dirty)
        for pane, stored in rows:
            if pane not in self.entries:
                row = self.answered.get(pane, stored)
                self.entries[pane] = PaneEntry(row, NEVER_US)
                if row.dirty:
                    self.dirty.add(pane)
        return len(self.dirty) - before

    def evict(self, panes: Collection[PaneId]) -> None:
        """Let entries go that the store holds."""
        ends_us = [self.entries.pop(pane).end_us for pane in panes]
        self.evicted_us = max([self.evicted_us, *ends_us])
        self.dirty.difference_update(panes)

    def take_changes(self) -> Changes | None:
        """Return the entries that changed since the last time; None without any."""
        if not (self._changes.panes or self._changes.abandoned):
            return None
        taken, self._changes = self._changes, Changes()
        if self.answered:
            taken.panes = self.answered | taken.panes
            self.answered = {}
        return taken
