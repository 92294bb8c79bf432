"""Bugs of what devices tell each other: entries, digests, agreement, members, time."""

from collections.abc import Iterator, Mapping
from typing import Any

from crdts import Frontier, OwnedMap
from device_agent.agent.core import Core
from device_agent.agent.fleet.agreement import Agreements, Peers
from device_agent.agent.fleet.exchange import Exchange
from device_agent.agent.intake.source_highs import SourceHighs
from device_agent.agent.part_list import PartList
from device_agent.agent.variables.states import OwnState
from lasp_edge.aggregates.fleet import FleetFold
from lasp_edge.protocol.frontier import Liveness
from lasp_edge.protocol.lives import Lives
from simulations.planted.bug import planted, replaced


@planted
def settled_without_the_report_of_a_connected_holder() -> Iterator[None]:
    """A device has not reported what it holds, and its peer publishes `settled` all the same."""
    right = Peers.agreement

    def agreement(self: Peers, variable: str, digest: int, holders: Any, *retired: Any) -> Any:
        known = [name for name in holders if _reports(self, name, variable)]
        return right(self, variable, digest, known, *retired)

    with replaced(Peers, "agreement", agreement):
        yield


def _reports(peers: Peers, device: str, variable: str) -> Any:
    peer = peers._peers.get(device)  # noqa: SLF001
    return peer is not None and peer.report(variable) is not None


@planted
def an_older_entry_replaces_a_newer_one() -> Iterator[None]:
    """Messages overtake each other: a device goes back to an older entry of another one."""

    def join(self: FleetFold, shard: int, delta: OwnedMap) -> bool:
        for device, entry in delta.entries.items():
            self._need_range(None, device, entry)
            self._replace(device, shard, entry)
        return True

    with replaced(FleetFold, "join", join):
        yield


@planted
def a_changed_partial_keeps_its_version() -> Iterator[None]:
    """A device's average changes under one version: peers that have the first never take it."""
    right = FleetFold.put_own

    def put_own(self: FleetFold, replica: Any, key: str, partial: Any) -> int:
        self.seq = max(0, self.seq - 1)
        return right(self, replica, key, partial)

    with replaced(FleetFold, "put_own", put_own):
        yield


@planted
def nobody_answers_who_asks() -> Iterator[None]:
    """An entry is lost on its way, and its owner does not send it again."""

    def answer(self: Exchange, _frame: Any, _now_us: int) -> None:
        del self

    def connected(self: Exchange, _now_us: int) -> None:
        self._allowance.restart()

    with replaced(Exchange, "_answer", answer), replaced(Exchange, "connected", connected):
        yield


@planted
def a_part_forgets_to_become_due() -> Iterator[None]:
    """Somebody says hello, or sends a command: no part has work that was not due before."""
    right = PartList.handle

    def handle(self: PartList, frame: Any, now_us: int) -> None:
        dues_us = [part.due_us for part in self.parts]
        right(self, frame, now_us)
        for part, due_us in zip(self.parts, dues_us, strict=True):
            part.due_us = due_us

    with replaced(PartList, "handle", handle):
        yield


@planted
def nobody_asks_for_what_is_missing() -> Iterator[None]:
    """An entry is lost on its way, and who lacks it waits for ever."""

    def publications(self: Agreements, _now_us: int) -> Iterator[Any]:
        self._missing.clear()
        return iter(())

    def connected(self: Exchange, _now_us: int) -> None:
        self._allowance.restart()

    silent = replaced(Agreements, "publications", publications)
    with silent, replaced(Exchange, "connected", connected):
        yield


@planted
def a_contribution_is_not_stored() -> Iterator[None]:
    """An agent restarts, and what it had counted is missing in the fleet's total."""

    def store(self: OwnState, delta: Any) -> None:
        self._grow(delta)

    with replaced(OwnState, "store", store):
        yield


@planted
def a_frame_that_does_not_decode_ends_the_agent() -> Iterator[None]:
    """One strange message, retained, and no agent of the fleet runs."""
    right = Core.handle_message

    def handle_message(self: Core, topic: str, payload: bytes, now_us: int) -> None:
        self.decode(payload)
        right(self, topic, payload, now_us)

    with replaced(Core, "handle_message", handle_message):
        yield


@planted
def panes_of_an_earlier_life_land_after_the_later_one_has_asked() -> Iterator[None]:
    """The network held them up; the later life did not learn of them, and reads them again."""

    def delivers(self: Lives, *_heard: Any) -> bool:
        del self
        return True

    with replaced(Lives, "delivers", delivers):
        yield


@planted
def what_was_accepted_alone_is_not_said_to_count_twice() -> Iterator[None]:
    """A device goes on alone, a lander tells it later what it lacked, and nobody learns of it."""

    def count(self: SourceHighs, *_told: Any) -> None:
        del self

    with replaced(SourceHighs, "_count_maybe_twice", count):
        yield


@planted
def who_comes_and_goes_changes_no_agreement() -> Iterator[None]:
    """A device is away, and what was remembered before still waits for it."""

    def connect(_self: Peers, peer: Any, *, online: bool) -> None:
        peer.online = online

    with replaced(Peers, "_connect", connect):
        yield


@planted
def who_promises_less_twice_had_come_no_further_than_in_between() -> Iterator[None]:
    """Two late readings one after the other: rows name a device that had sent all of them."""
    right = Liveness.furthest_with

    def furthest_with(self: Liveness, promises: Frontier, spoke: Mapping[str, Any]) -> Any:
        return right(self._replace(furthest_us={}), promises, spoke)

    with replaced(Liveness, "furthest_with", furthest_with):
        yield
