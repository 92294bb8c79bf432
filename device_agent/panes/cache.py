"""Which pane entries are in memory: the rest is in the store alone, and comes back in pages.

Memory holds about `KEPT_ENTRIES` entries, the oldest dirty ones always among them. No dirty entry
that is in the store alone starts before `_stored_us`, so the low watermark never speaks of an entry
that has not landed.
"""

from collections.abc import Callable

from device_agent.changes import PaneId, PaneRow
from device_agent.panes.panes import NEVER_US, Panes

KEPT_ENTRIES = 2_000
"""Entries in memory, about: some 300 bytes each, so 0.6 MB."""
PAGE = 400
"""Dirty entries that are read from the store at once, and the oldest ones that stay in memory, at
most: a fifth of `KEPT_ENTRIES`, so that there is always something to send, and newer entries keep
their place."""


class PaneCache:
    """Chooses the entries that stay in memory.

    Args:
        panes: the entries in memory.
        is_in_flight: tells of an entry whether a frame with it is not acknowledged yet.
    """

    def __init__(self, panes: Panes, is_in_flight: Callable[[PaneId], bool]) -> None:
        self._panes = panes
        self._is_in_flight = is_in_flight
        self._stored_us: int | None = NEVER_US

    @property
    def all_landed(self) -> bool:
        """Whether no entry is dirty, in memory or in the store."""
        return not self._panes.dirty and self._stored_us is None

    def oldest_dirty_us(self) -> int | None:
        """Return a time before which no dirty pane starts, here or in the store.

        Returns:
            None: no pane is dirty. `NEVER_US`: the store was not asked yet.
        """
        found = [] if self._stored_us is None else [self._stored_us]
        if self._panes.dirty:
            found.append(min(self._panes.dirty).pane_us)
        return min(found, default=None)

    def wants_page(self) -> bool:
        """Return whether the store should give the next page of oldest dirty entries."""
        if self._stored_us is None:
            return False
        return self._stored_us == NEVER_US or len(self._panes.dirty) < PAGE // 2

    def add_page(self, rows: list[tuple[PaneId, PaneRow]]) -> None:
        """Take the oldest dirty entries of the store into memory; a short page is the last."""
        self._panes.restore(rows)
        self._stored_us = rows[-1][0].pane_us if len(rows) >= PAGE else None

    def ask_again(self) -> None:
        """Let the store be asked for all pages: its entries are dirty again."""
        self._stored_us = NEVER_US

    def evict(self) -> None:
        """Let the oldest entries go where there are many; the store must hold them all.

        The oldest dirty ones stay, and those that are in flight.
        """
        entries = self._panes.entries
        if len(entries) <= KEPT_ENTRIES:
            return
        excess, oldest, evicted = len(entries) - KEPT_ENTRIES * 3 // 4, PAGE, []
        for pane in sorted(entries):  # they came nearly in this order
            if entries[pane].dirty and oldest:
                oldest -= 1
            elif not self._is_in_flight(pane):
                evicted.append(pane)
                if len(evicted) == excess:
                    break
        dirty = self._panes.evict(evicted)
        if dirty:
            stored_us = min(dirty).pane_us
            known_us = self._stored_us
            self._stored_us = stored_us if known_us is None else min(known_us, stored_us)
