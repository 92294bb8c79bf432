"""An MQTT link that is kept up: events are polled, and nothing is queued while offline.

MQTT may lose messages here: the agents send again whatever was not confirmed. So the link never
buffers for a broker that is away: `publish` returns False, and the caller keeps what it has.
One thread makes a connection, serves it until it ends, for whatever reason, names the reason in
`Link.trouble`, and makes the next after a random wait below a doubling bound, so that a fleet
does not return in one wave.

Example (needs a broker):
    link = Link(BrokerUrl.parse("mqtt://localhost"), client_id="kitchen",
                subscriptions=["lasp/v1/home/+/var/#"], jitter=random.Random(seed))
    link.start()
    while True:
        for event in link.poll(timeout_s=1.0):
            match event:
                case Connected(): link.publish("lasp/v1/home/0f/beat/kitchen", beat)
                case Message(): receive(event.topic, event.payload)
                case Disconnected(): print(event.reason)

Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015 (full jitter).
"""

import logging
import random
import threading
from collections.abc import Callable, Sequence

from lasp_edge.link.broker_url import BrokerUrl, MqttVersion
from lasp_edge.link.connection import Connection, ConnectionEnded, now_s
from lasp_edge.link.events import (
    ConnectionSettings,
    Counts,
    Disconnected,
    Event,
    Limits,
    Message,
    SocketBytes,
    Will,
)
from lasp_edge.link.inbox import Inbox
from lasp_edge.link.mqtt_version import MqttVersionChoice
from lasp_edge.link.seal import Seal
from lasp_edge.link.taken_sizes import TakenSizes
from lasp_edge.link.trouble import CONNECTING, Closures, LoggedOnce, unreachable
from lasp_edge.link.waker import Waker

log = logging.getLogger(__name__)


LONGEST_HANDSHAKE_S = 60.0
"""Seconds in which a broker is to answer CONNECT and SUBSCRIBE, at most: the time doubles while it
does not."""


