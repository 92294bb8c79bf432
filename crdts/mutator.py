"""Mutators: the methods of a state by which a program writes to it.

A mutator takes the replica that writes, then its own arguments, and returns a delta. One that has
no use for the writer takes it all the same, so that all are called alike. A program
can call only what is marked, whatever its parameters are called.

>>> from crdts import GCounter
>>> is_mutator(GCounter.increment), is_mutator(GCounter.copy)
(True, False)
"""

from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

_MARK = "_is_mutator"


def mutator(method: Method) -> Method:
    """Mark a method as a mutator; as a decorator, outermost.

    >>> from crdts import GCounter, GSet, Replica
    >>> class Rooms(GSet):
    ...     @mutator
    ...     def enter(self, replica, floor, room):
    ...         return self.add(replica, f"{floor}/{room}")
    >>> rooms = Rooms()
    >>> rooms |= rooms.enter(Replica(1, 7, "kitchen"), 2, "attic")
    >>> sorted(rooms.value)
    ['2/attic']
    """
    setattr(method, _MARK, True)
    return method


def is_mutator(method: object) -> bool:
    """Return whether `method` was marked as a mutator."""
    return getattr(method, _MARK, False) is True
