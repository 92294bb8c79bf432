"""EWFlag and DWFlag: a switch that anybody turns on and off; in a conflict on, or off, wins.

Turning a flag the winning way writes a dot in place of those observed; turning it the other way
removes the dots observed. A concurrent write the winning way was not observed, and so survives.

Cost: 2 to 7 B for each concurrent write the winning way, and the context; only the context grows.

>>> from crdts import DWFlag, EWFlag, Replica
>>> kitchen, cellar = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")
>>> on = EWFlag().enable(kitchen)
>>> (on | on.disable(kitchen)).value, (on | on.disable(kitchen) | on.enable(cellar)).value
(False, True)
>>> off = DWFlag().disable(kitchen)
>>> (off | off.enable(kitchen)).value, (off | off.enable(kitchen) | off.disable(cellar)).value
(True, False)

Source: Riak's `riak_dt_od_flag`, Basho Technologies, 2013; Paulo Sérgio Almeida, Ali Shoker, Carlos
Baquero, "Delta State Replicated Data Types", JPDC 111, 2018, section 7 (dot sets).
"""

from collections.abc import Iterator
from typing import Any, Self

from crdts.causal import Causal
from crdts.causal_context import CausalContext, pack, unpack
from crdts.incremental import Shadow, need_write
from crdts.mutator import mutator
from crdts.replica import Replica


class Flag(Causal):
    """A switch that is raised while any dot is live; a dot's payload is None."""

    __slots__ = ()

    def need_payload(self, payload: Any) -> None:
        if payload is not None:
            raise ValueError(f"a flag's dot needs no payload, got {payload!r}")

    def _raise(self, replica: Replica) -> Self:
        return self.written(self.context.next_dot(replica), None, self.dots.keys())

    def _lower(self) -> Self:
        return self.part({}, CausalContext.of(self.dots.keys()))


class EWFlag(Flag, Shadow):
    """A switch that is off at first; enabling wins over disabling. It is a shadow of dots.

    >>> from crdts import EWFlag, Replica
    >>> here, there = Replica(1, 7, "a"), Replica(1, 9, "b")
    >>> on = EWFlag().enable(here)
    >>> (on | on.disable(there)).value
    False
    """

    __slots__ = ()

    @property
    def value(self) -> bool:
        """Whether the switch is on."""
        return bool(self.dots)

    @mutator
    def enable(self, replica: Replica) -> Self:
        """Return the delta in which `replica` turns the switch on."""
        return self._raise(replica)

    @mutator
    def disable(self, _replica: Replica) -> Self:
        """Return the delta that turns off what was observed to turn the switch on."""
        return self._lower()

    def live(self) -> Iterator[int]:
        return iter(self.dots)

    def is_live(self, token: Any) -> bool:
        return token in self.dots

    @staticmethod
    def token_to_plain(token: Any) -> tuple[Any, ...]:
        replica, seq = unpack(token)
        return *replica, seq

    @staticmethod
    def token_from_plain(plain: Any) -> int:
        return pack(*need_write(plain))


class DWFlag(Flag):
    """A switch that is on at first; disabling wins over enabling.

    >>> from crdts import DWFlag, Replica
    >>> here, there = Replica(1, 7, "a"), Replica(1, 9, "b")
    >>> on = DWFlag().enable(here)
    >>> (on | on.disable(there)).value
    False
    """

    __slots__ = ()

    @property
    def value(self) -> bool:
        """Whether the switch is on."""
        return not self.dots

    @mutator
    def enable(self, _replica: Replica) -> Self:
        """Return the delta that lifts what was observed to turn the switch off."""
        return self._lower()

    @mutator
    def disable(self, replica: Replica) -> Self:
        """Return the delta in which `replica` turns the switch off."""
        return self._raise(replica)
