"""Why messages do not pass, in one line: the event, its cause, and what to type.

Every refusal of a broker has a reason, in MQTT 5 a code for each message and subscription. This
module finds the words; the link says each line once in its log, and shows it as `Link.trouble`.

    >>> broker = BrokerUrl.parse("mqtt://ann@broker.example")
    >>> print(refused_connection("Not authorized", broker, "kitchen"))
    the broker refuses us: Not authorized; is the password of user 'ann' right? (--login FILE)
"""

import errno
import logging
from collections.abc import Callable
from typing import Any, Final

from lasp_edge.link.broker_url import BrokerUrl

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # a program that sets up no log prints the line itself

MOST_LOGGED = 32
"""Different lines that are remembered as logged; a link has some five different troubles."""
MOST_REFUSED = 64
"""Topics that are remembered as refused; an agent publishes on fewer, unless it has many keys."""

SUSPICIOUS_CLOSURES = 3
"""Connections closed without a word, each within some seconds, until a twin is suspected."""

CONNECTING: Final = "connecting"
"""The trouble before anything was tried."""
CLOSED: Final = "the broker closed the connection"
_NOT_AUTHORIZED: Final = "Not authorized"
_LOGIN_REFUSED: Final = (_NOT_AUTHORIZED, "Bad user name or password", "Bad username or password")
_RULES = "`lasp-edge broker config` writes the rules that a fleet needs"
ENOUGH_BYTES: Final = 70_000
"""Bytes of a packet that a fleet's broker has to take: a message of 64 KiB, and its topic."""
_ADVICE: Final = {
    "Packet too large": (
        f"; let it take {ENOUGH_BYTES} bytes (message_size_limit and max_packet_size, or neither)"
    ),
    "Retain not supported": "; a fleet needs retained messages (mosquitto: retain_available true)",
    "QoS not supported": "; a fleet needs QoS 1 (mosquitto: no max_qos, or max_qos 1)",
}
"""Reason of a broker -> what to do about it."""


def refused_connection(reason: str, broker: BrokerUrl, client_id: str) -> str:
    """Return the line for a CONNECT that the broker refused."""
    trouble = f"the broker refuses us: {reason}"
    if reason in _LOGIN_REFUSED:
        if broker.user is None and not broker.files.certificate:
            return f"{trouble}; it asks for a user and a password: --login FILE"
        return f"{trouble}; is the password of user {broker.user!r} right? (--login FILE)"
    if reason == "Client identifier not valid":
        return f"{trouble}; it does not accept the client id {client_id}"
    return trouble + _ADVICE.get(reason, "")


def missing_abilities(properties: Any) -> str:
    """Return what a fleet needs and a broker lacks, by its answer to CONNECT; "" for nothing.

    A connection without a Last Will is accepted without any of it. MQTT 3.1.1 does not tell.
    """
    reasons = [
        ("Packet too large", getattr(properties, "MaximumPacketSize", ENOUGH_BYTES) < ENOUGH_BYTES),
        ("Retain not supported", not getattr(properties, "RetainAvailable", 1)),
        ("QoS not supported", not getattr(properties, "MaximumQoS", 1)),
    ]
    lacks = [f"{reason}{_ADVICE[reason]}" for reason, is_so in reasons if is_so]
    return f"the broker refuses some messages: {', and '.join(lacks)}" if lacks else ""


def ended_by_broker(reason: str, broker: BrokerUrl, client_id: str) -> str:
    """Return the line for a connection that the broker ended with a word."""
    trouble = f"the broker disconnects us: {reason}"
    if reason == "Session taken over":
        who = f"another program {_as_whom(broker, client_id)}"
        return f"{trouble}; {who}: stop one of the two, or give it {_apart(broker)}"
    return trouble + _ADVICE.get(reason, "")


def closed(error: str, broker: BrokerUrl, *, answered: bool) -> str:
    """Return the line for a connection that ended without a word of MQTT.

    Args:
        error: the last error of the socket; empty before the first one.
        broker: where to.
        answered: the broker had answered our CONNECT.
    """
    if "CERTIFICATE_REQUIRED" in error or "HANDSHAKE_FAILURE" in error:
        return f"the broker asks for a certificate ({error}): --certificate FILE --key FILE"
    if "ALERT" in error:
        return f"the broker does not accept our certificate ({error}): --certificate, --key"
    if answered or broker.tls:
        return CLOSED + (f" ({error})" if error else "")
    return "the broker closed the connection before it answered; if it wants TLS, use mqtts://"


def unreachable(error: OSError, broker: BrokerUrl) -> str:
    """Return the line for an address where no broker answers, or whose TLS fails."""
    untrusted: str | None = getattr(error, "verify_message", None)  # a small process has no ssl
    if untrusted is not None:
        return _untrusted(untrusted, broker)
    why = error.strerror or str(error)
    trouble = f"cannot reach {broker}: {why}"
    if type(error).__name__ == "gaierror":
        return f"{trouble}; is the name right? (getent hosts {broker.host})"
    if error.errno == errno.ECONNREFUSED:
        return f"{trouble}; is the broker started there? (systemctl status mosquitto)"
    if isinstance(error, TimeoutError):
        return f"{trouble}; is the address right, and port {broker.port} open? (ping {broker.host})"
    if broker.tls and (isinstance(error, ConnectionError) or "SSL" in type(error).__name__):
        return f"{trouble}; does the broker speak TLS on port {broker.port}?"
    return trouble


