"""The fleet's panes, as far as memory holds them: each replica's entries, and their totals.

An entry is joined into its pane: of one replica the greatest seq counts, and what several replicas
and devices hold of a pane adds up to its total. A device that has regimes of its own in a window is
a **scope** with totals of its own, as its panes may mean something there that those of others do
not. Panes that were used last are in memory with their entries, as many as fit; of further ones
only the totals, which windows are made from. The keeper gives the others again when they are asked
for. So memory is bounded, however long a device was away, and no result depends on its content.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple, TypeVar

from device_agent.gateway.kept import FleetKeeper, KeptEntry, WriterOfPanes
from lasp_edge.aggregates.sliding import TwoStacks, keyed
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.language.forms import WindowForm
from lasp_edge.protocol.acceptance import PaneRows

MOST_ENTRIES: Final = 50_000
"""Entries in memory after a turn, some 400 bytes each: 20 windows of 100 devices, a minute long and
in panes of 10 s, are 2,000 entries a pane, and 25 panes cover the window and three late minutes."""
MOST_TOTALS: Final = 20_000
"""Totals in memory beside those, some 400 bytes each: a window of an hour in panes of 10 s takes
360 a key."""

Place = tuple[int, int]
"""Stream and start of a pane."""
ScopedKey = tuple[str, str]
"""Key and scope, "" for that of all devices without regimes of their own."""
_Named = TypeVar("_Named", WriterOfPanes, ScopedKey)
WindowTotal = tuple[int, int, Partial, int]
"""Start, end, partial and number of devices of a window."""


class PaneTotal(NamedTuple):
    """The total of one pane, key and scope, and the devices that it is from."""

    partial: Partial
    devices: frozenset[str]


class KeyedPane:
    """One pane of one key: the entries of all replicas, and their total."""

    __slots__ = ("_partials", "_seqs", "_total")

    def __init__(self, fold: Fold) -> None:
        self._seqs: dict[WriterOfPanes, int] = {}
        self._partials = keyed(fold)
        self._total: PaneTotal | None = None

    def __len__(self) -> int:
        return len(self._seqs)

    def join(self, writer: WriterOfPanes, seq: int, partial: Partial) -> bool:
        """Take an entry, unless it is known: a replica never writes one seq twice."""
        if self._seqs.get(writer, -1) >= seq:
            return False
        self._seqs[writer] = seq
        self._partials.put(writer, partial)
        self._total = None
        return True

    def total(self) -> PaneTotal:
        """Return the total; what a fold of the user's own raises is passed on."""
        if self._total is None:
            devices = frozenset([writer.device for writer in self._seqs])
            self._total = PaneTotal(self._partials.total, devices)
        return self._total


