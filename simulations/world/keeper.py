"""What a simulated gateway keeps: the state of its core as plain tables, without a file."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterator, Mapping, Sequence

from crdts import Frontier, Membership
from crdts.frontier import BOTTOM_US
from device_agent.gateway.kept import FleetChanges, FleetState, KeptEntry, WriterOfPanes
from lasp_edge.evaluation.stored import HistoryId, HistoryRow, RowsPartId
from lasp_edge.folds.columns import Partial
from lasp_edge.protocol.acceptance import PaneRows
from lasp_edge.protocol.frontier import reach_us
from lasp_edge.protocol.window_rows import FleetRow, WindowStart
from simulations.world.grown_checks import shrunk
from simulations.world.judged_windows import JudgedWindows
from simulations.world.row_checks import lead_us, wrong_rows

PaneKey = tuple[int, str, int, str, int, int]
"""(stream, key, pane start, device, incarnation, nonce)."""


class SimulatedKeeper:
    """The durable side of a simulated gateway; it never fails.

    Args:
        membership: the commands that it has from the start.
        roster: the devices that its sink expects; None for whichever were heard.

    Attributes:
        panes: pane -> its greatest seq, and the partial at that.
        came_us: pane -> how far the frontier was before the last entry of it; none before any.
        revisions: window -> all its rows.
        judged: the alerts on a window, by these rows.
        dropped: window and revision -> device -> up to which time it had promised by then, where
            the row before named it, and this one does not.
        reached_us: device -> how far it has ever promised.
        moved_by: the promises by which the frontier moved last: later ones may be for less.
        state: all else.
        taken: how many entries were committed.
        commits: how often anything was.
        wrong: what was committed, and should not have been.
        leads: (when a promise came, up to when it shows that somebody is done), of each that led.
        pruned: F at the last time that panes were deleted, and below which start, by stream.
    """

    def __init__(
        self, membership: Membership | None = None, roster: Collection[str] | None = None
    ) -> None:
        self._roster, self._lead_us = roster, BOTTOM_US
        self.panes: dict[PaneKey, tuple[int, Partial]] = {}
        self.came_us: dict[PaneKey, int] = {}
        self.revisions: dict[WindowStart, list[FleetRow]] = {}
        self._new_rows: list[FleetRow] = []
        self.dropped: dict[tuple[WindowStart, int], dict[str, int]] = {}
        self.reached_us: dict[str, int] = {}
        self.moved_by = Frontier()
        self.leads: list[tuple[int, int]] = []
        self._lives_us: dict[str, dict[tuple[int, int], int]] = {}
        self.taken = self.commits = 0
        self.wrong: list[str] = []
        self.pruned: tuple[int, Mapping[int, int]] | None = None
        self._places: dict[int, dict[int, set[PaneKey]]] = {}
        self._starts: dict[int, list[int]] = {}
        self.judged = JudgedWindows()
        self._history: dict[HistoryId, HistoryRow] = {}
        self._results: dict[RowsPartId, bytes | None] = {}
        self.state = FleetState(membership=membership or Membership())

    def copy(self) -> "SimulatedKeeper":
        """Return another one that holds the same."""
        after = SimulatedKeeper(roster=self._roster)
        after._lead_us = self._lead_us
        after.panes, after.state = dict(self.panes), self.state
        after.came_us = dict(self.came_us)
        after.commits, after.judged = self.commits, self.judged.copy()
        after.dropped, after.reached_us = dict(self.dropped), dict(self.reached_us)
        after.moved_by, after.leads = self.moved_by, list(self.leads)
        after._lives_us = {device: dict(lives) for device, lives in self._lives_us.items()}
        after._history, after._results = dict(self._history), dict(self._results)
        after.revisions = {at: list(rows) for at, rows in self.revisions.items()}
        after._starts = {stream: list(starts) for stream, starts in self._starts.items()}
        after._places = {
            stream: {pane_us: set(panes) for pane_us, panes in places.items()}
            for stream, places in self._places.items()
        }
        return after

    def keep(self, rows: PaneRows) -> None:
        """Take rows of results, which no window is made of: of each the greatest version."""
        block = rows.block
        partials = zip(*block.columns, strict=True)
        for key, pane_us, seq, partial in zip(
            block.keys, block.panes_us, block.seqs, partials, strict=True
        ):
            at = (block.stream, key, pane_us, rows.device, block.incarnation, block.nonce)
            if at not in self.panes or self.panes[at][0] < seq:
                self.panes[at] = (seq, partial)

    def restored(self) -> FleetState:
        """Return the state that a core starts with."""
        return self.state

    def entries(self, stream: int, first_us: int, last_us: int) -> Iterator[KeptEntry]:
        """Yield the entries of the panes of a stream from one start to another."""
        starts = self._starts.get(stream, [])
        for pane_us in starts[bisect_left(starts, first_us) : bisect_right(starts, last_us)]:
            for at in sorted(self._places[stream][pane_us]):
                if at in self.panes:
                    yield KeptEntry(stream, pane_us, at[1], WriterOfPanes(*at[3:]), *self.panes[at])

    def places(self, stream: int, first_us: int, last_us: int) -> Iterator[tuple[int, str]]:
        """Yield start and key of the panes with entries, from one start to another, included."""
        starts = self._starts.get(stream, [])
        for pane_us in starts[bisect_left(starts, first_us) : bisect_right(starts, last_us)]:
            for key in sorted({at[1] for at in self._places[stream][pane_us]}):
                yield pane_us, key

    def history(self, stream: int, least_us: int, end_us: int) -> list[tuple[int, HistoryRow]]:
        """Return what is kept of a stream with least_us <= time < end_us, each with its time."""
        return sorted(
            (at.at_us, row)
            for at, row in self._history.items()
            if at.stream == stream and least_us <= at.at_us < end_us
        )

    def result_parts(self, stream: int, least_us: int, end_us: int) -> list[tuple[int, int, bytes]]:
        """Return cell, number and content of the parts of rows with least_us <= cell < end_us."""
        return sorted(
            (at.cell_us, at.number, packed)
            for at, packed in self._results.items()
            if packed is not None and at.stream == stream and least_us <= at.cell_us < end_us
        )

    def row(self, at: WindowStart) -> FleetRow | None:
        """Return the current row of a window; None before it has one."""
        return self.revisions[at][-1] if at in self.revisions else None

    def current(self, window: str, first_us: int, last_us: int) -> Iterator[FleetRow]:
        """Yield the current rows of a window, of starts from one to another."""
        for at, rows in self.revisions.items():
            if at.window == window and first_us <= at.start_us <= last_us:
                yield rows[-1]

    def commit(self, changes: FleetChanges) -> None:
        """Take all changes."""
        self.taken += len(changes.entries)
        self.commits += 1
        before_us = self.state.frontier_us
        for stream, pane_us, key, writer, seq, partial in changes.entries:
            at = (stream, key, pane_us, *writer)
            if at in self.panes and self.panes[at][0] >= seq:
                self.wrong.append(f"version {seq} of {at} was committed again")
            self.panes[at] = (seq, partial)
            if before_us is not None:
                self.came_us[at] = before_us
            places = self._places.setdefault(stream, {})
            if pane_us not in places:
                insort(self._starts.setdefault(stream, []), pane_us)
            places.setdefault(pane_us, set()).add(at)
        if changes.state is not None:
            self._note_promises(changes.state)
        self._take_rows(changes.rows)
        self._history |= changes.history
        self._results |= changes.result_parts
        before, self.state = self.state, changes.state or self.state
        terms = (before, self.state, self._roster, self._lead_us)
        self.wrong += [*shrunk(*terms[:2]), *wrong_rows(changes.rows, *terms)]
        if changes.panes_below and self.state.frontier_us is not None:
            self.pruned = self.state.frontier_us, changes.panes_below

    def take_new_rows(self) -> list[FleetRow]:
        """Return the rows of the commits since it was asked last."""
        taken, self._new_rows = self._new_rows, []
        return taken

    def _take_rows(self, new: Sequence[FleetRow]) -> None:
        self._new_rows += new
        self.judged.take(new)
        for row in new:
            rows = self.revisions.setdefault(row.at, [])
            names = {*rows[-1].excluded}.difference(row.excluded) if rows else ()
            if names:
                reached_us = {each: self.reached_us.get(each, BOTTOM_US) for each in names}
                self.dropped[row.at, row.revision] = reached_us
            rows.append(row)

    def _note_promises(self, state: FleetState) -> None:
        """Note how far each device has promised: later it may promise less, even in one commit."""
        self._lead_us = max(self._lead_us, lead_us(state.promises.entries.values()))
        if state.frontier_us != self.state.frontier_us:
            self.moved_by = state.promises
        for device, promise in state.promises.entries.items():
            more_us = max(reach_us(promise), state.furthest.get(device, BOTTOM_US))
            self.reached_us[device] = max(more_us, self.reached_us.get(device, BOTTOM_US))
            lives, life = self._lives_us.setdefault(device, {}), promise.version[:2]
            was = self.state.promises.entries.get(device)
            if promise != was and promise.low_us is not None:
                self._note_lead(promise.heard_us, min(promise.low_us, promise.heard_us))
            if was is not None and was.version[:2] < life:
                known, came_us = state.earlier[device], reach_us(was)
                if known.reached_us < came_us:
                    self.wrong.append(f"{device} came to {came_us} before {life}, not to {known}")
            lives[life] = max(reach_us(promise), lives.get(life, BOTTOM_US))

    def _note_lead(self, heard_us: int, lead_us: int) -> None:
        if not self.leads or lead_us > self.leads[-1][1]:
            self.leads.append((heard_us, lead_us))

    def earlier_us(self, device: str) -> int:
        """Return how far lives of a device before its newest one had promised, at most."""
        lives = self._lives_us.get(device, {})
        return max([lives[life] for life in sorted(lives)[:-1]], default=BOTTOM_US)

    def last_below(self, stream: int, below_us: int) -> int | None:
        """Return the start of the last pane of a stream before a time, if there is one."""
        starts = self._starts.get(stream, [])
        place = bisect_left(starts, below_us)
        return starts[place - 1] if place else None
