"""ORSet: a set to which anybody adds and from which anybody removes; adding wins.

Every add writes a new dot. Removing takes away the dots of the element that the remover has
*observed*, so an add that it had not received survives. Adding again replaces the observed dots by
one: an element costs one dot however often it was added, unless replicas add it concurrently.

Cost: an element and 0 to 4 B on the wire (in order of dots, which follow one another); some 150 B
in memory. A set that was emptied is its context: some 12 B a replica, the only thing that grows. No
element that was removed leaves anything behind.

>>> from crdts import ORSet, Replica
>>> kitchen, cellar = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")
>>> here, there = ORSet(), ORSet()
>>> here |= here.add(kitchen, "milk")
>>> there |= here
>>> here |= here.remove(kitchen, "milk")
>>> there |= there.add(cellar, "milk")
>>> (here | there).value
frozenset({'milk'})

Source: Annette Bieniusa, Marek Zawirski, Nuno Preguiça, Marc Shapiro, Carlos Baquero, Valter
Balegas, Sérgio Duarte, "An Optimized Conflict-free Replicated Set", INRIA RR-8083, 2012; Paulo
Sérgio Almeida, Ali Shoker, Carlos Baquero, "Delta State Replicated Data Types", JPDC 111, 2018,
section 7.
"""

from collections.abc import Iterable
from typing import Any, Self

from crdts.causal_context import SEQ_BITS, SEQ_MASK, CausalContext
from crdts.labelled import Labelled
from crdts.mutator import mutator
from crdts.plain import need_element
from crdts.replica import Replica

new = object.__new__


class ORSet(Labelled):
    """A set of elements; a dot's payload is the element it added.

    >>> from crdts import ORSet, Replica
    >>> here, there = Replica(1, 7, "a"), Replica(1, 9, "b")
    >>> added = ORSet().add(here, "attic")
    >>> (added | added.remove(there, "attic")).value
    frozenset()
    """

    __slots__ = ()

    @property
    def value(self) -> frozenset[Any]:
        """The elements."""
        return frozenset(self.labels)

    def need_payload(self, payload: Any) -> Any:
        return need_element(payload)

    def __ior__(self, other: Self) -> Self:
        # Most deltas are the next write of a replica and add a new element: nothing of it can be
        # here yet, and nothing goes. All others take the definition, `join_dots`.
        theirs, known = other.dots, other.context
        if len(theirs) == 1 == len(known.cloud) and not known.vector:
            (dot,) = theirs
            element, context, labels = theirs[dot], self.context, self.labels
            vector, index = context.vector, dot >> SEQ_BITS
            seq = vector.get(index, 0) + 1
            if dot & SEQ_MASK == seq and element not in labels and not context.cloud:
                vector[index] = seq
                labels[element] = dot
                self.dots[dot] = element
                return self
        self.join_dots(other)
        return self

    @mutator
    def add(self, replica: Replica, element: Any) -> Self:
        """Return the delta in which `replica` adds `element`.

        Raises:
            ValueError: `element` is not a valid element (see `crdts.plain`).
        """
        need_element(element)
        dot = self.context.next_dot(replica)
        if element in self.labels or dot & SEQ_MASK == 1:
            return self.written(dot, element, self.dots_of(element))
        # Nothing is replaced: `self.written(dot, element)` at half the cost.
        delta, context = new(type(self)), new(CausalContext)
        context.vector, context.cloud = {}, {dot}
        delta.dots, delta.labels, delta.context = {dot: element}, {element: dot}, context
        return delta

    def add_many(self, replica: Replica, elements: Iterable[Any]) -> Self:
        """Return the delta in which `replica` adds all `elements`, each once.

        Raises:
            ValueError: one of them is not a valid element (see `crdts.plain`).
        """
        first = self.context.next_dots(replica)
        dots = dict(enumerate(dict.fromkeys(map(need_element, elements)), start=first))
        replaced = [dot for element in dots.values() for dot in self.dots_of(element)]
        return self.part(dots, CausalContext.of(dots.keys() | replaced))
