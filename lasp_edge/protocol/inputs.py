"""The digest of what a result was made from: equal `inputs`, equal result, on every tier.

The digest of a dynamic variable is the sum, modulo 2**64, of one hash for each (key, device) that
counts and one for the membership; the `inputs` of a dynamic fold adds the fold's stream id. With
keys, each key's `inputs` is made of that key's entries alone. A sum can be kept up to date entry by
entry, and Spark computes the same with its own `sha2`.

    >>> first = entry_hash("", "pi-1", Version(1, 7, 3), (2, b"*"))
    >>> second = entry_hash("", "pi-2", Version(1, 9, 1), (5, None))
    >>> variable_digest([first, second]) == variable_digest([second, first])
    True
    >>> membership_text(Membership().retire("pi-2", Version(1, 9, 60)))
    'pi-2=1.9.60'
"""

from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256

from crdts import Membership, Version
from lasp_edge.folds.columns import ColumnValue

MODULUS = 2**64
HASHED = 64
"""Hashes that are remembered: many devices in one process hear the same entry one after another."""


def text_hash(text: str) -> int:
    """Return the first eight bytes of the text's SHA-256, as an unsigned integer."""
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big")


def entry_hash(key: str, device: str, version: Version, parts: Iterable[ColumnValue]) -> int:
    """Return the hash of one owned entry.

    The seq of `version` is that at which the key last changed. Integers are written in decimal,
    bytes in hexadecimal, None as empty text.
    """
    return _entry_hash(key, device, version, tuple(parts))


@lru_cache(maxsize=HASHED)
def _entry_hash(key: str, device: str, version: Version, parts: tuple[ColumnValue, ...]) -> int:
    fields = [key, device, *map(str, version), *map(_text, parts)]
    return text_hash("\x1f".join(fields))


def membership_text(membership: Membership) -> str:
    """Return canonical text of who is retired, and up to which version; empty where nobody is."""
    retired = membership.retired
    return "\x1f".join(
        f"{device}={version.incarnation}.{version.nonce}.{version.seq}"
        for device, version in sorted(retired.items())
    )


def variable_digest(entry_hashes: Iterable[int], membership: str = "") -> int:
    """Return the digest of a dynamic variable's entries under a membership."""
    return (sum(entry_hashes) + text_hash(membership)) % MODULUS


def inputs_digest(digest: int, stream: int) -> str:
    """Return the `inputs` of a dynamic fold, 16 hexadecimal digits."""
    return format((digest + _stream_hash(stream)) % MODULUS, "016x")


@lru_cache(maxsize=256)
def _stream_hash(stream: int) -> int:
    return text_hash(str(stream))


def _text(part: ColumnValue) -> str:
    if part is None:
        return ""
    return part.hex() if isinstance(part, bytes) else str(part)
