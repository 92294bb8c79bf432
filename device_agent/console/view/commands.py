"""The commands of an operator: frames that retire or admit a device, or change a parameter.

>>> from lasp_edge.protocol.topics import Topics
>>> commands = FleetCommands(KnownDevices(Topics("greenhouse")), nonce=1)
>>> commands.retiring("attic").subject
('attic',)
"""

from crdts import Replica, Version
from crdts.membership import NEVER
from crdts.replica import SEQS
from device_agent.console.view.devices import KnownDevices
from lasp_edge.protocol.commands import OPERATOR, CommandFrame, CommandLog, Subject

WHOLE_LIFE = SEQS - 1
"""The greatest seq: as the version of a retired device it lets all of that incarnation count."""


class FleetCommands:
    """The commands that one process publishes, each above all that are known.

    Args:
        devices: of the fleet.
        nonce: 32 random bits of the process.

    Attributes:
        sender: as which it publishes.
    """

    def __init__(self, devices: KnownDevices, nonce: int) -> None:
        self._devices = devices
        self.sender = Replica.checked(1, nonce, OPERATOR)
        self._sent = 0

    def retiring(self, device: str, seq: int | None = None, least: int = 1) -> CommandFrame:
        """Return the command that retires a device.

        Args:
            device: its name.
            seq: the last pane entry of its newest incarnation that counts. Where it is None, the
                one that its last beat named; without a beat, all entries of that incarnation, so
                that nothing is taken back that may have landed; of an unknown device, none.
            least: the least number of the command; so everywhere.
        """
        seen = self._devices.seen(device)
        if seen is None:
            version = NEVER
        else:
            known = WHOLE_LIFE if seen.seq is None else seen.seq
            version = Version.of(seen.replica, known if seq is None else seq)
        membership = self._devices.commands.membership.retire(device, version, least)
        return self.about((device,), CommandLog(membership))

    def admitting(self, device: str, least: int = 1) -> CommandFrame:
        """Return the command that admits a device."""
        membership = self._devices.commands.membership.admit(device, least)
        return self.about((device,), CommandLog(membership))

    def about(self, subject: Subject, known: CommandLog | None = None) -> CommandFrame:
        """Return the frame of a subject: from some commands, or from all that were received."""
        self._sent += 1
        return CommandFrame.of(self.sender, self._sent, subject, known or self._devices.commands)

    def is_newest(self, frame: CommandFrame) -> bool:
        """Return whether nothing was received that overrides a command."""
        return self._devices.commands.about(frame.subject) <= frame.commands()
