"""What operators said, as a lattice that every device keeps and repeats, so that none is lost.

A frame tells all that its sender knows of one subject. Who hears it joins it; and repeats what was
not heard for some time, soon where somebody seems to know less (`lasp_edge.protocol.repeating`).
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import Any, Generic, TypeVar

from crdts import Lattice
from device_agent.agent.agent import Agent
from device_agent.agent.parts import FrameRefusedError, Handler, Part
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.repeating import Repeating

Said = TypeVar("Said", bound=Lattice)


class OperatorCommands(Part, Generic[Said]):
    """Keeps what operators said of each subject, and repeats it politely.

    Args:
        agent: what all parts share.
        known: what the store held.
        jitter: tells this part's repetitions from those of others.

    Attributes:
        known: all that operators said.
    """

    frame_kind: type[Frame]
    """The frames that tell it."""

    def __init__(self, agent: Agent, known: Said, jitter: int) -> None:
        self._agent = agent
        self.known = known
        self._repeating = Repeating(Random(agent.replica.nonce + jitter))
        self._sent = 0

    @property
    @abstractmethod
    def subjects(self) -> Iterable[str]:
        """Of what something was said."""

    @abstractmethod
    def subject_of(self, frame: Any) -> str:
        """Return of what a frame speaks."""

    @abstractmethod
    def said_by(self, frame: Any) -> Said:
        """Return what a frame says, as a delta."""

    @abstractmethod
    def known_of(self, subject: str) -> Said:
        """Return all that is known of a subject."""

    @abstractmethod
    def frame_of(self, number: int, subject: str) -> Frame:
        """Return the frame, of a number of this part, that tells all that is known of a subject."""

    @abstractmethod
    def refusal_of(self, frame: Any) -> str | None:
        """Return why a frame is not taken; None if it is."""

    @abstractmethod
    def heard_of(self, subject: str) -> None:
        """Something new was heard of a subject, and is joined."""

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {self.frame_kind: self._receive}

    def _receive(self, frame: Frame, now_us: int) -> None:
        """Join what a frame says."""
        reason = self.refusal_of(frame)
        if reason is not None:
            raise FrameRefusedError(reason)
        said, subject = self.said_by(frame), self.subject_of(frame)
        if not said <= self.known:
            self.known |= said
            self.heard_of(subject)
        self._repeating.hear(subject, now_us, is_newest=said == self.known_of(subject))

    def connected(self, now_us: int) -> None:
        self._repeating.begin(self.subjects, now_us)

    def publications(self, now_us: int) -> Iterator[Publication]:
        """Repeat what was not heard for some time."""
        for subject in self._repeating.due(now_us):
            self._sent += 1
            yield Publication.of(self.frame_of(self._sent, subject), self._agent.topics)
