"""The link against real brokers: each pitfall of MQTT and paho that it exists for."""

import gc
import os
import random
import signal
import threading

import pytest

from lasp_edge.link import Connected, Disconnected, Limits
from lasp_edge.link.connection import Connection
from lasp_edge.link.mqtt_version import MqttVersionChoice
from tests.brokers import (
    PATIENCE_S,
    ConfiguredMosquitto,
    until,
    until_connected,
    until_messages,
    until_true,
)
from tests.lasp_edge.link.support_link import publish_when_possible

pytestmark = pytest.mark.broker
PROTOCOLS = ["5", "3.1.1"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_messages_and_retained_ones_arrive(mosquitto, connect, protocol):
    link = connect(f"{mosquitto.url}?protocol={protocol}", subscriptions=["t/+"])
    assert until_connected(link) == Connected(protocol, session_present=False)
    assert link.connected
    assert link.trouble is None
    assert link.publish("t/1", b"kept", retain=True)
    assert link.publish("t/2", b"\x00\xff")
    came = until_messages(link, 2)
    assert [(m.topic, m.payload, m.retain) for m in came] == [
        ("t/1", b"kept", False),
        ("t/2", b"\x00\xff", False),
    ]
    until_true(lambda: link.in_flight == 0)
    assert (link.counts.published, link.counts.confirmed, link.counts.received) == (2, 2, 2)
    again = until_messages(connect(mosquitto.url, client_id="b", subscriptions=["t/+"]), 1)
    assert [(m.topic, m.payload, m.retain) for m in again] == [("t/1", b"kept", True)]


def test_a_link_that_gathers_does_not_rest_between_many_messages(broker, connect):
    sender, gather_s = connect(broker.url, client_id="sender"), 3.0
    link = connect(broker.url, subscriptions=["t/#"], limits=Limits(gather_s=gather_s))
    until_connected(sender)
    until_connected(link)
    for number in range(40):
        publish_when_possible(sender, f"t/{number}", b"many")
    came = until_messages(link, 40)
    assert came[39].arrived_s - came[0].arrived_s < 4 * gather_s  # not a rest for each of them


def test_subscriptions_are_renewed_at_an_emptied_broker(broker, connect):
    link = connect(broker.url, subscriptions=["t/#"], keep_session_s=600)
    until_connected(link)
    broker.kill()
    until(link, lambda events: any(isinstance(event, Disconnected) for event in events))
    assert not link.connected
    assert "closed the connection" in link.trouble or "cannot reach" in link.trouble
    broker.forget()
    broker.start()
    assert not until_connected(link).session_present
    publish_when_possible(link, "t/1", b"again")
    assert until_messages(link, 1)[0].payload == b"again"
    assert link.counts.connections == 2


def test_a_restarted_broker_is_found_promptly(broker, connect):
    """The first waits are the short ones, however long the connection was there."""

    class Noted(random.Random):
        def uniform(self, a, b):
            bounds.append(b)
            return 0.0

    bounds = []
    link = connect(broker.url, jitter=Noted(7), limits=Limits(steady_s=0.0))
    until_connected(link)
    for _ in range(2):
        bounds.clear()
        broker.kill()
        until_true(lambda: len(bounds) >= 4)
        broker.start()
        until_connected(link)
        assert bounds[:4] == [0.5, 1.0, 2.0, 4.0]


def test_nothing_is_kept_for_a_broker_that_is_away(broker, connect):
    link = connect(broker.url)
    until_connected(link)
    broker.kill()
    until(link, lambda events: any(isinstance(event, Disconnected) for event in events))
    gc.collect()
    before = len(gc.get_objects())
    assert not any(link.publish("t", b"x" * 100) for _ in range(5_000))
    assert len(gc.get_objects()) - before < 500
    assert link.in_flight == 0


def test_waits_between_tries_are_random_below_a_doubling_bound(connect):
    class Noted(random.Random):
        def uniform(self, a, b):
            bounds.append((a, b))
            return super().uniform(a, b)

    bounds = []
    limits = Limits(first_wait_s=0.01, longest_wait_s=0.05)
    link = connect("mqtt://127.0.0.1:9", jitter=Noted(7), limits=limits)
    until_true(lambda: len(bounds) >= 6)
    assert bounds[:6] == [(0.0, 0.01), (0.0, 0.02), (0.0, 0.04)] + [(0.0, 0.05)] * 3
    assert "cannot reach mqtt://127.0.0.1:9" in link.trouble
    assert link.protocol == "5"  # nobody answered; that is no word about the protocol


def test_an_outage_is_tried_often_while_it_is_young(connect):
    class Noted(random.Random):
        def uniform(self, a, b):
            bounds.append(b)
            return 0.0

    bounds, young = [], Limits(first_wait_s=1.0)
    link = connect("mqtt://127.0.0.1:9", jitter=Noted(7), limits=young)
    until_true(lambda: len(bounds) >= 20)
    link.stop()
    assert bounds[:6] == [1.0, 2.0, 4.0, 5.0, 5.0, 5.0]
    bounds.clear()
    connect("mqtt://127.0.0.1:9", jitter=Noted(7), limits=young._replace(early_s=0.0))
    until_true(lambda: len(bounds) >= 20)
    assert bounds[:6] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0]


