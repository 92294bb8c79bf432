"""What comes in: dropped where it is too large, left unread where nobody polls."""

import threading
import time

import pytest

from lasp_edge.link import Connected, Limits, Message
from lasp_edge.link.inbox import Inbox
from tests.brokers import (
    PATIENCE_S,
    until_connected,
    until_messages,
    until_true,
)
from tests.lasp_edge.link.support_link import publish_when_possible

pytestmark = pytest.mark.broker


def test_an_oversized_message_is_dropped_counted_and_acknowledged(mosquitto, connect):
    url = f"{mosquitto.url}?protocol=3.1.1"
    options = {"keep_session_s": 600, "limits": Limits(payload_bytes=1_000)}
    link = connect(url, subscriptions=["t"], **options)
    until_connected(link)
    publish_when_possible(link, "t", b"x" * 1_001)
    publish_when_possible(link, "t", b"x" * 1_000)
    assert [len(message.payload) for message in until_messages(link, 1)] == [1_000]
    assert link.counts.dropped == {"oversized": 1}
    link.stop()
    again = connect(url, subscriptions=["t"], **options)
    until_connected(again)
    publish_when_possible(again, "t", b"next")
    assert [message.payload for message in until_messages(again, 1)] == [b"next"]
    assert again.counts.dropped == {}


def test_a_full_inbox_leaves_the_socket_unread_and_loses_nothing(broker, connect):
    slow = connect(broker.url, "slow", ["t"], limits=Limits(inbox_bytes=100_000))
    until_connected(slow)
    fast = connect(broker.url, "fast")
    until_connected(fast)
    for number in range(500):
        publish_when_possible(fast, "t", b"%01000d" % number)
    until_true(lambda: fast.in_flight == 0)
    until_true(lambda: slow._inbox.reader_waits)
    assert slow.counts.received < 100
    came = until_messages(slow, 500)
    assert [int(message.payload) for message in came] == list(range(500))


def test_reading_goes_on_at_once_when_the_inbox_was_polled(broker, connect):
    options = {"manual_acknowledgement": True}  # so that no acknowledgement wakes the reader
    limits = Limits(inbox_bytes=20_000, keep_alive_s=3_600)  # it would go on half an hour later
    slow = connect(broker.url, "slow", ["t"], limits=limits, **options)
    until_connected(slow)
    fast = connect(broker.url, "fast")
    until_connected(fast)
    for _ in range(150):
        publish_when_possible(fast, "t", b"x" * 1_000, qos=0)
    until_true(lambda: slow._inbox.reader_waits)
    until_messages(slow, 150)


def test_poll_is_woken(broker, connect):
    link = connect(broker.url)
    until_connected(link)
    threading.Timer(0.05, link.wake).start()
    began = time.perf_counter()
    assert link.poll(2 * PATIENCE_S) == []
    assert time.perf_counter() - began < PATIENCE_S


def test_who_asked_to_be_notified_is(broker, connect):
    told = threading.Event()
    link = connect(broker.url, subscriptions=["t"], notify=told.set)
    assert told.wait(PATIENCE_S)
    until_connected(link)


def _message(number):
    return Message("t", b"%d" % number, retain=False, qos=1, token=(1, number))


def test_a_wait_ends_with_enough_messages():
    inbox = Inbox(1_000_000, 3, None)
    for number in (1, 2):
        inbox.put(_message(number))
    threading.Timer(0.05, inbox.put, [_message(3)]).start()
    assert [message.payload for message in inbox.take(PATIENCE_S)] == [b"1", b"2", b"3"]


def test_any_other_event_ends_the_wait():
    inbox = Inbox(1_000_000, 3, None)
    inbox.put(_message(1))
    threading.Timer(0.05, inbox.put, [Connected("5", session_present=False)]).start()
    began = time.perf_counter()
    assert len(inbox.take(2 * PATIENCE_S)) == 2
    assert time.perf_counter() - began < PATIENCE_S


def test_few_messages_are_there_when_the_time_is_over():
    inbox = Inbox(1_000_000, 3, None)
    inbox.put(_message(1))
    assert len(inbox.take(0.01)) == 1
    inbox.put(_message(2))
    assert len(inbox.take(0.0)) == 1


def test_what_is_published_at_ones_own_times_leaves_with_the_next_poll(broker, connect):
    patient = connect(broker.url, "patient", ["t"], limits=Limits(enough=8, keep_alive_s=3_600))
    sender = connect(broker.url, "sender", ["u"])
    until_connected(patient)
    until_connected(sender)
    publish_when_possible(sender, "t", b"there")
    until_messages(patient, 1)
    assert patient.publish("u", b"back")
    patient.poll(0.0)
    assert [message.payload for message in until_messages(sender, 1)] == [b"back"]
    assert patient.publish("u", b"goodbye")
    patient.stop()
    assert [message.payload for message in until_messages(sender, 1)] == [b"goodbye"]
