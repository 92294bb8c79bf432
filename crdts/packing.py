"""msgpack's encoder, made once: `msgpack.packb` makes one, with its buffer, for each value.

>>> pack((1, "kitchen", None)) == msgpack.packb((1, "kitchen", None))
True
"""

from typing import Any

import msgpack

_free: list[msgpack.Packer] = []
"""Encoders that nobody uses now: as many as threads ever encoded at once."""


def pack(value: Any) -> bytes:
    """Return the bytes of plain data; threads may do so at the same time.

    Raises:
        TypeError, ValueError, OverflowError: msgpack cannot hold it.
    """
    try:
        encoder = _free.pop()
    except IndexError:
        encoder = msgpack.Packer()
    packed: bytes = encoder.pack(value)
    _free.append(encoder)  # not after what cannot be encoded: its buffer holds a part of that
    return packed
