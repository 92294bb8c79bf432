"""Check (e): the bytes of the devices' sockets beside those of shipping every reading as JSON.

Shipped one by one, a reading would be one MQTT 3.1.1 PUBLISH of quality 1, as the devices use it,
and its PUBACK:

    1 B type + 1..4 B remaining length + 2 B + topic `PROGRAM/DEVICE/EVENT` + 2 B packet id
    + payload {"device":...,"event":...,"time_us":...,"value":...}, compact, and "tags" if any
    + 4 B PUBACK

Its connection is left out, and so is what TCP and IP add on either side.
"""

import json
from collections.abc import Iterable
from typing import NamedTuple, Self

from simulations.oracle import Reading

_TYPE, _LENGTH_OF_TOPIC, _PACKET_ID, _PUBACK = 1, 2, 2, 4
_SEVEN_BITS = 7


class Pace(NamedTuple):
    """How fast the devices measured.

    Attributes:
        per_second: readings of each device; None for a recording, which has no rate of its own.
    """

    text: str
    per_second: float | None = None

    @classmethod
    def of(cls, readings: int, devices: int, seconds: float) -> Self:
        """Return the pace of `devices` that together took `readings` in `seconds`."""
        rate = readings / devices / seconds
        return cls(f"{rate:.1f} a second each", rate)


class Traffic(NamedTuple):
    """What was sent and received, and what JSON would have cost.

    Attributes:
        sent_bytes: by the devices, over all sockets.
        received_bytes: by the devices.
        json_bytes: for every accepted reading, one by one.
    """

    sent_bytes: int
    received_bytes: int
    json_bytes: int
    readings: int
    pace: Pace

    @property
    def socket_bytes(self) -> int:
        """All bytes of the devices' sockets."""
        return self.sent_bytes + self.received_bytes

    @property
    def ratio(self) -> float:
        """What was carried, as a multiple of the JSON's bytes."""
        return self.socket_bytes / self.json_bytes


def traffic_lines(traffic: Traffic) -> list[str]:
    """Return finding (e): all bytes beside those of JSON, at the rate that was measured."""
    (how, rate), indent = traffic.pace, " " * 12
    sent, received = f"{traffic.sent_bytes:,} sent", f"{traffic.received_bytes:,} received"
    lines = [
        f"(e) bytes   {traffic.socket_bytes:,} over the devices' sockets ({sent}, {received}):"
    ]
    if not traffic.json_bytes:
        return [*lines, f"{indent}no reading was accepted, so JSON would have sent nothing"]
    as_json = f"{traffic.json_bytes:,} of JSON over MQTT"
    lines.append(f"{indent}{_compared(traffic.ratio)} the {as_json}")
    measured = f"{indent}({traffic.readings:,} readings, {how})"
    if rate is None:
        lines.append(f"{measured}.")
        lines.append(f"{indent}At the recorded pace the agents would run longer and send more.")
    else:
        lines.append(f"{measured}; below {rate * traffic.ratio:.0f}, JSON is smaller.")
    return lines


def _compared(ratio: float) -> str:
    """Return a ratio of bytes in words.

    >>> _compared(0.83), _compared(3.0)
    ('17 % less than', '3.00 times as much as')
    """
    return (
        f"{1 - ratio:.0%} less than".replace("%", " %")
        if ratio < 1
        else f"{ratio:.2f} times as much as"
    )


def json_bytes(program: str, readings: Iterable[Reading]) -> int:
    """Return what shipping every reading as JSON would cost.

    `program` is the first level of the topic.
    """
    return sum(_publish_bytes(program, reading) for reading in readings)


def _publish_bytes(program: str, reading: Reading) -> int:
    plain = {
        "device": reading.device,
        "event": reading.event,
        "time_us": reading.time_us,
        "value": reading.value,
    } | ({"tags": reading.tags} if reading.tags else {})
    payload = json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode()
    topic = f"{program}/{reading.device}/{reading.event}".encode()
    remaining = _LENGTH_OF_TOPIC + len(topic) + _PACKET_ID + len(payload)
    return _TYPE + _length_bytes(remaining) + remaining + _PUBACK


def _length_bytes(remaining: int) -> int:
    """Return how many bytes MQTT takes to say a length: seven bits each.

    >>> [_length_bytes(length) for length in (0, 127, 128, 16_383, 16_384)]
    [1, 1, 2, 2, 3]
    """
    return max(1, -(-remaining.bit_length() // _SEVEN_BITS))
