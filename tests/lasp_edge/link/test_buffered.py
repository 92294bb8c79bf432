"""Packets are read from memory: how they were cut into pieces on the way does not matter."""

import random
import socket

import pytest

from lasp_edge.link import Limits
from lasp_edge.link.buffered import CHUNK_BYTES
from tests.brokers import until_connected, until_messages
from tests.lasp_edge.link.support_link import publish_packet, publish_when_possible

pytestmark = pytest.mark.broker

SIZES = (0, 1, 100, CHUNK_BYTES - 20, CHUNK_BYTES, 3 * CHUNK_BYTES, 1, 200_000, 2)


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
