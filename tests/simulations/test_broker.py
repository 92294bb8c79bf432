"""The private broker: it is there when it says so, keeps what it should, and lacks what it says."""

import random

import pytest

from lasp_edge.errors import EnvironmentLacks
from lasp_edge.link import BrokerUrl, Limits, Link
from lasp_edge.tool.installing import install_line
from simulations.processes.broker import AMQTT_LACKS, Broker, PrivateBroker, find_broker
from tests.brokers import broker_program, messages, until, until_messages, until_true

pytestmark = pytest.mark.broker
KINDS = ["mosquitto", "amqtt"]


@pytest.fixture
def connect():
    """Return a function that gives connected links; they are stopped at the end."""
    links = []

    def start(url, client_id, *subscriptions, **options):
        link = Link(
            BrokerUrl.parse(url),
            client_id=client_id,
            subscriptions=subscriptions,
            jitter=random.Random(1),
            **options,
        )
        links.append(link)
        link.start()
        until_true(lambda: link.connected)
        return link

    yield start
    for link in links:
        link.stop(flush_s=0.0)


def retain(connect, url):
    link = connect(url, "keeper")
    assert link.publish("kept", b"x", retain=True)
    until_true(lambda: link.in_flight == 0)
    link.stop()


def retained(connect, url):
    """Return what a new reader is given before what is published then."""
    reader = connect(url, "reader", "kept", "now")
    until_true(lambda: reader.publish("now", b"x"))
    came = until(reader, lambda events: any(event.topic == "now" for event in messages(events)))
    reader.stop()  # else it comes back beside the next one, under the same client id
    return [message.topic for message in messages(came)]


@pytest.mark.parametrize("broker", KINDS, indirect=True)
def test_a_started_broker_serves_and_a_killed_one_comes_back_empty(broker, connect):
    retain(connect, broker.url)
    assert retained(connect, broker.url) == ["kept", "now"]
    port = broker.port
    broker.kill()
    assert broker.pid is None
    broker.kill()
    broker.stop()
    broker.forget()
    broker.start()
    assert broker.port == port
    assert retained(connect, broker.url) == ["now"]


def test_mosquitto_keeps_what_is_retained_over_a_stop(tmp_path, connect):
    with PrivateBroker(tmp_path, broker_program("mosquitto")) as broker:
        assert broker.lacks == ""
        retain(connect, broker.url)
        broker.stop()
        broker.start()
        assert retained(connect, broker.url) == ["kept", "now"]


def test_amqtt_keeps_nothing_on_disk_and_nothing_for_who_is_away(tmp_path, connect):
    with PrivateBroker(tmp_path, broker_program("amqtt")) as broker:
        assert broker.lacks == AMQTT_LACKS
        retain(connect, broker.url)
        broker.stop()
        broker.start()
        assert retained(connect, broker.url) == ["now"]
        connect(broker.url, "away", "t", keep_session_s=600).stop()
        sender = connect(broker.url, "sender")
        assert sender.publish("t", b"x")
        until_true(lambda: sender.in_flight == 0)
        back = connect(broker.url, "away", "t", keep_session_s=600)
        assert sender.publish("t", b"later")
        assert [message.payload for message in until_messages(back, 1)] == [b"later"]


@pytest.mark.slow
def test_amqtt_forgets_what_is_not_acknowledged_in_5_seconds(tmp_path, connect):
    with PrivateBroker(tmp_path, broker_program("amqtt")) as broker:
        options = {"keep_session_s": 600, "manual_acknowledgement": True}
        slow = connect(broker.url, "slow", "t", **options)
        sender = connect(broker.url, "sender")
        assert sender.publish("t", b"x")
        until_messages(slow, 1)
        log = tmp_path / "broker.log"
        until_true(lambda: "Timeout waiting for PUBACK" in log.read_text())
        slow.stop()
        back = connect(broker.url, "slow", "t", **options)
        assert sender.publish("t", b"later")
        assert [message.payload for message in until_messages(back, 1)] == [b"later"]


def test_amqtt_leaves_mqtt_5_unanswered(tmp_path):
    with PrivateBroker(tmp_path, broker_program("amqtt")) as broker:
        url = BrokerUrl.parse(f"mqtt://127.0.0.1:{broker.port}?protocol=5")
        limits = Limits(handshake_timeout_s=0.5)
        link = Link(url, client_id="a", jitter=random.Random(1), limits=limits)
        link.start()
        until_true(lambda: link.trouble == "the broker does not answer our CONNECT (MQTT 5)")
        link.stop()


def test_a_broker_that_does_not_start_says_why(tmp_path):
    mosquitto = broker_program("mosquitto")
    broken = Broker("mosquitto", [*mosquitto.command, "/nowhere", "--nonsense"])
    with pytest.raises(EnvironmentLacks, match="mosquitto does not start") as lack:
        PrivateBroker(tmp_path, broken).start()
    assert "broker.conf" in lack.value.line_to_type


def test_a_machine_without_any_broker_is_told_what_to_type(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda *_args, **_options: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(EnvironmentLacks, match="neither mosquitto nor amqtt") as lack:
        find_broker()
    assert lack.value.line_to_type == install_line("demo")
