"""The other devices: what each reported last of every variable, and whether it is connected.

Beats may be lost, doubled and overtaken, so only a device's newest one counts. A device is
connected from its beat or presence on, until the broker publishes its Last Will, or nothing was
heard of it for some beats: a broker that crashes publishes no wills.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from crdts import Replica
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame, VariableReport


@dataclass(slots=True)
class _Peer:
    """One other device."""

    replica: Replica
    number: int = 0
    online: bool = False
    heard_us: int = 0
    reports: dict[str, VariableReport] = field(default_factory=dict)
    behind: dict[str, int] = field(default_factory=dict)


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

    def take_beat(self, beat: BeatFrame, now_us: int) -> list[VariableReport]:
        """Take a beat; return its reports if it is the newest of its device."""
        peer = self._peer(beat.sender)
        # A life that only ever said it was there tells nothing of the one that beats: that may be
        # a later one on a lost store, of the same incarnation and with a lesser nonce.
        if peer.number and (beat.sender, beat.number) <= (peer.replica, peer.number):
            return []
        peer.replica, peer.number = beat.sender, beat.number
        self._connect(peer, online=True)
        peer.heard_us = now_us
        found = [report for report in beat.reports if report.variable in self._variables]
        reports = {report.variable: report for report in found}
        if reports != peer.reports:
            peer.reports = reports
            self.moves += 1
        return found

    def _connect(self, peer: _Peer, *, online: bool) -> None:
        if peer.online != online:
            peer.online = online
            self.moves += 1

    def take_presence(self, frame: PresenceFrame, now_us: int) -> None:
        """Note whether a device is connected, unless an earlier incarnation of it says so."""
        peer = self._peer(frame.sender)
        # A process that took a later incarnation keeps its nonce; its will has the earlier one.
        if frame.sender >= peer.replica or frame.sender.nonce == peer.replica.nonce:
            self._connect(peer, online=frame.online)
            peer.heard_us = now_us

    def behind(self, device: str, variable: str, *, lacking: bool) -> bool:
        """Note whether a reported entry is lacking; return whether it is so for the second time."""
        counts = self._peers[device].behind
        counts[variable] = counts.get(variable, 0) + 1 if lacking else 0
        return counts[variable] > 1

    def expire(self, now_us: int, silent_us: int) -> None:
        """Count devices as not connected that were not heard for `silent_us`."""
        for peer in self._peers.values():
            if peer.online and not now_us - silent_us <= peer.heard_us <= now_us + silent_us:
                self._connect(peer, online=False)

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
            report = peer.reports.get(variable) if peer else None
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
            if variable in peer.reports and peer.reports[variable].seq
        ]

    def _peer(self, replica: Replica) -> _Peer:
        peer = self._peers.get(replica.device)
        if peer is None:
            peer = self._peers[replica.device] = _Peer(replica)
        return peer
