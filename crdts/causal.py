"""Causal states: what each live dot wrote, and the context of every dot ever heard of.

All types that can forget are this one state, and differ in what a dot's **payload** is and in how
they read it: a set's dot wrote an element, a register's a value, a flag's nothing, a map's a key
with what is stored under it. Seen from one dot a state is a short ladder that is only climbed:

    unheard of  <  live, with its payload  <  removed (in the context, and live no more)

The join takes for each dot the higher rung. So it is total and lawful whatever the states are,
removal leaves nothing behind but the context, and a write that the remover had not heard of
survives it.

A dot is written once. Two payloads for one dot mean that a device was cloned; the greater encoding
wins everywhere.

Cost: a dot is 0 B on the wire where it follows its replica's last live one, else 2 to 6 B; besides
it there is the context (see `crdts.causal_context`), which is all that grows.

Source: Paulo Sérgio Almeida, Ali Shoker, Carlos Baquero, "Delta State Replicated Data Types", JPDC
111, 2018, section 7 (causal CRDTs); Annette Bieniusa et al., "An Optimized Conflict-free Replicated
Set", INRIA RR-8083, 2012 (no tombstones).
"""

from abc import abstractmethod
from collections.abc import Collection, Iterator
from typing import Any, Self

from crdts.causal_context import (
    MAX_CLOUD,
    SEQ_BITS,
    SEQ_MASK,
    CausalContext,
    dots_from_plain,
    dots_to_plain,
    in_order,
    unpack,
)
from crdts.lattice import Lattice
from crdts.plain import need_int, need_tuple, outranks

Payloads = dict[int, Any]


class Causal(Lattice):  # noqa: PLW1641  # Lattice has taken the hash
    """Live dot -> its payload, and the context of all dots heard of; payloads are immutable."""

    __slots__ = ("context", "dots")

    dots: Payloads
    context: CausalContext

    def __init__(self) -> None:
        self.dots = {}
        self.context = CausalContext()

    @abstractmethod
    def need_payload(self, payload: Any) -> Any:
        """Return `payload` if a dot of this type may hold it.

        Raises:
            ValueError: it came from a peer and is something else.
        """

    def part(self, dots: Payloads, context: CausalContext) -> Self:
        """Return a state of this kind with these dots, which its context has to hold."""
        made = object.__new__(type(self))
        made.dots = dots
        made.context = context
        return made

    def written(self, dot: int, payload: Any, replaced: Collection[int] = ()) -> Self:
        """Return the delta in which `dot` is written in place of the dots `replaced`."""
        return self.part({dot: payload}, CausalContext.of((dot, *replaced)))

    def removed(self, dots: Collection[int]) -> Self:
        """Return the delta in which these dots are live no more."""
        return self.part({}, CausalContext.of(dots))

    def __ior__(self, other: Self) -> Self:
        self.join_dots(other)
        return self

    def join_dots(self, other: Self) -> tuple[Payloads, Payloads]:
        """Join `other` in place; return the live dots that came and those that went."""
        mine, theirs = self.dots, other.dots
        vector, cloud = self.context.vector, self.context.cloud
        came, went = {}, {}
        for dot, payload in theirs.items():
            if dot in mine:
                if outranks(payload, mine[dot]):
                    came[dot], went[dot] = payload, mine[dot]
            elif dot & SEQ_MASK > vector.get(dot >> SEQ_BITS, 0) and dot not in cloud:
                came[dot] = payload
        heard = other.context
        for dot in heard.among(mine.keys()) if heard.vector else heard.cloud:
            if dot in mine and dot not in theirs:
                went[dot] = mine[dot]
        for dot in went:
            del mine[dot]
        mine.update(came)
        self.context |= other.context
        return came, went

    def __le__(self, other: Self) -> bool:
        if not self.context <= other.context:
            return False
        return not any(
            dot not in self.dots or outranks(self.dots[dot], other.dots[dot])
            for dot in self.context.among(other.dots.keys())
        )

    def __sub__(self, other: Self) -> Self:
        delta = self._news_to(other.context, other.dots.keys())
        for dot in self.dots.keys() & other.dots.keys():
            if outranks(self.dots[dot], other.dots[dot]):
                delta |= self.written(dot, self.dots[dot])
        return delta

    def _news_to(self, context: CausalContext, live: Collection[int]) -> Self:
        """Return the delta for a state with this context and these live dots."""
        dots = {dot: payload for dot, payload in self.dots.items() if dot not in context}
        removed = {dot for dot in self.context.beyond(context) if dot not in self.dots}
        removed.update(dot for dot in live if dot not in self.dots and dot in self.context)
        return self.part(dots, CausalContext.of(dots.keys() | removed))

    def digest(self) -> tuple[Any, ...]:
        """Return the context and the live dots, without payloads."""
        return self.context.to_plain(), len(self.dots), dots_to_plain(self.dots)

    def delta_against(self, digest: Any) -> Self:
        context, count, live = need_tuple(digest, "a digest", 3)
        dots = dots_from_plain(live, need_int(count, "a number of live dots", below=MAX_CLOUD))
        return self._news_to(CausalContext.from_plain(context), dots)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Causal)
            and type(other) is type(self)
            and self.dots == other.dots
            and self.context == other.context
        )

    def __repr__(self) -> str:
        live = {tuple(unpack(dot)): self.dots[dot] for dot in in_order(self.dots)}
        return f"{type(self).__name__}({live}, context={self.context.to_plain()})"

    def __reduce__(self) -> tuple[Any, ...]:
        # A dot's integer means something in this process only.
        return type(self).from_plain, (self.to_plain(),)

    def irreducibles(self) -> Iterator[Self]:
        for dot in in_order(self.context):
            yield self.written(dot, self.dots[dot]) if dot in self.dots else self.removed((dot,))

    def to_plain(self) -> tuple[Any, ...]:
        payloads = tuple(self.dots[dot] for dot in in_order(self.dots))
        return self.context.to_plain(), dots_to_plain(self.dots), payloads

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        context, live, payloads = need_tuple(plain, "a causal state", 3)
        state = cls()
        state.fill(context, live, payloads)
        return state

    def fill(self, context: Any, live: Any, payloads: Any) -> None:
        """Take the parts of the plain form into this state, which is at bottom.

        Raises:
            ValueError: they came from a peer and are not the parts of a plain form.
        """
        payloads = need_tuple(payloads, "payloads")
        dots = dots_from_plain(live, len(payloads))
        known = CausalContext.from_plain(context)
        if not all(dot in known for dot in dots):
            raise ValueError("a causal state needs its live dots in its context, got others")
        filled = map(self.need_payload, payloads)
        self.join_dots(self.part(dict(zip(dots, filled, strict=True)), known))
