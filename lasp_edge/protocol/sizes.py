"""How large a frame may be, and upper bounds for what its entries take.

Who fills a frame adds up the bounds below before it encodes, so that no frame comes out larger than
`MAX_FRAME_BYTES`.
"""

from lasp_edge.folds.fold import MAX_COLUMNS

MAX_FRAME_BYTES = 65_536
"""A frame's greatest length in bytes; a reader refuses a longer one before it decodes it."""

HIGHS_BYTES = 1_408
"""An upper bound for what a frame says of its sender's sources: 64 of them, 22 B each."""

FRAME_OVERHEAD_BYTES = 512 + HIGHS_BYTES
"""An upper bound for a pane frame's bytes beside its blocks: the envelope, one device name, and how
far the sources have come."""
SIGNATURE_BYTES = 77
"""What a signature adds to a frame's length (`lasp_edge.security.signatures`)."""

MAX_MESSAGE_BYTES = MAX_FRAME_BYTES + SIGNATURE_BYTES
"""A message's greatest length in bytes: a frame with its signature."""


BLOCK_OVERHEAD_BYTES = 64 + 5 * MAX_COLUMNS
"""An upper bound for a block's bytes beside its entries: its head, and 5 B for each column."""

SHARD_OVERHEAD_BYTES = 512 + 300 + 5 * MAX_COLUMNS
"""An upper bound for the bytes of a variable's frame beside its entries: its name has 255 B, as a
device's has."""


def entry_bytes(key: str, columns: int, binary: int = 0) -> int:
    """Return an upper bound for the bytes that one entry adds to a frame.

    `binary` is how many bytes its binary parts have, together.
    """
    return len(key.encode()) + 5 + 9 * (3 + columns) + binary


_FIXED_HEAD, _TOPIC_LENGTH, _PACKET_ID = 2, 2, 2


_ALIAS, _ACKNOWLEDGED = 4, 4
_SHORT = 128


def published_bytes(payload: int) -> int:
    """Return the bytes of a PUBLISH of quality 1 whose topic has an alias, and of its PUBACK.

    >>> published_bytes(100)
    114
    """
    rest = _TOPIC_LENGTH + _PACKET_ID + _ALIAS + payload
    lengths = 1
    while rest >= _SHORT**lengths:
        lengths += 1
    return 1 + lengths + rest + _ACKNOWLEDGED


def reading_as_json_bytes(fleet: str, device: str, value: float = 21.37) -> int:
    """Return what a device would send of one reading that it publishes as JSON.

    One PUBLISH of quality 1 in MQTT 3.1.1 on `FLEET/DEVICE/temperature`; the payload is as short as
    JSON allows: `{"time":1700000000.123,"value":21.37}`.

    >>> reading_as_json_bytes("greenhouse", "kitchen")
    73
    """
    topic = f"{fleet}/{device}/temperature".encode()
    payload = f'{{"time":1700000000.123,"value":{value}}}'
    return _FIXED_HEAD + _TOPIC_LENGTH + len(topic) + _PACKET_ID + len(payload)
