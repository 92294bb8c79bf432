"""The link against real brokers: each pitfall of MQTT and paho that it exists for."""

import contextlib
import gc
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

from lasp_edge.link import BrokerUrl, Connected, Disconnected, Limits, Link, Will
from lasp_edge.link.connection import Connection
from simulations.demo.broker import PrivateBroker
from tests.brokers import (
    ConfiguredMosquitto,
    broker_program,
    messages,
    old_broker,
    until,
    until_connected,
    until_messages,
    until_true,
)
from tests.support_missing import lacks

pytestmark = pytest.mark.broker
PROTOCOLS = ["5", "3.1.1"]


@pytest.fixture
def broker(tmp_path):
    with PrivateBroker(tmp_path / "broker", broker_program()) as running:
        yield running


@pytest.fixture
def mosquitto(tmp_path):
    """A broker that speaks MQTT 5, keeps sessions and sends again what was not acknowledged."""
    with PrivateBroker(tmp_path / "broker", broker_program("mosquitto")) as running:
        yield running


@pytest.fixture
def connect():
    """Return a function that starts links; they are stopped at the end."""
    links = []

    def start(url, client_id="a", subscriptions=(), **options):
        options.setdefault("jitter", random.Random(1))
        link = Link(
            BrokerUrl.parse(url), client_id=client_id, subscriptions=subscriptions, **options
        )
        links.append(link)
        link.start()
        return link

    yield start
    for link in links:
        link.stop(flush_s=0.0)


def publish_when_possible(link, topic, payload, **options):
    until_true(lambda: link.publish(topic, payload, **options))


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
    link.subscribe_again("t/+")
    again = until_messages(link, 1)
    assert [(m.topic, m.payload, m.retain) for m in again] == [("t/1", b"kept", True)]


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
    link = connect(broker.url)
    until_connected(link)
    broker.kill()
    broker.start()
    began = time.perf_counter()
    until_connected(link)
    assert time.perf_counter() - began < 3.0


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
        assert not link.publish("t", b"x" * 2_000)
        assert link.counts.dropped == {"greater than the broker takes": 1}
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
    real = Link._choose_protocol

    def dies(*_args, **_options):
        monkeypatch.setattr(Link, "_choose_protocol", real)
        raise SystemExit  # the one exception that ends a thread without a word

    monkeypatch.setattr(Link, "_choose_protocol", dies)
    thread = link._thread
    broker.kill()
    thread.join(timeout=10)
    assert not thread.is_alive()
    assert not link.connected
    broker.start()
    until_connected(link)
    assert link.counts.faults == 1


@pytest.mark.parametrize("manner", ["refuse", "close", "hang"])
def test_an_old_broker_is_spoken_to_in_3_1_1_and_that_is_remembered(broker, connect, manner):
    with old_broker(broker, manner) as front:
        limits = Limits(handshake_timeout_s=0.3, first_wait_s=0.05)
        link = connect(front.url, subscriptions=["t"], limits=limits)
        assert until_connected(link).protocol == "3.1.1"
        publish_when_possible(link, "t", b"x")
        until_messages(link, 1)
        front.cut()
        assert until_connected(link).protocol == "3.1.1"
        assert front.protocols == [5, 4, 4]


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
    limits = Limits(inbox_bytes=20_000, keep_alive_s=120)
    slow = connect(broker.url, "slow", ["t"], limits=limits, **options)
    until_connected(slow)
    fast = connect(broker.url, "fast")
    until_connected(fast)
    for _ in range(150):
        publish_when_possible(fast, "t", b"x" * 1_000, qos=0)
    until_true(lambda: slow._inbox.reader_waits)
    until_messages(slow, 150, seconds=5.0)


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


@pytest.fixture
def scripted():
    """Return a function that starts a broker which gives these answers, one a packet."""
    sockets = []

    def start(*answers, tls=None):
        def serve():
            with contextlib.suppress(OSError):
                peer, _ = server.accept()
                if tls is not None:
                    peer = tls.wrap_socket(peer, server_side=True)
                sockets.append(peer)
                for answer in answers:
                    peer.recv(4096)
                    peer.sendall(answer)
                peer.recv(4096)

        server = socket.create_server(("127.0.0.1", 0))
        sockets.append(server)
        threading.Thread(target=serve, daemon=True).start()
        return f"mqtt://127.0.0.1:{server.getsockname()[1]}"

    yield start
    for each in sockets:
        each.close()


TAKEN = b"\x20\x03\x00\x00\x00"


def publish_packet(topic, payload):
    return bytes([0x30, 3 + len(topic) + len(payload), 0, len(topic)]) + topic + b"\x00" + payload


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
    link = connect(url.replace("mqtt://127.0.0.1", "mqtts://localhost"))
    until_true(lambda: link.counts.dropped == {"not subscribed": 50}, seconds=4.0)


def test_why_the_broker_disconnects_us_is_told(scripted, connect):
    link = connect(scripted(TAKEN + b"\xe0\x01\x8e"))
    came = until(link, lambda events: len(events) >= 2)
    assert came[1] == Disconnected("the broker disconnects us: Session taken over")


def test_a_refused_subscription_is_told(scripted, connect):
    link = connect(scripted(TAKEN, b"\x90\x05\x00\x01\x00\x01\x87"), subscriptions=["a", "b"])
    assert until_connected(link).refused_subscriptions == ("b",)
    assert link.trouble == "the broker refuses the subscription b"


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


