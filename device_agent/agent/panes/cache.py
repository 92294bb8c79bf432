"""Which pane entries are in memory: the rest is in the store alone, and comes back in pages.

Memory holds about `KEPT_ENTRIES` entries. The dirty ones that are in the store alone are swept:
page after page comes into memory, in the order in which they were written, is sent, and may leave
memory again before it is acknowledged. The next sweep, for what was not acknowledged meanwhile,
begins after a while that grows as long as nothing lands; entries that every sink has refused come
along ever less often, as those in memory do. What the store holds besides is known from its last
answer (`Undelivered`), and changes only for the better until it is asked again; so a low watermark
never speaks of an entry that has not landed.
"""

from collections import Counter
from collections.abc import Sequence

from device_agent.agent.panes.flights import LAST_TIMEOUT_US
from device_agent.agent.panes.panes import NEVER_US, PaneEntry, Panes
from device_agent.agent.panes.sender import FIRST_REFUSAL_US, LAST_REFUSAL_US
from device_agent.agent.panes.sinks import Sinks
from device_agent.agent.parts import StoreKeeper
from device_agent.agent.stored_rows import (
    BEFORE_ALL,
    EntryKey,
    PaneId,
    PaneRow,
    StoreWide,
    Undelivered,
    is_ahead_of_sink,
    is_of_retired,
)
from lasp_edge.timers import Timer

KEPT_ENTRIES = 1_000
"""Entries in memory, about. One that is in the store alone costs a look there when a reading needs
it, which `python -m simulations.benchmarks wide_pane` measures; one in memory costs memory."""
PAGE = 400
"""Dirty entries that are read from the store at once, and those that wait to be sent and stay in
memory, at most: two fifths of `KEPT_ENTRIES`, so that there is always something to send, and newer
entries keep their place."""
ASKED_US = 5_000_000
"""Microseconds between two looks at how many entries wait in the store: it reads all of their
index, 20 ms for a week of them."""

UNKNOWN = Undelivered(0, 0, 0, 0, NEVER_US)
"""Before the store was asked, anything may wait."""


