"""Which topics each participant of a fleet may read and write, made from the table of frame kinds.

A device writes only what is about itself, and what devices say to each other; results that it
publishes for people carry its name, too. Landers acknowledge, operators command, viewers read
results. A new kind of frame is in these rules by its row of the table.

    >>> topics = Topics("greenhouse")
    >>> for rule in rules(Role.VIEWER, "screen", topics):
    ...     print(rule)
    topic read lasp/v1/greenhouse/out/#
    >>> print(rules(Role.DEVICE, "pi-1", topics)[0])
    topic write lasp/v1/greenhouse/0a/pane/pi-1/#
"""

from collections.abc import Iterator
from enum import Enum
from typing import Literal, NamedTuple

from lasp_edge.protocol.kinds import FRAME_KINDS, FrameKind, Publisher, Subscriber
from lasp_edge.protocol.topics import Topics, level


class Role(Enum):
    """What a participant is to the fleet."""

    DEVICE = "device"
    LANDER = "lander"
    OPERATOR = "operator"
    VIEWER = "viewer"


_WRITES = {Role.LANDER: Publisher.LANDER, Role.OPERATOR: Publisher.OPERATOR}
_READS = {Role.LANDER: Subscriber.LANDER, Role.OPERATOR: Subscriber.OPERATOR}


class Rule(NamedTuple):
    """One right; its text is a line of mosquitto's ACL file."""

    access: Literal["read", "write"]
    filter: str

    def __str__(self) -> str:
        return f"topic {self.access} {self.filter}"


def rules(role: Role, name: str, topics: Topics) -> list[Rule]:
    """Return what a participant may do; what is not in it, it may not."""
    rows = list(FRAME_KINDS.values())
    found = [Rule("write", each) for row in rows for each in _written(row, role, name, topics)]
    if role is Role.DEVICE:
        found.append(Rule("write", f"{topics.root}/out/+/{level(name)}/#"))
    found += [Rule("read", each) for row in rows for each in _read(row, role, name, topics)]
    return [*found, Rule("read", f"{topics.root}/out/#")]


def _written(row: FrameKind, role: Role, name: str, topics: Topics) -> Iterator[str]:
    if role is Role.DEVICE:
        if row.publishers & Publisher.DEVICES:
            yield topics.every(row.topic)
        elif row.publishers & Publisher.ITSELF:
            yield f"{topics.of(row.topic, name)}/#"
    elif role in _WRITES and row.publishers & _WRITES[role]:
        yield topics.every(row.topic)


def _read(row: FrameKind, role: Role, name: str, topics: Topics) -> Iterator[str]:
    if role is Role.DEVICE:
        if row.subscribers & Subscriber.DEVICES:
            yield topics.every(row.topic)
        elif row.subscribers & Subscriber.ADDRESSEE:
            yield f"{topics.of(row.topic, name)}/#"
    elif role in _READS and row.subscribers & _READS[role]:
        yield topics.every(row.topic)
