"""The digest of what a result was made from: equal `inputs`, equal result, on every tier.

The digest of a dynamic variable is the sum, modulo 2**64, of one hash for each entry that counts
and one for the membership; the `inputs` of a dynamic fold adds the fold's stream id. A sum can be
kept up to date entry by entry, and Spark computes the same with its own `sha2`.
"""

from collections.abc import Iterable
from hashlib import sha256

from crdts import Version

MODULUS = 2**64


def text_hash(text: str) -> int:
    """Return the first eight bytes of the text's SHA-256, as an unsigned integer."""
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big")


def entry_hash(key: str, device: str, version: Version, parts: Iterable[int | None]) -> int:
    """Return the hash of one owned entry. A missing part counts as empty text."""
    fields = [key, device, *map(str, version)]
    fields += ["" if part is None else str(part) for part in parts]
    return text_hash("\x1f".join(fields))


def variable_digest(entry_hashes: Iterable[int], membership: str = "") -> int:
    """Return the digest of a dynamic variable's entries under a membership.

    Args:
        entry_hashes: `entry_hash` of each entry that counts.
        membership: canonical text of who was retired; empty while nobody was.
    """
    return (sum(entry_hashes) + text_hash(membership)) % MODULUS


def inputs_digest(digest: int, stream: int) -> str:
    """Return the `inputs` of a dynamic fold, 16 hexadecimal digits.

    Args:
        digest: the `variable_digest` of the variable it folds.
        stream: the fold's stream id.
    """
    return format((digest + text_hash(str(stream))) % MODULUS, "016x")
