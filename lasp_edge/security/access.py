"""Which topics each participant of a fleet may read and write, made from the table of frame kinds.

A device writes only what is about itself, and what devices say to each other; results that it
publishes for people carry its name, too. Landers acknowledge, operators command, viewers read
results. A gateway logs in as a lander, and tells its windows under its name. A new kind of frame is
in these rules by its row of the table.

    >>> topics = Topics("greenhouse")
    >>> for rule in rules(Role.VIEWER, "screen", topics):
    ...     print(rule)
    topic read lasp/v1/greenhouse/out/#
    >>> print(rules(Role.DEVICE, "pi-1", topics)[0])
    topic write lasp/v1/greenhouse/0a/pane/pi-1/#
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Literal, NamedTuple

from lasp_edge.protocol.kinds import FRAME_KINDS, Publisher, Subscriber
from lasp_edge.protocol.topics import (
    OF_ALERT,
    OF_GATEWAY,
    Topics,
    home_node,
    home_topic,
    readable,
)


class Role(Enum):
    """What a participant is to the fleet."""

    DEVICE = "device"
    LANDER = "lander"
    OPERATOR = "operator"
    VIEWER = "viewer"


Access = Literal["read", "write"]

_EVERY: Mapping[Access, Mapping[Role, Publisher | Subscriber]] = {
    "write": {
        Role.DEVICE: Publisher.DEVICES,
        Role.LANDER: Publisher.LANDER,
        Role.OPERATOR: Publisher.OPERATOR,
    },
    "read": {
        Role.DEVICE: Subscriber.DEVICES,
        Role.LANDER: Subscriber.LANDER,
        Role.OPERATOR: Subscriber.OPERATOR,
    },
}
"""Who has a right to all topics of a kind, as the table of frame kinds names them."""


class Rule(NamedTuple):
    """One right; its text is a line of mosquitto's ACL file."""

    access: Access
    filter: str

    def __str__(self) -> str:
        return f"topic {self.access} {self.filter}"


def rules(role: Role, name: str, topics: Topics, home: str = "") -> list[Rule]:
    """Return the rights of a participant; it has no others.

    Args:
        role: of the participant.
        name: its name.
        topics: of the fleet.
        home: Home Assistant's first topic level, where devices may announce themselves to it, and
            one of them tells the fleet's values for all; "" where they may not.
    """
    found = [Rule("write", each) for each in _filters("write", role, name, topics)]
    if role is Role.DEVICE:
        me = readable(name)
        found.append(Rule("write", f"{topics.root}/out/+/{me}/#"))
        found.append(Rule("write", f"{topics.root}/out/{OF_ALERT}/+/{me}/#"))
    elif role is Role.LANDER:  # a gateway tells its windows, and how far they are
        found.append(Rule("write", f"{topics.root}/out/+/{readable(name)}/#"))
    found += [Rule("read", each) for each in _filters("read", role, name, topics)]
    found.append(Rule("read", f"{topics.root}/out/#"))
    return found + (list(_home(role, name, topics, home)) if home else [])


def _home(role: Role, name: str, topics: Topics, home: str) -> Iterator[Rule]:
    """Yield what Home Assistant, a viewer, and its devices need beside."""
    fleet = f"{topics.root}/fleet/#"
    if role is Role.DEVICE:
        yield Rule("write", fleet)
        yield from _announcing(home, f"{home}/device/{home_node(topics)}/+/config")
    elif role is Role.LANDER:
        yield from _announcing(home, home_topic(home, topics, OF_GATEWAY, name))
    elif role is Role.VIEWER:
        yield Rule("read", fleet)
        yield Rule("read", topics.every("presence"))
        yield Rule("read", f"{home}/#")
        yield Rule("write", f"{home}/status")


def _announcing(home: str, topic: str) -> Iterator[Rule]:
    """Yield the rights of a program that announces itself, and withdraws former announcements.

    Any device may clear what another one announced: that one may be retired, and gone.
    """
    yield Rule("write", topic)
    yield Rule("read", topic)
    yield Rule("read", f"{home}/status")


def _filters(access: Access, role: Role, name: str, topics: Topics) -> Iterator[str]:
    every = _EVERY[access].get(role)
    for row in FRAME_KINDS.values():
        named = row.publishers if access == "write" else row.subscribers
        own = Publisher.ITSELF if access == "write" else Subscriber.ADDRESSEE
        if every is not None and every in named:
            yield topics.every(row.topic)
        elif role is Role.DEVICE and own in named:
            yield f"{topics.of(row.topic, name)}/#"
