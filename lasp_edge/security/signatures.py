"""Signatures: only the author of a frame can have written it, whoever runs the broker.

A signed frame has in the ninth element of its envelope, as the last key, `"s": key id + Ed25519
signature`; what else the frame says there stands before it. A reader without a roster ignores it,
as every key that it does not know. The signature is over the fleet's name and the
bytes of the frame as they travel, so a reader checks it before it decodes anything. Then the author
is known, and the table of frame kinds says what an author of its role may publish: a device only
what is about itself, and what devices say to each other. For a sink that has the name of a lander
nobody else acknowledges, and only landers vouch as who keeps what it receives. A frame that is
sent again later, by whomever, is an old version of itself and changes nothing.

Source: S. Josefsson and I. Liusvaara, "Edwards-Curve Digital Signature Algorithm (EdDSA)",
RFC 8032, 2017.
"""

import logging
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgpack

from lasp_edge.link.seal import BrokenSealError
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.envelope import Envelope, unpack
from lasp_edge.protocol.fencing import VouchFrame
from lasp_edge.protocol.kinds import FRAME_KINDS, Publisher
from lasp_edge.protocol.topics import Topics
from lasp_edge.security.access import Role
from lasp_edge.security.participants import Participant

log = logging.getLogger(__name__)

_PLAIN, _WITH_MAP = b"\x98", b"\x99"  # msgpack: an array of 8, of 9
_FIELDS = 8
_NO_KEY, _MOST_KEYS = 0x80, 0x8E  # the head of a map of none, and of 14, to which one can be added
_TAIL = b"\xa1s\xc4\x48"  # "s" -> 72 bytes, which are all that follows
_ID_BYTES, _SIGNED_BYTES = 8, 64
_PUBLISHERS = {
    Role.DEVICE: Publisher.DEVICES | Publisher.ITSELF,
    Role.LANDER: Publisher.LANDER,
    Role.OPERATOR: Publisher.OPERATOR,
    Role.VIEWER: Publisher(0),
}


def new_key() -> bytes:
    """Return a new private key, in PEM."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an extra
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415

    made: bytes = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return made


class SigningKey:
    """A private key.

    Args:
        pem: as `new_key` returned it.

    Raises:
        ValueError: it is no Ed25519 key.
    """

    def __init__(self, pem: bytes) -> None:
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415

        try:
            key: Any = serialization.load_pem_private_key(pem, password=None)
        except TypeError:
            raise ValueError("the key is encrypted") from None
        if not isinstance(key, ed25519.Ed25519PrivateKey):
            raise ValueError("not an Ed25519 key")
        self._key: Any = key
        self.public: bytes = key.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message."""
        signature: bytes = self._key.sign(message)
        return signature


