"""Retained topics for people: a changed content is published, a topic without one is cleared."""

from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any, NamedTuple, Protocol

from lasp_edge.protocol.publication import Publication

MOST_CLEARED = 64
"""Topics that are cleared once more on the next connection, at most: the last ones."""


class Content(NamedTuple):
    """What a topic is to hold now.

    Attributes:
        mark: equal marks, equal payloads.
        payload: gives the payload, which costs more than the mark.
    """

    topic: str
    mark: Any
    payload: Callable[[], bytes]


class Notes(Protocol):
    """The topics that the store knows, for a later process."""

    @property
    def topics(self) -> Set[str]:
        """All of them."""

    def add(self, topic: str) -> bool:
        """Note a topic; return whether something may be published on it now."""

    def remove(self, topic: str) -> None:
        """Forget a topic: nothing is retained on it any more."""


class Retained:
    """The topics that one part keeps up to date.

    What a connection took before it broke may have been lost. So a topic is cleared once more on
    the next connection.

    Args:
        notes: the topics that are stored; None where nothing is.
        former: the stored topics that are gone unless they are wanted; None for all.

    Attributes:
        waits: something is to be published as soon as its topic is stored.
    """

    def __init__(self, notes: Notes | None = None, former: Iterable[str] | None = None) -> None:
        self._notes, self.waits = notes, False
        if former is None:
            former = notes.topics if notes else ()
        self._former = tuple(former)
        self._sent: dict[str, int] = {}
        self._cleared: dict[str, bool] = {}  # whether it was cleared once more

    def again(self) -> None:
        """Publish everything again, whether it changed or not."""
        self._sent = dict.fromkeys([*self._sent, *self._cleared], 0)
        self._cleared = dict.fromkeys(self._cleared, True)

    def publications(
        self, wanted: Iterable[Content], *, is_all: bool = True
    ) -> Iterator[Publication]:
        """Publish what changed; an empty text where nothing is wanted any more.

        Args:
            wanted: what the topics are to hold.
            is_all: a topic that only an earlier process knew is gone if it is not among them.
        """
        if is_all:
            self._sent, self._former = dict.fromkeys(self._former, 0) | self._sent, ()
        gone, self.waits = set(self._sent), False
        for topic, mark, payload in wanted:
            gone.discard(topic)
            known = hash(mark)
            if self._sent.get(topic) == known:
                continue
            self._cleared.pop(topic, None)
            if self._notes is not None and not self._notes.add(topic):
                self.waits = True
                continue
            yield Publication(topic, payload(), retain=True)
            self._sent[topic] = known  # the link took it, or else it asked for no more
        for topic in sorted(gone):
            yield Publication(topic, b"", retain=True)
            self._clear(topic)

    def _clear(self, topic: str) -> None:
        """Forget a topic that was cleared for the second time."""
        del self._sent[topic]
        is_sure = self._cleared.pop(topic, False)
        if not is_sure:
            self._cleared[topic] = False
        first = topic if is_sure else next(iter(self._cleared))
        if is_sure or len(self._cleared) > MOST_CLEARED:
            self._cleared.pop(first, None)
            if self._notes is not None:
                self._notes.remove(first)
