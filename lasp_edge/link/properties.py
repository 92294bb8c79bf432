r"""Properties of MQTT 5 packets, at a tenth of paho's cost.

For every packet, paho makes its tables of all properties, and then looks through one of them to
clear what is still empty: that is a third of the work of a small message. The tables are constant.
So one set of them serves all packets, and what is cleared is what was set. A release of paho that
keeps something else in an object is left as it is.

paho makes the properties of a received packet itself, and asks nobody for their class: so it is its
class that changes, for the whole process. Who else uses it there reads and writes the same.

    >>> TopicAlias(7).pack()
    b'\x03#\x00\x07'
"""

from typing import Any

from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

_TABLES = ("types", "names", "properties")
_TOPIC_ALIAS = b"\x03\x23"
"""Three bytes of properties follow: property 35, and its value of two bytes."""


def share_tables() -> bool:
    """Let all properties of this process use the same tables; return whether paho allows it."""
    known = vars(Properties(PacketTypes.PUBLISH))  # type: ignore[no-untyped-call]
    if known.keys() != {"packetType", *_TABLES}:
        return False
    tables = {name: known[name] for name in _TABLES}

    def make(self: Any, packetType: int) -> None:  # noqa: N803 - paho's name
        vars(self).update(tables, packetType=packetType)

    def clear(self: Any) -> None:
        values = vars(self)
        if len(values) > len(known):
            for name in values.keys() - known.keys():
                del values[name]

    Properties.__init__, Properties.clear = make, clear  # type: ignore[method-assign]
    return True


class TopicAlias(Properties):
    """The properties of a PUBLISH that has a topic alias and nothing else.

    Args:
        number: the alias, from 1 to 65,535.
    """

    def __init__(self, number: int) -> None:
        super().__init__(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        vars(self)["TopicAlias"] = number

    def pack(self) -> bytes:
        """Return what paho would make, without a look at its tables."""
        number: int = vars(self)["TopicAlias"]
        return _TOPIC_ALIAS + number.to_bytes(2, "big")
