"""Retained messages of a source's topics: each counts once at most, by its content.

A broker keeps the last message of a topic that was published as retained, and sends it again at
every subscription: at each start of the agent, and after each break of the connection. It is no new
reading, and where it is the first that the agent hears of it, nobody knows how old it is. So such
messages are no readings unless the user asks for them, and then each counts once: what was counted
last of each topic is remembered in the source's cursor, which is stored with the readings.

    >>> seen = SeenContents()
    >>> seen.is_news("door", b"1", retained=True), seen.is_news("door", b"1", retained=True)
    (True, False)
    >>> again = SeenContents(seen.text())
    >>> again.is_news("door", b"1", retained=True), again.is_news("door", b"0", retained=True)
    (False, True)
"""

import json
from hashlib import sha256

KEPT_TOPICS = 256
"""Topics of which the last content is remembered, at most: 10 kB in the store. A retained message
of any other topic does not count, as nobody could tell whether it counted before."""


class SeenContents:
    """The last content of each topic that was counted.

    Args:
        text: what `text` gave; what is not understood is forgotten.
    """

    def __init__(self, text: str = "") -> None:
        self._contents: dict[str, tuple[str, bool]] = {}
        try:
            for topic, (content, retained) in json.loads(text).items():
                self._contents[str(topic)] = str(content), bool(retained)
        except (ValueError, TypeError, AttributeError):
            self._contents.clear()

    def text(self) -> str:
        """Return it as text, for the cursor."""
        return json.dumps(self._contents, separators=(",", ":"))

    def is_news(self, topic: str, payload: bytes, *, retained: bool) -> bool:
        """Return whether a message counts, and remember its content if it does.

        A message that came while the agent was away comes twice, kept for its session and retained
        for all: then the second of the two does not count.
        """
        at, content = _short(topic.encode()), _short(payload)
        known, was_retained = self._contents.get(at, ("", False))
        if known == content and (retained or was_retained):
            self._contents[at] = content, retained
            return False
        if at in self._contents or len(self._contents) < KEPT_TOPICS:
            self._contents[at] = content, retained
            return True
        return not retained


def _short(content: bytes) -> str:
    return sha256(content).hexdigest()[:16]
