"""The relay counts what it passes on, and passes nothing on while it is cut."""

import socket
from threading import Thread

import pytest

from simulations.processes.relay import Relay
from tests.brokers import PATIENCE_S


@pytest.fixture
def relay():
    """A relay to a server that sends everything back twice."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                peer, _ = server.accept()
            except OSError:
                return
            Thread(target=twice, args=(peer,), daemon=True).start()

    Thread(target=serve, daemon=True).start()
    relay = Relay(server.getsockname()[1])
    yield relay
    relay.close()
    server.shutdown(socket.SHUT_RDWR)
    server.close()


def twice(peer):
    with peer:
        while chunk := peer.recv(1 << 16):
            peer.sendall(chunk * 2)


def connected(relay):
    return socket.create_connection(("127.0.0.1", relay.port), timeout=PATIENCE_S)


def answer(wire, count):
    """Return so many bytes; fewer if the connection ends."""
    with wire.makefile("rb") as file:
        try:
            return file.read(count)
        except ConnectionError:
            return b""


def asked(relay, payload):
    with connected(relay) as wire:
        sender = Thread(target=wire.sendall, args=(payload,))
        sender.start()
        found = answer(wire, 2 * len(payload))
        sender.join()
        return found


def test_every_byte_arrives_and_is_counted_in_both_directions(relay):
    payload = bytes(range(256)) * 4000
    assert len(asked(relay, payload)) == 2 * len(payload)
    assert asked(relay, b"abc") == b"abcabc"
    assert relay.sent_bytes == len(payload) + 3
    assert relay.received_bytes == 2 * relay.sent_bytes


def test_a_cut_ends_what_is_open_and_refuses_what_is_new_until_it_is_restored(relay):
    with connected(relay) as wire:
        wire.sendall(b"a")
        assert answer(wire, 2) == b"aa"
        relay.cut()
        assert answer(wire, 1) == b""
    with connected(relay) as wire:
        assert answer(wire, 1) == b""
    relay.restore()
    assert asked(relay, b"c") == b"cc"
    assert (relay.sent_bytes, relay.received_bytes) == (2, 4)


def test_what_is_held_arrives_later_over_the_same_connection(relay):
    with connected(relay) as wire:
        wire.sendall(b"a")
        assert answer(wire, 2) == b"aa"
        relay.hold()
        wire.sendall(b"b")
        assert relay.sent_bytes == 1
        relay.restore()
        assert answer(wire, 2) == b"bb"
        assert relay.sent_bytes == 2


def test_a_broker_that_is_away_ends_the_connection():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    relay = Relay(port)
    with connected(relay) as wire:
        assert answer(wire, 1) == b""
    relay.close()


def test_what_a_device_sent_by_a_connection_that_it_gave_up_never_arrives(relay):
    with connected(relay) as standing:
        standing.sendall(b"ab")
        assert answer(standing, 4) == b"abab"
        given_up = connected(relay)
        given_up.sendall(b"c")
        assert answer(given_up, 2) == b"cc"
        counted = relay.sent_bytes
        relay.hold()
        given_up.sendall(b"old")
        given_up.close()
        with connected(relay) as never_answered:
            never_answered.sendall(b"older")
        standing.sendall(b"de")
        relay.restore()
        assert answer(standing, 4) == b"dede", "what still stands is passed on"
        assert asked(relay, b"f") == b"ff"
        assert relay.sent_bytes == counted + len(b"de" + b"f")
