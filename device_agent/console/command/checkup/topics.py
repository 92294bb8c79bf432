"""What a broker publishes: whether messages come on the topics that sources ask for.

>>> like("zigbee2mqtt/kitchn", ["zigbee2mqtt/kitchen", "tele/plug/SENSOR"])
['zigbee2mqtt/kitchen']
>>> like("/sensors/+/temp", ["sensors/attic/temp", "sensors/attic/humidity"])
['sensors/attic/temp']
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from random import Random

from device_agent.agent.runtime import fresh_nonce
from device_agent.agent.sources.topic_pattern import matcher_of
from device_agent.console.command.line import named
from lasp_edge.link import BrokerUrl, Connected, Link, Message

LISTEN_S = 5.0
"""Seconds that are listened, at most: what is retained comes at once, and many sensors publish each
few seconds."""
MOST_MESSAGES = 20_000
"""Messages after which no more are looked at: a busy broker publishes some thousands a second."""
OURS = "lasp/"
"""What the topics of fleets begin with: no sensor publishes there."""
ALIKE = 0.8
"""From which on two topics are like each other, as `SequenceMatcher.ratio` has it: a letter more,
fewer or another of five."""


def published(
    url: BrokerUrl, filters: Sequence[str], listen_s: float = LISTEN_S
) -> Counter[str] | None:
    """Return how many messages came on each topic, of all that this user may read.

    None if there was no connection.

    Args:
        url: the broker.
        filters: once a message came for each of these, it is not listened any longer.
        listen_s: seconds, at most.
    """
    found: Counter[str] = Counter()
    awaited = [matcher_of([each]) for each in filters]
    link = Link(
        url,
        client_id=f"lasp-look-{fresh_nonce():08x}",
        subscriptions=["#", *filters],
        jitter=Random(fresh_nonce()),
    )
    link.start()
    connected = False
    now_s = time.monotonic  # noqa: TID251 - people publish in real time
    ends_s = now_s() + listen_s
    while awaited and now_s() < ends_s and found.total() < MOST_MESSAGES:
        events = link.poll(0.2)
        connected = connected or any(isinstance(event, Connected) for event in events)
        topics = [event.topic for event in events if isinstance(event, Message)]
        found.update(topics)
        awaited = [m for m in awaited if m and not any(map(m.fullmatch, set(topics)))]
    link.stop()
    return found if connected else None


def outcome(topic_filter: str, topics: Mapping[str, int] | None) -> tuple[int, str]:
    """Return how many messages came for a topic filter, and that in words.

    Args:
        topic_filter: as the broker takes it.
        topics: messages on each topic that was listened to; None without a connection.
    """
    if topics is None:
        return 0, f"nothing came on {topic_filter}: there is no connection to the broker"
    matcher = matcher_of([topic_filter])
    own = [topic for topic in topics if matcher and matcher.fullmatch(topic)]
    count = sum(topics[topic] for topic in own)
    if own:
        return count, f"{count} message{'s' * (count != 1)} came on {named(sorted(own))}"
    nothing = f"nothing came on {topic_filter} within {LISTEN_S:g} s"
    near = like(topic_filter, topics)
    if near:
        return 0, f"{nothing}; did you mean {named(near)}?"
    others = sorted(topic for topic in topics if not topic.startswith(OURS))
    return 0, f"{nothing}, but on {named(others)}" if others else f"{nothing}, nor on any topic"


def like(topic_filter: str, topics: Iterable[str]) -> list[str]:
    """Return the topics that are like a topic filter, the most like first."""
    rated = [(-_likeness(topic_filter, topic), topic) for topic in topics]
    return [topic for unlike, topic in sorted(rated) if -unlike >= ALIKE]


def _likeness(topic_filter: str, topic: str) -> float:
    asked, there = (text.lower().strip("/ ").split("/") for text in (topic_filter, topic))
    if asked[-1] == "#":
        asked = [*asked[:-1], *there[len(asked) - 1 :]]
    filled = [
        level if name == "+" else name
        for name, level in zip(asked, there + [""] * len(asked), strict=False)
    ]
    if len(filled) != len(there):
        return SequenceMatcher(None, "/".join(filled), "/".join(there)).ratio()
    return min(SequenceMatcher(None, *levels).ratio() for levels in zip(filled, there, strict=True))
