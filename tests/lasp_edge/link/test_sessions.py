"""Sessions, acknowledgements, wills and client ids."""

import pytest

from lasp_edge.link import Connected, Disconnected, Limits, Will
from tests.brokers import (
    messages,
    old_broker,
    until,
    until_connected,
    until_messages,
    until_true,
)
from tests.lasp_edge.link.support_link import publish_when_possible

pytestmark = pytest.mark.broker
PROTOCOLS = ["5", "3.1.1"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_kept_session_brings_what_was_not_acknowledged_and_what_came_meanwhile(
    mosquitto, connect, protocol
):
    url = f"{mosquitto.url}?protocol={protocol}"
    kept = {"keep_session_s": 600, "manual_acknowledgement": True, "subscriptions": ["t"]}
    first = connect(url, "lander", **kept)
    until_connected(first)
    sender = connect(url, "sender")
    until_connected(sender)
    for number in (b"1", b"2", b"3"):
        publish_when_possible(sender, "t", number)
    one, two, _ = until_messages(first, 3)
    first.acknowledge(one)
    first.acknowledge(two)
    first.stop(flush_s=0.0)
    publish_when_possible(sender, "t", b"4")
    until_true(lambda: sender.counts.confirmed == 4)

    second = connect(url, "lander", **kept)
    came = until(second, lambda events: len(messages(events)) >= 2)
    assert isinstance(came[0], Connected)
    assert came[0].session_present
    assert [message.payload for message in messages(came)] == [b"3", b"4"]


def test_acknowledging_by_a_connection_that_is_gone_is_void(mosquitto, connect):
    with old_broker(mosquitto, "pass") as front:
        options = {"keep_session_s": 600, "manual_acknowledgement": True, "subscriptions": ["t"]}
        link = connect(front.url, limits=Limits(first_wait_s=0.05), **options)
        until_connected(link)
        publish_when_possible(link, "t", b"1")
        (before,) = until_messages(link, 1)
        front.cut()
        (after,) = until_messages(link, 1)
        assert after.payload == b"1"
        assert after.token != before.token
        link.acknowledge(before)
        publish_when_possible(link, "elsewhere", b"pushes the acknowledgement out")
        until_true(lambda: link.in_flight == 0)
        front.cut()
        (once_more,) = until_messages(link, 1)
        assert once_more.payload == b"1"


def test_the_last_will_speaks_for_who_vanished_and_not_for_who_left(broker, connect):
    watcher = connect(broker.url, "watcher", ["presence/+"])
    until_connected(watcher)
    leaver = connect(broker.url, "leaver", last_will=Will("presence/leaver", b"gone"))
    until_connected(leaver)
    leaver.stop()
    with old_broker(broker, "pass") as front:
        vanisher = connect(front.url, "vanisher", last_will=Will("presence/vanisher", b"gone"))
        until_connected(vanisher)
    assert [message.topic for message in until_messages(watcher, 1)] == ["presence/vanisher"]


def test_who_has_the_same_id_throws_the_older_off(mosquitto, connect):
    older = connect(mosquitto.url, "twin", limits=Limits(first_wait_s=30.0))
    until_connected(older)
    until_connected(connect(mosquitto.url, "twin"))
    until(older, lambda events: any(isinstance(e, Disconnected) for e in events))
