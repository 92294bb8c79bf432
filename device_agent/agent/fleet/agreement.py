"""How far the fleet agrees on each variable, and asking for what is missing.

Each device reports in its beats a digest of all that it holds of a variable. A variable is settled
when every connected device that has it last reported the digest that is held here; devices that are
offline and did not are named. Retired devices are not waited for.

Beats may be lost, doubled and overtaken, so only a device's newest one counts. A device is
connected from its beat or presence on, until the broker publishes its Last Will, or nothing was
heard of it for some beats: a broker that crashes publishes no wills.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from crdts import Replica
from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes, Facts, Settled
from device_agent.agent.fleet.commands import OperatorCommands
from device_agent.agent.fleet.exchange import Exchange
from device_agent.agent.parts import Handler, Part
from lasp_edge.aggregates.absence import PresentFold
from lasp_edge.aggregates.fleet import FleetFold
from lasp_edge.language.declarations import DynamicFold, LocalFold
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import AskFrame, BeatFrame, PresenceFrame, VariableReport
from lasp_edge.protocol.inputs import inputs_digest
from lasp_edge.protocol.publication import Publication
from lasp_edge.units import SECOND_US

SILENT_BEATS = 3
"""Beats that an idle device did not send in time, after which it counts as not connected: three in
a row are lost hardly ever."""
CHANGING_INTERVALS = 3
"""Intervals after a change in which the others may not have it yet."""


@dataclass(slots=True)
class _Peer:
    """One other device; there may be thousands of them, so its reports are those of its beat."""

    replica: Replica
    number: int = 0
    online: bool = False
    heard_us: int = 0
    reports: tuple[VariableReport, ...] = ()

    def report(self, variable: str) -> VariableReport | None:
        """Return what it last reported of a variable."""
        for report in reversed(self.reports):
            if report.variable == variable:
                return report
        return None


class Peers:
    """The other devices.

    Args:
        variables: names of the variables of which reports are kept.

    Attributes:
        moves: how often what is reported, or who is connected, has changed.
        quiet_until_us: until then no device becomes silent.
    """

    def __init__(self, variables: Iterable[str]) -> None:
        self.moves = 0
        self._variables = frozenset(variables)
        self._peers: dict[str, _Peer] = {}
        self._behind: dict[tuple[str, str], int] = {}
        self._seen_us = self.quiet_until_us = 0

    def take_beat(self, beat: BeatFrame, now_us: int) -> list[VariableReport]:
        """Take a beat; return its reports if it is the newest of its device."""
        peer = self._peer(beat.sender)
        # A life of which only presence was received is no bound for the one that beats: that may be
        # a later one on a lost store, of the same incarnation and with a lesser nonce.
        if peer.number and (beat.sender, beat.number) <= (peer.replica, peer.number):
            return []
        peer.replica, peer.number = beat.sender, beat.number
        self._hear(peer, now_us, online=True)
        found = [report for report in beat.reports if report.variable in self._variables]
        reports = beat.reports if len(found) == len(beat.reports) else tuple(found)
        if reports != peer.reports:
            self.moves += 1
        peer.reports = reports
        return found

    def _hear(self, peer: _Peer, now_us: int, *, online: bool) -> None:
        self._connect(peer, online=online)
        peer.heard_us = now_us
        if now_us < self._seen_us:
            self.quiet_until_us = now_us - 1
        self._seen_us = now_us

    def _connect(self, peer: _Peer, *, online: bool) -> None:
        if peer.online != online:
            peer.online = online
            self.moves += 1

    def take_presence(self, frame: PresenceFrame, now_us: int) -> None:
        """Note whether a device is connected, unless an earlier incarnation of it says so."""
        peer = self._peer(frame.sender)
        # A process that took a later incarnation keeps its nonce; its will has the earlier one.
        if frame.sender >= peer.replica or frame.sender.nonce == peer.replica.nonce:
            self._hear(peer, now_us, online=frame.online)

    def behind(self, device: str, variable: str, *, lacking: bool) -> bool:
        """Note whether a reported entry is lacking; return whether it is so for the second time."""
        where = device, variable
        if not lacking:
            self._behind.pop(where, None)
            return False
        self._behind[where] = self._behind.get(where, 0) + 1
        return self._behind[where] > 1

    def expire(self, now_us: int, silent_us: int) -> None:
        """Count devices as not connected that were not heard for `silent_us`.

        They are looked at once the first of them may be that silent, or the clock has gone back.
        """
        seen_us, self._seen_us = self._seen_us, now_us
        if seen_us <= now_us <= self.quiet_until_us:
            return
        heard_us = [now_us]
        for peer in self._peers.values():
            if peer.online and not now_us - silent_us <= peer.heard_us <= now_us + silent_us:
                self._connect(peer, online=False)
            elif peer.online:
                heard_us.append(peer.heard_us)
        self.quiet_until_us = min(heard_us) + silent_us

    def disconnect_all(self) -> None:
        """Count all devices as not connected until they are heard again."""
        for peer in self._peers.values():
            self._connect(peer, online=False)

    def connected(self) -> list[str]:
        """Return the devices that are connected, sorted."""
        return sorted(device for device, peer in self._peers.items() if peer.online)

    @property
    def known(self) -> frozenset[str]:
        """The devices of which something was received."""
        return frozenset(self._peers)

    def agreement(
        self,
        variable: str,
        digest: int,
        holders: Collection[str],
        retired: Collection[str] = (),
    ) -> tuple[bool, tuple[str, ...]]:
        """Return whether all connected devices report this digest, and which others do not.

        Args:
            variable: its name.
            digest: what this device holds.
            holders: the other devices that have an entry here; those that report one count, too.
            retired: devices that are not waited for.
        """
        settled, offline = True, []
        for device in sorted({*holders, *self._reporters(variable)}.difference(retired)):
            peer = self._peers.get(device)
            report = peer.report(variable) if peer else None
            if report is not None and report.digest == digest:
                continue
            if peer is not None and peer.online:
                settled = False
            else:
                offline.append(device)
        return settled, tuple(offline)

    def _reporters(self, variable: str) -> list[str]:
        return [
            device
            for device, peer in self._peers.items()
            if (report := peer.report(variable)) is not None and report.seq
        ]

    def _peer(self, replica: Replica) -> _Peer:
        peer = self._peers.get(replica.device)
        if peer is None:
            peer = self._peers[replica.device] = _Peer(replica)
        return peer


class Agreement(NamedTuple):
    """How far the fleet agrees on a dynamic fold, all its keys together.

    Attributes:
        inputs: what the fold's values were made from.
        devices: how many devices have an entry.
        settled: every connected device holds the same inputs.
        offline: devices that are not connected and last reported something else.
    """

    inputs: str
    devices: int
    settled: bool
    offline: tuple[str, ...]


class Agreements(Part):
    """Compares what the other devices report with what is held here.

    Args:
        agent: what all parts share.
        exchange: the variables that are reported.
        commands: which devices are retired.
    """

    name = "agreements"

    def __init__(self, agent: Agent, exchange: Exchange, commands: OperatorCommands) -> None:
        self._agent = agent
        self._folds = dict(sorted(agent.plan.dynamic_folds.items()))
        self._exchange = exchange
        self._commands = commands
        self._silent_us = SILENT_BEATS * agent.settings.keep_alive_us
        self._stored = dict(agent.facts.settled or {})
        self._settled = dict(self._stored)
        self._peers = Peers(exchange.variables)
        self._missing: dict[tuple[str, str], None] = {}
        self._asks = 0
        self._agreed_us: dict[str, int] = {}
        self._changed: dict[str, tuple[str, int]] = {}
        self._known: dict[str, tuple[tuple[int, ...], Agreement]] = {}

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {BeatFrame: self._hear_beat, PresenceFrame: self._hear_presence}

    def _hear_beat(self, frame: BeatFrame, now_us: int) -> None:
        device = frame.sender.device
        if device == self._agent.replica.device:
            return
        for report in self._peers.take_beat(frame, now_us):
            lacking = self._exchange.variables[report.variable].lacks(frame, report)
            if self._peers.behind(device, report.variable, lacking=lacking):
                self._missing[device, report.variable] = None

    def _hear_presence(self, frame: PresenceFrame, now_us: int) -> None:
        if frame.sender.device != self._agent.replica.device:
            self._peers.take_presence(frame, now_us)

    def connected(self, _now_us: int) -> None:
        self._peers.disconnect_all()

    def tick(self, now_us: int) -> None:
        self._peers.expire(now_us, self._silent_us)

    def all(self) -> dict[str, Agreement]:
        """Return how far the fleet agrees on each dynamic fold, by target."""
        found = {name: self.of(fold) for name, fold in self._folds.items()}
        for name, each in found.items():
            if self._changed.get(name, ("", 0))[0] != each.inputs:
                self._changed[name] = each.inputs, self._agent.now_us
            if each.settled:
                self._agreed_us[name] = self._agent.now_us
                self._settled[name] = Settled(each.inputs, each.devices)
        return found

    def others(self) -> list[str]:
        """Return the other devices that are connected, sorted."""
        return self._peers.connected()

    def away(self) -> list[str]:
        """Return the other devices that are known, not retired, and not connected, sorted."""
        return sorted(self._peers.known.difference(self.others(), self._commands.retired))

    def of(self, fold: DynamicFold) -> Agreement:
        """Return how far the fleet agrees on one dynamic fold."""
        sources = (fold.source,) if fold.absence is None else (fold.source, fold.absence)
        moves = (self._peers.moves, *[self._entries(each).moves for each in sources])
        known = self._known.get(fold.name)
        if known is None or known[0] != moves:
            known = self._known[fold.name] = (moves, self._agreement(fold))
        return known[1]

    def _agreement(self, fold: DynamicFold) -> Agreement:
        entries = self._entries(fold.source)
        if fold.absence is None:
            settled, offline = self._compared(fold.source, entries.devices, ())
            digest, devices = entries.digest, entries.devices
        else:
            present = PresentFold(entries, self._entries(fold.absence))
            digest, devices, absent = present.digest, present.devices, present.absent
            settled, first = self._compared(fold.source, devices, absent)
            noted, second = self._compared(fold.absence, devices, absent)
            settled, offline = settled and noted, tuple(sorted({*first, *second}))
        inputs = inputs_digest(digest, fold.stream)
        return Agreement(inputs, len(devices), settled and bool(devices), offline)

    def _entries(self, fold: LocalFold) -> FleetFold:
        return self._exchange.variables[fold.name].entries

    def _compared(
        self, fold: LocalFold, devices: Collection[str], absent: Collection[str]
    ) -> tuple[bool, tuple[str, ...]]:
        """Return whether all connected devices hold the same, and which of the others do not."""
        others = [name for name in devices if name != self._agent.replica.device]
        left_out = {*self._commands.retired, *absent}
        return self._peers.agreement(fold.name, self._entries(fold).digest, others, left_out)

    def take_notes(self) -> Changes | None:
        """Return what the fleet agreed on since the last time."""
        self.all()
        if self._settled == self._stored:
            return None
        self._stored = dict(self._settled)
        return Changes(facts=Facts(settled=self._stored))

    def publications(self, _now_us: int) -> Iterator[Publication]:
        """Ask for entries that were missing for two beats."""
        missing, self._missing = self._missing, {}
        for device, variable in missing:
            self._asks += 1
            ask = AskFrame(self._agent.replica, self._asks, device, variable)
            yield Publication.of(ask, self._agent.topics)
        self.due_us = self._peers.quiet_until_us + 1

    def report(self) -> dict[str, Any]:
        """Say how many others are connected, and how long ago this device saw an agreement."""
        agreed = {
            name: round((self._agent.now_us - at_us) / SECOND_US, 1)
            for name, at_us in sorted(self._agreed_us.items())
        }
        lately_us = self._agent.now_us - CHANGING_INTERVALS * self._agent.settings.interval_us
        changing = [name for name, (_, at_us) in self._changed.items() if at_us > lately_us]
        return {"others": len(self.others()), "agreed_s_ago": agreed, "changing": sorted(changing)}
