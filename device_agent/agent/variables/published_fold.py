"""A local fold that travels: each device publishes its partials by key, all devices combine them.

The entries, their combination and their digest are `lasp_edge.aggregates.fleet`; here is what this
device publishes of them, and what it takes from others.
"""

from collections.abc import Iterable

from crdts import OwnedMap, Version
from device_agent.agent.agent import Agent
from device_agent.agent.parts import FrameRefusedError
from lasp_edge.aggregates.fleet import FleetFold, OutOfRangeError
from lasp_edge.folds.columns import Partial
from lasp_edge.language.declarations import LocalFold
from lasp_edge.protocol.entries import columns_of
from lasp_edge.protocol.frames import BeatFrame, VariableFrame, VariableReport
from lasp_edge.protocol.shards import key_shard


class PublishedFold:
    """The fleet's entries of one local fold.

    Args:
        agent: what all parts share.
        fold: the local fold.

    Attributes:
        name: the variable's name.
        entries: of all devices. Each device publishes its own ones, whole, and joins those of the
            others. They are split into shards; (device, shard) names an entry, and the greater
            version of it wins.
        unsent: shards of this device that are to be published.
    """

    def __init__(self, agent: Agent, fold: LocalFold) -> None:
        self.name, self._agent = fold.name, agent
        self.unsent: set[int] = set()
        self.fold = fold
        self.entries = FleetFold(fold.fold, keyed=fold.keyed)

    def put_own(self, key: str, partial: Partial | None) -> None:
        """Replace this device's partial of a key; None takes it back."""
        self.unsent.add(self.entries.put_own(self._agent.replica, key, partial))

    def write_again(self) -> None:
        """Give one of this device's rows a new version, so that it is newer than before."""
        device = self._agent.replica.device
        for shard in self.entries.shards:
            entry = self.entries.entry(device, shard)
            for key, _, partial in entry.payload[:1] if entry is not None else ():
                self.put_own(key, partial)
                return

    def succeed(self) -> None:
        """Give this device's entries versions of its present replica; publish all of them."""
        self.unsent = set(self.entries.begin(self._agent.replica))

    def shards(self) -> Iterable[int]:
        """Return the shards of which this device has an entry."""
        return [shard for shard in self.entries.shards if self.version(shard)]

    def version(self, shard: int) -> Version | None:
        """Return the version of this device's entry of a shard; None while it is unwritten."""
        entry = self.entries.entry(self._agent.replica.device, shard)
        return None if entry is None else entry.version

    def frame(self, shard: int) -> VariableFrame:
        """Return this device's entry of a shard as it is published."""
        entry = self.entries.entry(self._agent.replica.device, shard)
        assert entry is not None
        number, columns = entry.version.seq, columns_of(entry.payload)
        return VariableFrame(
            self._agent.replica, number, self.name, self.fold.stream, shard, *columns
        )

    def receive(self, frame: VariableFrame, *, own: bool) -> None:
        """Join an entry; `own`: it is one of this device, which the broker kept.

        Raises:
            FrameRefusedError: it does not fit the program; nothing was joined.
        """
        if frame.stream != self.fold.stream:
            raise FrameRefusedError("variable: another definition")
        if not _has_shape(frame, keyed=self.fold.keyed):
            raise FrameRefusedError("variable: out of range")
        if own:
            return  # the store has it, or had it when a later version was made
        try:
            self.entries.join(frame.shard, OwnedMap({frame.sender.device: frame.entry}))
        except OutOfRangeError:
            raise FrameRefusedError("variable: out of range") from None

    def report(self) -> VariableReport:
        """Return what this device holds, for its beat."""
        entries = self.entries
        # Without keys there is one entry, which its seq names.
        own = entries.device_digest(self._agent.replica.device) if self.fold.keyed else None
        return VariableReport(self.name, entries.seq, entries.digest, own)

    def lacks(self, beat: BeatFrame, report: VariableReport) -> bool:
        """Return whether a peer reports something that this device does not hold."""
        device = beat.sender.device
        held, announced = self.entries.version(device), Version.of(beat.sender, report.seq)
        if report.seq == 0 or (held is not None and held > announced):
            return False
        return held != announced or report.own not in {None, self.entries.device_digest(device)}


def _has_shape(frame: VariableFrame, *, keyed: bool) -> bool:
    """Return whether shard, keys and seqs can be those of such a variable."""
    if not all(frame.seqs):
        return False
    if not keyed:
        return (frame.shard, frame.keys) == (0, ("",))
    return "" not in frame.keys or frame.shard == key_shard("")  # decoding checked the other keys
