"""Partials as bytes of a gateway's file: over many devices a part may need more than 64 bits."""

from typing import Any

import msgpack

from crdts.plain import pack
from device_agent.storage.damage import DamagedStoreError


def packed_partial(partial: tuple[Any, ...]) -> bytes:
    """Return a total as bytes: over many devices it may need more than 64 bits."""
    try:
        return pack(partial)
    except OverflowError:
        texts = [["", str(part)] if type(part) is int else part for part in partial]
        return pack(texts)


def unpacked_partial(packed: bytes) -> tuple[Any, ...]:
    """Return what `packed_partial` was given."""
    try:
        parts = msgpack.unpackb(packed)
        return tuple([int(part[1]) if type(part) is list else part for part in parts])
    except Exception as error:
        raise DamagedStoreError("a partial cannot be read") from error
