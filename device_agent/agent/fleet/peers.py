"""The other devices: what each reported last of every variable, and whether it is connected.

Beats may be lost, doubled and overtaken, so only a device's newest one counts. A device is
connected from its beat or presence on, until the broker publishes its Last Will, or nothing was
heard of it for some beats: a broker that crashes publishes no wills.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from crdts import Replica
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame, VariableReport


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
    """

    def __init__(self, variables: Iterable[str]) -> None:
        self.moves = 0
        self._variables = frozenset(variables)
        self._peers: dict[str, _Peer] = {}
        self._behind: dict[tuple[str, str], int] = {}
        self._seen_us = self._quiet_until_us = 0

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
            self._quiet_until_us = now_us - 1
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
        if seen_us <= now_us <= self._quiet_until_us:
            return
        heard_us = [now_us]
        for peer in self._peers.values():
            if peer.online and not now_us - silent_us <= peer.heard_us <= now_us + silent_us:
                self._connect(peer, online=False)
            elif peer.online:
                heard_us.append(peer.heard_us)
        self._quiet_until_us = min(heard_us) + silent_us

    def disconnect_all(self) -> None:
        """Count all devices as not connected until they are heard again."""
        for peer in self._peers.values():
            self._connect(peer, online=False)

    def connected(self) -> list[str]:
        """Return the devices that are connected, sorted."""
        return sorted(device for device, peer in self._peers.items() if peer.online)

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
