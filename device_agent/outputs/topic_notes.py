"""The topics on which something is shown, as they are stored: a later process knows which to clear.

What is shown may go while there is no connection; or the connection broke before the broker took
that it is gone. What the broker retains then stays, also over a restart. So a topic is stored
before anything is published on it, and until it is cleared for sure.
"""

from collections.abc import Callable, Iterable

from lasp_edge.protocol.shards import key_shard

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
