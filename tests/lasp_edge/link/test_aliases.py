"""Topics that are used again are sent as numbers, where the broker takes that."""

import pytest

from lasp_edge.link.aliases import MOST_ONCE, Aliases
from tests.brokers import messages as of_events
from tests.brokers import until, until_connected, until_messages
from tests.support_sizes import most_held


def messages(link, count):
    """Return the next messages, as (topic, payload)."""
    return [(each.topic, each.payload) for each in until_messages(link, count)]


def sent(link, publications):
    """Publish; return the bytes of the socket that this took, once all is confirmed."""
    before = link.traffic.sent
    for topic, payload, qos in publications:
        assert link.publish(topic, payload, qos=qos)
    while link.in_flight:
        link.poll(0.02)
    return link.traffic.sent - before


TOPICS = [f"lasp/v1/greenhouse/0a/kind-{number}/a-device-with-a-long-name" for number in range(14)]


def test_messages_arrive_on_their_topics_whatever_has_an_alias(mosquitto, connect):
    hearing = connect(mosquitto.url, "hearing", ["lasp/#"])
    speaking = connect(mosquitto.url, "speaking")
    until_connected(hearing)
    until_connected(speaking)
    wanted = [(topic, b"%d" % turn, turn % 2) for turn in range(4) for topic in TOPICS]
    sent(speaking, wanted)
    found = messages(hearing, len(wanted))
    assert sorted(found) == sorted((topic, payload) for topic, payload, _ in wanted)


def test_an_alias_saves_the_topic(mosquitto, connect):
    speaking = connect(mosquitto.url, "speaking")
    until_connected(speaking)
    once = sent(speaking, [(TOPICS[0], b"x", 1)])
    again = sent(speaking, [(TOPICS[0], b"x", 1)])
    assert once - again == len(TOPICS[0])


def test_an_alias_does_not_outlive_its_connection(mosquitto, connect):
    hearing = connect(mosquitto.url, "hearing", ["lasp/#"])
    speaking = connect(mosquitto.url, "speaking")
    until_connected(hearing)
    until_connected(speaking)
    sent(speaking, [(TOPICS[0], b"before", 1)] * 3)
    mosquitto.kill()
    mosquitto.start()
    until_connected(hearing)
    until_connected(speaking)
    sent(speaking, [(TOPICS[0], b"after", 1)] * 3)
    after = (TOPICS[0], b"after")
    until(hearing, lambda events: [each[:2] for each in of_events(events)].count(after) == 3)


def test_a_broker_that_takes_none_is_sent_topics():
    aliases = Aliases()
    assert [aliases.of("a") for _ in range(3)] == [("a", 0)] * 3


def test_no_more_are_used_than_the_broker_takes():
    aliases = Aliases(2)
    for topic in ("a", "b", "b", "c", "c"):
        aliases.of(topic)
    assert [aliases.of(topic) for topic in ("a", "b", "c")] == [("", 1), ("", 2), ("c", 0)]


def test_topics_that_are_used_once_are_not_remembered_without_end():
    aliases = Aliases(2)
    aliases.of("first")
    for number in range(10 * MOST_ONCE):
        assert aliases.of(str(number)) == (str(number), 0)
    assert most_held(aliases) <= MOST_ONCE


@pytest.mark.parametrize("turns", [1, 2])
def test_what_was_not_sent_is_sent_with_its_topic_again(turns):
    aliases = Aliases(2)
    for _ in range(turns):
        aliases.of("a")
    aliases.forget("a")
    assert aliases.of("a") == ("a", 1)
    assert aliases.of("a") == ("", 1)
