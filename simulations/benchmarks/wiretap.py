"""What crosses a wire to an MQTT broker, in bytes by kind: frames by theirs, the rest by packet.

    >>> tap = Wiretap()
    >>> tap.take(bytes([0xC0, 0]) + bytes([0x40, 2, 0, 7, 0x40]))
    >>> tap.take(bytes([2, 0, 8]))
    >>> sorted(tap.sizes.items())
    [('PINGREQ', 2), ('PUBACK', 8)]
    >>> tap.counts["PUBACK"]
    2

Source: OASIS, "MQTT Version 5.0", 2019, 2.1 (the fixed header) and 3.3 (PUBLISH).
"""

from collections import Counter
from enum import IntEnum

from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.kinds import decode

_PUBLISH, _QOS = 3, 0b0110


class Packet(IntEnum):
    """The kinds of packets that a device and a broker exchange."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    SUBSCRIBE = 8
    SUBACK = 9
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14


class Wiretap:
    """Counts the packets of one direction of MQTT 5 connections, one after the other.

    Attributes:
        sizes: bytes by kind: all of a packet's, its head among them.
        counts: packets by kind.
    """

    def __init__(self) -> None:
        self.sizes: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self._rest = b""

    def take(self, chunk: bytes) -> None:
        """Count what has come; a packet may come in pieces."""
        data, at = self._rest + chunk, 0
        while (end := _end(data, at)) is not None:
            kind = _kind(data[at:end])
            self.sizes[kind] += end - at
            self.counts[kind] += 1
            at = end
        self._rest = data[at:]

    def restart(self) -> None:
        """Forget the packet that a connection which ended had begun."""
        self._rest = b""


def _length(data: bytes, at: int) -> tuple[int, int] | None:
    """Return an integer of variable length and where it ends; None where it is not complete."""
    value = shift = 0
    while at < len(data):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004 - the highest bit says that more follows
            return value, at
    return None


def _end(data: bytes, at: int) -> int | None:
    """Return where the packet that begins at `at` ends; None where it is not complete."""
    length = _length(data, at + 1)
    if length is None or length[0] + length[1] > len(data):
        return None
    return sum(length)


def _kind(packet: bytes) -> str:
    number = packet[0] >> 4
    if number == _PUBLISH:
        try:
            return type(decode(_payload(packet))).__name__
        except FrameError:
            return "PUBLISH"
    return Packet(number).name if number in list(Packet) else "another"


def _payload(packet: bytes) -> bytes:
    """Return the payload of a PUBLISH."""
    _, at = _length(packet, 1) or (0, 0)
    at += 2 + int.from_bytes(packet[at : at + 2], "big")
    at += 2 if packet[0] & _QOS else 0
    properties, at = _length(packet, at) or (0, 0)
    return packet[at + properties :]
