"""The exchange of entries: what this device publishes of its variables, and hears of the others'.

Entries that changed are published once an interval, coalesced, and always before the beat that
speaks of them. A peer that lacks one asks for it. Where the broker has kept an older entry of this
device, the newer one is published over it.
"""

from collections.abc import Iterable, Iterator, Mapping

from crdts import Replica
from device_agent.fleet.replicated import Replicated
from device_agent.fleet.schedule import Schedule
from device_agent.parts import FrameRefusedError, Handler, Part, Publication
from device_agent.state.counters import Counters
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import AskFrame, VariableFrame, VariableReport
from lasp_edge.protocol.sizes import MAX_FRAME_BYTES
from lasp_edge.protocol.topics import Topics


class Exchange(Part):
    """Publishes this device's entries, and joins those of its peers.

    Args:
        variables: all variables that travel.
        replica: this device's replica.
        topics: where entries are published.
        schedule: when.
        counters: where an entry that is too large is counted.

    Attributes:
        variables: by name, sorted.
    """

    name = "exchange"

    def __init__(
        self,
        variables: Iterable[Replicated],
        replica: Replica,
        topics: Topics,
        schedule: Schedule,
        counters: Counters,
    ) -> None:
        self.variables = {each.name: each for each in sorted(variables, key=lambda one: one.name)}
        self._topics = topics
        self._schedule = schedule
        self._counters = counters
        self.become(replica)

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {VariableFrame: self._receive, AskFrame: self._answer}

    def _receive(self, frame: VariableFrame, _now_us: int) -> None:
        """Join a peer's entry, or an own one that the broker kept."""
        own = frame.sender.device == self._replica.device
        if own and frame.sender > self._replica:
            return  # a later replica of this device, which it does not succeed
        variable = self.variables.get(frame.variable)
        if variable is None:
            raise FrameRefusedError("variable: another definition")
        variable.receive(frame, own=own)
        held = variable.version(frame.shard) if own else None
        if held and frame.version < held:
            variable.unsent.add(frame.shard)

    def _answer(self, frame: AskFrame, _now_us: int) -> None:
        """Publish all own entries of a variable again."""
        variable = self.variables.get(frame.variable)
        if variable is not None:
            variable.unsent.update(variable.shards())

    def resend(self) -> None:
        """Publish all own entries again."""
        for variable in self.variables.values():
            variable.unsent.update(variable.shards())

    def connected(self, _now_us: int) -> None:
        self.resend()

    def become(self, replica: Replica) -> None:
        self._replica = replica
        for variable in self.variables.values():
            variable.become(replica)

    def reports(self) -> tuple[VariableReport, ...]:
        """Return what this device says of each variable in its beat."""
        return tuple([variable.report() for variable in self.variables.values()])

    def publications(self, _now_us: int) -> Iterator[Publication]:
        if not self._schedule.entries_due:
            return
        for variable in self.variables.values():
            for shard in sorted(variable.unsent):
                publication = Publication.of(variable.frame(shard), self._topics)
                if len(publication.payload) <= MAX_FRAME_BYTES:
                    yield publication
                else:
                    self._counters.note(f"variable {variable.name}: too large to be published")
                variable.unsent.discard(shard)  # the link took it, or else it asked for no more