class FleetPanes:
    """The fleet's panes.

    Args:
        regimes: of the fleet's windows.
        keeper: keeps the entries.
    """

    def __init__(self, regimes: FleetRegimes, keeper: FleetKeeper) -> None:
        self._regimes, self._keeper = regimes, keeper
        self._cells: dict[Place, dict[ScopedKey, KeyedPane]] = {}
        self._totals: dict[Place, dict[ScopedKey, PaneTotal]] = {}
        self._names: dict[WriterOfPanes | ScopedKey, WriterOfPanes | ScopedKey] = {}
        self._most_held = 0  # entries and panes, at most: they are counted where that is too many

    def join(self, rows: PaneRows) -> Iterator[KeptEntry]:
        """Join accepted entries, and yield those that were not known yet."""
        block = rows.block
        stream, fold, scope = (
            block.stream,
            self._fold(block.stream),
            self._regimes.scope(block.stream, rows.device),
        )
        writer = self._one(WriterOfPanes(rows.device, block.incarnation, block.nonce))
        partials = zip(*block.columns, strict=True)
        for key, pane_us, seq, partial in zip(
            block.keys, block.panes_us, block.seqs, partials, strict=True
        ):
            cells = self._of_pane(stream, pane_us)
            cell = cells.get((key, scope))
            if cell is None:
                cell = cells[self._one((key, scope))] = KeyedPane(fold)
            if cell.join(writer, seq, partial):
                self._most_held += 1
                yield KeptEntry(stream, pane_us, key, writer, seq, partial)

    def totals(self, stream: int, at: ScopedKey, panes_us: range) -> list[tuple[int, PaneTotal]]:
        """Return start and total of each of some panes that holds a key of a scope, in order.

        What a fold of the user's own raises is passed on.
        """
        places = [(stream, pane_us) for pane_us in panes_us]
        missing = [place for place in places if not self._is_known(place)]
        if missing:
            self._read(stream, missing)
        totals = ((place[1], self._total(place, at)) for place in places)
        return [(pane_us, total) for pane_us, total in totals if total is not None]

    def forget(self) -> None:
        """Drop the panes that were used longest ago, beyond the bound."""
        if self._most_held > MOST_ENTRIES:
            self._forget_entries()
        if len(self._names) > MOST_TOTALS:
            self._names.clear()

    def clear(self) -> None:
        """Let go of all panes: an entry may have another scope now."""
        self._cells.clear()
        self._totals.clear()
        self._most_held = 0

    def _forget_entries(self) -> None:
        kept = self._most_held = 0
        for place in reversed(list(self._cells)):
            kept += 1 + sum(map(len, self._cells[place].values()))
            if kept > MOST_ENTRIES:
                self._keep_totals(place)
            else:
                self._most_held = kept
        kept = 0
        for place in reversed(list(self._totals)):
            kept += 1 + len(self._totals[place])
            if kept > MOST_TOTALS:
                del self._totals[place]

    def _is_known(self, place: Place) -> bool:
        return place in self._cells or place in self._totals

    def _fold(self, stream: int) -> Fold:
        piece = self._regimes.stream(stream)
        assert piece is not None, "panes of unknown streams are neither taken nor asked for"
        return piece.fold

    def _one(self, name: _Named) -> _Named:
        """Return the one object for a replica, or for a key of a scope, in all panes."""
        return self._names.setdefault(name, name)  # type: ignore[return-value]

    def _of_pane(self, stream: int, pane_us: int) -> dict[ScopedKey, KeyedPane]:
        """Return a pane's cells by key; it is now the one that was used last."""
        place = (stream, pane_us)
        cells = self._cells.pop(place, None)
        if cells is None:
            self._totals.pop(place, None)
            self._read(stream, [place])
            return self._cells[place]
        self._cells[place] = cells
        return cells

    def _read(self, stream: int, missing: list[Place]) -> None:
        """Read panes of a stream that are not in memory, given in order."""
        fold = self._fold(stream)
        read: dict[Place, dict[ScopedKey, KeyedPane]] = {place: {} for place in missing}
        self._most_held += len(missing)
        for entry in self._keeper.entries(stream, missing[0][1], missing[-1][1]):
            cells = read.get((stream, entry.pane_us))
            if cells is not None:
                at = self._one((entry.key, self._regimes.scope(stream, entry.writer.device)))
                if at not in cells:
                    cells[at] = KeyedPane(fold)
                cells[at].join(self._one(entry.writer), entry.seq, entry.partial)
                self._most_held += 1
        self._cells |= read

    def _total(self, place: Place, at: ScopedKey) -> PaneTotal | None:
        totals = self._totals.pop(place, None)
        if totals is not None:
            self._totals[place] = totals
            return totals.get(at)
        cell = self._of_pane(*place).get(at)
        return None if cell is None else cell.total()

    def _keep_totals(self, place: Place) -> None:
        """Let go of a pane's entries."""
        cells = self._cells.pop(place)
        with suppress(Exception):  # a user's fold may raise; the pane is read again then
            self._totals[place] = {at: cell.total() for at, cell in cells.items()}


def slid_totals(
    form: WindowForm, starts: Iterable[int], totals: list[tuple[int, PaneTotal]]
) -> Iterator[WindowTotal]:
    """Yield the total of each of some windows that overlap.

    Args:
        form: of the windows.
        starts: in order.
        totals: of all panes of these windows that hold the key, in order.
    """
    stacks = TwoStacks(form.fold)
    inside: Counter[frozenset[str]] = Counter()  # most panes have the same devices
    first = last = 0
    for start_us in starts:
        end_us = start_us + form.size_us
        while last < len(totals) and totals[last][0] < end_us:
            stacks.push(totals[last][1].partial)
            inside[totals[last][1].devices] += 1
            last += 1
        while first < last and totals[first][0] < start_us:
            stacks.pop()
            inside[totals[first][1].devices] -= 1
            first += 1
        devices = frozenset[str]().union(*(each for each, panes in inside.items() if panes))
        yield start_us, end_us, stacks.total, len(devices)
