"""The topics that hold what this device shows people: a later process knows which to clear.

A key may leave, or a fold may leave the program, while there is no connection; or the connection
broke before the broker took that it is gone. What the broker retains then stays, also over a
restart. So a topic is stored before anything is published on it, and until it is cleared for sure.
"""

from collections.abc import Callable

from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes, Facts
from device_agent.agent.parts import Part
from device_agent.outputs.topic_notes import TopicNotes
from lasp_edge.protocol.shards import KEY_SHARDS


class ShownTopics(Part):
    """The stored topics of all parts that show something.

    Args:
        agent: what all parts share.
        is_connected: returns whether there is a connection to the broker.
    """

    name = "shown topics"

    def __init__(self, agent: Agent, is_connected: Callable[[], bool]) -> None:
        self._stored, self._is_connected = agent.facts.shown or {}, is_connected
        self._notes: dict[str, TopicNotes] = {}
        self.is_changed = False

    def of(self, part: str) -> TopicNotes:
        """Return those of a part."""
        groups = (self._stored.get(_group(part, shard), ()) for shard in range(KEY_SHARDS))
        return self._notes.setdefault(part, TopicNotes(groups, self._change))

    def _change(self) -> None:
        self.is_changed = True

    def take_changes(self) -> Changes | None:
        is_connected = self._is_connected()
        found = {
            _group(part, shard): topics
            for part, notes in self._notes.items()
            for shard, topics in notes.take_changed(is_connected=is_connected).items()
        }
        self.is_changed = False
        return Changes(facts=Facts(shown=found)) if found else None


def _group(part: str, shard: int) -> str:
    return f"{part}:{shard:x}"
