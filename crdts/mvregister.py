"""MVRegister: a value that anybody writes; concurrent writes are all kept, for a reader to settle.

A write replaces the values that its writer has observed, so there is more than one only while
writes did not know of each other.

Cost: a value and 1 to 6 B for each concurrent write, and the context; only the context grows.

>>> from crdts import MVRegister, Replica
>>> kitchen, cellar = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")
>>> setpoint = MVRegister()
>>> here, there = setpoint.write(kitchen, 21), setpoint.write(cellar, 18)
>>> setpoint |= here | there
>>> setpoint.value
(18, 21)
>>> setpoint |= setpoint.write(kitchen, 20)
>>> setpoint.value
(20,)

Source: Marc Shapiro, Nuno Preguiça, Carlos Baquero, Marek Zawirski, "A comprehensive study of
Convergent and Commutative Replicated Data Types", INRIA RR-7506, 2011, section 3.2.2.
"""

from typing import Any, Self

from crdts.causal import Causal
from crdts.mutator import mutator
from crdts.plain import encoded, need_value
from crdts.replica import Replica


class MVRegister(Causal):
    """A value, or several concurrent ones; a dot's payload is the value it wrote.

    >>> from crdts import MVRegister, Replica
    >>> here, there = Replica(1, 7, "a"), Replica(1, 9, "b")
    >>> both = MVRegister().write(here, "on") | MVRegister().write(there, "off")
    >>> sorted(both.value)
    ['off', 'on']
    """

    __slots__ = ()

    @property
    def value(self) -> tuple[Any, ...]:
        """The concurrent values, each once, in an order that all replicas share."""
        by_bytes = {encoded(value): value for value in self.dots.values()}
        return tuple(by_bytes[key] for key in sorted(by_bytes))

    def need_payload(self, payload: Any) -> Any:
        return need_value(payload)

    @mutator
    def write(self, replica: Replica, value: Any) -> Self:
        """Return the delta in which `replica` writes `value` over all that it has observed.

        Raises:
            ValueError: `value` is not a plain value (see `crdts.plain`).
        """
        return self.written(self.context.next_dot(replica), need_value(value), self.dots.keys())
