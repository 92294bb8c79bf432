"""Causal states: what each live dot wrote, and the context of every dot ever received.

All types that can forget are this one state, and differ in what a dot's **payload** is and in how
they read it: a set's dot wrote an element, a register's a value, a flag's nothing, a map's a key
with what is stored under it. Seen from one dot a state is a short ladder that is only climbed:

    unknown     <  live, with its payload  <  removed (in the context, and live no more)

The join takes for each dot the higher rung. So it is total and lawful whatever the states are,
removal leaves nothing behind but the context, and a write that the remover had not received
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
from hashlib import sha256
from itertools import groupby
from typing import Any, Final, Self, TypeVar

from crdts.causal_context import (
    MAX_CLOUD,
    SEQ_BITS,
    SEQ_MASK,
    CausalContext,
    dots_from_plain,
    dots_to_plain,
    in_order,
    pack,
    unpack,
)
from crdts.lattice import MOST_SUMS, Lattice
from crdts.plain import encoded, need_column, need_int, need_tuple, outranks
from crdts.replica import by_device, from_devices

Payloads = dict[int, Any]
CausalState = TypeVar("CausalState", bound="Causal")

MOST_DOTS: Final = 1 << 15
"""Dots that a delta, or a piece of a state beyond a gap, lists, at most: some 2 MB while it is
joined. A few bytes may say that any number of writes is gone, so who needs a longer list takes, or
gives, all of the state in its place."""
MOST_LISTED: Final = 1 << 22
"""Removed dots between live ones of a replica that pieces list, at most: in 128 of them."""
DOT_BYTES: Final = 8
"""Bytes of a dot beside its payload, or of a run of removed ones, at most, where they follow on
each other in an encoded piece."""
MOST_SHIFT: Final = 12
"""A digest's blocks hold at most 2**12 dots: a peer that lists many asks for little work."""


class Causal(Lattice):  # noqa: PLW1641  # Lattice has taken the hash
    """Live dot -> its payload, and the context of all dots received; payloads are immutable."""

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

    def __ior__(self, other: Self) -> Self:
        self.join_dots(other)
        return self

    def join_dots(self, other: Self) -> tuple[Payloads, Payloads]:
        """Join `other` in place; return the added and the removed live dots."""
        mine, theirs = self.dots, other.dots
        vector, cloud = self.context.vector, self.context.cloud
        added, removed = {}, {}
        for dot, payload in theirs.items():
            if dot in mine:
                if outranks(payload, mine[dot]):
                    added[dot], removed[dot] = payload, mine[dot]
            elif dot & SEQ_MASK > vector.get(dot >> SEQ_BITS, 0) and dot not in cloud:
                added[dot] = payload
        known = other.context
        for dot in known.among(mine.keys()) if known.vector else known.cloud:
            if dot in mine and dot not in theirs:
                removed[dot] = mine[dot]
        for dot in removed:
            del mine[dot]
        mine.update(added)
        self.context |= other.context
        return added, removed

    def __le__(self, other: Self) -> bool:
        if not self.context <= other.context:
            return False
        return not any(
            dot not in self.dots or outranks(self.dots[dot], other.dots[dot])
            for dot in self.context.among(other.dots.keys())
        )

    def __sub__(self, other: Self) -> Self:
        delta = _news_to(self, other.context, other.dots.keys())
        for dot in self.dots.keys() & other.dots.keys():
            if outranks(self.dots[dot], other.dots[dot]):
                delta |= self.written(dot, self.dots[dot])
        return delta

    def restricted(self, device: str) -> Self:
        context = self.context.restricted(device)
        dots = {dot: self.dots[dot] for dot in context.among(self.dots.keys())}
        return self.part(dots, context)

    def pieces(self, most_bytes: int) -> Iterator[Self]:
        """Yield pieces by ranges of dots: what was removed is named by its ends."""
        dots: Payloads = {}
        context, size = CausalContext(), 0
        near, far = _split(self)
        yield from far
        for first, last in _runs(near):
            live = first in near.dots
            needed = DOT_BYTES + (len(encoded(near.dots[first])) if live else 0)
            full = size + needed > most_bytes or len(context.cloud) >= MOST_DOTS
            if size and full:
                yield self.part(dots, context)
                dots, context, size = {}, CausalContext(), 0
            if live:
                dots[first] = near.dots[first]
            context |= CausalContext.between(first, last)
            size += needed
        if size:
            yield self.part(dots, context)

    def digest(self) -> tuple[Any, ...]:
        """Return the context, and for each block of dots a sum over its live ones.

        A block is as small as it can be with `MOST_SUMS` of them: of few live dots, a dot.
        """
        shift = 0
        while shift < MOST_SHIFT and len({dot >> shift for dot in self.dots}) > MOST_SUMS:
            shift += 1
        sums = _sums(self.dots, shift)
        rows: dict[Any, tuple[list[int], list[int]]] = {}
        for block in in_order([at << shift for at in sums]):
            dot = unpack(block)
            numbers, totals = rows.setdefault(dot.replica, ([], []))
            numbers.append(dot.seq >> shift)
            totals.append(sums[block >> shift])
        columns = {replica: (tuple(ns), tuple(ts)) for replica, (ns, ts) in rows.items()}
        return self.context.to_plain(), shift, by_device(columns)

    def delta_against(self, digest: Any) -> Self:
        plain, shift, columns = need_tuple(digest, "a digest", 3)
        context = CausalContext.from_plain(plain)
        need_int(shift, "a shift", below=MOST_SHIFT + 1)
        theirs = {}
        for replica, (numbers, sums) in from_devices(columns, "a digest", width=2).items():
            need_column(sums, "the sums of a digest", len(need_column(numbers, "the blocks")))
            for number, total in zip(numbers, sums, strict=True):
                theirs[pack(replica, need_int(number, "a block") << shift) >> shift] = total
        known = context.among(self.dots.keys())
        ours = _sums({dot: self.dots[dot] for dot in known}, shift)
        differing = {at for at in ours.keys() | theirs.keys() if ours.get(at) != theirs.get(at)}
        if len(differing) << shift > MAX_CLOUD:
            return self.copy()
        delta = _news_to(self, context, ())
        dots = _block_dots(self, differing, shift)
        live = {dot: self.dots[dot] for dot in dots if dot in self.dots}
        delta |= self.part(live, CausalContext.of(dots))
        return delta

    def marks(self, near: Self | None = None) -> Iterator[bytes]:
        """Yield a mark for each live dot, and for the context's vector and what is beyond it."""
        dots, context = self.dots, self.context
        known = dots.keys() if near is None else near.context.among(dots.keys())
        for dot in known:
            if dot in dots:
                replica, seq = unpack(dot)
                yield encoded((tuple(replica), seq, dots[dot]))
        for replica, seq in context.bounds(None if near is None else near.context):
            yield encoded((tuple(replica), seq))

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
            live = {dot: self.dots[dot]} if dot in self.dots else {}
            yield self.part(live, CausalContext.of((dot,)))

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