def test_who_has_the_same_id_throws_the_older_off(mosquitto, connect):
    older = connect(mosquitto.url, "twin", limits=Limits(first_wait_s=30.0))
    until_connected(older)
    until_connected(connect(mosquitto.url, "twin"))
    until(older, lambda events: any(isinstance(e, Disconnected) for e in events))


def test_poll_is_woken(broker, connect):
    link = connect(broker.url)
    until_connected(link)
    threading.Timer(0.05, link.wake).start()
    began = time.perf_counter()
    assert link.poll(10.0) == []
    assert time.perf_counter() - began < 5.0


def test_who_asked_to_be_notified_is(broker, connect):
    told = threading.Event()
    link = connect(broker.url, subscriptions=["t"], notify=told.set)
    assert told.wait(10.0)
    until_connected(link)


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


def test_a_users_password_and_rights(tmp_path, connect):
    if not shutil.which("mosquitto_passwd"):
        lacks("mosquitto_passwd is not installed")
    passwords, rights = tmp_path / "passwords", tmp_path / "rights"
    subprocess.run(["mosquitto_passwd", "-b", "-c", passwords, "ann", "s:cret"], check=True)
    rights.write_text("user ann\ntopic readwrite open/#\n")
    for path in (passwords, rights):
        path.chmod(0o600)
    lines = ("allow_anonymous false", f"password_file {passwords}", f"acl_file {rights}")

    class Guarded(ConfiguredMosquitto):
        def _wait_until_it_accepts(self, process, line):  # the probe has no password
            until_true(lambda: "running" in (tmp_path / "broker/broker.log").read_text())

    with Guarded(tmp_path / "broker", *lines) as broker:
        address = broker.url.removeprefix("mqtt://")
        stranger = connect(f"mqtt://ann:wrong@{address}", "stranger")
        until_true(lambda: "refuses us: Not authorized" in (stranger.trouble or ""))
        assert stranger.protocol == "5"
        link = connect(f"mqtt://ann:s%3Acret@{address}", "ann")
        until_connected(link)
        publish_when_possible(link, "closed/1", b"x")
        until_true(lambda: link.counts.dropped == {"refused by the broker: Not authorized": 1})


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """Return the files of a certificate for localhost that signs itself, and of its key."""
    if not shutil.which("openssl"):
        lacks("openssl is not installed")
    directory = tmp_path_factory.mktemp("certificate")
    key, signed = directory / "key.pem", directory / "certificate.pem"
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        [*request, *names, "-keyout", key, "-out", signed], check=True, capture_output=True
    )
    return signed, key


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # paho's socket
def test_tls_with_a_private_authority(tmp_path, connect, certificate, monkeypatch):
    signed, key = certificate

    class Encrypted(ConfiguredMosquitto):
        def _wait_until_it_accepts(self, process, line):  # the probe speaks no TLS
            until_true(lambda: "running" in (tmp_path / "broker/broker.log").read_text())

    listener = (f"certfile {signed}", f"keyfile {key}")
    with Encrypted(tmp_path / "broker", listener=listener) as broker:
        url = f"mqtts://localhost:{broker.port}"
        distrustful = connect(url, "distrustful")
        until_true(lambda: "CERTIFICATE_VERIFY_FAILED" in (distrustful.trouble or ""))
        monkeypatch.setenv("SSL_CERT_FILE", str(signed))
        link = connect(url, "b", ["t"])
        until_connected(link)
        for _ in range(3):
            publish_when_possible(link, "t", b"x" * 100_000)
        assert [len(message.payload) for message in until_messages(link, 3)] == [100_000] * 3


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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mqtt://broker", "mqtt://broker:1883"),
        ("mqtts://broker", "mqtts://broker:8883"),
        ("mqtt://u:p%40s@broker:5/", "mqtt://u:***@broker:5"),
        ("mqtt://[::1]:7", "mqtt://[::1]:7"),
        ("mqtt://broker?protocol=3.1.1", "mqtt://broker:1883?protocol=3.1.1"),
    ],
)
def test_a_broker_address_is_shown_without_its_password(text, shown):
    url = BrokerUrl.parse(text)
    assert str(url) == repr(url) == shown
    assert url.password in (None, "p@s")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "broker",
        "broker:1883",
        "http://broker",
        "mqtt://",
        "mqtt://broker:0",
        "mqtt://broker:99999",
        "mqtt://u:secret@broker:port",
        "mqtt://u:secret@broker/topic",
        "mqtt://broker?protocol=4",
        "mqtt://broker?x=1",
    ],
)
def test_a_text_that_is_no_broker_address_is_refused(text):
    with pytest.raises(ValueError, match=r"broker address|after the \?") as refusal:
        BrokerUrl.parse(text)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("filters", [["a/#/b"], [""], ["a+"]])
def test_an_impossible_subscription_is_refused_at_once(filters):
    with pytest.raises(ValueError, match="subscription"):
        Link(
            BrokerUrl.parse("mqtt://x"),
            client_id="a",
            subscriptions=filters,
            jitter=random.Random(1),
        )


def test_an_impossible_topic_is_refused_at_once(broker, connect):
    link = connect(broker.url)
    until_connected(link)
    with pytest.raises(ValueError, match="wildcards"):
        link.publish("a/#", b"")
