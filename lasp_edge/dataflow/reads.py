"""Reads: values that are waited for, in a library in which nothing can wait.

A `Read` stands for an answer that may not be known yet: `ready` says whether it has, `value`
what it is, and `then` calls back with it, at once or later. It is settled once, for ever. Whatever
runs the dataflow decides how to wait. In an asyncio program that is

    async def wait(read):
        answered = asyncio.get_running_loop().create_future()
        read.then(answered.set_result)
        return await answered

>>> read = Read("how many?")
>>> read.then(print)
>>> read.settle(7)
7
>>> read.ready, read.value
(True, 7)
"""

from collections.abc import Callable
from typing import Any

Callback = Callable[[Any], None]


class Read:
    """An answer, once there is one.

    >>> from crdts import GSet, Replica
    >>> from lasp_edge.dataflow import Dataflow, cardinality
    >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
    >>> seen = dataflow.declare(GSet(), "seen")
    >>> read = dataflow.read(seen, cardinality(2))
    >>> dataflow.update(seen, GSet.add, "attic")
    >>> read.ready
    False
    >>> dataflow.update(seen, GSet.add, "cellar")
    >>> sorted(read.value)
    ['attic', 'cellar']

    Args:
        what: the question, for an error.
    """

    __slots__ = ("_callbacks", "_value", "_what", "ready")

    def __init__(self, what: str) -> None:
        self.ready = False
        self._what = what
        self._value: Any = None
        self._callbacks: list[Callback] = []

    @property
    def value(self) -> Any:
        """The answer.

        Raises:
            LookupError: there is no answer yet.
        """
        if not self.ready:
            raise LookupError(f"{self._what}: not reached yet")
        return self._value

    def then(self, callback: Callback) -> None:
        """Call `callback` with the answer, once: now if there is one, else as soon as there is."""
        if self.ready:
            callback(self._value)
        else:
            self._callbacks.append(callback)

    def settle(self, value: Any) -> None:
        """Give the answer; a second one changes nothing."""
        if not self.ready:
            self.ready, self._value = True, value
            callbacks, self._callbacks = self._callbacks, []
            for callback in callbacks:
                callback(value)

    def __repr__(self) -> str:
        return f"Read({self._what}: {self._value!r})" if self.ready else f"Read({self._what})"
