"""ORMap: key -> a CRDT of one kind, whichever; keys come and go as the elements of an ORSet.

A causal CRDT (a set, a flag, a register, a map) is embedded by its dots: the map's dots are those
of all its entries, each with the key in front of its payload, under one context. So removing a key
removes the dots observed below it, whatever was concurrently written there survives, and a key that
comes back starts again with dots never used before. A map of maps of sets is again one flat state.

Any other lattice is embedded whole: a replica's dot holds what *this replica* contributed to the
key, and is replaced by each of its updates. A key's state is the join over its live dots; one that
was removed and comes back starts at bottom.

Cost: the key (and 1 to 2 B) with each dot of the embedded state, else as an ORSet; some 12 B a
replica is all that grows. An update costs what the entry of its key costs, a join what the delta
costs.

Source: Paulo Sérgio Almeida, Ali Shoker, Carlos Baquero, "Delta State Replicated Data Types", JPDC
111, 2018, section 7 (maps under one context); Russell Brown et al., "Riak DT Map", PaPEC 2014.
"""

from collections.abc import Callable
from typing import Any, Self

from crdts.causal import Causal
from crdts.causal_context import SEQ_BITS, CausalContext, index_of
from crdts.labelled import Labelled
from crdts.lattice import Lattice
from crdts.mutator import mutator
from crdts.plain import encoded, need_element, need_tuple
from crdts.product import Product
from crdts.replica import Replica


class ORMap(Labelled):
    """Key -> a state of the kind of `of`; a dot's payload is (key, what it wrote below the key).

    >>> from crdts import ORSet, Replica
    >>> me, you = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")
    >>> shopping = ORMap(ORSet())
    >>> shopping |= shopping.update(me, "market", ORSet.add, "milk")
    >>> removal = shopping.remove(you, "market")
    >>> shopping |= shopping.update(me, "market", ORSet.add, "bread")
    >>> (shopping | removal).value
    {'market': frozenset({'bread'})}
    """

    __slots__ = ("of",)

    def __init__(self, of: Lattice) -> None:
        """Make an empty map whose entries start as `of.bottom()`.

        Raises:
            ValueError: `of` is no state, or a product with a causal part, whose dots the map cannot
                see.
        """
        if not isinstance(of, Lattice):
            raise ValueError(f"a map needs a state, such as ORMap(ORSet()), not {of!r}")
        if isinstance(of, Product) and _has_causal_part(of):
            raise ValueError(f"a map needs causal states to be embedded by themselves, got {of!r}")
        super().__init__()
        self.of = of.bottom()

    @staticmethod
    def label(payload: Any) -> Any:
        return payload[0]

    @property
    def value(self) -> dict[Any, Any]:
        """Key -> the value below it, in an order that all replicas share."""
        return {key: self._at(key).value for key in sorted(self.labels, key=encoded)}

    def bottom(self) -> Self:
        return type(self)(self.of)

    def part(self, dots: dict[int, Any], context: CausalContext) -> Self:
        made = super().part(dots, context)
        made.of = self.of
        return made

    def __getitem__(self, key: Any) -> Lattice:
        """Return a copy of the state of `key`; bottom where the key is absent."""
        return self._at(key).copy()

    @mutator
    def update(
        self, replica: Replica, key: Any, mutator: Callable[..., Any], *arguments: Any
    ) -> Self:
        """Return the delta of `mutator(state of key, replica, *arguments)`.

        Raises:
            ValueError: `key` is not a valid element (see `crdts.plain`), or `mutator` raises it.
        """
        delta = mutator(self._at(need_element(key)), replica, *arguments)
        if isinstance(delta, Causal):
            dots = {dot: (key, payload) for dot, payload in delta.dots.items()}
            return self.part(dots, delta.context)
        index = index_of(replica)
        mine = [dot for dot in self.dots_of(key) if dot >> SEQ_BITS == index]
        for dot in mine:
            delta |= self.dots[dot][1]
        return self.written(self.context.next_dot(replica), (key, delta), mine)

    def _at(self, key: Any) -> Lattice:
        """Return the state of `key`; it shares this map's context, so it is for reading."""
        payloads = {dot: self.dots[dot][1] for dot in self.dots_of(key)}
        if isinstance(self.of, Causal):
            return self.of.part(payloads, self.context)
        state = self.of.bottom()
        for payload in payloads.values():
            state |= payload
        return state

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and isinstance(other, ORMap) and self.of == other.of

    __hash__ = None  # type: ignore[assignment]  # see Lattice

    def need_payload(self, payload: Any) -> Any:
        key, below = need_tuple(payload, "a map's entry", 2)
        need_element(key)
        if isinstance(self.of, Causal):
            return key, self.of.need_payload(below)
        if type(below) is not type(self.of):
            raise ValueError(f"a map needs a {type(self.of).__name__}, got {type(below).__name__}")
        return key, below

    def to_plain(self) -> tuple[Any, ...]:
        return self.of, super().to_plain()

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        of, parts = need_tuple(plain, "a map", 2)
        if not isinstance(of, Lattice) or of != of.bottom():
            raise ValueError(f"a map needs the bottom of what it holds, got {of!r}")
        state = cls(of)
        state.fill(*need_tuple(parts, "a map", 3))
        return state


def _has_causal_part(state: Lattice) -> bool:
    if isinstance(state, Product):
        return any(map(_has_causal_part, state.parts))
    return isinstance(state, Causal)
