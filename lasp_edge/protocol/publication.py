"""A message to publish, as the table of frame kinds says."""

from typing import NamedTuple, Self

from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import PaneFrame
from lasp_edge.protocol.kinds import FRAME_KINDS
from lasp_edge.protocol.topics import Topics, topic_of


class Publication(NamedTuple):
    """Something to publish; `pane_frame` is its number if it is a pane frame, else 0."""

    topic: str
    payload: bytes
    retain: bool
    pane_frame: int = 0
    qos: int = 1

    @classmethod
    def of(cls, frame: Frame, topics: Topics) -> Self:
        """Return the publication of a frame by the table of frame kinds."""
        row = FRAME_KINDS[frame.kind]
        pane_frame = frame.number if type(frame) is PaneFrame else 0  # frames have no subclasses
        return cls(topic_of(frame, topics), frame.encode(), row.retained, pane_frame, row.qos)
