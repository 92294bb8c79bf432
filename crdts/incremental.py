"""Sets that are read incrementally: the changes of a join, write by write.

A reader that keeps something up to date with a set has to know what each join changed. Every set
here is one and the same to it: **tokens** that climb a ladder, *unknown* < *live* < *gone*, and
the element that each token stands for. A token is one write that put an element in:

- a dot in an `ORSet` and in an `ORMap`, whose elements are its keys;
- the element itself in a `GSet`, which lets none go, and in a `TwoPSet`;
- (replica, seq) in a `BoundedLWWSet`, whose elements are its samples: numbered, so that two equal
  readings are two elements.

An element is in as long as one of its tokens is live. The **shadow** of a set is what it knows of
its tokens without what they stand for. The shadow of a join is the join of the shadows.

>>> from crdts import ORSet, Replica
>>> me, you = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")
>>> here, there = ORSet(), ORSet().add(you, "milk")
>>> [(element, weight) for _, element, weight in here.join_tokens(here.add(me, "milk"))]
[('milk', 1)]
>>> [(element, weight) for _, element, weight in here.join_tokens(there)]
[('milk', 1)]
>>> [(element, weight) for _, element, weight in here.join_tokens(here.remove(me, "milk"))]
[('milk', -1), ('milk', -1)]

Source: Todd Green, Grigoris Karvounarakis, Val Tannen, "Provenance Semirings", PODS 2007 (elements
and the writes they follow from).
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self

from crdts.lattice import Lattice
from crdts.plain import need_element, need_tuple
from crdts.replica import Replica, Version

MovedToken = tuple[Any, Any, int]
"""A token, its element, and 1 where it became live or -1 where it was removed."""


class Shadow(Lattice):
    """What is known of a set's tokens: which were received, and which of them are live.

    >>> from crdts import ORSet, Replica
    >>> seen = ORSet().add(Replica(1, 7, "kitchen"), "attic")
    >>> shadow = seen.shadow()
    >>> [shadow.is_live(token) for token, _ in seen.tokens()]
    [True]
    """

    __slots__ = ()

    @abstractmethod
    def live(self) -> Iterator[Any]:
        """Yield the live tokens."""

    @abstractmethod
    def is_live(self, token: Any) -> bool:
        """Return whether a token is live."""

    @staticmethod
    def token_to_plain(token: Any) -> Any:
        """Return a token as a plain value."""
        return token

    @staticmethod
    def token_from_plain(plain: Any) -> Any:
        """Return the token that `token_to_plain` gave.

        Raises:
            ValueError: `plain` came from a peer and is not the plain form of a token.
        """
        return need_element(plain)


class IncrementalSet(Lattice):
    """A set whose joins return the elements that came and went.

    >>> from crdts import ORSet, Replica
    >>> kitchen = Replica(1, 7, "kitchen")
    >>> seen = ORSet().add(kitchen, "attic")
    >>> isinstance(seen, IncrementalSet), [element for _, element in seen.tokens()]
    (True, ['attic'])
    >>> gone = seen.remove(kitchen, "attic")
    >>> [(element, weight) for _, element, weight in seen.join_tokens(gone)]
    [('attic', -1)]
    """

    __slots__ = ()

    grows: ClassVar[bool] = False
    """Whether an element that is in stays in."""

    @property
    def complete(self) -> bool:
        """Whether no write is missing before one that is here."""
        return True

    @abstractmethod
    def join_tokens(self, delta: Self) -> Iterator[MovedToken]:
        """Join `delta` in place and yield the tokens that this moved; to be exhausted."""

    @abstractmethod
    def tokens(self) -> Iterator[tuple[Any, Any]]:
        """Yield each live token and its element."""

    @abstractmethod
    def shadow(self) -> Shadow:
        """Return the shadow of this set, which shares nothing with it."""


def need_write(plain: Any) -> tuple[Replica, int]:
    """Return the replica and the number of a write that has the plain form of a dot.

    Raises:
        ValueError: `plain` came from a peer and is not (incarnation, nonce, device, seq).
    """
    incarnation, nonce, device, seq = need_tuple(plain, "a write", 4)
    version = Version.checked(incarnation, nonce, seq)
    return Replica.checked(incarnation, nonce, device), version.seq
