"""Bugs of an order over a fleet in a lake: they break `lake_order`, or `lake_parted`."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from cloud_tier.job.fleet_history import LakeHistory
from cloud_tier.job.streams import Cells, LakeStreams, StepFrontier, Touched
from crdts.frontier import BOTTOM_US
from lasp_edge.ordered.absences import NO_TIMES
from lasp_edge.protocol.frontier import AwaitedDevices
from lasp_edge.protocol.lost_stores import LackingStretches
from simulations.lake_order import MemoryTables
from simulations.planted.bug import planted, replaced

LAW: Final = "lake_order"
"""What these bugs need: a run of that law, and no scenario."""
_planted = partial(planted, needs=LAW)
BESIDE_LAW: Final = "lake_parted"
"""What bugs need that show where a lake is beside a gateway."""


@_planted
def cuts_are_committed_before_rows() -> Iterator[None]:
    """A batch dies between: it is done again from the cut on, and the rows before it lack."""
    right_rows, right_cuts = LakeHistory.commit_rows, LakeHistory.commit_cuts

    def commit_rows(self: LakeHistory) -> None:
        right_cuts(self)
        right_rows(self)

    def commit_cuts(_self: LakeHistory) -> None:
        return None

    with (
        replaced(LakeHistory, "commit_rows", commit_rows),
        replaced(LakeHistory, "commit_cuts", commit_cuts),
    ):
        yield


@_planted
def touched_are_the_cells_of_new_rows_alone() -> Iterator[None]:
    """A batch dies once its entries are in `lattice`: when it is done again, none looks new."""
    right = LakeStreams.advance

    def advance(self: LakeStreams, touched: Touched, frontier: StepFrontier) -> int:
        tables = self._history._job.tables  # noqa: SLF001 - a bug is planted from outside
        assert isinstance(tables, MemoryTables)
        new = {
            stream: {at_us: count for at_us, count in cells.items() if at_us in tables.new}
            for stream, cells in touched.items()
        }
        return right(self, new, frontier)

    with replaced(LakeStreams, "advance", advance):
        yield


@_planted
def a_job_that_starts_again_takes_what_was_touched_alone() -> Iterator[None]:
    """A job restarts, and does not step again what came since the last cut."""
    right = LakeStreams._begin  # noqa: SLF001 - a bug is planted from outside

    def begin(self: LakeStreams, cells: Cells, frontier: StepFrontier) -> Cells:
        every = right(self, cells, frontier)
        return {event: cells.get(event, {}) for event in every}

    with replaced(LakeStreams, "_begin", begin):
        yield


@partial(planted, needs=BESIDE_LAW)
def rows_of_a_lake_name_who_has_come_back() -> Iterator[None]:
    """A device was not waited for, and has sent all since: the gateway names it no more."""
    right = LakeStreams.advance

    def advance(self: LakeStreams, touched: Touched, frontier: StepFrontier) -> int:
        return right(self, touched, frontier._replace(caught_up=NO_TIMES))

    with replaced(LakeStreams, "advance", advance):
        yield


@_planted
def rows_of_a_lake_name_nobody_who_was_silent() -> Iterator[None]:
    """F has passed a device that was not waited for."""
    right = LakeStreams.advance

    def advance(self: LakeStreams, touched: Touched, frontier: StepFrontier) -> int:
        return right(self, touched, frontier._replace(awaited=AwaitedDevices((), BOTTOM_US)))

    with replaced(LakeStreams, "advance", advance):
        yield


@partial(planted, needs=BESIDE_LAW)
def rows_of_a_lake_do_not_name_whose_store_was_lost() -> Iterator[None]:
    """A card is lost with readings that landed nowhere: the gateway names its device."""
    right = LakeStreams.advance

    def advance(self: LakeStreams, touched: Touched, frontier: StepFrontier) -> int:
        return right(self, touched, frontier._replace(lacking=LackingStretches()))

    with replaced(LakeStreams, "advance", advance):
        yield


@_planted
def a_cell_that_comes_as_late_as_it_may_is_too_late() -> Iterator[None]:
    """A reading comes as late as it may, in the first ten seconds of that: no row has it."""
    right = LakeStreams._in_time  # noqa: SLF001 - a bug is planted from outside

    def in_time(
        self: LakeStreams, touched: Touched, before_us: int | None
    ) -> dict[str, dict[int, int]]:
        found = right(self, touched, before_us)
        if before_us is not None:
            for cells in found.values():
                cells.pop(self._floor_us(before_us), None)
        return found

    with replaced(LakeStreams, "_in_time", in_time):
        yield


@_planted
def a_job_that_starts_again_waits_for_what_had_a_row() -> Iterator[None]:
    """A job restarts with a longer X: rows that were there are gone until that is over."""

    def newest_row_us(_self: LakeHistory, _since_us: int) -> int:
        return BOTTOM_US

    with replaced(LakeHistory, "newest_row_us", newest_row_us):
        yield