def _sums(dots: Payloads, shift: int) -> dict[int, int]:
    """Return block -> sum of the hashes of its dots with their payloads, modulo 2**63."""
    sums: dict[int, int] = {}
    for dot, payload in dots.items():
        text = encoded((dot & SEQ_MASK, payload))
        hashed = int.from_bytes(sha256(text).digest()[:8]) >> 1
        sums[dot >> shift] = (sums.get(dot >> shift, 0) + hashed) & (2**63 - 1)
    return sums


def _split(state: CausalState) -> tuple[CausalState, list[CausalState]]:
    """Return what pieces can be cut from, and each replica's part that would be too long a list.

    What a replica removed between its live dots, and after them, has to be listed.
    """
    first: dict[int, int] = {}
    for dot in state.dots:
        index = dot >> SEQ_BITS
        first[index] = min(first.get(index, dot), dot)
    vector = state.context.vector
    far = {at: n for at, n in vector.items() if n - (first.get(at, n) & SEQ_MASK) > MOST_LISTED}
    if not far:
        return state, []
    near = CausalContext({at: n for at, n in vector.items() if at not in far}, state.context.cloud)
    contexts = [near, *(CausalContext({at: n}) for at, n in far.items())]
    rest, *whole = [
        state.part({dot: state.dots[dot] for dot in context.among(state.dots.keys())}, context)
        for context in contexts
    ]
    return rest, whole


def _runs(state: Causal) -> Iterator[tuple[int, int]]:
    """Yield (first, last) of runs of removed dots, and each live dot alone, in order."""
    covered = (dot for dot in state.dots if dot not in state.context.cloud)
    live = {at: list(dots) for at, dots in groupby(in_order(covered), lambda d: d >> SEQ_BITS)}
    for first in in_order((index << SEQ_BITS) + 1 for index in state.context.vector):
        index = first >> SEQ_BITS
        end = (index << SEQ_BITS) + state.context.vector[index] + 1
        at = first
        for dot in (*live.get(index, ()), end):
            while at < dot:
                # What begins a vector is held as one number, whatever its length.
                last = dot - 1 if at == first else min(dot, at + MOST_DOTS) - 1
                yield at, last
                at = last + 1
            if dot < end:
                yield dot, dot
            at = dot + 1
    for dot in in_order(state.context.cloud):
        yield dot, dot


def _block_dots(state: Causal, blocks: Collection[int], shift: int) -> list[int]:
    """Return the dots of some blocks that a state has received."""
    dots: list[int] = []
    for block in sorted(blocks):
        least = block << shift
        index = least >> SEQ_BITS
        end = min(
            least + (1 << shift), (index << SEQ_BITS) + state.context.vector.get(index, 0) + 1
        )
        dots += range(max(least, (index << SEQ_BITS) + 1), end)
    dots += [dot for dot in state.context.cloud if dot >> shift in blocks]
    return dots


def _news_to(state: CausalState, context: CausalContext, live: Collection[int]) -> CausalState:
    """Return the delta for a state with this context and these live dots.

    Where it would be too long a list it is all of the state, which joins to the same.
    """
    if state.context.ahead(context) > MOST_DOTS:
        return state.copy()
    dots = {dot: payload for dot, payload in state.dots.items() if dot not in context}
    removed = {dot for dot in state.context.beyond(context) if dot not in state.dots}
    removed.update(dot for dot in state.context.among(live) if dot not in state.dots)
    return state.part(dots, CausalContext.of(dots.keys() | removed))
