"""Pane entries in memory: the partials of the windows' panes, one for each replica of this device.

An entry belongs to one replica. Entries of the present replica grow. Entries of earlier replicas
are frozen: they are sent again unchanged until they are acknowledged, and never continued. An entry
that has changed is dirty until its present seq has landed.

A dirty entry is due when its pane is over, or `PATIENCE_US` after it changed or was sent, so that a
slowly filling pane does not travel with every reading.

Memory is a cache of the store: entries that end at or before `evicted_us` may be in the store alone
and are restored before they are continued (`device_agent.panes.cache`).
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any

from device_agent.agent import Agent
from device_agent.changes import Changes, PaneId, PaneRow
from device_agent.clock import is_time
from lasp_edge.folds.columns import Partial

PATIENCE_US = 10_000_000
"""Microseconds until a dirty entry is due though its pane is not over: ten publishing intervals."""
NEVER_US = -(2**62)
"""Before every time."""


# Both are made by the thousand for a column: without the Python function of a NamedTuple's name.
_pane_id: Callable[[Iterable[Any]], PaneId] = functools.partial(tuple.__new__, PaneId)
_pane_row: Callable[[Iterable[Any]], PaneRow] = functools.partial(tuple.__new__, PaneRow)


class PaneEntry:
    """A pane entry in memory, see `PaneRow`; dirty, it is due at `due_us` at the latest."""

    __slots__ = ("dirty", "due_us", "end_us", "partial", "seq")

    def __init__(self, row: PaneRow, due_us: int) -> None:
        self.seq, self.end_us, self.partial, self.dirty = row
        self.due_us = due_us

    def row(self) -> PaneRow:
        """Return it as it is stored."""
        return PaneRow(self.seq, self.end_us, self.partial, self.dirty)


class Panes:
    """A device's pane entries in memory.

    Args:
        agent: what all parts share.

    Attributes:
        entries: the entries.
        dirty: the ids of those that are dirty.
        seq: the newest seq that this replica gave to an entry; 0 before the first.
        evicted_us: entries that end later are in memory, if the present replica has begun them.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._windows = {window.stream: window for window in agent.plan.windows.values()}
        self.entries: dict[PaneId, PaneEntry] = {}
        self.dirty: set[PaneId] = set()
        self.seq = 0
        self.evicted_us = NEVER_US
        self._high_us = NEVER_US
        self._changes = Changes()

    @property
    def streams(self) -> tuple[int, ...]:
        """The streams of the program: entries of others stay in the store."""
        return tuple(sorted(self._windows))

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

    def fold_in(self, pane: PaneId, partial: Partial, now_us: int) -> None:
        """Fold new readings, as one partial, into this replica's entry."""
        window = self._windows[pane.stream]
        entry = self.entries.get(pane)
        self.seq += 1
        if entry is None:
            row = PaneRow(self.seq, pane.pane_us + window.span_us, partial, dirty=True)
            entry = self.entries[pane] = PaneEntry(row, now_us + PATIENCE_US)
        else:
            entry.seq, entry.partial = self.seq, window.fold.combine(entry.partial, partial)
            if not entry.dirty:
                entry.dirty, entry.due_us = True, now_us + PATIENCE_US
        self.dirty.add(pane)
        self._changes.panes[pane] = entry.row()

    def fold_in_column(self, panes: list[PaneId], partials: list[Partial], now_us: int) -> None:
        """Fold a partial into each of these entries of one stream: `fold_in`, by a shorter way."""
        entries, due_us, rows = self.entries, now_us + PATIENCE_US, self._changes.panes
        span_us = self._windows[panes[0].stream].span_us
        for pane, partial in zip(panes, partials, strict=True):
            if pane in entries:
                self.fold_in(pane, partial, now_us)
            else:
                self.seq += 1
                row = rows[pane] = _pane_row((self.seq, pane[0] + span_us, partial, True))
                entries[pane] = PaneEntry(row, due_us)
        self.dirty.update(panes)

    def advance(self, high_us: int) -> None:
        """Note how far the readings' own time has come: panes that are over are due."""
        self._high_us = max(self._high_us, high_us)

    def set_back(self, last_us: int) -> None:
        """Note that the readings' own time has come no further: a clock was ahead."""
        self._high_us = min(self._high_us, last_us)

    def due(self, now_us: int, *, everything: bool) -> list[PaneId]:
        """Return the dirty entries that are due, or all that are dirty, oldest first."""
        return sorted(
            pane for pane in self.dirty if everything or self._is_due(self.entries[pane], now_us)
        )

    def _is_due(self, entry: PaneEntry, now_us: int) -> bool:
        return entry.end_us <= self._high_us or is_time(now_us, entry.due_us, PATIENCE_US)

    def was_sent(self, panes: Iterable[PaneId], now_us: int) -> None:
        """Let these entries be due again when `PATIENCE_US` has passed."""
        for pane in panes:
            self.entries[pane].due_us = now_us + PATIENCE_US

    def send_again(self, panes: Iterable[PaneId]) -> None:
        """Let these entries be due at once."""
        for pane in panes:
            self.entries[pane].due_us = NEVER_US

    def landed(self, pane: PaneId, seq: int) -> None:
        """Note that an entry has landed: it is clean if it has not changed since."""
        entry = self.entries.get(pane)
        if entry is not None and entry.seq == seq and entry.dirty:
            entry.dirty = False
            self.dirty.discard(pane)
            self._changes.panes[pane] = entry.row()

    def all_dirty(self) -> None:
        """Make every entry dirty again, here and in the store: the lake is another one."""
        for entry in self.entries.values():
            entry.dirty, entry.due_us = True, NEVER_US
        self.dirty = set(self.entries)
        self._changes.make_all_dirty()

    def restore(self, rows: Iterable[tuple[PaneId, PaneRow]]) -> None:
        """Take stored entries into memory, unless they are there."""
        for pane, row in rows:
            if pane not in self.entries:
                self.entries[pane] = PaneEntry(row, NEVER_US)
                if row.dirty:
                    self.dirty.add(pane)

    def evict(self, panes: Iterable[PaneId]) -> set[PaneId]:
        """Let entries go that the store holds; return those of them that are dirty."""
        ends_us = [self.entries.pop(pane).end_us for pane in panes]
        self.evicted_us = max([self.evicted_us, *ends_us])
        evicted = self.dirty.intersection(panes)
        self.dirty -= evicted
        return evicted

    def take_changes(self) -> Changes | None:
        """Return the entries that changed since the last time; None without any."""
        if not (self._changes.panes or self._changes.all_dirty):
            return None
        taken, self._changes = self._changes, Changes()
        return taken
