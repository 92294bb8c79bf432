"""Bugs of what a device promises and where its readings lie: a promise passes what is to land."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from crdts.frontier import BOTTOM_US
from device_agent.agent.fleet.beats import Beats
from device_agent.agent.intake.batch import Batch, HeldBatches
from device_agent.agent.intake.by_column import ByColumn
from device_agent.agent.intake.intake import Intake
from device_agent.agent.intake.one_by_one import OneByOne
from device_agent.agent.intake.progress import SourceProgress
from device_agent.agent.intake.source_highs import SourceHighs
from device_agent.agent.panes.cache import PaneCache
from device_agent.agent.panes.unlanded import Unlanded
from device_agent.agent.stored_rows import SourceRow
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.sinks import SinkLow
from simulations.planted.bug import planted, replaced
from simulations.world.truth import PANE_US

_of_orders = partial(planted, needs="ordered")


@planted
def a_promise_passes_readings_that_wait_for_their_commit() -> Iterator[None]:
    """A reading waits for a commit, and its device has promised that nothing so old will come."""
    right = Intake.low_us

    def low_us(self: Intake, now_us: int) -> int | None:
        held, self._held = self._held, HeldBatches(0)
        try:
            return right(self, now_us)
        finally:
            self._held = held

    with replaced(Intake, "low_us", low_us):
        yield


@planted
def a_late_column_holds_no_promise() -> Iterator[None]:
    """A file is read by columns, some lines are late, and the promise passes them."""
    right = ByColumn._collect  # noqa: SLF001 - a bug is planted from outside

    def collect(self: ByColumn, *arguments: Any) -> None:
        unlanded = self._panes.unlanded
        watched_us, unlanded.watched_us = unlanded.watched_us, BOTTOM_US
        try:
            right(self, *arguments)
        finally:
            unlanded.watched_us = watched_us

    with replaced(ByColumn, "_collect", collect):
        yield


@planted
def entries_that_only_the_store_has_hold_no_promise() -> Iterator[None]:
    """A gateway was away for days: most that it lacks has left memory, and is promised."""
    right = PaneCache.oldest_dirty_us

    def oldest_dirty_us(self: PaneCache, bit: int, clock_us: int) -> int | None:
        alone, self._panes.alone = self._panes.alone, 0
        try:
            return right(self, bit, clock_us)
        finally:
            self._panes.alone = alone

    with replaced(PaneCache, "oldest_dirty_us", oldest_dirty_us):
        yield


@_of_orders
def a_retraction_holds_no_promise() -> Iterator[None]:
    """An item is taken back late: the rows of the fleet are final with it."""
    right = OneByOne._take_back  # noqa: SLF001 - a bug is planted from outside

    def take_back(self: OneByOne, *arguments: Any) -> Any:
        watched_us, self._unlanded.watched_us = self._unlanded.watched_us, BOTTOM_US
        try:
            return right(self, *arguments)
        finally:
            self._unlanded.watched_us = watched_us

    with replaced(OneByOne, "_take_back", take_back):
        yield


@planted
def a_reading_at_a_border_is_of_the_pane_before() -> Iterator[None]:
    """A sensor measures at each full minute: each of its readings is in the minute before."""
    right = OneByOne._in_panes  # noqa: SLF001 - a bug is planted from outside

    def in_panes(
        self: OneByOne, pending: Any, store: Any, route: Any, event: Any, steps: int, time_us: int
    ) -> Any:
        is_border = time_us % PANE_US == 0
        return right(self, pending, store, route, event, steps, time_us - is_border)

    with replaced(OneByOne, "_in_panes", in_panes):
        yield


@planted
def done_does_not_wait_for_what_is_held() -> Iterator[None]:
    """The last readings wait for a commit, and their device has stated that nothing more comes."""

    def finished(self: Intake) -> bool:
        return self.sources.finished

    at_rest = replaced(HeldBatches, "end", lambda _self: None)
    with at_rest, replaced(Intake, "finished", property(finished)):
        yield


@planted
def who_has_ended_promises_the_window_that_ends_first() -> Iterator[None]:
    """All devices have ended, and longer windows with their last readings are never final."""
    right = Intake._end_us  # noqa: SLF001 - a bug is planted from outside

    def end_us(self: Intake) -> int | None:
        high_us = self.progress.high_us
        ends_us = [] if high_us is None else [each.end_of_last(high_us) for each in self._windows]
        return min(ends_us, default=right(self))

    with replaced(Intake, "_end_us", end_us):
        yield


@partial(planted, needs="silent_s")
def a_silent_source_follows_the_clock_at_no_distance() -> Iterator[None]:
    """A file of last year's is read slowly, and its promise is that of now: all of it is late."""

    def followed_us(_self: SourceProgress, _source: str, now_us: int, _counted_us: int) -> int:
        return now_us

    with replaced(SourceProgress, "_followed_us", followed_us):
        yield


@partial(planted, needs="silent_s")
def a_silent_source_holds_its_promise_for_ever() -> Iterator[None]:
    """A meter was taken away, and the windows of the whole fleet wait for it."""

    def followed_us(self: SourceProgress, source: str, _now_us: int, _counted_us: int) -> int:
        return self.row(source).high_us or 0

    with replaced(SourceProgress, "_followed_us", followed_us):
        yield


@planted
def a_beat_has_left_before_its_promise_is_noted() -> Iterator[None]:
    """The process ends while the link takes a beat, and takes older readings in as on time."""
    right = Beats.publications

    def publications(self: Beats, now_us: int) -> Iterator[Publication]:
        left: list[tuple[SinkLow, ...]] = []
        self._promise = left.append  # type: ignore[assignment, method-assign]
        yield from right(self, now_us)
        del self._promise
        for lows in left:
            self._promise(lows)

    with replaced(Beats, "publications", publications):
        yield


@planted
def the_last_doubtful_reading_is_said_to_be_there() -> Iterator[None]:
    """A card is lost: a window that begins with the last reading it had lacks just that one."""

    def furthest_doubt_us(self: SourceHighs) -> int | None:
        return max([each - 1 for each in self.doubts.values()], default=None)

    with replaced(SourceHighs, "furthest_doubt_us", furthest_doubt_us):
        yield


@planted
def what_is_older_than_a_promise_is_not_looked_at() -> Iterator[None]:
    """No entry has left since an hour: a late reading is not counted, and holds no promise."""

    def watch(_self: Unlanded, _promised_us: int) -> None:
        pass

    with replaced(Unlanded, "watch", watch):
        yield


@planted
def a_page_without_readings_ends_a_promise() -> Iterator[None]:
    """A page of a source has no reading that counts: its device promises nothing, and is left out.

    So it is where all readings of a page are refused.
    """
    right = SourceProgress.advance

    def advance(self: SourceProgress, batch: Batch, high_us: int | None, stamped: bool) -> None:  # noqa: FBT001
        row = self._rows.get(batch.source, SourceRow())
        self._rows[batch.source] = row._replace(stamped=False)
        right(self, batch, high_us, stamped)

    with replaced(SourceProgress, "advance", advance):
        yield
