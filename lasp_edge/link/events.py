"""Settings of a link, the events that it reports, and what it counts."""

import socket
import struct
from collections.abc import Callable
from typing import Any, NamedTuple, Self

from lasp_edge.link.broker_url import BrokerUrl, MqttVersion
from lasp_edge.link.seal import Seal


class Will(NamedTuple):
    """The message that the broker publishes when the connection breaks (MQTT's Last Will)."""

    topic: str
    payload: bytes
    qos: int = 1
    retain: bool = True


class Connected(NamedTuple):
    """The broker accepted the connection, and has answered every subscription."""

    protocol: MqttVersion
    session_present: bool
    refused_subscriptions: tuple[str, ...] = ()


class Disconnected(NamedTuple):
    """A connection that `Connected` had announced is over; `reason` is for people."""

    reason: str


class Message(NamedTuple):
    """One message of a subscription.

    Attributes:
        token: names the connection and packet it came by.
        again: the broker has sent this packet before, and knows of no acknowledgement (MQTT's DUP).
        arrived_s: when it was read from the socket, on the link's clock (`connection.now_s`).
    """

    topic: str
    payload: bytes
    retain: bool
    qos: int
    token: tuple[int, int]
    again: bool = False
    arrived_s: float | None = None


Event = Connected | Disconnected | Message


class Limits(NamedTuple):
    """Bounds of a link's memory and of its waiting."""

    keep_alive_s: int = 20  # a dead peer is noticed after at most twice this
    connect_timeout_s: float = 5.0  # TCP and TLS
    handshake_timeout_s: float = 3.0  # CONNECT and SUBSCRIBE answered
    confirm_timeout_s: float = (
        30.0  # the longest wait for a confirmation while messages are in flight
    )
    first_wait_s: float = 0.5  # wait before the n-th try: random below first_wait_s * 2**n ...
    longest_wait_s: float = 30.0  # ... and below this
    early_wait_s: float = 5.0  # ... and, while an outage is young, below this: most are short
    early_s: float = 180.0  # for how long it is young; a broker that is gone is tried less often
    steady_s: float = 5.0  # a connection that lasted this long resets the count of tries
    in_flight: int = 100  # messages handed to the broker and not yet confirmed
    in_flight_bytes: int = 1 << 20
    payload_bytes: int = 4 * (1 << 16)  # greater ones are dropped where they come in
    inbox_bytes: int = 4 << 20  # above this the socket is not read until somebody polls
    # Messages from which on a waiting `poll` returns; other events end its wait at once. More than
    # 1 is for a caller that acts at its own times only: what it publishes leaves with its next
    # `poll`, too.
    enough: int = 1
    gather_s: float = 0.0  # after reading a few packets the socket is left unread for this long


class ConnectionSettings(NamedTuple):
    """What all connections of a link have in common."""

    broker: BrokerUrl
    client_id: str
    subscriptions: tuple[str, ...]
    last_will: Will | None
    keep_session_s: int
    limits: Limits
    seal: Seal | None = None
    expects_refusal: Callable[[str], bool] | None = None


class SocketBytes(NamedTuple):
    """Bytes through the link's sockets as the kernel counts them, TLS included, TCP headers not."""

    sent: int = 0
    received: int = 0

    def plus(self, other: "SocketBytes") -> "SocketBytes":
        """Return the bytes of both."""
        return SocketBytes(self.sent + other.sent, self.received + other.received)

    @classmethod
    def of(cls, sock: Any) -> Self | None:
        """Return the bytes of a socket so far; None where nobody counts them."""
        # Linux's struct tcp_info: 8 bytes of small fields, 24 words of 32 bits, then in 64 bits
        # pacing_rate, max_pacing_rate, bytes_acked, bytes_received. Elsewhere there is no count.
        try:
            info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)
            return cls(*struct.unpack_from("=QQ", info, 120))
        except (OSError, AttributeError, struct.error):
            return None


class Counts:
    """What the link has seen since its start; each number has one writing thread."""

    __slots__ = (
        "attempts",
        "confirmed",
        "connections",
        "dropped",
        "faults",
        "published",
        "received",
    )

    def __init__(self) -> None:
        self.attempts = 0
        self.connections = 0
        self.published = 0
        self.confirmed = 0
        self.received = 0
        self.faults = 0
        self.dropped: dict[str, int] = {}

    def drop(self, reason: str) -> None:
        """Count one message that went no further."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1
