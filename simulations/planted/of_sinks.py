"""Bugs of what sinks take, keep and forget: landers and gateways, their stores and their clocks."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from cloud_tier.lander.run import ClosedSegment, LanderRun
from crdts import Frontier, Membership
from crdts.frontier import BOTTOM_US, Promise
from crdts.replica import SEQS
from device_agent.agent.panes.sink import Sink
from device_agent.agent.panes.sinks import Sinks
from device_agent.gateway import core as gateway_core
from device_agent.gateway.panes import FleetPanes, KeyedPane
from device_agent.gateway.store import FleetStore
from lasp_edge.protocol import frontier
from lasp_edge.protocol.acceptance import Acceptance, Accepted, PaneRows, Record
from lasp_edge.protocol.acks import AckFrame, Answer, FormerStore
from lasp_edge.protocol.frames import BeatFrame, PaneFrame
from lasp_edge.protocol.frontier import Coverage, Liveness
from simulations.planted.bug import omitted, planted, replaced
from simulations.world.lake import MemoryLog

_of_gateways = partial(planted, needs="gateways")
_of_landers = partial(planted, needs="landers")


@_of_landers
def a_lake_that_was_put_back_keeps_its_id() -> Iterator[None]:
    """Somebody restores a copy of the tables: what devices were acknowledged since is in none."""
    right = LanderRun.recover

    def recover(self: LanderRun) -> None:
        vars(self._landing)["begin_store"] = lambda: None
        try:
            right(self)
        finally:
            del vars(self._landing)["begin_store"]

    silent = replaced(LanderRun, "_lacks", lambda _self, _device, _commit: False)
    with replaced(LanderRun, "recover", recover), silent:
        yield


@_of_landers
def a_landed_segment_is_not_known_again() -> Iterator[None]:
    """A lander that lost its log numbers from 1 on: all that it lands is taken for landed."""
    right = LanderRun._land  # noqa: SLF001 - a bug is planted from outside

    def land(self: LanderRun, segment: ClosedSegment) -> None:
        if segment.number % 5:
            right(self, segment)

    with replaced(LanderRun, "_land", land):
        yield


omitted(
    "segments_are_numbered_from_the_log_alone",
    "A lander lost its segments: it begins with numbers under which others have landed.",
    MemoryLog,
    "start_after",
    None,
    "landers",
)


@planted
def a_promise_that_comes_again_was_heard_now() -> Iterator[None]:
    """The network doubles a beat, or somebody plays it: a device that is dead looks alive."""

    def among_equals(self: Promise) -> tuple[int, bool, int]:
        return (self.low_us or BOTTOM_US, self.done, self.heard_us)

    with replaced(Promise, "_among_equals", among_equals):
        yield


@_of_gateways
def a_gateways_disk_that_was_put_back_is_taken_as_whole() -> Iterator[None]:
    """A copy of the card is put back: what devices were acknowledged since is nowhere."""
    right = FleetStore.begin

    def begin(self: FleetStore, store: str) -> tuple[FormerStore, ...]:
        return tuple([each._replace(commit=SEQS - 1) for each in right(self, store)])

    with replaced(FleetStore, "begin", begin):
        yield


@planted
def the_last_entry_that_comes_counts() -> Iterator[None]:
    """A frame is late and overtakes no other: an older version replaces a newer one."""
    right = KeyedPane.join

    def join(self: KeyedPane, writer: Any, seq: int, partial: Any) -> bool:
        self._seqs.pop(writer, None)
        return right(self, writer, seq, partial)

    with replaced(KeyedPane, "join", join):
        yield


@planted
def entries_of_one_device_count_once_in_a_pane() -> Iterator[None]:
    """A device restarts within a pane: the readings of its first life leave the window."""
    right = FleetPanes.join

    def join(self: FleetPanes, rows: PaneRows) -> Iterator[Any]:
        block = rows.block._replace(incarnation=1, nonce=1)
        return right(self, rows._replace(block=block))

    with replaced(FleetPanes, "join", join):
        yield


@planted
def all_of_a_frame_is_acknowledged() -> Iterator[None]:
    """A sink does not know a window: its panes are refused, and acknowledged with the others."""
    right = Acceptance.take_panes

    def take_panes(self: Acceptance, frame: PaneFrame, record: Record, to: Accepted) -> None:
        right(self, frame, record, to)
        for block in frame.blocks:
            answer = to.answers.setdefault(frame.about, Answer())
            answer.take(block.incarnation, block.nonce, block.seqs)
        to.answers[frame.about].not_taken.clear()

    with replaced(Acceptance, "take_panes", take_panes):
        yield


@planted
def a_promise_to_another_store_is_taken() -> Iterator[None]:
    """A lake is lost: the promises of devices speak of what only the former one had."""
    right = BeatFrame.low_of

    def low_of(self: BeatFrame, sink: str, store: str) -> Any:
        found = right(self, sink, store)
        same = [low for low in self.lows if low.sink == sink]
        return same[0] if same else found

    with replaced(BeatFrame, "low_of", low_of):
        yield


@planted
def the_frontier_follows_whoever_is_slowest_now() -> Iterator[None]:
    """A device that was dead comes back: windows that were final are tentative again."""
    right = vars(gateway_core)["advance"]

    def advance(_before: int | None, *rest: Any) -> Coverage:
        return Coverage(*right(None, *rest))

    with replaced(gateway_core, "advance", advance):
        yield


@planted
def a_device_that_cannot_promise_holds_the_frontier() -> Iterator[None]:
    """A device has no clock: nothing of the whole fleet is ever final."""
    right = frontier._standing  # noqa: SLF001 - a bug is planted from outside

    def standing(liveness: Liveness, roster: Any, dead_after_us: int) -> Any:
        found = right(liveness, roster, dead_after_us)
        silent = {
            device: BOTTOM_US for device in found.excluded if device in liveness.promises.entries
        }
        return found._replace(open_us=found.open_us | silent)

    with replaced(frontier, "_standing", standing):
        yield


@planted
def a_retired_device_is_waited_for() -> Iterator[None]:
    """A device is retired, and windows wait for it as long as it is not silent."""
    right = frontier._standing  # noqa: SLF001 - a bug is planted from outside

    def standing(liveness: Liveness, *rest: Any) -> Any:
        return right(liveness._replace(membership=Membership()), *rest)

    with replaced(frontier, "_standing", standing):
        yield


@planted
def who_is_done_is_waited_for() -> Iterator[None]:
    """A device has ended, and the windows of the others wait for it."""
    right = frontier._standing  # noqa: SLF001 - a bug is planted from outside

    def standing(liveness: Liveness, *rest: Any) -> Any:
        entries = liveness.promises.entries
        undone = {name: each._replace(done=False) for name, each in entries.items()}
        return right(liveness._replace(promises=Frontier(undone)), *rest)

    with replaced(frontier, "_standing", standing):
        yield


@planted
def the_commit_of_a_sink_is_not_stored() -> Iterator[None]:
    """A device restarts, a gateway's log was cut, and nobody knows that it lacks something."""
    right = Sinks.hear

    def hear(self: Sinks, frame: AckFrame, own_s: int | None = None) -> Sink | None:
        had_commits, stores = self.has_commits, [sink.store for sink in self]
        sink = right(self, frame, own_s)
        if stores == [each.store for each in self]:
            self.has_commits = had_commits
        return sink

    with replaced(Sinks, "hear", hear):
        yield


@partial(planted, needs="roster")
def whoever_speaks_is_expected_beside_the_roster() -> Iterator[None]:
    """A device that is in no roster is connected, and each window waits for it, and counts it."""
    right = frontier._standing  # noqa: SLF001 - a bug is planted from outside

    def standing(liveness: Liveness, roster: Any, dead_after_us: int) -> Any:
        spoke = liveness.promises.entries
        known = None if roster is None else {*roster, *spoke}
        return right(liveness, known, dead_after_us)

    with replaced(frontier, "_standing", standing):
        yield
