"""The topics that hold what this device shows people: a later process knows which to clear.

A key may leave, or a fold may leave the program, while there is no connection; or the connection
broke before the broker took that it is gone. What the broker retains then stays, also over a
restart. So a topic is stored before anything is published on it, and until it is cleared for sure.
"""

from collections.abc import Callable, Iterable

from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes, Facts
from device_agent.agent.parts import Part
from lasp_edge.protocol.shards import KEY_SHARDS, key_shard

MOST_TOPICS = 2_000
"""Topics of one part that are stored, at most: some 100 kB. Others are published all the same."""


class TopicNotes:
    """The stored topics of one part.

    Args:
        groups: the topics that the store held, by shard.
        change: called where something is to be stored.

    Attributes:
        topics: all of them.
    """

    def __init__(self, groups: Iterable[Iterable[str]], change: Callable[[], None]) -> None:
        self.topics = {topic for group in groups for topic in group}
        self._change = change
        self._fresh: set[str] = set()
        self._changed: set[int] = set()
        self._coming: Callable[[], Iterable[str]] = tuple

    def ask(self, coming: Callable[[], Iterable[str]]) -> None:
        """Note with the next commit the topics on which the part publishes right after it."""
        self._coming = coming
        self._change()

    def add(self, topic: str) -> bool:
        """Note a topic; return whether something may be published on it now: it is stored."""
        if topic not in self.topics:
            if len(self.topics) >= MOST_TOPICS:
                return True
            self.topics.add(topic)
            self._fresh.add(topic)
            self._changed.add(key_shard(topic))
            self._change()
        return topic not in self._fresh

    def remove(self, topic: str) -> None:
        """Forget a topic, if it is known: nothing is retained on it any more."""
        if topic in self.topics:
            self.topics.discard(topic)
            self._changed.add(key_shard(topic))
            self._change()

    def take_changed(self, *, is_connected: bool) -> dict[int, list[str]]:
        """Return the topics of the shards that have changed; they are stored right after."""
        coming, self._coming = self._coming, tuple
        for topic in coming() if is_connected else ():
            self.add(topic)
        self._fresh.clear()
        changed, self._changed = self._changed, set()
        found: dict[int, list[str]] = {shard: [] for shard in sorted(changed)}
        for topic in sorted(self.topics) if found else ():
            if (shard := key_shard(topic)) in found:
                found[shard].append(topic)
        return found


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
