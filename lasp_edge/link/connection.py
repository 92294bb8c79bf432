"""One connection, from CONNECT to its end, on a paho client that is made for it alone.

paho only speaks the protocol. Its own network thread, its offline queue and its reconnection are
not used, because each of them fails in a way that cannot be repaired from outside: an exception in
a callback ends the thread while `is_connected()` stays true, a message queued offline costs 2 kB,
the back-off has no jitter, and `disconnect` forgets what was not yet sent. With a client for each
connection nothing of a dead one is ever sent again.
"""

import logging
import select
import ssl
import threading
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.matcher import MQTTMatcher
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from lasp_edge.link.aliases import Aliases
from lasp_edge.link.broker_url import MqttVersion, TlsFiles
from lasp_edge.link.buffered import BufferedClient
from lasp_edge.link.events import Connected, ConnectionSettings, Counts, Message, SocketBytes
from lasp_edge.link.in_flight import InFlight
from lasp_edge.link.inbox import Inbox
from lasp_edge.link.properties import TopicAlias, share_tables
from lasp_edge.link.seal import BrokenSealError
from lasp_edge.link.taken_sizes import TakenSizes
from lasp_edge.link.trouble import (
    Refusals,
    SocketErrors,
    closed,
    ended_by_broker,
    missing_abilities,
    refused_connection,
)
from lasp_edge.link.waker import Waker

share_tables()
now_s = time.monotonic  # noqa: TID251 a network's time-outs are real ones
_VERSIONS: dict[MqttVersion, MQTTProtocolVersion] = {
    "5": MQTTProtocolVersion.MQTTv5,
    "3.1.1": MQTTProtocolVersion.MQTTv311,
}
_UNSUPPORTED_PROTOCOL = 0x84
_PACKET_OVERHEAD_BYTES = 32  # fixed header, packet number and properties of a PUBLISH, generously
_ENVELOPE_BYTES = (1 << 16) + _PACKET_OVERHEAD_BYTES  # with the longest topic
_GOODBYE_S = 1.0  # how long a DISCONNECT may take to leave
_FEW_PACKETS = 8  # less are gathered; of more, mosquitto waits for answers after 20


class ConnectionEnded(Exception):  # noqa: N818 the end of a connection is no error of ours
    """The connection is over; the text says why."""


