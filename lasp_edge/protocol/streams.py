"""Stream ids: partials of different definitions never meet.

A stream id travels with every partial. It is a hash of everything that gives the partial its
meaning, so a changed fold, span, source or resolution is another stream.
"""

from hashlib import sha256


def stream_id(*meaning: object) -> int:
    """Return the signed 64-bit id of a stream, a BIGINT in the lake.

    Args:
        *meaning: program, window or variable name, source, span, key version and fold
            fingerprint; anything whose `str` is canonical.

    >>> stream_id("greenhouse", "a") == stream_id("greenhouse", "a") != stream_id("greenhouse", "b")
    True
    """
    text = "\x1f".join(map(str, meaning))
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big", signed=True)
