"""Brokers that refuse, garble, fall silent or send what nobody asked for."""

import ssl

import pytest

from lasp_edge.link import Disconnected, Limits
from lasp_edge.link.trouble import NAMES
from simulations.processes.broker import PrivateBroker
from tests.brokers import (
    broker_program,
    until,
    until_connected,
    until_messages,
    until_true,
)
from tests.lasp_edge.link.support_link import publish_packet, publish_when_possible

pytestmark = pytest.mark.broker
TAKEN = b"\x20\x03\x00\x00\x00"


def test_what_was_not_asked_for_is_dropped(scripted, connect):
    packets = publish_packet(b"b/1", b"x") + publish_packet(b"a/1", b"y")
    link = connect(scripted(TAKEN, b"\x90\x04\x00\x01\x00\x01" + packets), subscriptions=["a/+"])
    assert until_messages(link, 1)[0].topic == "a/1"
    assert link.counts.dropped == {"not subscribed": 1}


def test_a_shared_subscription_asks_for_its_filter(scripted, connect):
    packets = publish_packet(b"a/1", b"y")
    answers = TAKEN, b"\x90\x04\x00\x01\x00\x01" + packets
    link = connect(scripted(*answers), subscriptions=["$share/landers/a/+"])
    assert until_messages(link, 1)[0].topic == "a/1"


def test_packets_that_share_a_tls_record_are_all_read(scripted, connect, certificate, monkeypatch):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    packets = b"".join(publish_packet(b"b", b"x") for _ in range(50))
    url = scripted(TAKEN + packets, tls=context)
    limits = Limits(keep_alive_s=60_000)  # what is not read now would be read hours later
    link = connect(url.replace("mqtt://127.0.0.1", "mqtts://localhost"), limits=limits)
    until_true(lambda: link.counts.dropped == {"not subscribed": 50})


def test_why_the_broker_disconnects_us_is_told(scripted, connect):
    link = connect(scripted(TAKEN + b"\xe0\x01\x8e"))
    came = until(link, lambda events: len(events) >= 2)
    why = "the broker disconnects us: Session taken over"
    assert came[1] == Disconnected(
        f"{why}; another program uses the client id a: stop one of the two, or "
        f"give it another {NAMES}"
    )


def test_a_refused_subscription_is_told(scripted, connect):
    link = connect(scripted(TAKEN, b"\x90\x05\x00\x01\x00\x01\x87"), subscriptions=["a", "b"])
    assert until_connected(link).refused_subscriptions == ("b",)
    assert link.trouble.startswith("the broker refuses the subscription b: Not authorized; let us ")


def test_subscriptions_that_are_not_answered_end_the_connection(scripted, connect):
    link = connect(
        scripted(TAKEN, b""), subscriptions=["a"], limits=Limits(handshake_timeout_s=0.2)
    )
    until_true(lambda: link.trouble == "the broker does not answer our subscriptions")
    assert link.protocol == "5"
    assert link.poll(0.0) == []


@pytest.mark.parametrize(
    "garbage", [b"\xf0\x00", b"HTTP/1.1 400\r\n\r\n", TAKEN + b"\x30\x05\x00\xff"]
)
def test_garbage_ends_the_connection_and_no_more(scripted, connect, garbage):
    link = connect(scripted(garbage), limits=Limits(handshake_timeout_s=0.2, keep_alive_s=1))
    until_true(lambda: link.trouble not in (None, "connecting"))
    assert link._thread.is_alive()


def test_the_embedded_broker_serves_and_its_faults_are_met(tmp_path, connect):
    with PrivateBroker(tmp_path / "broker", broker_program("amqtt")) as broker:
        sender = connect(broker.url, "sender", ["t/#"])
        assert until_connected(sender).protocol == "3.1.1"
        publish_when_possible(sender, "t/1", b"kept", retain=True)
        until_messages(sender, 1)
        # It sends a newcomer what any subscription at the broker retains; the link drops that.
        other = connect(broker.url, "other", ["u"])
        until_connected(other)
        publish_when_possible(sender, "u", b"mine")
        assert [message.topic for message in until_messages(other, 1)] == ["u"]
        late = connect(broker.url, "late", ["t/+"])
        assert until_messages(late, 1)[0][:3] == ("t/1", b"kept", True)