class Signatures:
    """Signs a link's messages, and lets in only those that their author may write.

    Args:
        topics: of the fleet.
        key: signs; None where nothing is signed.
        participants: who takes part; None where everything is let in.
    """

    def __init__(
        self, topics: Topics, key: SigningKey | None, participants: Sequence[Participant] | None
    ) -> None:
        self._context = f"lasp-edge 1\0{topics.root}\0".encode()
        self._root = f"{topics.root}/"
        self._key = key
        self._participants = participants
        known = participants or ()
        self._by_key_id = {key_id(each.key): each for each in known if each.key is not None}
        self._unsigned = {each.name for each in known if each.key is None}
        self._devices = {each.name for each in known if each.role is Role.DEVICE}
        self._sinks = {each.name for each in known if each.role is Role.LANDER}
        self._public: dict[bytes, Any] = {}
        self._logged: set[str] = set()

    def author(self) -> Participant | None:
        """Return whose key signs here; None if nobody of the fleet has it."""
        return None if self._key is None else self._by_key_id.get(key_id(self._key.public))

    def closed(self, topic: str, payload: bytes) -> bytes:
        """Return a frame with its signature; what is no frame, as it is."""
        is_frame = payload[:1] in {_PLAIN, _WITH_MAP} and topic.startswith(self._root)
        if self._key is None or not is_frame:
            return payload
        at = _map_at(payload) if payload[:1] == _WITH_MAP else len(payload)
        keys, rest = payload[at] if at < len(payload) else _NO_KEY, payload[at + 1 :]
        assert _NO_KEY <= keys <= _MOST_KEYS, "a frame says few things beside its body"
        head = b"".join((_WITH_MAP, payload[1:at], bytes([keys + 1]), rest, _TAIL))
        head += key_id(self._key.public)
        return head + self._key.sign(self._context + head)

    def opened(self, topic: str, payload: bytes) -> bytes:
        """Return a frame without its signature.

        Raises:
            BrokenSealError: no participant has signed it who may publish it.
        """
        if self._participants is None or not payload or not topic.startswith(self._root):
            return payload  # other programs' messages are no frames, and nothing takes them for one
        try:
            return self._opened(payload)
        except BrokenSealError as error:
            if str(error) not in self._logged:
                self._logged.add(str(error))
                log.warning("messages are refused, the first on %s: %s", topic, error)
            raise

    def _opened(self, payload: bytes) -> bytes:
        tail = payload[-len(_TAIL) - _ID_BYTES - _SIGNED_BYTES :]
        if payload[:1] != _WITH_MAP or not tail.startswith(_TAIL):
            if payload[:1] not in {_PLAIN, _WITH_MAP}:
                raise BrokenSealError(
                    "no frame, and only frames are signed, results as JSON are not"
                )
            if not self._unsigned:
                raise BrokenSealError("not signed")
            return self._checked(payload, None)
        author = self._by_key_id.get(payload[-_SIGNED_BYTES - _ID_BYTES : -_SIGNED_BYTES])
        if author is None:
            raise BrokenSealError("signed by a key that is not in the roster")
        self._verify(author, payload)
        return self._checked(_unsigned(payload[: -len(tail)]), author)

    def _verify(self, author: Participant, payload: bytes) -> None:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415

        assert author.key is not None
        public = self._public.get(author.key)
        if public is None:
            public = ed25519.Ed25519PublicKey.from_public_bytes(author.key)
            self._public[author.key] = public
        message = self._context + payload[:-_SIGNED_BYTES]
        try:
            public.verify(payload[-_SIGNED_BYTES:], message)
        except InvalidSignature:
            raise BrokenSealError("the signature is wrong") from None

    def _checked(self, payload: bytes, author: Participant | None) -> bytes:
        try:
            envelope = unpack(payload)
        except FrameError as error:
            raise BrokenSealError(str(error)) from None
        if author is None and envelope.sender.device not in self._unsigned:
            listed = envelope.sender.device in self._devices
            raise BrokenSealError("not signed" if listed else "its device is not in the roster")
        role = Role.DEVICE if author is None else author.role
        name = envelope.sender.device if author is None else author.name
        if not self._may_say(role, name, envelope):
            raise BrokenSealError(f"a {role.value} may not say this")
        return payload

    def _may_say(self, role: Role, name: str, envelope: Envelope) -> bool:
        row, sender = FRAME_KINDS.get(envelope.kind), envelope.sender.device
        if row is None or not row.publishers & _PUBLISHERS[role]:
            return False
        if envelope.kind == AckFrame.kind and envelope.body[:1] != [name]:
            # An unknown sink may be anybody's: rosters need not have the names of sinks.
            return bool(envelope.body) and str(envelope.body[0]) not in self._sinks
        if role is not Role.DEVICE:
            return sender not in self._devices
        if envelope.kind == VouchFrame.kind and envelope.body[-1:] != [False]:
            return False
        about_all = bool(row.publishers & Publisher.DEVICES)
        return sender == name and (about_all or envelope.about == name)


def _map_at(payload: bytes) -> int:
    """Return where the ninth element of an envelope begins.

    Raises:
        BrokenSealError: it has no such element.
    """
    reader = msgpack.Unpacker()
    reader.feed(payload[1:])
    try:
        for _ in range(_FIELDS):
            reader.skip()
    except (ValueError, msgpack.UnpackException):
        raise BrokenSealError("not an envelope") from None
    at = 1 + int(reader.tell())
    if at >= len(payload):
        raise BrokenSealError("not an envelope")
    return at


def _unsigned(signed: bytes) -> bytes:
    """Return a frame of which the signature, with its key, was cut off."""
    at = _map_at(signed)
    keys, rest = signed[at] - 1, signed[at + 1 :]
    if not _NO_KEY <= keys <= _MOST_KEYS:
        raise BrokenSealError("not an envelope")
    if keys == _NO_KEY:
        return _PLAIN + signed[1:at] + rest
    return b"".join((signed[:at], bytes([keys]), rest))


def key_id(public: bytes) -> bytes:
    """Return the 8 bytes by which a signed frame names its key."""
    return sha256(public).digest()[:_ID_BYTES]


def signing_key(path: Path) -> SigningKey:
    """Return the key in a file.

    Raises:
        ValueError: it holds none.
        OSError: it cannot be read.
    """
    try:
        return SigningKey(path.read_bytes())
    except ValueError as error:
        why = str(error).partition(". ")[0]
        raise ValueError(f"{path} holds no key of `lasp-edge keys new`: {why}") from None