class Connection:
    """One connection of a link; `ready` once the broker accepted it and its subscriptions.

    `open`, `serve` and `close` run in the network's thread; `publish`, `pending`, `subscribe` and
    `acknowledge` in the caller's, who wakes `serve` afterwards. All writing to the socket is
    `serve`'s: paho writes in the caller's thread unless `on_socket_register_write` is set.
    """

    def __init__(
        self,
        number: int,
        protocol: MqttVersion,
        settings: ConnectionSettings,
        inbox: Inbox,
        counts: Counts,
        sizes: TakenSizes,
        progress: threading.Event,
    ) -> None:
        self.number = number
        self.protocol: MqttVersion = protocol
        self.opened = False
        self.answered = False
        self.protocol_refused = False
        self.ready = False
        self.refusals = Refusals(settings.broker, settings.expects_refusal)
        self._settings = settings
        self._inbox = inbox
        self._counts = counts
        self._sizes = sizes
        self._progress = progress
        self._errors = SocketErrors()
        self._client = self._make_client()
        self._asked_for: Any = MQTTMatcher()  # type: ignore[no-untyped-call]
        for asked in settings.subscriptions:
            self._asked_for[_filter_within(asked)] = True
        self._ended_because: str | None = None
        self._final_traffic = SocketBytes()
        self._session_present = False
        self._subscribing: dict[int, Sequence[str]] = {}
        self._early, self._gathers_until_s = list[Message](), 0.0
        limits = settings.limits
        self._in_flight = InFlight(limits.in_flight, limits.in_flight_bytes, self.refusals, sizes)
        self._most_packet_bytes = 1 << 28
        self._aliases = Aliases()

    def _make_client(self) -> BufferedClient:
        settings = self._settings
        client = BufferedClient(
            CallbackAPIVersion.VERSION2,
            client_id=settings.client_id,
            clean_session=None if self.protocol == "5" else not settings.keep_session_s,
            protocol=_VERSIONS[self.protocol],
            reconnect_on_failure=False,
            manual_ack=True,
        )
        client.enable_logger(cast(logging.Logger, self._errors))
        client.connect_timeout = settings.limits.connect_timeout_s
        client.max_inflight_messages = 0  # bounded in `publish`; paho's own bound makes a queue
        if settings.broker.user is not None:
            client.username_pw_set(settings.broker.user, settings.broker.password)
        if settings.last_will is not None:
            will = settings.last_will
            client.will_set(will.topic, will.payload, will.qos, will.retain)
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_subscribe = self._on_subscribe
        client.on_publish = self._on_publish
        client.on_message = self._on_message
        client.on_socket_close = self._on_socket_close
        return client

    def open(self) -> None:
        """Connect the socket and queue the CONNECT.

        Raises:
            OSError: nothing answers at that address, or TLS failed.
        """
        broker, limits = self._settings.broker, self._settings.limits
        if broker.tls:
            self._client.tls_set_context(_tls_context(broker.files))
        if self.protocol == "5":
            properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
            properties.MaximumPacketSize = limits.payload_bytes + _ENVELOPE_BYTES
            if self._settings.keep_session_s:
                properties.SessionExpiryInterval = self._settings.keep_session_s
            self._client.connect(
                broker.dialled,
                broker.port,
                limits.keep_alive_s,
                clean_start=not self._settings.keep_session_s,
                properties=properties,
            )
        else:
            self._client.connect(broker.dialled, broker.port, limits.keep_alive_s)
        self.opened = True

    def serve(self, stopping: threading.Event, wake: Waker) -> None:
        """Read and write until the connection is over.

        Raises:
            ConnectionEnded: always.
        """
        client = self._client
        poller = select.poll()
        poller.register(wake, select.POLLIN)
        deadline_s = now_s() + self._settings.limits.handshake_timeout_s
        keep_alive_s, leaving = self._settings.limits.keep_alive_s, False
        while (sock := client.socket()) is not None:
            if stopping.is_set() and not leaving:
                leaving, deadline_s = True, now_s() + _GOODBYE_S
                self._ended_because = "stopped"
                client.disconnect()
            self._check_patience(deadline_s, leaving=leaving)
            idle = self.ready and not leaving
            # paho's keep-alive is done by `loop_misc`, whose pings are late by up to this wait.
            wait_s = keep_alive_s / 4 if idle else max(0.0, deadline_s - now_s())
            self._read(poller, sock, wake, wait_s)
            if client.want_write():
                client.loop_write()
            client.loop_misc()
        if self._ended_because is None and self.ready:
            self._sizes.ended_silently(self._in_flight.greatest(), now_s())
        broker, error = self._settings.broker, self._errors.last
        raise ConnectionEnded(self._ended_because or closed(error, broker, answered=self.answered))

    def _read(self, poller: Any, sock: Any, wake: Waker, wait_s: float) -> None:
        """Wait until there is something to do, and read the packets that are there.

        Where they are few the socket then rests, so that one wake-up reads several.
        """
        client, gather_s = self._client, self._settings.limits.gather_s
        rest_s, is_there, packets = self._gathers_until_s - now_s(), False, 0
        if rest_s > 0:
            is_woken, is_there = self._wait(poller, sock, wake, min(wait_s, rest_s), reads=False)
            if is_woken and not is_there:
                return
        while is_there or self._wait(poller, sock, wake, wait_s)[1]:
            client.loop_read()
            packets, wait_s = packets + 1, 0.0
            if packets == _FEW_PACKETS or client.socket() is not sock:
                return
            is_there = bool(client.unread)
            if not is_there and (client.is_drained or not gather_s):
                break
        if packets and gather_s and self.ready:
            self._gathers_until_s = now_s() + gather_s

    def _wait(
        self, poller: Any, sock: Any, wake: Waker, wait_s: float, *, reads: bool = True
    ) -> tuple[bool, bool]:
        """Wait until there is something to do; return whether there is, and whether to read."""
        reading = select.POLLIN if reads and not self._inbox.makes_wait() else 0
        writing = select.POLLOUT if self._client.want_write() else 0
        poller.register(sock.fileno(), reading | writing)
        # Bytes that were taken, or that TLS has decrypted: the kernel knows nothing of them.
        there = reading and (
            self._client.unread or (isinstance(sock, ssl.SSLSocket) and sock.pending())
        )
        happened = dict(poller.poll(0 if there else wait_s * 1000))
        if wake.fileno() in happened:
            wake.clear()
        is_there = bool(there or happened.get(sock.fileno(), 0) & ~select.POLLOUT)
        return bool(happened), is_there

    def _check_patience(self, deadline_s: float, *, leaving: bool) -> None:
        now = now_s()
        if leaving and now >= deadline_s:
            raise ConnectionEnded("left without a goodbye")
        if not self.ready and now >= deadline_s:
            what = "subscriptions" if self.answered else f"CONNECT (MQTT {self.protocol})"
            raise ConnectionEnded(f"the broker does not answer our {what}")
        if self._in_flight.waits_s(now) > self._settings.limits.confirm_timeout_s:
            raise ConnectionEnded("the broker confirms nothing")

    def close(self) -> None:
        """Close the socket, in whatever state it is."""
        sock = self._client.socket()
        if sock is not None:
            self._final_traffic = SocketBytes.of(sock) or SocketBytes()
            sock.close()
        self.ready = False

    # What paho calls, in the network's thread. An exception here ends the connection, not the link.

    def _on_connect(self, _c: Client, _u: Any, flags: Any, reason: Any, properties: Any) -> None:
        self.answered = True
        if reason.is_failure:
            self.protocol_refused = reason.value == _UNSUPPORTED_PROTOCOL
            broker, client_id = self._settings.broker, self._settings.client_id
            self._ended_because = refused_connection(str(reason), broker, client_id)
            return
        self._session_present = flags.session_present
        self.refusals.lacks = missing_abilities(properties)
        if hasattr(properties, "ReceiveMaximum"):
            self._in_flight.limit(properties.ReceiveMaximum)
        self._most_packet_bytes = getattr(properties, "MaximumPacketSize", self._most_packet_bytes)
        self._aliases = Aliases(getattr(properties, "TopicAliasMaximum", 0))
        if self._settings.subscriptions:
            self.subscribe(self._settings.subscriptions)
        else:
            self._become_ready()

    def _on_subscribe(self, _c: Client, _u: Any, packet: int, reasons: Any, _p: Any) -> None:
        topics = self._subscribing.pop(packet, None)
        if topics is not None:
            answers = zip(topics, reasons, strict=False)
            refused = {topic: str(why) for topic, why in answers if why.is_failure}
            self.refusals.subscriptions.update(refused)
            self._become_ready()

    def _become_ready(self) -> None:
        self.ready = True
        self._counts.connections += 1
        refused = tuple(self.refusals.subscriptions)
        self._inbox.put(Connected(self.protocol, self._session_present, refused))
        for message in self._early:
            self._inbox.put(message)
        self._early.clear()

    def _on_message(self, client: Client, _u: Any, packet: Any) -> None:
        try:
            topic: str = packet.topic
        except UnicodeDecodeError:
            topic = ""  # no topic is empty, so nothing can be lost by this
        payload = bytes(packet.payload)
        most_bytes, asked_for = self._settings.limits.payload_bytes, self._asked_for
        reason = _reason_to_drop(topic, len(payload), most_bytes, asked_for)
        if reason is None and self._settings.seal is not None:
            try:
                payload = self._settings.seal.opened(topic, payload)
            except BrokenSealError as error:
                reason = str(error)
        if reason is not None:
            self._counts.drop(reason)
            client.ack(packet.mid, packet.qos)
            return
        self._counts.received += 1
        token = (self.number, packet.mid)
        message = Message(topic, payload, packet.retain, packet.qos, token, packet.dup, now_s())
        # Some brokers send what is retained, or kept for the session, before they answer SUBSCRIBE.
        if self.ready:
            self._inbox.put(message)
        else:
            self._early.append(message)

    def _on_publish(self, _c: Client, _u: Any, packet: int, reason: Any, _p: Any) -> None:
        self._in_flight.answer(packet, str(reason) if reason.is_failure else None, now_s())
        if reason.is_failure:
            self._counts.drop(f"refused by the broker: {reason}")
        else:
            self._counts.confirmed += 1
        self._progress.set()

    def _on_disconnect(self, _c: Client, _u: Any, flags: Any, reason: Any, _p: Any) -> None:
        if self._ended_because is None and flags.is_disconnect_packet_from_server:
            broker, client_id = self._settings.broker, self._settings.client_id
            self._ended_because = ended_by_broker(str(reason), broker, client_id)

    def _on_socket_close(self, _c: Client, _u: Any, sock: Any) -> None:
        self._final_traffic = SocketBytes.of(sock) or SocketBytes()

    # The caller's thread.

    def publish(self, topic: str, payload: bytes, qos: int, *, retain: bool) -> bool:
        """Hand a message to paho if the bounds allow; return whether it is sent, or dropped."""
        size = len(payload) + len(topic)
        if not self.ready or not self._in_flight.has_room(size):
            return False
        fits = size + _PACKET_OVERHEAD_BYTES <= self._most_packet_bytes
        if not (fits and self._sizes.takes(size, now_s())):
            self._counts.drop("greater than the broker takes")
            self.refusals.answer(topic, "Packet too large")
            return True
        text, alias = self._aliases.of(topic)
        properties = TopicAlias(alias) if alias else None
        packet = self._client.publish(text, payload, qos, retain, properties)
        if packet.rc != MQTTErrorCode.MQTT_ERR_SUCCESS:
            self._aliases.forget(topic)
            return False
        self._in_flight.add(packet.mid, topic, size, now_s())
        self._counts.published += 1
        return True

    def pending(self) -> int:
        """Return how many messages are sent and not confirmed."""
        return self._in_flight.pending()

    def subscribe(self, topics: Sequence[str]) -> None:
        """Ask for topics with QoS 1; the broker answers with what they retain, each time."""
        options = SubscribeOptions(qos=1)
        wanted: Any = [(topic, options if self.protocol == "5" else 1) for topic in topics]
        _, packet = self._client.subscribe(wanted)
        if packet is not None and not self.ready:
            self._subscribing[packet] = topics

    def acknowledge(self, message: Message) -> None:
        """Tell the broker that it may forget a message that came by this connection."""
        self._client.ack(message.token[1], message.qos)

    def traffic(self) -> SocketBytes:
        """Return the bytes of this connection so far."""
        sock = self._client.socket()
        return (sock and SocketBytes.of(sock)) or self._final_traffic


