"""Pane entries in memory: the partials of the windows' panes, one for each replica of this device.

An entry belongs to one replica. Entries of the present replica grow. Entries of earlier replicas
are frozen: they are sent again unchanged until they are acknowledged, and never continued, also
where the program of today has no such window. An entry is dirty for each sink in which its present
seq has not landed (`device_agent.agent.panes.sinks`).

Whatever changes an entry, a reading, a stream or a pane that is built again, does so by `change`,
or by its form for whole columns. Memory is a cache of the store (`device_agent.agent.panes.cache`),
and the invariant is: an entry is continued only if memory has it, or the store denies it. Those
that end at or before `evicted_us` may be in the store alone, and the store is asked for them.
"""

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import repeat
from typing import Any

from crdts import Replica
from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes
from device_agent.agent.panes.planned import PlannedStreams
from device_agent.agent.panes.sinks import Sinks
from device_agent.agent.panes.unlanded import Unlanded
from device_agent.agent.parts import StoreReader
from device_agent.agent.stored_rows import (
    AbandonedPanes,
    EntryKey,
    PaneId,
    PaneRow,
    refusal,
)
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


def own_column(replica: Replica, stream: int, starts_us: Sequence[int]) -> list[PaneId]:
    """Return the ids of a replica's entries without a key, one for each start."""
    rest = (stream, "", replica.incarnation, replica.nonce)
    return list(map(_pane_id, zip(starts_us, *map(repeat, rest))))  # noqa: B905 - repeat ends not


