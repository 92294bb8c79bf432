"""Packets are read from memory: how they were cut into pieces on the way does not matter."""

import random
import socket

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from lasp_edge.link import Limits
from lasp_edge.link.buffered import CHUNK_BYTES, BufferedClient
from tests.brokers import until_connected, until_messages
from tests.lasp_edge.link.support_link import publish_packet, publish_when_possible

broker_needed = pytest.mark.broker

SIZES = (0, 1, 100, CHUNK_BYTES - 20, CHUNK_BYTES, 3 * CHUNK_BYTES, 1, 200_000, 2)


@broker_needed
@pytest.mark.parametrize("gather_s", [0.0, 0.05])
def test_packets_of_all_sizes_come_whole_and_in_order(broker, connect, gather_s):
    limits = Limits(gather_s=gather_s)
    link = connect(broker.url, "reader", subscriptions=["t"], limits=limits)
    sender = connect(broker.url, "sender")
    until_connected(link)
    until_connected(sender)
    sent = [bytes([number % 251]) * size for number, size in enumerate(3 * SIZES)]
    for payload in sent:
        publish_when_possible(sender, "t", payload)
    assert [message.payload for message in until_messages(link, len(sent))] == sent


@broker_needed
@pytest.mark.parametrize("seed", range(5))
def test_a_stream_that_is_cut_anywhere_gives_the_same_packets(connect, seed):
    cuts, sent = random.Random(seed), [b"%d" % number * 40 for number in range(60)]
    with socket.create_server(("127.0.0.1", 0)) as server:
        link = connect(f"mqtt://127.0.0.1:{server.getsockname()[1]}?protocol=5", "cut", ["t"])
        peer, _ = server.accept()
        with peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.recv(4096)
            peer.sendall(b"\x20\x03\x00\x00\x00")  # accepted
            number = peer.recv(4096)[2:4]
            peer.sendall(b"\x90\x04" + number + b"\x00\x01")  # subscribed
            stream = b"".join(publish_packet(b"t", payload) for payload in sent)
            while stream:
                size = cuts.choice((1, 2, 3, 50, 500, 5_000))
                peer.sendall(stream[:size])
                stream = stream[size:]
            assert [message.payload for message in until_messages(link, len(sent))] == sent


def _handled(kind, protocol, header, packet):
    """Return what a client of paho makes of a PUBLISH: its messages, or the error it raises."""
    client, messages = kind(CallbackAPIVersion.VERSION2, protocol=protocol, manual_ack=True), []

    def take(_client, _userdata, message):
        try:
            topic = message.topic
        except UnicodeDecodeError:
            topic = None
        rest = bytes(message.payload), message.qos, message.mid
        messages.append((topic, *rest, bool(message.retain), bool(message.dup)))

    client.on_message = take
    client.on_socket_register_write = lambda *_: None  # nothing is written here
    client._in_packet["command"], client._in_packet["packet"] = header, bytearray(packet)
    try:
        return client._handle_publish(), messages
    except Exception as error:  # noqa: BLE001 - whatever it is, both raise it
        return type(error), messages


def _drawn_packet(drawn):
    """Return a PUBLISH's first byte and content: plain, with properties, or damaged."""
    topic = drawn.choice([b"t", b"a/b", "käse".encode(), b"\xff", b"", b"x" * 300])
    properties = drawn.choice([b"\0", b"\0", b"\3\x23\0\7", b"\2\1\1", b"\x80\0", b""])
    packet = len(topic).to_bytes(2, "big") + topic + drawn.choice([b"", drawn.randbytes(2)])
    packet += properties + drawn.randbytes(drawn.randrange(4))
    if drawn.random() < 0.2:
        packet = packet[: drawn.randrange(len(packet) + 1)]
    return 0x30 | drawn.randrange(16), packet


@pytest.mark.parametrize("protocol", [MQTTProtocolVersion.MQTTv5, MQTTProtocolVersion.MQTTv311])
def test_a_message_is_read_as_paho_reads_it(protocol):
    drawn, taken = random.Random(int(protocol)), 0
    for _ in range(3_000):
        header, packet = _drawn_packet(drawn)
        theirs = _handled(Client, protocol, header, packet)
        assert _handled(BufferedClient, protocol, header, packet) == theirs, (header, packet)
        taken += bool(theirs[1])
    assert taken > 500
