"""The retained message that announces one device to Home Assistant, with all its entities.

Home Assistant keeps an entity that a later message leaves out. It drops one that is named with
nothing but its component. So what is gone is named so once more, and left out after that. What was
announced before is read off the message that the broker retains: so it is known to a process that
was just started with another program, and to the next device that speaks for the fleet.

Source: https://www.home-assistant.io/integrations/mqtt/#device-discovery-payload
"""

import json
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any, Final

from device_agent.outputs.retained import Content
from lasp_edge.protocol.sizes import MAX_FRAME_BYTES

Config = dict[str, Any]
Components = dict[str, Config]
"""Id -> configuration of an entity, within its device."""

MOST_KEYS: Final = 100
"""Keys of a value that are entities, at most, the first in their order: more than a house has
rooms. All keys are on their topics."""
LONGEST: Final = MAX_FRAME_BYTES - 4_096
"""Bytes of all entities of a device, at most: a broker of ours takes no longer message."""
MOST_KNOWN: Final = 2_000
"""Entities that are remembered as announced, at most: more than a message has room for."""
GONE_BYTES: Final = 3_072
"""Bytes of what is named as gone in one message, at most; what is left over is in the next."""
_KIND: Final = "platform"


class Announced:
    """The message of one device, and the entities that an earlier one has.

    Args:
        topic: on which it is retained.
        message: returns the whole of what it says, given its entities.
    """

    def __init__(self, topic: str, message: Callable[[Components], Config]) -> None:
        self.topic, self._message = topic, message
        self._made_of: Hashable = None
        self._made: Components = {}
        self._before: Components = {}

    def hear(self, payload: bytes, _now_us: int = 0) -> None:
        """Take the message that the broker retains, this process's own or an earlier one."""
        try:
            found = json.loads(payload or b"{}").get("components", {})
        except (ValueError, AttributeError, RecursionError):
            return  # a stranger's: the next message replaces it
        if not payload or len(self._before) > MOST_KNOWN:
            self._before.clear()
        for name, each in found.items() if isinstance(found, Mapping) else ():
            if isinstance(each, dict) and each.get(_KIND) and len(each) > 1:
                self._before[name] = each
            else:
                self._before.pop(name, None)

    def content(
        self, made_of: Hashable, make: Callable[[int], Components], *, is_all: bool = True
    ) -> Content:
        """Return what is to be retained.

        Args:
            made_of: equal ones give equal entities.
            make: gives the entities; its argument is the limit of keys for each value.
            is_all: what is not among them is gone; else it stays as it was announced.
        """
        if made_of != self._made_of or not self._made:
            self._made_of, self._made = made_of, _fitting(make)
        left = {name: each for name, each in self._before.items() if name not in self._made}
        if not is_all and _length(self._made | left) > LONGEST:
            left = {}
        mark = (made_of, tuple(sorted(left)), is_all or not left)
        return Content(self.topic, mark, partial(self._payload, left, is_all=is_all))

    def _payload(self, left: Components, *, is_all: bool) -> bytes:
        if is_all:
            left = _named(left)
        config = self._message(self._made | left)
        return _encoded(config)


def _named(gone: Components) -> Components:
    """Return what makes Home Assistant drop entities: as many as fit, and at least one."""
    found: Components = {}
    for name, each in sorted(gone.items()):
        found[name] = {_KIND: each[_KIND]}
        if _length(found) > GONE_BYTES:
            break
    return found


def _fitting(make: Callable[[int], Components]) -> Components:
    """Return the entities, of as many keys as a message has room for."""
    most, made = MOST_KEYS, make(MOST_KEYS)
    while most > 1 and _length(made) > LONGEST:
        most //= 2
        made = make(most)
    return made


def _length(components: Components) -> int:
    return len(_encoded(components))


def _encoded(plain: Config) -> bytes:
    # What a stranger announced may hold halves of characters.
    return json.dumps(plain, sort_keys=True, ensure_ascii=False).encode(errors="replace")