class PaneEntry:
    """A pane entry in memory, see `PaneRow`.

    Attributes:
        due_us: dirty, it is due at this time at the latest.
        sent_us: when it was sent last, or refused; of no meaning before it was sent.
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


class PartialOutOfRangeError(ValueError):
    """An entry would leave the range of its columns, so what came to it is left out."""


class Panes:
    """A device's pane entries in memory.

    Args:
        agent: what all parts share.
        sinks: to which entries are delivered.

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
        alone: how many dirty entries are in the store alone, as far as the store was asked.
        begun: streams of windows that lack readings, and from when on all are in their panes
            (`device_agent.agent.rebuilding.renewed`).
    """

    def __init__(self, agent: Agent, sinks: Sinks) -> None:
        self._agent, self._sinks = agent, sinks
        self.planned = PlannedStreams(agent.plan)
        self.entries: dict[PaneId, PaneEntry] = {}
        self.dirty: set[PaneId] = set()
        self.bits = sinks.bits
        self.alone = 0
        self.begun: dict[int, int] = {}
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
        return _pane_id((pane_us, stream, key, replica.incarnation, replica.nonce))

    def held(self, pane: PaneId, store: StoreReader) -> Partial | None:
        """Return what an entry holds, in memory or in the store; None where it is not begun."""
        entry = self.entries.get(pane)
        if entry is None and pane[0] + self.planned.spans_us[pane[1]] <= self.evicted_us:
            self.restore(store.panes_named([pane]))
            entry = self.entries.get(pane)
        return None if entry is None else entry.partial

    def held_column(self, panes: Sequence[PaneId], store: StoreReader) -> list[Partial]:
        """Return what those of these entries of one stream hold that are begun."""
        entries, span_us = self.entries, self.planned.spans_us[panes[0][1]]
        if panes[0][0] + span_us <= self.evicted_us:  # they come by time
            last_us = self.evicted_us - span_us
            gone = [pane for pane in panes if pane[0] <= last_us and pane not in entries]
            self.restore(store.panes_named(gone))
        return [entries[pane].partial for pane in panes if pane in entries]

    def changed(
        self, pane: PaneId, added: Partial, store: StoreReader, taken_back: Partial | None = None
    ) -> Partial:
        """Return what an entry will hold; nothing is changed.

        Args:
            pane: an entry of this replica.
            added: the readings that come to it, as one partial.
            store: gives the entry where memory has let it go.
            taken_back: the readings that go out of it; the fold has an inverse.

        Raises:
            PartialOutOfRangeError: it would leave the range of its columns.
        """
        fold, held = self.planned.windows[pane.stream].fold, self.held(pane, store)
        if fold.within_limits(added):
            partial = added if held is None else fold.combine(held, added)
            if taken_back is not None:
                partial = fold.retract(partial, taken_back)
            if fold.within_limits(partial):
                return partial
        name = self.planned.names[pane.stream]
        raise PartialOutOfRangeError(f"window {name}: the partial is out of range")

    def change(
        self,
        pane: PaneId,
        added: Partial,
        since_us: int,
        store: StoreReader,
        taken_back: Partial | None = None,
    ) -> None:
        """Change this replica's entry; args and errors are those of `changed` and `put`."""
        self.put(pane, self.changed(pane, added, store, taken_back), since_us)

    def put(self, pane: PaneId, partial: Partial, since_us: int) -> None:
        """Let this replica's entry hold a partial: a row of results, or what `changed` gave.

        Args:
            pane: the entry; it is in memory, or the store does not have it.
            partial: of all its readings.
            since_us: when the first of those was read that are new.
        """
        entry = self.entries.get(pane)
        self.seq += 1
        if entry is None:
            end_us = pane.pane_us + self.planned.spans_us[pane.stream]
            row = PaneRow(self.seq, end_us, partial, self.bits)
            due_us = since_us + self.planned.waits_us(pane.stream, self.patience_us)
            entry = self.entries[pane] = PaneEntry(row, due_us)
        else:
            entry.seq, entry.partial = self.seq, partial
            if entry.tries or not entry.dirty:
                entry.tries, entry.due_us = (
                    0,
                    since_us + self.planned.waits_us(pane.stream, self.patience_us),
                )
            entry.dirty, entry.refused = self.bits, 0
        self.dirty.add(pane)
        self.answered.pop(pane, None)
        self._changes.panes[pane] = entry.row()

    def change_column(self, panes: list[PaneId], partials: list[Partial], since_us: int) -> None:
        """Add a partial to each of these entries of one stream: `change`, by a shorter way.

        The caller has asked for all of them by `held_column`, and none leaves its range.
        """
        entries, due_us, rows = self.entries, since_us + self.patience_us, self._changes.panes
        window, bits, seq = self.planned.windows[panes[0].stream], self.bits, self.seq
        span_us, combine = window.span_us, window.fold.combine
        for pane, partial in zip(panes, partials, strict=True):
            entry = entries.get(pane)
            if entry is None:
                seq += 1
                row = rows[pane] = _pane_row((seq, pane[0] + span_us, partial, bits, 0))
                entries[pane] = PaneEntry(row, due_us)
            else:
                self.seq = seq
                self.put(pane, combine(entry.partial, partial), since_us)
                seq = self.seq
        self.seq = seq
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

    def refused(self, pane: PaneId, bit: int, reason: int) -> bool:
        """Note that a sink did not take an entry; return whether it lacks it."""
        entry = self.entries[pane]
        if not entry.dirty & bit:
            return False
        after = refusal(entry.refused, bit, reason)
        if entry.refused != after:
            entry.refused = after
            self._changed(pane, may_wait=self._answers_wait)
        return True

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
        store_wide = Changes(forgotten=gone, dirtied=dirtied)
        self.answered = {p: store_wide.applied(p, row) for p, row in self.answered.items()}

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

    def restore(self, rows: Iterable[tuple[PaneId, PaneRow]]) -> None:
        """Take stored entries into memory, as they are once all answers are stored."""
        before, unstored = len(self.dirty), self._sinks.unstored
        for pane, stored in rows:
            if pane not in self.entries:
                row = self.answered.get(pane, unstored.applied(pane, stored))
                self.entries[pane] = PaneEntry(row, NEVER_US)
                if row.dirty:
                    self.dirty.add(pane)
        self.alone = max(0, self.alone + before - len(self.dirty))

    def evict(self, panes: Collection[PaneId]) -> None:
        """Let entries go that the store holds."""
        ends_us = [self.entries.pop(pane).end_us for pane in panes]
        self.evicted_us = max([self.evicted_us, *ends_us])
        self.dirty.difference_update(panes)

    def take_changes(self, *, with_answers: bool = False) -> Changes | None:
        """Return the entries that changed since the last time; None without any.

        Args:
            with_answers: those are to be stored, too, of which only a sink's answer is new.
        """
        answered = with_answers and self.answered
        if not (self._changes.panes or self._changes.abandoned or answered):
            return None
        taken, self._changes = self._changes, Changes()
        if self.answered:
            taken.panes = self.answered | taken.panes
            self.answered = {}
        return taken
