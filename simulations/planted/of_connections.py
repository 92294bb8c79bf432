"""Bugs of sinks between connections, clocks and lives: what answers, beats and silences tell."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from cloud_tier.lander.run import ClosedSegment, LanderRun, WitnessFile
from device_agent.agent.fleet.beats import Beats
from device_agent.agent.panes import sinks
from device_agent.agent.panes.flights import Flights
from device_agent.agent.panes.sink import Sink
from device_agent.agent.panes.sinks import Sinks
from device_agent.gateway import core as gateway_core
from device_agent.gateway.kept import FleetChanges, FleetState
from device_agent.gateway.results import FleetResults
from device_agent.gateway.run import GatewayRun
from lasp_edge.protocol import listening
from lasp_edge.protocol.acceptance import Acceptance, Accepted, Record
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.commands import Subject
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame
from lasp_edge.protocol.listening import ListeningClock
from lasp_edge.protocol.lives import Lives
from lasp_edge.protocol.repeating import Repeating
from lasp_edge.protocol.replies import Publish, Replies
from lasp_edge.protocol.sinks import LEFT_US
from lasp_edge.protocol.spans import PassedFrontier
from simulations.planted.bug import omitted, planted, replaced

_of_gateways = partial(planted, needs="gateways")
_of_landers = partial(planted, needs="landers")


@_of_gateways
def promises_are_durable_before_panes() -> Iterator[None]:
    """The power goes between two commits of a turn: the frontier is there, and no row."""
    right = GatewayRun._commit  # noqa: SLF001 - a bug is planted from outside

    def commit(self: GatewayRun) -> None:
        store = self._store
        whole = store.commit

        def in_two(changes: FleetChanges) -> None:
            if changes.state is not None and (changes.entries or changes.rows):
                whole(FleetChanges(state=changes.state))
                changes = replace(changes, state=None)
            whole(changes)

        vars(store)["commit"] = in_two
        try:
            right(self)
        finally:
            del vars(store)["commit"]

    with replaced(GatewayRun, "_commit", commit):
        yield


@planted
def listening_goes_on_over_any_outage() -> Iterator[None]:
    """The broker was away for an hour: nobody could be heard, and all devices are silent."""
    right = ListeningClock.begin

    def begin(self: ListeningClock) -> None:
        self._short_us = 1 << 62
        right(self)

    with replaced(ListeningClock, "begin", begin):
        yield


@planted
def a_life_that_is_over_delivers() -> Iterator[None]:
    """A slow network brings what a life had sent when the next one has read it again."""
    right = Lives.delivers

    def delivers(self: Lives, *arguments: Any) -> bool:
        right(self, *arguments)
        return True

    with replaced(Lives, "delivers", delivers):
        yield


@planted
def done_for_one_sink_is_done_for_all() -> Iterator[None]:
    """A device has ended, one sink has everything, and the other one takes it for done."""
    right = Acceptance.take_beat

    def take_beat(self: Acceptance, frame: BeatFrame, record: Record, accepted: Accepted) -> None:
        right(self, replace(frame, done=frame.done or bool(frame.done_for)), record, accepted)

    with replaced(Acceptance, "take_beat", take_beat):
        yield


@planted
def an_answer_that_did_not_leave_is_forgotten() -> Iterator[None]:
    """The link is full, or there is no broker: devices wait in vain, and send everything again."""
    right = Replies._acknowledge  # noqa: SLF001 - a bug is planted from outside

    def acknowledge(self: Replies, publish: Publish, now_us: int) -> None:
        right(self, publish, now_us)
        self._answers.clear()

    with replaced(Replies, "_acknowledge", acknowledge):
        yield


@planted
def a_step_of_a_sinks_clock_is_not_noticed() -> Iterator[None]:
    """A Pi without a battery starts in 1970: at its first look at a server all were silent."""
    with replaced(listening, "STEP_US", 1 << 62):
        yield


@planted
def a_store_that_follows_is_believed_to_be_whole() -> Iterator[None]:
    """A gateway's file was cut, and its next store says from which it follows: nothing is sent."""
    right = Sinks._moves  # noqa: SLF001 - a bug is planted from outside

    def moves(self: Sinks, sink: Any, frame: AckFrame, *, is_old: bool) -> bool:
        sink.commit = min(sink.commit, 0)
        return right(self, sink, frame, is_old=is_old)

    with replaced(Sinks, "_moves", moves):
        yield


@_of_landers
def a_lander_answers_before_its_lake_has_it() -> Iterator[None]:
    """The power goes after an answer and before the lake's commit, and the log goes with it."""
    right = LanderRun.hear

    def hear(self: LanderRun, topic: str, payload: bytes, *, retained: bool = False) -> None:
        right(self, topic, payload, retained=retained)
        record = Record(self._clock.now_us, topic, retained, payload)
        accepted = self._acceptance.take([record])
        self._replies.owe(accepted, record.received_us)

    with replaced(LanderRun, "hear", hear):
        yield


