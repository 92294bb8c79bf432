"""Topic aliases: a topic that is used again is sent as a number of two bytes (MQTT 5, 3.3.2.3.4).

A fleet's topic has some 45 bytes and a frame some 60, so an alias saves a third of what is sent.
The broker says how many it takes (mosquitto: 10); they hold for one connection. The first half are
given at once, the others to topics that are used for the second time: a topic that is used once
takes few.

    >>> aliases = Aliases(most=2)
    >>> [aliases.of(topic) for topic in ("beat", "will", "beat", "var", "var", "var")]
    [('beat', 1), ('will', 0), ('', 1), ('var', 0), ('var', 2), ('', 2)]
"""

MOST_ONCE = 256
"""Topics that are remembered as used once, at most: some 25 kB."""


class Aliases:
    """The topic aliases of one connection.

    Args:
        most: how many the broker takes.
    """

    def __init__(self, most: int = 0) -> None:
        self._most = most
        self._numbers: dict[str, int] = {}
        self._once: set[str] = set()

    def of(self, topic: str) -> tuple[str, int]:
        """Return what to send for a topic: its text, "" where the alias says it, and its alias.

        The alias is 0 where it has none. What is returned must be sent.
        """
        number = self._numbers.get(topic)
        if number is not None:
            return "", number
        if len(self._numbers) >= self._most:
            return topic, 0
        if topic not in self._once and 2 * len(self._numbers) >= self._most:
            if len(self._once) >= MOST_ONCE:
                self._once.clear()
            self._once.add(topic)
            return topic, 0
        self._once.discard(topic)
        number = self._numbers[topic] = len(self._numbers) + 1
        return topic, number

    def forget(self, topic: str) -> None:
        """Note that what `of` returned was not sent."""
        if self._numbers.get(topic) == len(self._numbers):
            del self._numbers[topic]
