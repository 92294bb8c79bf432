"""Frames that no agent sends: mutated bytes, mutated structures, forged senders, strange topics.

They are made from messages that were really sent, so that most of a frame is right. A frame of this
kind must change nothing: no value, no promise, no process. What a stranger may say who knows the
whole protocol and whom nothing on the broker stops is another matter: only signatures help there.
So does whoever delivers a device's panes, and takes out how far its sources had come.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

import msgpack

from lasp_edge.protocol.frames import PaneFrame, VariableFrame
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.topics import Topics

Message = tuple[str, bytes, bool]
"""Topic, payload, retained."""

ODD: tuple[Any, ...] = (
    None,
    -1,
    0,
    1 << 63,
    "",
    "\x00",
    b"",
    b"\xff" * 40,
    [],
    [[]],
    {},
    True,
    float("nan"),
    "a" * 300,
)
_ENTRIES = (PaneFrame.kind, VariableFrame.kind)
FAR = 1 << 20
"""Incarnations by which a forged sender is ahead: more than any reader believes."""


def hostile_messages(
    random: Random, topics: Topics, heard: Sequence[tuple[str, bytes]], amount: int
) -> list[Message]:
    """Return some hostile messages, made from those that were heard."""
    if not heard:
        return []
    makers = (_mutated_bytes, _mutated_tree, _forged_sender, _emptied, _strange_topic)
    found = []
    for _ in range(amount):
        received = random.choice(heard)
        topic, payload = random.choice(makers)(random, topics, *received)
        if _is_lie(payload, received[1]):
            topic, payload = _mutated_bytes(random, topics, *received)
        found.append((topic, payload, random.random() < 0.1))  # noqa: PLR2004
    return found


def _is_lie(payload: bytes, truth: bytes) -> bool:
    """Return whether a frame delivers panes, and says less of their sources than the true one."""
    try:
        frame, true = decode(payload), decode(truth)
    except ValueError:
        return False
    if not (isinstance(frame, PaneFrame) and isinstance(true, PaneFrame)):
        return False
    return frame.highs != true.highs


def _mutated_bytes(
    random: Random, _topics: Topics, topic: str, payload: bytes
) -> tuple[str, bytes]:
    """Cut a frame off, or prefix it: what is left is no frame."""
    cut = random.randrange(len(payload))
    return topic, random.choice((payload[:cut], b"\xc1" + payload, payload * 2))


def _mutated_tree(random: Random, _topics: Topics, topic: str, payload: bytes) -> tuple[str, bytes]:
    """Put an odd value at one place of the envelope."""
    fields = msgpack.unpackb(payload)
    fields[random.randrange(len(fields))] = random.choice(ODD[3:])
    return topic, msgpack.packb(fields)


def _forged_sender(
    random: Random, _topics: Topics, topic: str, payload: bytes
) -> tuple[str, bytes]:
    """Let a frame come from an incarnation that its device cannot have reached."""
    fields = msgpack.unpackb(payload)
    fields[3] += FAR
    fields[4] = random.getrandbits(32)
    return topic, msgpack.packb(fields)


def _emptied(random: Random, _topics: Topics, topic: str, payload: bytes) -> tuple[str, bytes]:
    """Empty one part of what a frame says."""
    fields = msgpack.unpackb(payload)
    body = fields[7]
    if fields[1] in _ENTRIES and body:
        body[random.randrange(len(body))] = random.choice(ODD[3:])
    fields[5] += 1
    return topic, msgpack.packb(fields)


def _strange_topic(
    random: Random, topics: Topics, _topic: str, payload: bytes
) -> tuple[str, bytes]:
    """Send a frame on a topic that it does not belong to."""
    level = random.choice(("x", "0a/pane", "0a/var/pi-0/here/zz", "00/beat/pi-0", "out/here"))
    return f"{topics.root}/{level}", payload
