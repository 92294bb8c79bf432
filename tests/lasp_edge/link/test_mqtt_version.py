"""MQTT 5, or 3.1.1 where a broker knows no 5."""

import pytest

from lasp_edge.link import Limits
from tests.brokers import (
    old_broker,
    until_connected,
    until_messages,
    until_true,
)
from tests.lasp_edge.link.support_link import publish_when_possible

pytestmark = pytest.mark.broker


@pytest.mark.parametrize("manner", ["refuse", "close", "hang"])
def test_an_old_broker_is_spoken_to_in_3_1_1_and_that_is_remembered(broker, connect, manner):
    with old_broker(broker, manner) as front:
        limits = Limits(handshake_timeout_s=0.3, first_wait_s=0.05)
        link = connect(front.url, subscriptions=["t"], limits=limits)
        assert until_connected(link).protocol == "3.1.1"
        assert front.protocols[:2] == [5, 4]
        tries = len(front.protocols)  # more than two where the machine took long to answer
        publish_when_possible(link, "t", b"x")
        until_messages(link, 1)
        front.cut()
        assert until_connected(link).protocol == "3.1.1"
        assert set(front.protocols[tries:]) == {4}


def test_a_protocol_that_worked_survives_a_broker_that_dies_in_a_handshake(mosquitto, connect):
    with old_broker(mosquitto, "pass") as front:
        link = connect(front.url, limits=Limits(first_wait_s=0.05))
        assert until_connected(link).protocol == "5"
        front.manner = "close"
        front.cut()
        until_true(lambda: len(front.protocols) >= 3)
        front.manner = "pass"
        assert until_connected(link).protocol == "5"


def test_a_protocol_that_is_asked_for_is_the_only_one(broker, connect):
    with old_broker(broker, "close") as front:
        link = connect(f"{front.url}?protocol=5", limits=Limits(first_wait_s=0.01))
        until_true(lambda: len(front.protocols) >= 4)
        assert set(front.protocols) == {5}
        assert link.trouble


def test_a_broker_that_takes_long_to_answer_is_given_more_time(broker, connect):
    with old_broker(broker, "late") as front:
        limits = Limits(handshake_timeout_s=0.2, first_wait_s=0.01)
        link = connect(front.url, subscriptions=["t"], limits=limits)
        until_connected(link)
        assert len(front.protocols) > 4