class Link:
    """An MQTT connection that is kept up, for one thread of the caller's.

    Delivery: a message of QoS 1 is acknowledged to the broker when `poll` hands it over or, with
    `manual_acknowledgement`, when the caller says `acknowledge`. Until then the broker keeps it
    and, if it keeps the session (`keep_session_s` > 0), sends it again after a reconnection.
    Acknowledge in the order of arrival. A broker stops after some unacknowledged messages
    (mosquitto: 20 by default), so do not wait for more than those.
    Subscriptions are renewed on each connection, whatever the broker says it remembers, so
    retained messages come again then.

    Args:
        broker: Where to connect.
        client_id: Unique at the broker: the newer of two equal ones throws the older off.
        subscriptions: Topic filters, QoS 1.
        last_will: Published by the broker if this program vanishes.
        manual_acknowledgement: Whether the caller acknowledges.
        keep_session_s: How long the broker keeps messages for us while we are away (MQTT 5; with
            3.1.1 the broker decides how long).
        jitter: Seeded; draws the waits between tries.
        limits: Bounds of memory and patience.
        seal: Closes what is published, the will too, and opens what comes in; None for neither.
        expects_refusal: Whether it is expected that the broker refuses messages on a topic.
        notify: Called from the link's thread after something new can be polled. It must do no
            more than wake somebody (another link's `wake`, say).

    Raises:
        ValueError: the will's topic or a subscription is not valid.
    """

    def __init__(  # noqa: PLR0913 one argument for each thing that MQTT lets a client say
        self,
        broker: BrokerUrl,
        *,
        client_id: str,
        subscriptions: Sequence[str] = (),
        last_will: Will | None = None,
        manual_acknowledgement: bool = False,
        keep_session_s: int = 0,
        jitter: random.Random,
        limits: Limits = Limits(),  # noqa: B008 an immutable tuple
        seal: Seal | None = None,
        expects_refusal: Callable[[str], bool] | None = None,
        notify: Callable[[], None] | None = None,
    ) -> None:
        self.counts = Counts()
        self._seal = seal
        if seal is not None and last_will is not None:
            sealed = seal.closed(last_will.topic, last_will.payload)
            last_will = last_will._replace(payload=sealed)
        self._settings = ConnectionSettings(
            broker,
            client_id,
            tuple(subscriptions),
            last_will,
            keep_session_s,
            limits,
            seal,
            expects_refusal,
        )
        self._manual_acknowledgement = manual_acknowledgement
        self._jitter = jitter
        self._inbox = Inbox(limits.inbox_bytes, limits.enough, notify)
        self._waker, self._owes_wake = Waker(), False
        self._stopping = threading.Event()
        self._progress = threading.Event()
        self._thread: threading.Thread | None = None
        self._connection: Connection | None = None
        self._number = self._unanswered = 0
        self._past_trouble, self._began_s = "not started", 0.0
        self._past_traffic = SocketBytes()
        self._once, self._sizes = LoggedOnce(), TakenSizes()
        self._closures = Closures(broker, client_id)
        self._choice = MqttVersionChoice(broker.protocol)
        self._new_connection().subscribe(self._settings.subscriptions or ["#"])  # refuses bad ones

    # The caller's thread.

    def start(self) -> None:
        """Begin to connect; `poll` and `trouble` say what comes of it."""
        assert self._thread is None, "a link is started once"
        self._past_trouble = CONNECTING
        self._start_thread()

    def stop(self, flush_s: float = 2.0) -> None:
        """Wait up to `flush_s` until all messages are confirmed, then disconnect."""
        self._waker.wake()
        ends_s = now_s() + flush_s
        while self.connected and now_s() < ends_s:
            self._progress.clear()
            if not self.in_flight:
                break
            self._progress.wait(max(0.0, ends_s - now_s()))
        self._stopping.set()
        self._waker.wake()
        if self._thread is not None:
            self._thread.join(timeout=2.0)  # a daemon: a slow TCP connect holds nobody up
        if self._thread is None or not self._thread.is_alive():
            self._waker.close()

    def poll(self, timeout_s: float) -> list[Event]:
        """Return what happened, in order, after a wait of up to `timeout_s` if nothing has yet.

        Where `Limits.enough` is more than 1, only that many messages end the wait early.
        While nobody polls, the inbox fills; when it is full the socket is left unread.
        """
        self._revive()
        if self._owes_wake:
            self._owes_wake = False
            self._waker.wake()
        events = self._inbox.take(timeout_s)
        if not self._manual_acknowledgement:
            for event in events:
                if isinstance(event, Message):
                    self.acknowledge(event)
        if self._inbox.reader_waits:
            self._waker.wake()
        if self.connected:
            self._once.say(self.trouble)
        return events

    def wake(self) -> None:
        """Make a waiting `poll` return; allowed in any thread and in a signal handler."""
        self._inbox.wake()

    def publish(self, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False) -> bool:
        """Send a message; False: not connected or too much in flight, and nothing was kept.

        True is no proof of delivery: `counts.confirmed` says what the broker confirmed. A message
        that is greater than this broker ever takes is dropped, counted and named in `trouble`: it
        would hold up all that come after it.

        Raises:
            ValueError: a topic or QoS that nothing can be published with.
        """
        self._revive()
        connection = self._connection
        if self._seal is not None and connection is not None:
            payload = self._seal.closed(topic, payload)
        if connection is None or not connection.publish(topic, payload, qos, retain=retain):
            return False
        self._hand_over()
        return True

    def acknowledge(self, message: Message) -> None:
        """Let the broker forget a message; void if its connection is gone, for it comes again."""
        connection = self._connection
        if message.qos and connection is not None and connection.number == message.token[0]:
            connection.acknowledge(message)
            self._hand_over()

    @property
    def connected(self) -> bool:
        """Whether the broker has taken us; no connection outlives the thread that serves it."""
        connection = self._connection
        return connection is not None and connection.ready

    @property
    def trouble(self) -> str | None:
        """Why messages do not pass, in words for people; None while they pass."""
        connection = self._connection
        if connection is None or not connection.ready:
            return self._past_trouble
        connection.pending()  # takes in what the broker answered
        is_young = now_s() - self._began_s < self._settings.limits.longest_wait_s
        return connection.refusals.text() or (self._closures.suspicion if is_young else None)

    @property
    def lacks(self) -> str:
        """What a fleet needs and this broker does not take; "" for nothing, or where unknown."""
        connection = self._connection
        return "" if connection is None else connection.refusals.lacks

    @property
    def protocol(self) -> MqttVersion:
        """The protocol in use, or tried next."""
        return self._choice.protocol

    @property
    def in_flight(self) -> int:
        """How many messages are sent and not confirmed."""
        connection = self._connection
        return 0 if connection is None else connection.pending()

    @property
    def traffic(self) -> SocketBytes:
        """Bytes through all of the link's sockets so far; zeros where the kernel does not count."""
        connection, past = self._connection, self._past_traffic
        return past if connection is None else past.plus(connection.traffic())

    def _revive(self) -> None:
        """Start the thread again if it died, which takes a fault outside of any connection."""
        if self._thread is None or self._thread.is_alive() or self._stopping.is_set():
            return
        self.counts.faults += 1
        self._start_thread()

    def _start_thread(self) -> None:
        name = f"link-{self._settings.client_id}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _hand_over(self) -> None:
        """Let the thread write what was handed to the connection, now or with the next `poll`."""
        if self._settings.limits.enough > 1:
            self._owes_wake = True
        else:
            self._waker.wake()

    # The network's thread.

    def _run(self) -> None:
        limits, tries, lost_s = self._settings.limits, 0, now_s()
        while not self._stopping.is_set():
            began_s = self._began_s = now_s()
            connection, was_up = self._connect_and_serve()
            is_unanswered = connection.opened and not was_up
            self._unanswered = self._unanswered + 1 if is_unanswered else 0
            if was_up and now_s() - began_s >= limits.steady_s:
                tries, lost_s = 0, now_s()
                self._once.forget()
                if now_s() - began_s >= limits.longest_wait_s:
                    self._closures.forget()
            if self._choice.learn(connection, was_up=was_up):
                continue
            if not self._stopping.is_set():
                self._once.say(self._past_trouble)
            most_s = limits.longest_wait_s
            if now_s() - lost_s < limits.early_s:
                most_s = min(most_s, limits.early_wait_s)
            bound_s = min(limits.first_wait_s * 2.0 ** min(tries, 30), most_s)
            tries += 1
            self._stopping.wait(self._jitter.uniform(0.0, bound_s))

    def _connect_and_serve(self) -> tuple[Connection, bool]:
        """Return the connection that ended, and whether it had been up."""
        connection = self._new_connection()
        was_up, reason = False, "the link's thread was killed"
        try:
            self._connection = connection
            self.counts.attempts += 1
            connection.open()
            connection.serve(self._stopping, self._waker)
        except ConnectionEnded as ended:
            reason = self._closures.explained(str(ended), was_up=connection.ready)
        except OSError as error:
            reason = unreachable(error, self._settings.broker)
        except Exception as error:  # whatever it was, it ends this connection and not the link
            self.counts.faults += 1
            reason = f"a fault in the MQTT client ({type(error).__name__})"
            log.exception("the connection to %s failed", self._settings.broker)
        finally:
            was_up = connection.ready
            connection.close()
            self._went_down(connection, reason, was_up=was_up)
        return connection, was_up

    def _new_connection(self) -> Connection:
        self._number += 1
        limits = self._settings.limits
        # Both versions are tried with each patience: a busy broker may take long to answer.
        patience_s = limits.handshake_timeout_s * 2 ** min(self._unanswered // 2, 30)
        patience_s = min(patience_s, max(LONGEST_HANDSHAKE_S, limits.handshake_timeout_s))
        return Connection(
            self._number,
            self._choice.protocol,
            self._settings._replace(limits=limits._replace(handshake_timeout_s=patience_s)),
            self._inbox,
            self.counts,
            self._sizes,
            self._progress,
        )

    def _went_down(self, connection: Connection, reason: str, *, was_up: bool) -> None:
        self._past_trouble = reason
        self._past_traffic = self._past_traffic.plus(connection.traffic())
        self._connection = None
        self._progress.set()
        if was_up:
            self._inbox.put(Disconnected(reason))
