"""How much an object remembers, for tests of what may not grow without end."""

from collections import deque
from collections.abc import Collection
from typing import Any

PLAIN = (str, bytes, int, float, type(None))


def most_held(thing: Any) -> int:
    """Return the length of the largest collection in an object, at any depth of its attributes."""
    largest, known, left = 0, set(), [thing]
    while left:
        each = left.pop()
        if id(each) in known or isinstance(each, PLAIN):
            continue
        known.add(id(each))
        if isinstance(each, dict | list | set | frozenset | tuple | deque):
            largest = max(largest, len(each))
            left += [*each.keys(), *each.values()] if isinstance(each, dict) else each
        elif type(each).__module__.startswith(("lasp_edge", "device_agent", "crdts")):
            left += _attributes(each)
        elif isinstance(each, Collection):
            largest = max(largest, len(each))
    return largest


def _attributes(thing: Any) -> list[Any]:
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    found = [getattr(thing, name) for name in slots if hasattr(thing, name)]
    return [*found, *getattr(thing, "__dict__", {}).values()]