def _reason_to_drop(topic: str, payload_bytes: int, most_bytes: int, asked_for: Any) -> str | None:
    if not topic:
        return "topic is not UTF-8"
    if payload_bytes > most_bytes:
        return "oversized"
    # One embedded broker (amqtt 0.12) sends a newcomer what others' subscriptions retain.
    return None if _is_asked_for(topic, asked_for) else "not subscribed"


@lru_cache(32)  # most messages are on few topics
def _is_asked_for(topic: str, asked_for: Any) -> bool:
    return any(True for _ in asked_for.iter_match(topic))


def _tls_context(files: TlsFiles) -> "ssl.SSLContext":  # a small process has no such name
    from lasp_edge.link.tls_files import TlsFileError, tls_context  # noqa: PLC0415 - few do

    try:
        # Made for each connection: a certificate that was renewed on disk is the one that is shown.
        return tls_context(files)
    except TlsFileError as error:
        raise ConnectionEnded(f"the files for TLS cannot be used: {error}") from None


def _filter_within(subscription: str) -> str:
    """Return the topic filter of a subscription that may be shared (`$share/<group>/<filter>`)."""
    parts = subscription.split("/", 2)
    return parts[2] if parts[0] == "$share" and len(parts) > 2 else subscription  # noqa: PLR2004
