"""The fleet's panes, as far as memory holds them: each replica's entries, and their totals.

An entry is joined into its pane: of one replica the greatest seq counts, and what several replicas
and devices hold of a pane adds up to its total. Panes that were used last are in memory with their
entries, as many as fit; of further ones only the totals, which windows are made from. Whoever keeps
the entries gives the others again when they are asked for. So memory is bounded, however long a
device was away, and nothing depends on what is in it.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from device_agent.gateway.kept import FleetKeeper, KeptEntry, WriterOfPanes
from lasp_edge.aggregates.sliding import keyed
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.language.declarations import Window
from lasp_edge.protocol.acceptance import PaneRows

MOST_ENTRIES: Final = 50_000
"""Entries in memory after a turn, some 400 bytes each: 20 windows of 100 devices, a minute long and
in panes of 10 s, are 2,000 entries a pane, and 25 panes cover the window and three late minutes."""
MOST_TOTALS: Final = 20_000
"""Totals in memory beside those, some 400 bytes each: a window of an hour in panes of 10 s takes
360 a key."""

Place = tuple[int, int]
"""Stream and start of a pane."""


class PaneTotal(NamedTuple):
    """What all devices hold of one pane and key."""

    partial: Partial
    devices: frozenset[str]


class PaneCell:
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
        windows: of the program.
        keeper: keeps the entries.
    """

    def __init__(self, windows: dict[int, Window], keeper: FleetKeeper) -> None:
        self._windows, self._keeper = windows, keeper
        self._cells: dict[Place, dict[str, PaneCell]] = {}
        self._totals: dict[Place, dict[str, PaneTotal]] = {}
        self._writers: dict[WriterOfPanes, WriterOfPanes] = {}
        self._most_held = 0  # entries and panes, at most: they are counted where that is too many

    def join(self, rows: PaneRows) -> Iterator[KeptEntry]:
        """Join accepted entries, and yield those that were not known yet."""
        block = rows.block
        stream, fold = block.stream, self._windows[block.stream].fold
        writer = self._writer(WriterOfPanes(rows.device, block.incarnation, block.nonce))
        partials = zip(*block.columns, strict=True)
        for key, pane_us, seq, partial in zip(
            block.keys, block.panes_us, block.seqs, partials, strict=True
        ):
            cells = self._of_pane(stream, pane_us)
            cell = cells.get(key)
            if cell is None:
                cell = cells[key] = PaneCell(fold)
            if cell.join(writer, seq, partial):
                self._most_held += 1
                yield KeptEntry(stream, pane_us, key, writer, seq, partial)

    def totals(self, stream: int, key: str, first_us: int, last_us: int) -> dict[int, PaneTotal]:
        """Return pane -> total of the panes from one start to another that hold the key, in order.

        What a fold of the user's own raises is passed on.
        """
        places = [(stream, at) for at in range(first_us, last_us + 1, self._span_us(stream))]
        missing = [at for at in places if at not in self._cells and at not in self._totals]
        if missing:
            self._read(stream, missing)
        found = {}
        for place in places:
            total = self._total(place, key)
            if total is not None:
                found[place[1]] = total
        return found

    def forget(self) -> None:
        """Let go of what was used longest ago, beyond what fits."""
        if self._most_held > MOST_ENTRIES:
            self._forget_entries()
        if len(self._writers) > MOST_TOTALS:
            self._writers.clear()

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

    def _span_us(self, stream: int) -> int:
        return self._windows[stream].span_us

    def _writer(self, writer: WriterOfPanes) -> WriterOfPanes:
        """Return the one object that stands for a replica in all panes."""
        return self._writers.setdefault(writer, writer)

    def _of_pane(self, stream: int, pane_us: int) -> dict[str, PaneCell]:
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
        fold = self._windows[stream].fold
        read: dict[Place, dict[str, PaneCell]] = {place: {} for place in missing}
        self._most_held += len(missing)
        for entry in self._keeper.entries(stream, missing[0][1], missing[-1][1]):
            cells = read.get((stream, entry.pane_us))
            if cells is not None:
                if entry.key not in cells:
                    cells[entry.key] = PaneCell(fold)
                cells[entry.key].join(self._writer(entry.writer), entry.seq, entry.partial)
                self._most_held += 1
        self._cells |= read

    def _total(self, place: Place, key: str) -> PaneTotal | None:
        totals = self._totals.pop(place, None)
        if totals is not None:
            self._totals[place] = totals
            return totals.get(key)
        cell = self._of_pane(*place).get(key)
        return None if cell is None else cell.total()

    def _keep_totals(self, place: Place) -> None:
        """Let go of a pane's entries."""
        cells = self._cells.pop(place)
        with suppress(Exception):  # a user's fold may raise; the pane is read again then
            self._totals[place] = {key: cell.total() for key, cell in cells.items()}
