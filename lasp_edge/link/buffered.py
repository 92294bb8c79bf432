"""A paho client that reads all bytes that are there at once, and writes in one thread only.

paho reads a packet's first byte, then its length, then its content, each by a call of the kernel
that also gives up the interpreter's lock. Here one call takes what has come, and the packets are
read from memory. A release of paho that reads in another way reads as it does without this.

For each message paho makes objects with locks, a line of a log and a table of properties, which
nobody uses here. So a plain message is read in a few lines; any other one is left to paho.
"""

import socket
from typing import Any, NamedTuple, cast

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import MQTTErrorCode, MQTTProtocolVersion

CHUNK_BYTES = 4_096
"""Bytes that are taken at once: some 40 frames; more than that is read by the next call."""
_QOS_2, _QOS_1, _RETAIN, _DUP = 4, 2, 1, 8  # bits of a PUBLISH's first byte


class Publish(NamedTuple):
    """A plain message: what `paho.mqtt.client.MQTTMessage` calls so."""

    topic: str
    payload: bytes
    qos: int
    mid: int
    retain: bool
    dup: bool


def plain(header: int, packet: bytes, *, has_properties: bool) -> Publish | None:
    r"""Return the message of a PUBLISH; None where it is not plain, or no message at all.

    Plain is a message of QoS 0 or 1 without properties, on a topic in UTF-8.

    >>> plain(0x32, b"\0\3tea\0\7\0hot", has_properties=True)
    Publish(topic='tea', payload=b'hot', qos=1, mid=7, retain=False, dup=False)

    Args:
        header: the first byte.
        packet: all that follows the length.
        has_properties: whether it is a packet of MQTT 5, where the length of properties follows.
    """
    ends = 2 + int.from_bytes(packet[:2], "big")
    begins = ends + (2 if header & _QOS_1 else 0)
    if header & _QOS_2 or ends == 2 or len(packet) < begins + has_properties:  # noqa: PLR2004
        return None
    if has_properties and packet[begins]:
        return None
    try:
        topic = packet[2:ends].decode()
    except UnicodeDecodeError:
        return None
    payload, packet_id = packet[begins + has_properties :], packet[ends:begins]
    qos, mid = (header & _QOS_1) >> 1, int.from_bytes(packet_id, "big")
    return Publish(topic, payload, qos, mid, bool(header & _RETAIN), bool(header & _DUP))


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

    def _handle_publish(self) -> MQTTErrorCode:  # paho's name
        header, packet = self._in_packet["command"], bytes(self._in_packet["packet"])
        is_newest = self._protocol == MQTTProtocolVersion.MQTTv5
        message = plain(header, packet, has_properties=is_newest)
        if message is None or self.on_message is None:
            return super()._handle_publish()
        self.on_message(self, self._userdata, cast(MQTTMessage, message))
        return MQTTErrorCode.MQTT_ERR_SUCCESS


def _leave_writing_to_serve(_client: Client, _userdata: Any, _sock: Any) -> None:
    """Keep paho from writing in the thread that publishes."""


def _send_small_packets_at_once(_client: Client, _userdata: Any, sock: Any) -> None:
    # Nagle's algorithm holds a small packet back, up to 40 ms, until the one before is confirmed.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