def _untrusted(why: str, broker: BrokerUrl) -> str:
    trouble = f"the certificate of {broker} is not trusted (CERTIFICATE_VERIFY_FAILED: {why})"
    if "mismatch" in why:
        return f"{trouble}; use a name in --broker that its certificate has"
    if "expired" in why or "not yet valid" in why:
        right = f"{trouble}; is this machine's clock right? (date)"
        return (
            f"{right} If it is, the broker needs a new certificate" if "expired" in why else right
        )
    return f"{trouble}; name the authority that signed it: --ca-file FILE"


class Refusals:
    """What the broker of one connection refuses: subscriptions, and messages by topic.

    Args:
        broker: as whom we speak to it.
        expected: whether a refusal of messages on a topic is no news.

    Attributes:
        subscriptions: topic filter -> reason.
        lacks: see `missing_abilities`.
    """

    def __init__(self, broker: BrokerUrl, expected: Callable[[str], bool] | None) -> None:
        self._expected = expected
        self._user = broker.user
        self.subscriptions: dict[str, str] = {}
        self.lacks = ""
        self._messages: dict[str, str] = {}

    def answer(self, topic: str, reason: str | None) -> None:
        """Take the broker's answer to a message; None if it took it."""
        if reason is None:
            self._messages.pop(topic, None)
        elif len(self._messages) < MOST_REFUSED and not (self._expected and self._expected(topic)):
            self._messages[topic] = reason

    def text(self) -> str | None:
        """Return the line for what is refused at present; None if nothing is."""
        if not (self.subscriptions or self._messages):
            return None  # asked at each turn
        for topic, reason in self.subscriptions.items():
            return f"the broker refuses the subscription {topic}: {reason}{self._advice(reason)}"
        for topic, reason in self._messages.items():
            return f"the broker refuses messages on {topic}: {reason}{self._advice(reason)}"
        return None

    def _advice(self, reason: str) -> str:
        if reason == _NOT_AUTHORIZED and self._user:
            who = (
                f"there {self._user!r} has to be the --device, or the --name of a gateway or lander"
            )
            return f"; let user {self._user!r} use that topic ({_RULES}: {who})"
        if reason == _NOT_AUTHORIZED:
            return f"; let us use that topic ({_RULES})"
        return _ADVICE.get(reason, "")


NAMES = "--name (of a gateway), --device (of an agent), or --log-dir (of a lander: an empty one)"
"""The options of which client ids are made."""


def _as_whom(broker: BrokerUrl, client_id: str) -> str:
    """Return as whom another program may be connected that throws us off."""
    by_id = f"uses the client id {client_id}"
    if not (broker.user or broker.files.certificate):
        return by_id
    user = f"user {broker.user!r}" if broker.user else "the user of our certificate"
    return f"is connected as {user}, or {by_id}"


def _apart(broker: BrokerUrl) -> str:
    """Return the options that tell two programs apart: a broker may allow a user one connection."""
    if broker.files.certificate:
        return f"a --certificate of its own, or another {NAMES}"
    return f"a --login of its own, or another {NAMES}" if broker.user else f"another {NAMES}"


class Closures:
    """Connections in a row that were up, and that the broker closed without a word.

    mosquitto 2.0 does not always say so when another client takes over a client id: two programs
    with one id throw each other off for ever. A broker that is restarted closes one connection.
    """

    def __init__(self, broker: BrokerUrl, client_id: str) -> None:
        self._broker, self._client_id = broker, client_id
        self._count = 0

    def explained(self, reason: str, *, was_up: bool) -> str:
        """Return the reason of an end, with what it may mean where it comes again and again."""
        if reason != CLOSED:
            return reason
        self._count += was_up
        return self.suspicion or reason

    @property
    def suspicion(self) -> str | None:
        """What such closures may mean, until a connection has lasted."""
        if self._count < SUSPICIOUS_CLOSURES:
            return None
        which = f"maybe another program {_as_whom(self._broker, self._client_id)}"
        return f"{CLOSED} again and again; {which}: give one of the two {_apart(self._broker)}"

    def forget(self) -> None:
        """A connection lasted."""
        self._count = 0


class LoggedOnce:
    """Writes each line into the log once, until `forget`."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def say(self, line: str | None) -> None:
        """Write a line, unless it was written; None is no line."""
        if line is None or line in self._logged or len(self._logged) >= MOST_LOGGED:
            return
        self._logged.add(line)
        log.warning("%s", line)

    def forget(self) -> None:
        """The link works well again: what happens next is news."""
        self._logged.clear()


class SocketErrors:
    """Stands where paho expects its logger: keeps the last error, which paho tells nobody else."""

    def __init__(self) -> None:
        self.last = ""

    def log(self, level: int, _form: str, *values: object) -> None:
        """Keep an error's text."""
        if level >= logging.ERROR and values:
            self.last = str(values[0])