omitted(
    "what_a_lander_heard_of_devices_is_not_kept",
    "A lander restarts, a card is lost, and nobody knows how far its sources had come.",
    WitnessFile,
    "write",
    None,
    needs="landers",
)


@planted
def commands_are_not_given_again_to_who_lost_them() -> Iterator[None]:
    """A device is retired while another is off, the broker forgets, and they differ for ever."""

    def due(_self: Repeating, _now_us: int) -> list[Subject]:
        return []

    with replaced(Repeating, "due", due):
        yield


@planted
def a_clock_that_is_ahead_counts_as_it_is() -> Iterator[None]:
    """A sink's clock was an hour ahead: the store in its place speaks too early for an hour."""

    def bounded(frame: AckFrame, _own_s: int) -> AckFrame:
        return frame

    with replaced(sinks, "_bounded", bounded), replaced(Sink, "bound", lambda _self, _own_s: None):
        yield


@planted
def an_old_answer_brings_its_store_back() -> Iterator[None]:
    """Somebody plays recorded answers of a lost store: everything is sent again at each one."""
    right = Sinks._moves  # noqa: SLF001 - a bug is planted from outside

    def moves(self: Sinks, sink: Sink, frame: AckFrame, *, is_old: bool) -> bool:
        silent_us, sink.silent_us = sink.silent_us, LEFT_US
        try:
            return right(self, sink, frame, is_old=False)
        finally:
            del is_old
            sink.silent_us = silent_us

    with replaced(Sinks, "_moves", moves):
        yield


@_of_gateways
def whatever_was_served_counts_as_served() -> Iterator[None]:
    """A program lacks a window for a while: what the frontier passed meanwhile is never made."""

    def passed_of(state: FleetState, _windows: Any, _retain_us: int) -> PassedFrontier:
        return PassedFrontier(state.frontier_us)

    with replaced(gateway_core, "passed_of", passed_of):
        yield


@_of_landers
def the_log_is_dropped_before_it_landed() -> Iterator[None]:
    """The power goes between log and lake: what the broker has forgotten by then is nowhere."""
    right = LanderRun._land  # noqa: SLF001 - a bug is planted from outside

    def land(self: LanderRun, segment: ClosedSegment) -> None:
        self._log.drop(segment.number)
        right(self, segment)

    with replaced(LanderRun, "_land", land):
        yield


@_of_gateways
def two_gateways_of_one_name_are_not_reported() -> Iterator[None]:
    """Somebody sets up a second gateway without a name: each has a part of the readings."""
    right = Sinks._moves  # noqa: SLF001 - a bug is planted from outside

    def moves(self: Sinks, sink: Sink, frame: AckFrame, *, is_old: bool) -> bool:
        sink.contested_us = max(1, sink.contested_us)
        return right(self, sink, frame, is_old=is_old)

    with replaced(Sinks, "_moves", moves):
        yield


@planted
def who_answered_late_four_times_is_sent_nothing_more() -> Iterator[None]:
    """A slow network loses four answers of a sink that is there: nothing lands there any more."""
    right = Flights.full.fget  # type: ignore[attr-defined]

    def full(self: Flights) -> bool:
        return self.count >= self._room - self._misses or bool(right(self))

    with replaced(Flights, "full", property(full)):
        yield


@planted
def an_answer_to_an_older_entry_sets_back_how_far_a_sink_has_answered() -> Iterator[None]:
    """What was recorded before a frozen entry landed is taken for later than that."""
    right = Sinks.hear

    def hear(self: Sinks, frame: AckFrame, own_s: int | None = None) -> Sink | None:
        sink = right(self, frame, own_s)
        if sink is not None:
            sink.answered = sinks._latest_named(frame)  # noqa: SLF001
        return sink

    with replaced(Sinks, "hear", hear):
        yield


@planted
def a_late_will_of_the_present_life_is_not_contradicted() -> Iterator[None]:
    """A broker notices late that a connection broke: a device that is back stands as away."""
    right = Beats._hear_presence  # noqa: SLF001

    def hear(self: Beats, frame: PresenceFrame, now_us: int) -> None:
        if frame.online or frame.sender != self._agent.replica:
            right(self, frame, now_us)

    with replaced(Beats, "_hear_presence", hear):
        yield


omitted(
    "results_are_not_published_again_after_a_connection",
    "The broker was emptied while a gateway was cut off, and a window is on no topic any more.",
    FleetResults,
    "connected",
    None,
    "gateways",
)
