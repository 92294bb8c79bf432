"""DerivedSet: elements, the writes they follow from, and all writes received.

The same derivation runs on many replicas, and what two of them got can be joined without their
inputs. For that a derived set has to tell *removed* from *not received*: an element that one side
lacks is gone if that side has received its writes and they are not live there, and else is simply
news. A **term** is a set of writes that together justify an element: one write of one input, or
one of each side for a pair that a product made. So beside the terms of its elements it keeps the
**shadow** of each input (see `crdts.incremental`), those writes included that made no element.

The join joins the shadows, takes the terms of both sides and keeps those that are still live in
all their tokens. For `map`, `filter`, `union` and `bind_to`, deriving and joining commute: what two
replicas derived, joined, is what is derived from their joined inputs. For `intersection` and
`product` it is below that by the terms of which neither side had both halves; it never holds an
element that is gone, and is whole as soon as some replica has received both halves. (A cloned
device may have written two elements with one dot. Of these the inputs keep the greater, and a join
of what was derived from them may keep both.)

Cost: an element with each of its terms, some 30 B a write in a term on the wire, beside the
shadows: a context and 0 to 4 B a live dot. Only the contexts grow for ever. A join costs O(the
joined terms).

>>> from crdts import ORSet, Replica
>>> me, you = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")
>>> def doubled(numbers):
...     pairs = [(2 * n, frozenset({("numbers", token)})) for token, n in numbers.tokens()]
...     return DerivedSet({"numbers": numbers.shadow()}, pairs)
>>> both = ORSet().add(me, 3)
>>> here, there = both | both.remove(me, 3), both | both.add(you, 4)
>>> joined = doubled(here) | doubled(there)
>>> joined.value, joined == doubled(here | there)
(frozenset({8}), True)

Source: Todd Green, Grigoris Karvounarakis, Val Tannen, "Provenance Semirings", PODS 2007; Paulo
Sérgio Almeida, Ali Shoker, Carlos Baquero, "Delta State Replicated Data Types", JPDC 111, 2018,
section 7 (contexts).
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from operator import or_
from typing import Any, Self

from crdts.incremental import Shadow
from crdts.lattice import Lattice
from crdts.plain import encoded, need_element, need_text, need_tuple

Token = tuple[str, Any]
"""A write: the input's name, and the write's token there."""
Term = frozenset[Token]
"""Writes that together justify an element."""
ElementTerm = tuple[Any, Term]
"""An element, and one of its terms."""

NAME_BYTES = 64
"""The longest name of a variable, in bytes of UTF-8: it fits a topic level and a frame's head."""


class DerivedSet(Lattice):  # noqa: PLW1641  # Lattice has taken the hash
    """Input -> its shadow, which is never at bottom; and the live pairs (element, term).

    >>> from crdts import ORSet, Replica
    >>> from lasp_edge.dataflow import Dataflow
    >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
    >>> seen = dataflow.declare(ORSet(), "seen")
    >>> floors = dataflow.map(seen, lambda room: room[0], "floors")
    >>> dataflow.update(seen, ORSet.add_many, ["1a", "1b", "2a"])
    >>> sorted(dataflow.state(floors).value)
    ['1', '2']
    """

    __slots__ = ("pairs", "shadows")

    def __init__(
        self, shadows: Mapping[str, Shadow] | None = None, pairs: Iterable[ElementTerm] = ()
    ) -> None:
        """Take these shadows, and of `pairs` those whose tokens are all live in them."""
        given = {} if shadows is None else shadows
        self.shadows = {name: shadow for name, shadow in given.items() if shadow != shadow.bottom()}
        self.pairs = {pair for pair in pairs if self._lives(pair[1])}

    def _lives(self, term: Term) -> bool:
        return all(
            name in self.shadows and self.shadows[name].is_live(write) for name, write in term
        )

    @property
    def value(self) -> frozenset[Any]:
        """The elements."""
        return frozenset(element for element, _ in self.pairs)

    def __ior__(self, other: Self) -> Self:
        for name, shadow in other.shadows.items():
            if name in self.shadows:
                self.shadows[name] |= shadow
            else:
                self.shadows[name] = shadow.copy()
        self.pairs = {pair for pair in self.pairs | other.pairs if self._lives(pair[1])}
        return self

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DerivedSet)
            and self.shadows == other.shadows
            and self.pairs == other.pairs
        )

    def __repr__(self) -> str:
        return f"DerivedSet({sorted(self.value, key=encoded)}, shadows={self.shadows})"

    def irreducibles(self) -> Iterator[Self]:
        """Yield each pair with its tokens, and each token that is in no pair."""
        of_token = self._by_token()
        covered = self.bottom()
        for element, term in sorted(self.pairs, key=lambda pair: encoded(self._plain_pair(pair))):
            part = type(self)(self._shadows_of(term, of_token), [(element, term)])
            covered |= type(self)(part.shadows)
            yield part
        for name in sorted(self.shadows):
            for shadow in self.shadows[name].irreducibles():
                part = type(self)({name: shadow})
                if not part <= covered:
                    yield part

    def _by_token(self) -> dict[Token, Shadow]:
        """Return the least shadow in which a token is live, for each of them."""
        return {
            (name, write): shadow
            for name, whole in self.shadows.items()
            for shadow in whole.irreducibles()
            for write in shadow.live()
        }

    @staticmethod
    def _shadows_of(term: Term, of_token: dict[Token, Shadow]) -> dict[str, Shadow]:
        names = sorted({name for name, _ in term})
        return {
            name: reduce(or_, [of_token[token] for token in term if token[0] == name])
            for name in names
        }

    def to_plain(self) -> tuple[Any, ...]:
        shadows = tuple((name, self.shadows[name]) for name in sorted(self.shadows))
        return shadows, tuple(sorted(map(self._plain_pair, self.pairs), key=encoded))

    def _plain_pair(self, pair: ElementTerm) -> tuple[Any, tuple[Any, ...]]:
        element, term = pair
        tokens = [(name, self.shadows[name].token_to_plain(write)) for name, write in term]
        return _plain(element), tuple(sorted(tokens, key=encoded))

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        shadows, pairs = need_tuple(plain, "a derived set", 2)
        known = dict(need_tuple(shadow, "a shadow", 2) for shadow in need_tuple(shadows, "shadows"))
        for name, shadow in known.items():
            need_text(name, "a variable's name", NAME_BYTES)
            if not isinstance(shadow, Shadow):
                given = type(shadow).__name__
                raise ValueError(f"a derived set needs shadows of its leaves, got {given}")
        made = cls(known, [_pair(pair, known) for pair in need_tuple(pairs, "pairs")])
        if made.to_plain() != plain:
            raise ValueError("a derived set needs its canonical form, got another of equal meaning")
        return made


def _plain(element: Any) -> Any:
    """Return the element with samples as the plain tuples that they equal."""
    return tuple(map(_plain, element)) if isinstance(element, tuple) else element


def _pair(plain: Any, shadows: Mapping[str, Shadow]) -> ElementTerm:
    element, tokens = need_tuple(plain, "a pair", 2)
    term = set()
    for token in need_tuple(tokens, "a term"):
        name, write = need_tuple(token, "a token", 2)
        if name not in shadows:
            raise ValueError(f"a derived set needs the shadow of {name!r}")
        term.add((name, shadows[name].token_from_plain(write)))
    return need_element(element), frozenset(term)
