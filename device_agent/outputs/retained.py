"""Retained topics for people: a changed content is published, a topic without one is cleared."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from lasp_edge.protocol.publication import Publication


class Content(NamedTuple):
    """What a topic is to hold now.

    Attributes:
        mark: equal marks, equal payloads.
        payload: gives the payload, which costs more than the mark.
    """

    topic: str
    mark: Any
    payload: Callable[[], bytes]


class Retained:
    """The topics that one part keeps up to date.

    Args:
        topics: those on which an earlier process left something that may be gone by now.
    """

    def __init__(self, topics: Iterable[str] = ()) -> None:
        self._sent = dict.fromkeys(topics, 0)

    def again(self) -> None:
        """Publish everything again, whether it changed or not."""
        self._sent = dict.fromkeys(self._sent, 0)

    def publications(self, wanted: Iterable[Content]) -> Iterator[Publication]:
        """Publish what changed; an empty text where nothing is wanted any more."""
        gone = set(self._sent)
        for topic, mark, payload in wanted:
            gone.discard(topic)
            known = hash(mark)
            if self._sent.get(topic) != known:
                yield Publication(topic, payload(), retain=True)
                self._sent[topic] = known  # the link took it, or else it asked for no more
        for topic in sorted(gone):
            yield Publication(topic, b"", retain=True)
            del self._sent[topic]
