"""Frames that are packed field by field, so that each field can be a wrong one."""

import msgpack

from lasp_edge.protocol.envelope import FORMAT


def envelope(kind, body, /, **changed):
    """Return a packed frame, with other fields of its envelope or further ones after them."""
    fields = {"version": FORMAT, "kind": kind, "device": "pi-1", "incarnation": 1, "nonce": 7}
    fields |= {"number": 1, "about": None, "body": body} | changed
    return msgpack.packb(list(fields.values()))


def nested(depth):
    """Return lists within lists."""
    value = []
    for _ in range(depth):
        value = [value]
    return value
