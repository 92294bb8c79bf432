"""A fleet as an operator's command sees it that is about parameters: who knows what was said.

>>> roster = ParameterRoster(Topics("greenhouse"), nonce=1, parameters={"offset"})
>>> beat = BeatFrame(Replica(2, 7, "attic"), 5, (), False, (), floor_us=60)
>>> roster.hear(roster.topics.of("beat", "attic"), beat.encode())
>>> roster.knows("attic"), roster.floors_us
(True, {'attic': 60})
>>> log = roster.control.say("offset", "", 600, "3", "ann")
>>> roster.control.entries.update(log.entries)
>>> roster.missing
['attic']
"""

from collections.abc import Collection

from crdts import Replica
from device_agent.console.view.roster import Roster
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.topics import Topics


class ParameterRoster(Roster):
    """The devices of a fleet, what was said of its parameters, and who knows it.

    Args:
        topics: of the fleet.
        nonce: 32 random bits of this command's process.
        parameters: of the program.
    """

    def __init__(self, topics: Topics, nonce: int, parameters: Collection[str]) -> None:
        super().__init__(topics, nonce, parameters)
        self._beats: dict[str, BeatFrame] = {}

    def take_beat(self, frame: BeatFrame) -> None:
        """Note what a device knows of parameters, and how far back it has its readings."""
        super().take_beat(frame)
        known = self._beats.get(frame.sender.device)
        if known is None or _order(frame) > _order(known):
            self._beats[frame.sender.device] = frame

    @property
    def counting(self) -> list[str]:
        """The devices that are not retired, sorted."""
        retired = self.membership.retired
        return [device for device in self.devices if device not in retired]

    def knows(self, device: str) -> bool:
        """Return whether a device knows all that is known here of parameters."""
        beat = self._beats.get(device)
        known = self.control.fingerprint() if self.control.entries else 0
        return beat is not None and beat.control == known

    @property
    def missing(self) -> list[str]:
        """The devices that count, and that do not know it all yet."""
        return [device for device in self.counting if not self.knows(device)]

    @property
    def awaited(self) -> list[str]:
        """The devices that count, are connected, and sent no beat yet."""
        seen = {device: self.seen(device) for device in self.counting}
        return [
            device for device, each in seen.items() if each and each.online and each.seq is None
        ]

    def is_online(self, device: str) -> bool:
        """Return whether a device is connected: then it answers."""
        seen = self.seen(device)
        return seen is not None and seen.online

    @property
    def floors_us(self) -> dict[str, int]:
        """Device -> from when on it has all its readings, of those that count and told it."""
        return {
            device: beat.floor_us
            for device in self.counting
            if (beat := self._beats.get(device)) is not None and beat.floor_us is not None
        }


def _order(beat: BeatFrame) -> tuple[Replica, int]:
    return beat.sender, beat.number
