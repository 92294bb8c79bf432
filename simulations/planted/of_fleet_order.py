"""Bugs of one order over the fleet: cells of items, their union, F, X, and what a gateway keeps."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from crdts import ControlLog
from device_agent.agent.panes.cache import PaneCache
from device_agent.agent.parts import StoreReader
from device_agent.agent.scans import leaving
from device_agent.agent.scans.leaving import ITEM_CELLS, OUTPUT_CELLS, CellForm, LeavingCells
from device_agent.agent.scans.streams import Streams
from device_agent.agent.stored_rows import PaneId
from device_agent.gateway import core as gateway_core
from device_agent.gateway import fleet_history, streams
from device_agent.gateway.core import GatewayCore
from device_agent.gateway.kept import FleetChanges, FleetState, WriterOfPanes
from device_agent.gateway.store import FleetStore
from device_agent.gateway.streams import FleetStreams
from lasp_edge.evaluation.fleet import FleetEvaluator, FleetTerms
from lasp_edge.event import StreamColumn
from lasp_edge.language import plan as plans
from lasp_edge.language import streaming
from lasp_edge.language.declarations import Stream
from lasp_edge.language.item_stream import ItemStream
from lasp_edge.language.plan import Plan
from lasp_edge.ordered import inputs
from lasp_edge.ordered.cells import RETRACTED, Cell, CellId
from lasp_edge.ordered.deltas import Delta
from lasp_edge.ordered.inputs import InputCell, PlacedCell
from lasp_edge.ordered.sent_outputs import OutputCell
from lasp_edge.ordered.stages import ScanStage, StreamStage
from lasp_edge.protocol.acceptance import Accepted
from lasp_edge.protocol.frontier import Listening
from simulations.planted.bug import omitted, planted, replaced
from simulations.world import programs

NEEDED = "ordered"
of_order = partial(planted, needs=NEEDED)


@of_order
def a_promise_does_not_wait_for_cells_of_items() -> Iterator[None]:
    """A cell is on its way, and its device has promised past it: rows are final too soon."""
    with _promised_past(ITEM_CELLS):
        yield


@of_order
def a_promise_does_not_wait_for_outputs() -> Iterator[None]:
    """A device has promised past what its own scan has emitted, and that is on its way."""
    with _promised_past(OUTPUT_CELLS):
        yield


@of_order
def a_promise_passes_the_timers_of_scans_that_the_fleet_hears() -> Iterator[None]:
    """A value has stayed for three seconds, which is noted with the next reading: past a promise.

    That timers ring as soon as a promise may pass them is the same rule: both halves are left out.
    """
    right = Streams.is_due

    def is_due(self: Streams, now_us: int) -> bool:
        if not self.begun or self.waits:
            return right(self, now_us)
        return False

    def bounded_us(_self: Streams, low_us: int | None, _now_us: int) -> int | None:
        return low_us

    with replaced(Streams, "bounded_us", bounded_us), replaced(Streams, "is_due", is_due):
        yield


@contextmanager
def _promised_past(form: CellForm) -> Iterator[None]:
    """Let promises pass the entries of cells of a form."""
    right, right_entries = PaneCache.oldest_dirty_us, LeavingCells._entries  # noqa: SLF001
    items: set[int] = set()

    def entries(
        self: LeavingCells, stream: int, cell_us: int, new: InputCell, store: StoreReader
    ) -> Iterator[tuple[PaneId, bytes]]:
        if self._form is form:
            items.add(stream)
        return right_entries(self, stream, cell_us, new, store)

    def oldest_dirty_us(self: PaneCache, bit: int, clock_us: int) -> int | None:
        panes = self._panes
        dirty = panes.dirty
        panes.dirty = type(dirty)([each for each in dirty if each.stream not in items])
        try:
            return right(self, bit, clock_us)
        finally:
            panes.dirty = dirty

    with (
        replaced(LeavingCells, "_entries", entries),
        replaced(PaneCache, "oldest_dirty_us", oldest_dirty_us),
    ):
        yield


@of_order
def rows_of_the_fleet_are_final_by_the_greatest_promise() -> Iterator[None]:
    """One door has reported until now, another one is a minute behind: what it saw comes late."""
    right_join, right, cores = GatewayCore.join, FleetStreams.advance, list[GatewayCore]()

    def join(self: GatewayCore, accepted: Accepted, listening: Listening | None) -> Any:
        cores.append(self)
        try:
            return right_join(self, accepted, listening)
        finally:
            cores.pop()

    def advance(
        self: FleetStreams, frontier_us: int | None, changes: FleetChanges, terms: FleetTerms
    ) -> None:
        lows = [each.low_us for each in cores[-1].promises.values() if each.low_us is not None]
        greatest_us = None if frontier_us is None else max([frontier_us, *lows])
        right(self, greatest_us, changes, terms)

    with replaced(GatewayCore, "join", join), replaced(FleetStreams, "advance", advance):
        yield


@of_order
def the_cell_of_the_newest_life_takes_the_place_of_others() -> Iterator[None]:
    """A store is lost, its file is read again from the middle: the newest cell has less."""

    def newest(cells: Iterable[Cell]) -> Cell:
        *_, last = cells
        return dict(last)

    with replaced(fleet_history, "united", newest):
        yield


@of_order
def lives_of_a_device_write_one_entry() -> Iterator[None]:
    """A store is lost: the cell of the next life begins with a lesser seq, and is not taken."""

    def writer(device: str, _incarnation: int, _nonce: int) -> WriterOfPanes:
        return WriterOfPanes(device, 0, 0)

    with replaced(streams, "WriterOfPanes", writer):
        yield


@of_order
def the_filter_is_not_in_the_id_of_its_items() -> Iterator[None]:
    """A release widens a filter: cells of the one before pass for whole ones."""
    right = plans._item_stream  # noqa: SLF001 - a bug is planted from outside

    def item_stream(plan: Plan, event: str, _chains: list[str]) -> ItemStream:
        return right(plan, event, [""])

    programs._plan.cache_clear()  # noqa: SLF001 - plans are made once
    with replaced(plans, "_item_stream", item_stream):
        yield
    programs._plan.cache_clear()  # noqa: SLF001 - plans are made once


@of_order
def what_time_brings_to_the_fleet_is_of_a_device() -> Iterator[None]:
    """A session ends by time alone, and its row is of the device that had its last reading."""
    right = streaming._stage  # noqa: SLF001 - a bug is planted from outside

    def stage(plan: Plan, stream: Stream, device: str, log: ControlLog) -> StreamStage:
        made = right(plan, stream, device, log)
        if isinstance(made, ScanStage) and not device:
            made.device = "pi-0"
        return made

    with replaced(streaming, "_stage", stage):
        yield


@of_order
def x_keeps_rows_from_becoming_final() -> Iterator[None]:
    """All devices have reported, and a row waits on until X is over: with `never`, for ever."""
    right = FleetStreams.advance

    def advance(
        self: FleetStreams, frontier_us: int | None, changes: FleetChanges, terms: FleetTerms
    ) -> None:
        both = [each for each in (frontier_us, terms.due_us) if each is not None]
        frontier_us = min(both) if len(both) > 1 else None
        right(self, frontier_us, changes, terms)

    with replaced(FleetStreams, "advance", advance):
        yield


@of_order
def x_is_not_heeded() -> Iterator[None]:
    """Rows are to wait until they are final, and people are shown each guess."""
    right = FleetStreams.advance

    def advance(
        self: FleetStreams, frontier_us: int | None, changes: FleetChanges, terms: FleetTerms
    ) -> None:
        right(self, frontier_us, changes, terms._replace(due_us=1 << 62))

    with replaced(FleetStreams, "advance", advance):
        yield


@of_order
def timers_ring_before_all_have_reported() -> Iterator[None]:
    """A session has ended by the readings that are there, and goes on in those on their way."""
    right = FleetStreams.advance

    def advance(
        self: FleetStreams, frontier_us: int | None, changes: FleetChanges, terms: FleetTerms
    ) -> None:
        right(self, frontier_us, changes, terms._replace(is_over=True))

    with replaced(FleetStreams, "advance", advance):
        yield


@of_order
def a_reading_that_is_taken_back_leaves_as_a_reading() -> Iterator[None]:
    """A wrong reading is taken back on its device, and counts in the order of the fleet."""
    right = inputs.column_cells

    def present(columns: Iterable[StreamColumn]) -> Iterator[PlacedCell]:
        return right(each._replace(retracted=False) for each in columns)

    with replaced(leaving, "column_cells", present):
        yield


@of_order
def a_cell_leaves_without_what_its_life_had_sent_before() -> Iterator[None]:
    """A device reads twice in ten seconds: its second entry takes the place of the first one."""

    def last(
        _self: LeavingCells, _stream: int, _cell_us: int, _store: StoreReader
    ) -> tuple[int, Cell]:
        return 0, {}

    with replaced(LeavingCells, "_last", last):
        yield


@of_order
def a_cell_that_left_memory_is_new() -> Iterator[None]:
    """An entry comes twice, its cell is in the store alone: the older one is stored once more."""

    def seqs(self: FleetStreams, stream: int, pane_us: int) -> dict[tuple[str, Any], int]:
        known = self._known.pop((stream, pane_us), {})
        self._known[stream, pane_us] = known
        while len(self._known) > streams.MOST_CELLS:
            del self._known[next(iter(self._known))]
        return known

    with replaced(FleetStreams, "_seqs", seqs):
        yield


@of_order
def items_behind_a_cut_are_taken_back_by_nobody() -> Iterator[None]:
    """A reading of an hour ago is taken back: the gateway has it already, and leaves it so."""
    right = FleetStreams._new  # noqa: SLF001 - a bug is planted from outside

    def new(self: FleetStreams, at: CellId, cell: InputCell) -> InputCell:
        found = right(self, at, cell)
        if at.cell_us >= self._engine.since_us:
            return found
        return {item: state for item, state in found.items() if state != RETRACTED}

    with replaced(FleetStreams, "_new", new):
        yield


@of_order
def outputs_are_united_as_items_are() -> Iterator[None]:
    """A late reading takes an output of a device back, and it stays in the order of the fleet."""
    right = inputs._put_output  # noqa: SLF001 - a bug is planted from outside

    def put_output(
        cell: InputCell, at: Any, device: str, state: tuple[Any, Any], delta: Delta
    ) -> bool:
        return state[1] is not None and right(cell, at, device, state, delta)

    with replaced(inputs, "_put_output", put_output):
        yield


@of_order
def the_oldest_version_of_an_output_counts() -> Iterator[None]:
    """A device has two lives: what the former one sent of a place stands, whatever came since."""

    def oldest(cells: Iterable[OutputCell]) -> OutputCell:
        found: OutputCell = {}
        for cell in cells:
            for at, each in cell.items():
                if at not in found or each[0] < found[at][0]:
                    found[at] = each
        return found

    with replaced(fleet_history, "newest", oldest):
        yield


@of_order
def rows_are_committed_a_turn_after_their_items() -> Iterator[None]:
    """The power goes between two turns: the items are stored, and what follows from them is not."""
    right = FleetStore.commit
    late: dict[int, FleetChanges] = {}

    def commit(self: FleetStore, changes: FleetChanges) -> None:
        before = late.pop(id(self), FleetChanges())
        late[id(self)] = FleetChanges(history=changes.history, result_parts=changes.result_parts)
        right(self, replace(changes, history=before.history, result_parts=before.result_parts))

    with replaced(FleetStore, "commit", commit):
        yield


@of_order
def rows_that_another_program_left_out_keep_their_names() -> Iterator[None]:
    """A device sends all while a gateway runs another release: rows name it for ever."""

    def was_left_out(_state: FleetState, _served: frozenset[int]) -> bool:
        return False

    with replaced(gateway_core, "was_left_out", was_left_out):
        yield


omitted(
    "what_waits_for_x_is_forgotten_at_a_restart",
    "A gateway restarts while readings wait for X: they are in its store, and in no row.",
    FleetEvaluator,
    "_stored_behind",
    (),
    NEEDED,
)


@of_order
def what_no_longer_fits_into_an_entry_overwrites_it() -> Iterator[None]:
    """A cell is so large that it needs a second entry, and what was in the first one is lost."""

    def entries(
        self: LeavingCells, stream: int, cell_us: int, new: dict[Any, Any], store: Any
    ) -> Iterator[tuple[PaneId, bytes]]:
        number, last = self._last(stream, cell_us, store)
        whole = self._form.joined(last, new)
        fits = len(self._form.packed(whole)) <= leaving.MOST_BYTES
        parts = self._parts(whole if fits else new) if whole != last else ()
        yield from ((self._pane(stream, cell_us, at), p) for at, p in enumerate(parts, number))

    with replaced(LeavingCells, "_entries", entries):
        yield
