"""The address of a broker; its text never shows the password."""

import re
import sys
from typing import Literal, NamedTuple, Self, cast
from urllib.parse import parse_qsl, unquote, urlsplit

MqttVersion = Literal["5", "3.1.1"]
MQTT_VERSIONS: tuple[MqttVersion, ...] = ("5", "3.1.1")


class TlsFiles(NamedTuple):
    """Files in PEM for TLS.

    Attributes:
        authority: whose certificates are trusted; None for those that this machine trusts.
        certificate: says who we are; None where the broker does not ask.
        key: of the certificate; None where it is in the same file.
    """

    authority: str | None = None
    certificate: str | None = None
    key: str | None = None


class BrokerUrl(NamedTuple):
    """Where the broker is, and as which user to log in; printing it never shows the password."""

    host: str
    port: int
    tls: bool = False
    user: str | None = None
    password: str | None = None
    protocol: MqttVersion | None = None
    files: TlsFiles = TlsFiles()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the broker of `mqtt://[user:password@]host[:port]`, or `mqtts://` for TLS.

        User and password may be percent-encoded. `?protocol=3.1.1` spares a broker that knows
        no MQTT 5 the attempt, which some leave unanswered. A private authority for TLS is named
        by `files`, or by the environment variable SSL_CERT_FILE, as for every program that uses
        OpenSSL.

        Raises:
            ValueError: the text is not such an address.

        >>> BrokerUrl.parse("mqtts://ann:s%3Acret@broker.example")
        mqtts://ann:***@broker.example:8883
        """
        shown = _without_password(text)
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError as error:
            raise ValueError(f"{shown!r} is not a broker address: {error}") from None
        tls, extra = parts.scheme == "mqtts", parts.path.strip("/") or parts.fragment
        if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname or extra or port == 0:
            address = re.sub("^mqtts?:?/*", "", shown)
            meant = f"; did you mean mqtt://{address}?" if address and "://" not in text else ""
            raise ValueError(
                "a broker address is mqtt://[user:password@]host[:port], or mqtts:// for TLS, "
                f"not {shown!r}{meant}"
            )
        user = None if parts.username is None else unquote(parts.username)
        password = None if parts.password is None else unquote(parts.password)
        protocol = _protocol_of(parts.query, shown)
        return cls(parts.hostname, port or (8883 if tls else 1883), tls, user, password, protocol)

    @property
    def dialled(self) -> str:
        """The host as paho takes it.

        Looked up as bytes, a plain name spares a small device the tables of names in other scripts.
        TLS and PySocks need text.
        """
        plain = self.host.isascii() and not self.tls and sys.modules.get("socks") is None
        return cast("str", self.host.encode()) if plain else self.host

    def __str__(self) -> str:
        who = "" if self.user is None else f"{self.user}{':***' if self.password else ''}@"
        host = f"[{self.host}]" if ":" in self.host else self.host
        query = "" if self.protocol is None else f"?protocol={self.protocol}"
        return f"mqtt{'s' if self.tls else ''}://{who}{host}:{self.port}{query}"

    def __repr__(self) -> str:
        return str(self)


def _without_password(text: str) -> str:
    head, at, tail = text.rpartition("@")
    return text if not at else f"{head.partition('://')[0]}://***@{tail}"


def _protocol_of(query: str, shown: str) -> MqttVersion | None:
    options = dict(parse_qsl(query, keep_blank_values=True))
    asked = options.pop("protocol", None)
    for protocol in MQTT_VERSIONS:
        if asked == protocol and not options:
            return protocol
    if query:
        raise ValueError(f"after the ? stands protocol=5 or protocol=3.1.1, not as in {shown!r}")
    return None
