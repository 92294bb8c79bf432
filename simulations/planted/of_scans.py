"""Bugs in what needs an order: places, replay, timers, cuts, items that are taken back."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from device_agent.agent.changes import Changes
from device_agent.agent.rebuilding import missing
from device_agent.agent.rebuilding.missing import MissingPanes
from device_agent.agent.scans.stream_panes import StreamPanes
from device_agent.agent.state.store import Store
from lasp_edge.evaluation import history
from lasp_edge.evaluation.history import StreamHistory
from lasp_edge.evaluation.rows import ResultBook
from lasp_edge.evaluation.stored import HistoryId, HistoryRow
from lasp_edge.event import Event, StreamItem, tags_of_stream
from lasp_edge.ordered import cells
from lasp_edge.ordered import log as ordered_log
from lasp_edge.ordered.cells import CELL_US, PRESENT, RETRACTED, CellId, Item
from lasp_edge.ordered.engine import StreamEngine
from lasp_edge.ordered.log import Checkpoint
from lasp_edge.ordered.results import ResultRows
from lasp_edge.ordered.stages import ScanStage
from lasp_edge.scans.as_of import AsOfJoin
from simulations.planted.bug import omitted, planted, replaced

NEEDED = "scans"
of_streams = partial(planted, needs=NEEDED)


@of_streams
def a_replay_ends_where_states_are_equal_in_python() -> Iterator[None]:
    """1 takes the place of 1.0, the replay ends there, and the row of 1.0 stays."""

    def same(a: Any, b: Any) -> bool:
        return bool(a == b)

    with replaced(ordered_log, "same", same):
        yield


@of_streams
def streams_are_committed_after_the_readings() -> Iterator[None]:
    """The power goes between two commits: the source goes on behind readings that no stream has."""
    right = Store.commit

    def commit(self: Store, changes: Changes) -> None:
        if changes.history:
            right(self, replace(changes, history={}))
            changes = Changes(history=changes.history)
        right(self, changes)

    with replaced(Store, "commit", commit):
        yield


@of_streams
def rows_are_committed_without_the_states() -> Iterator[None]:
    """An agent restarts and goes on from states that are older than its last cut."""
    right = StreamHistory.take_changes

    def take_changes(self: StreamHistory) -> dict[HistoryId, HistoryRow]:
        states, changes = self._states, right(self)
        return {at: row for at, row in changes.items() if at.stream != states or not at.at_us}

    with replaced(StreamHistory, "take_changes", take_changes):
        yield


@of_streams
def each_stage_is_cut_at_a_place_of_its_own() -> Iterator[None]:
    """A stage goes on from an older state than the one before it: readings are lost between."""

    def cut(self: ScanStage, time_us: int) -> dict[str, Checkpoint]:
        return {key: log.cut(time_us - CELL_US) for key, log in sorted(self.logs.items())}

    with replaced(ScanStage, "cut", cut):
        yield


@of_streams
def an_as_of_join_takes_what_has_come_before() -> Iterator[None]:
    """Two readings of one instant: they meet or not, by the names of their events."""

    def step(self: AsOfJoin, state: Any, event: Event) -> Any:
        waiting, right = state
        if event.name == self._right:
            return (waiting, (event.time_us, event.value)), ()
        near = right and event.time_us - right[0] <= self._within_us
        return (waiting, right), ([(event.value, right[1])] if near else ())

    with replaced(AsOfJoin, "step", step):
        yield


@of_streams
def a_retraction_before_its_reading_is_dropped() -> Iterator[None]:
    """What takes a reading back is read first, is forgotten, and the reading counts."""
    right = StreamEngine._put  # noqa: SLF001

    def put(self: StreamEngine, where: CellId, cell: Any, came: Any, *given: Any) -> bool:
        def is_early(item: Item) -> bool:
            return bool(came[item] == RETRACTED and cell.get(item) != PRESENT)

        left = {item: state for item, state in came.items() if not is_early(item)}
        return bool(right(self, where, cell, left, *given))

    with replaced(StreamEngine, "_put", put):
        yield


@of_streams
def sensors_that_agree_are_one_item() -> Iterator[None]:
    """Two sensors on two topics read the same at one instant: streams have one of the readings."""
    right = StreamEngine._put  # noqa: SLF001

    def put(self: StreamEngine, where: CellId, cell: Any, came: Any, *given: Any) -> bool:
        untold = {
            item._replace(tags=tags_of_stream(item.tags)): state for item, state in came.items()
        }
        return bool(right(self, where, cell, untold, *given))

    with replaced(StreamEngine, "_put", put):
        yield


@of_streams
def a_reading_that_was_taken_back_can_come_again() -> Iterator[None]:
    """A store is an older image, its file is read again, and a wrong reading is back."""
    right = cells.packed

    def packed(cell: Any) -> bytes:
        return right({item: state for item, state in cell.items() if state == PRESENT})

    with replaced(history, "packed", packed):
        yield


@of_streams
def a_reading_counts_that_comes_with_what_takes_it_back() -> Iterator[None]:
    """A reading is taken back before its commit: a window with a filter counts it for ever."""
    right = missing._without_both  # noqa: SLF001 - a bug is planted from outside

    def without_both(
        taken: list[StreamItem], corrected: list[StreamItem]
    ) -> tuple[list[StreamItem], list[StreamItem]]:
        return taken, right(taken, corrected)[1]

    with replaced(missing, "_without_both", without_both):
        yield


for _name, _history, _owner, _method, _says in (
    (
        "rows_never_become_final",
        "A row that nothing can change any more stays tentative.",
        ResultRows,
        "advance",
        None,
    ),
    (
        "rows_of_old_are_left_as_they_are",
        "A reading comes late, and a row that lies before the last cut keeps its old value.",
        ResultBook,
        "_past",
        [],
    ),
    (
        "time_alone_brings_nothing",
        "A session ends, nothing is read any more, and it has no row.",
        ScanStage,
        "advance",
        {},
    ),
    (
        "a_window_keeps_a_reading_that_was_taken_back",
        "A wrong reading is taken back, and the window over its event counts it on.",
        StreamPanes,
        "take_back",
        None,
    ),
    (
        "a_window_with_a_filter_keeps_a_reading_that_was_taken_back",
        "A wrong reading is taken back, and a window that counts some readings counts it on.",
        MissingPanes,
        "_correct",
        None,
    ),
):
    omitted(_name, _history, _owner, _method, _says, NEEDED)
