"""A paho client that reads all bytes that are there at once, and writes in one thread only.

paho reads a packet's first byte, then its length, then its content, each by a call of the kernel
that also gives up the interpreter's lock. Here one call takes what has come, and the packets are
read from memory. A release of paho that reads in another way reads as it does without this.
"""

import socket
from typing import Any

from paho.mqtt.client import Client

CHUNK_BYTES = 4_096
"""Bytes that are taken at once: some 40 frames; more than that is read by the next call."""


class BufferedClient(Client):
    """A client of paho.

    Attributes:
        unread: bytes that were taken from the socket, and are of packets not yet read.
        is_drained: whether the last call took all that the socket had then.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.unread = b""
        self.is_drained = False
        self.on_socket_open = _send_small_packets_at_once
        self.on_socket_register_write = _leave_writing_to_serve

    def _sock_recv(self, bufsize: int) -> bytes:  # paho's name
        if not self.unread:
            asked = max(bufsize, CHUNK_BYTES)
            self.unread = super()._sock_recv(asked)
            self.is_drained = len(self.unread) < asked
        taken, self.unread = self.unread[:bufsize], self.unread[bufsize:]
        return taken


def _leave_writing_to_serve(_client: Client, _userdata: Any, _sock: Any) -> None:
    """Keep paho from writing in the thread that publishes."""


def _send_small_packets_at_once(_client: Client, _userdata: Any, sock: Any) -> None:
    # Nagle's algorithm holds a small packet back, up to 40 ms, until the one before is confirmed.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
