"""The contract of a variable whose entries travel between devices.

Each device publishes its own entries, whole, and joins those of the others. A variable's entries
are split into shards; (device, shard) names an entry, and the greater version of it wins. What
crosses the network is the business of `device_agent.agent.fleet.exchange`, one for all variables.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from crdts import Version
from lasp_edge.protocol.frames import BeatFrame, VariableFrame, VariableReport


class Replicated(ABC):
    """A variable that devices exchange entries of.

    Args:
        name: the variable's name.

    Attributes:
        unsent: shards of this device that are to be published.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.unsent: set[int] = set()

    @abstractmethod
    def succeed(self) -> None:
        """Give this device's entries versions of its present replica; publish all of them."""

    @abstractmethod
    def shards(self) -> Iterable[int]:
        """Return the shards of which this device has an entry."""

    @abstractmethod
    def version(self, shard: int) -> Version | None:
        """Return the version of this device's entry of a shard; None while it is unwritten."""

    @abstractmethod
    def frame(self, shard: int) -> VariableFrame:
        """Return this device's entry of a shard as it is published."""

    @abstractmethod
    def receive(self, frame: VariableFrame, *, own: bool) -> None:
        """Join an entry.

        Args:
            frame: the entry.
            own: it is one of this device, which the broker kept.

        Raises:
            FrameRefusedError: it does not fit the program; nothing was joined.
        """

    @abstractmethod
    def report(self) -> VariableReport:
        """Return what this device holds, for its beat."""

    @abstractmethod
    def lacks(self, beat: BeatFrame, report: VariableReport) -> bool:
        """Return whether a peer reports something that this device does not hold."""