def test_what_is_in_flight_is_bounded_and_waited_for(broker, connect):
    link = connect(broker.url, limits=Limits(in_flight=20))
    until_connected(link)
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        assert sum(link.publish("t", b"x") for _ in range(100)) == 20
        assert link.in_flight == 20
    finally:
        later = threading.Timer(0.3, os.kill, (broker.pid, signal.SIGCONT))
        later.start()
    link.stop(flush_s=10.0)
    assert link.counts.confirmed == 20
    assert link.trouble == "stopped"
    assert not link.connected
    assert not link.publish("t", b"x")
    link.poll(0.0)
    link.stop()


def test_bytes_in_flight_are_bounded_but_one_message_always_goes(broker, connect):
    link = connect(broker.url, limits=Limits(in_flight_bytes=1_000))
    until_connected(link)
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        assert link.publish("t", b"x" * 5_000)
        assert not link.publish("t", b"x")
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    until_true(lambda: link.publish("t", b"x"))


def test_the_brokers_own_bounds_are_kept(tmp_path, connect):
    lines = ("max_inflight_messages 5", "max_packet_size 2000")
    with ConfiguredMosquitto(tmp_path / "broker", *lines) as broker:
        link = connect(broker.url)
        until_connected(link)
        assert link.publish("t", b"x" * 2_000)  # dropped: it may not hold up what comes after it
        assert link.counts.dropped == {"greater than the broker takes": 1}
        assert link.trouble.startswith("the broker refuses messages on t: Packet too large")
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            assert sum(link.publish("t", b"x") for _ in range(100)) == 5
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        until_true(lambda: link.in_flight == 0)
        assert link.counts.connections == 1


def test_a_broker_that_confirms_nothing_is_left(broker, connect):
    link = connect(broker.url, limits=Limits(confirm_timeout_s=0.3, keep_alive_s=1))
    until_connected(link)
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        assert link.publish("t", b"x")
        lost = until(link, lambda events: any(isinstance(e, Disconnected) for e in events))
        assert lost == [Disconnected("the broker confirms nothing")]
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    until_connected(link)


def test_an_exception_in_a_callback_ends_one_connection_only(broker, connect, monkeypatch, caplog):
    real = Connection._on_message
    failing = [True]

    def fails_once(self, client, userdata, packet):
        if failing:
            failing.clear()
            raise RuntimeError("a fault")
        real(self, client, userdata, packet)

    monkeypatch.setattr(Connection, "_on_message", fails_once)
    link = connect(broker.url, subscriptions=["t"])
    until_connected(link)
    link.publish("t", b"lost")
    lost = until(link, lambda events: any(isinstance(e, Disconnected) for e in events))
    assert lost == [Disconnected("a fault in the MQTT client (RuntimeError)")]
    assert not link.connected or link.counts.connections == 2
    until_connected(link)
    publish_when_possible(link, "t", b"kept")
    assert until_messages(link, 1)[0].payload == b"kept"
    assert link.counts.faults == 1
    assert "a fault" in caplog.text


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_dead_thread_is_noticed_and_replaced(broker, connect, monkeypatch):
    link = connect(broker.url)
    until_connected(link)
    real = MqttVersionChoice.learn

    def dies(*_args, **_options):
        monkeypatch.setattr(MqttVersionChoice, "learn", real)
        raise SystemExit  # the one exception that ends a thread without a word

    monkeypatch.setattr(MqttVersionChoice, "learn", dies)
    thread = link._thread
    broker.kill()
    thread.join(timeout=PATIENCE_S)
    assert not thread.is_alive()
    assert not link.connected
    broker.start()
    until_connected(link)
    assert link.counts.faults == 1


def test_traffic_is_what_the_kernel_counted(broker, connect):
    link = connect(broker.url, subscriptions=["t"])
    until_connected(link)
    before = link.traffic
    publish_when_possible(link, "t", b"x" * 10_000)
    until_messages(link, 1)
    until_true(lambda: link.traffic.sent - before.sent >= 10_000)
    assert 10_000 <= link.traffic.received - before.received < 10_100
    link.stop()
    assert link.traffic.sent - before.sent < 10_100


def test_an_impossible_topic_is_refused_at_once(broker, connect):
    link = connect(broker.url)
    until_connected(link)
    with pytest.raises(ValueError, match="wildcards"):
        link.publish("a/#", b"")
