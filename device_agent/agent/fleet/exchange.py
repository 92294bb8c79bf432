"""The exchange of entries: this device publishes its own, and receives those of the others.

Entries that changed are published as often as the interval allows, coalesced, and always before the
beat that speaks of them. A peer that lacks one asks for it. Where the broker has kept an older
entry of this device, the newer one is published over it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from device_agent.agent.agent import Agent
from device_agent.agent.allowance import Allowance
from device_agent.agent.parts import FrameRefusedError, Handler, Part
from device_agent.agent.variables.published_fold import PublishedFold
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import AskFrame, VariableFrame, VariableReport
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.sizes import MAX_FRAME_BYTES
from lasp_edge.units import SECOND_US

BURST = 8
"""Rounds in which entries may follow each other: as many as commits of readings."""


class Exchange(Part):
    """Publishes this device's entries, and joins those of its peers.

    Args:
        agent: what all parts share.
        variables: all variables whose entries travel.
        shared: returns what is reported of the variables that are joined.

    Attributes:
        variables: by name, sorted.
        beat_due: a beat is to be published in this round; `Beats` decides.
    """

    name = "exchange"

    def __init__(
        self,
        agent: Agent,
        variables: Iterable[PublishedFold],
        shared: Callable[[], Iterable[VariableReport]],
    ) -> None:
        self._agent = agent
        self._shared = shared
        self.variables = {each.name: each for each in sorted(variables, key=lambda one: one.name)}
        self._allowance = Allowance(agent.settings.interval_us, SECOND_US, burst=BURST, reserve=0)
        self.beat_due = False
        self.succeed()

    @property
    def all_sent(self) -> bool:
        """Whether all own entries were published."""
        return not any(variable.unsent for variable in self.variables.values())

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {VariableFrame: self._receive, AskFrame: self._answer}

    def _receive(self, frame: VariableFrame, _now_us: int) -> None:
        """Join a peer's entry, or an own one that the broker kept."""
        own = frame.sender.device == self._agent.replica.device
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

    def connected(self, _now_us: int) -> None:
        for variable in self.variables.values():
            variable.unsent.update(variable.shards())
        self._allowance.restart()

    def unsent(self, publication: Publication) -> None:
        """What was left over goes out in the next round, and the beat after it."""
        if not publication.pane_frame:
            self._allowance.restart()

    def succeed(self) -> None:
        for variable in self.variables.values():
            variable.succeed()

    def reports(self) -> tuple[VariableReport, ...]:
        """Return the entries of published variables in this device's beat."""
        return (*[variable.report() for variable in self.variables.values()], *self._shared())

    def publications(self, now_us: int) -> Iterator[Publication]:
        if not any(variable.unsent for variable in self.variables.values()):
            return
        if not (self._allowance.is_due(now_us) or self.beat_due):
            return
        self._allowance.spend(now_us)
        for variable in self.variables.values():
            for shard in sorted(variable.unsent):
                publication = Publication.of(variable.frame(shard), self._agent.topics)
                if len(publication.payload) <= MAX_FRAME_BYTES:
                    yield publication
                else:
                    self._agent.counters.note(
                        f"variable {variable.name}: too large to be published"
                    )
                variable.unsent.discard(shard)  # the link took it, or else it asked for no more