class PaneCache:
    """Chooses the entries that stay in memory.

    Args:
        panes: the entries in memory.
        sinks: know which versions of entries are in flight, and the answers that are not stored
            yet.

    Attributes:
        most: entries in memory above which the oldest go.
    """

    def __init__(self, panes: Panes, sinks: Sinks) -> None:
        self._panes = panes
        self._sinks, self.most = sinks, KEPT_ENTRIES
        self._stored: Sequence[Undelivered] | None = None
        self._oldest_us = NEVER_US  # of those of them that are not in `_stored`
        self._stale = True
        self._asked = Timer(ASKED_US)
        self._after: EntryKey | None = BEFORE_ALL
        self._sweep_due_us = NEVER_US
        self._sweep_us = 0
        self._refused_due_us = NEVER_US
        self._refused_us = 0
        self._refused_too = True

    @property
    def all_landed(self) -> bool:
        """Whether no entry is dirty, in memory or in the store."""
        return not self._panes.dirty and self.is_complete

    def landed_at(self, sinks: Sinks, clock_us: int) -> frozenset[str]:
        """Return the names of the sinks at which all has landed that they take."""
        return frozenset(
            sink.name
            for sink in sinks
            if sink.store and self.oldest_dirty_us(sink.bit, clock_us) is None
        )

    @property
    def is_complete(self) -> bool:
        """Whether all dirty entries are in memory."""
        return self._stored is not None and not self._panes.alone

    @property
    def count(self) -> int:
        """How many entries are dirty, in memory and, as far as is known, in the store."""
        return len(self._panes.dirty) + self._panes.alone

    def waiting(self) -> Sequence[Undelivered]:
        """Return what is dirty, in memory and in the store, as far as the store was asked."""
        if self._stored is None:
            return (UNKNOWN,)
        if self._panes.alone:
            return self._stored
        counts: Counter[tuple[int, int, int]] = Counter()
        oldest: dict[tuple[int, int, int], int] = {}
        entries = self._panes.entries
        for pane in self._panes.dirty:
            at = (pane.stream, entries[pane].dirty, entries[pane].refused)
            counts[at] += 1
            oldest[at] = min(pane.pane_us, oldest.get(at, pane.pane_us))
        return [Undelivered(*at, count, oldest[at]) for at, count in counts.items()]

    def oldest_dirty_us(self, bit: int, clock_us: int) -> int | None:
        """Return a time before which a sink waits for no reading, in memory or in the store.

        Entries that the sink has refused do not count: it has no window that they could change;
        but those do that are ahead of its clock and not of ours, and those that it takes once it
        has heard an operator: of windows that were changed, and of a device that was retired.
        Nobody waits for that one; who admits it again waits for all that it has.

        Args:
            bit: of the sink.
            clock_us: the time.

        Returns:
            None: it waits for nothing. `NEVER_US`: the store was not asked yet.
        """
        if self._stored is None:
            return NEVER_US
        by_operators = self._panes.planned.by_operators

        def counts(refused: int, stream: int, pane_us: int) -> bool:
            if stream in by_operators or is_of_retired(refused):
                return True
            return pane_us <= clock_us and is_ahead_of_sink(refused)

        found: list[int] = []
        if self._panes.alone:
            found += [self._oldest_us] if self._oldest_us != NEVER_US else []
            found += [
                each.oldest_us
                for each in self._stored
                if each.dirty & bit
                and (not each.refused & bit or counts(each.refused, each.stream, each.oldest_us))
            ]
        entries, since = self._panes.entries, self._panes.unlanded.since(bit)
        for pane in self._panes.dirty:
            entry = entries[pane]
            if entry.dirty & bit and (
                not entry.refused & bit or counts(entry.refused, pane.stream, pane.pane_us)
            ):
                found.append(since.get(pane, pane.pane_us))
        return min(found, default=None)

    def wants_answer(self, now_us: int) -> bool:
        """Return whether the store's dirty entries are to be counted."""
        if self._stored is None:
            return True
        if not self._panes.alone or not self._stale:
            return False
        return not self._panes.dirty or self._asked.is_due(now_us)

    def add_answer(self, stored: Sequence[Undelivered]) -> None:
        """Take note of what is dirty in the store, right after a commit."""
        self._stored = stored
        self._panes.alone = sum(each.entries for each in stored) - len(self._panes.dirty)
        self._oldest_us = NEVER_US
        self._stale = False

    def recall(self, store: StoreKeeper, now_us: int) -> None:
        """Take the next page of dirty entries into memory, where there is too little to send."""
        if self._wants_page(now_us):
            after = self._after or BEFORE_ALL
            self._add_page(store.dirty_panes(after, PAGE, refused_too=self._refused_too), now_us)

    def _wants_page(self, now_us: int) -> bool:
        """Return whether the store should give the next page of dirty entries."""
        if not self._panes.alone:
            return False
        entries = self._panes.entries
        unsent = sum([not entries[pane].tries for pane in self._panes.dirty])
        return unsent < PAGE // 2 and (self._after is not None or self._begins_sweep(now_us))

    def _begins_sweep(self, now_us: int) -> bool:
        if self._sweep_due_us - self._sweep_us <= now_us < self._sweep_due_us:
            return False
        self._after = BEFORE_ALL
        refused_due_us = self._refused_due_us
        self._refused_too = not refused_due_us - self._refused_us <= now_us < refused_due_us
        return True

    def _add_page(self, rows: Sequence[tuple[PaneId, PaneRow]], now_us: int) -> None:
        """Take the next dirty entries of the store into memory; a short page ends the sweep."""
        self._panes.restore(rows)
        if len(rows) >= PAGE:
            last, row = rows[-1]
            self._after = EntryKey(last.incarnation, last.nonce, row.seq)
            return
        self._after, self._stale = None, True
        first_us = self._sinks.first_retry_us()
        self._sweep_us = max(first_us, min(2 * self._sweep_us, LAST_TIMEOUT_US))
        self._sweep_due_us = now_us + self._sweep_us
        if self._refused_too:
            longer_us = max(FIRST_REFUSAL_US, 2 * self._refused_us)
            self._refused_us = min(longer_us, LAST_REFUSAL_US)
            self._refused_due_us = now_us + self._refused_us

    def answered(self, answer: StoreWide, found: int) -> None:
        """Note that a sink has answered: this may concern entries that are in the store alone.

        Args:
            answer: its answer.
            found: how many of them are in memory.
        """
        if not self.is_complete and found < answer.seqs.total():
            self._sinks.answer(answer)
        self._stale = True
        if found and not answer.reason:
            self._sweep_us = 0

    def ask_again(self) -> None:
        """Let the store be asked and swept again: its entries are dirty for another sink."""
        self._stored = None
        self._stale = True
        self._panes.alone = 0
        self.sweep_again()

    def sweep_again(self) -> None:
        """Let the store be swept from the beginning, with what was refused."""
        self._after, self._refused_too = BEFORE_ALL, True
        self._sweep_us = self._refused_us = 0

    def evict(self) -> None:
        """Let the oldest entries go, down to three quarters; the store must hold them all.

        Some of those that were not sent yet stay, and those that are in flight.
        """
        entries = self._panes.entries
        excess, unsent, evicted = len(entries) - self.most * 3 // 4, PAGE, dict[PaneId, PaneEntry]()
        for pane in sorted(entries):  # they came nearly in this order
            entry = entries[pane]
            if entry.dirty:
                if entry.tries:
                    if self._sinks.is_in_flight(self._panes.key(pane)):
                        continue
                elif unsent:
                    unsent -= 1
                    continue
            evicted[pane] = entry
            if len(evicted) == excess:
                break
        self._note_evicted([(pane, entry) for pane, entry in evicted.items() if entry.dirty])
        self._panes.evict(evicted)

    def _note_evicted(self, dirty: Sequence[tuple[PaneId, PaneEntry]]) -> None:
        """Note that dirty entries are in the store alone; what was not sent is swept yet."""
        if not dirty:
            return
        self._panes.alone += len(dirty)
        self._stale = True
        oldest_us = min([pane.pane_us for pane, _ in dirty])
        known_us = oldest_us if self._oldest_us == NEVER_US else self._oldest_us
        self._oldest_us = min(known_us, oldest_us)
        unsent = [(pane[3], pane[4], entry.seq) for pane, entry in dirty if not entry.tries]
        if unsent:
            incarnation, nonce, seq = min(unsent)
            before = EntryKey(incarnation, nonce, seq - 1)
            self._after = before if self._after is None else min(self._after, before)
