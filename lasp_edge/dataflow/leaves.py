"""Leaves: how each kind of set tells which writes it holds.

Every set that somebody writes to is here one and the same: tokens that climb a ladder, *unheard of*
< *live* < *gone*, and the element that each token stands for. A token is

- a dot in an `ORSet` and in an `ORMap`, whose elements are its keys;
- the element itself in a `GSet`, which lets none go, and in a `TwoPSet`;
- (replica, seq) in a `BoundedLWWSet`, whose elements are its samples: numbered, so that two equal
  readings are two elements.

The **shadow** of a leaf is what it knows of its tokens without what they stand for: for dots a flag
(live dots and a context), for the others the set itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from crdts import BoundedLWWSet, EWFlag, GSet, Lattice, ORMap, ORSet, Replica, TwoPSet
from crdts.causal_context import pack, unpack
from crdts.plain import need_element, need_tuple
from crdts.replica import Version
from lasp_edge.dataflow.definition import Sample

Moved = tuple[Any, Any, int]
"""A token's id, its element, and 1 where it went live or -1 where it went."""


class View(ABC):
    """How one kind of set is read; `state` is such a set, `shadow` its shadow."""

    grows = False
    """Whether an element that is in stays in."""

    @abstractmethod
    def join(self, state: Any, delta: Any) -> Iterator[Moved]:
        """Join `delta` in place and yield the tokens that this moved; to be exhausted."""

    @abstractmethod
    def content(self, state: Any) -> Iterator[tuple[Any, Any]]:
        """Yield each live token's id and element."""

    @abstractmethod
    def live(self, shadow: Any) -> Iterator[Any]:
        """Yield the ids of the live tokens."""

    @abstractmethod
    def is_live(self, shadow: Any, token: Any) -> bool:
        """Return whether this token is live."""

    def shadow(self, state: Any) -> Lattice:
        """Return a state of its own that knows the same tokens."""
        copied: Lattice = state.copy()
        return copied

    def to_plain(self, token: Any) -> Any:
        """Return a token's id as a plain value."""
        return token

    def from_plain(self, plain: Any) -> Any:
        """Return the id that `to_plain` gave.

        Raises:
            ValueError: it came from a peer and is none.
        """
        return need_element(plain)


class _Dots(View):
    """`ORSet`, and the keys of an `ORMap`."""

    def join(self, state: Any, delta: Any) -> Iterator[Moved]:
        came, went = state.join_dots(delta)
        for dot, payload in went.items():
            yield dot, state.label(payload), -1
        for dot, payload in came.items():
            yield dot, state.label(payload), 1

    def content(self, state: Any) -> Iterator[tuple[Any, Any]]:
        return ((dot, state.label(payload)) for dot, payload in state.dots.items())

    def live(self, shadow: Any) -> Iterator[Any]:
        return iter(shadow.dots)

    def is_live(self, shadow: Any, token: Any) -> bool:
        return token in shadow.dots

    def shadow(self, state: Any) -> Lattice:
        return EWFlag().part(dict.fromkeys(state.dots), state.context.copy())

    def to_plain(self, token: Any) -> Any:
        replica, seq = unpack(token)
        return *replica, seq

    def from_plain(self, plain: Any) -> Any:
        replica, seq = _numbered(plain)
        return pack(replica, seq)


class _Grown(View):
    """`GSet`."""

    grows = True

    def join(self, state: Any, delta: Any) -> Iterator[Moved]:
        added, _ = state.join_changes(delta)
        return ((element, element, 1) for element in added)

    def content(self, state: Any) -> Iterator[tuple[Any, Any]]:
        return ((element, element) for element in state.elements)

    def live(self, shadow: Any) -> Iterator[Any]:
        return iter(shadow.elements)

    def is_live(self, shadow: Any, token: Any) -> bool:
        return token in shadow


class _TwoPhases(View):
    """`TwoPSet`."""

    def join(self, state: Any, delta: Any) -> Iterator[Moved]:
        added, removed = state.join_changes(delta)
        yield from ((element, element, -1) for element in removed)
        yield from ((element, element, 1) for element in added)

    def content(self, state: Any) -> Iterator[tuple[Any, Any]]:
        return ((element, element) for element in state.value)

    def live(self, shadow: Any) -> Iterator[Any]:
        return iter(shadow.value)

    def is_live(self, shadow: Any, token: Any) -> bool:
        return token in shadow


class _Windows(View):
    """`BoundedLWWSet`."""

    def join(self, state: Any, delta: Any) -> Iterator[Moved]:
        before = dict(self._near(state, delta))
        state.join_changes(delta)
        after = dict(self._near(state, delta))
        after.update((token, self._at(state, token)) for token in before if token not in after)
        for token, sample in before.items():
            if sample is not None and sample != after[token]:
                yield token, sample, -1
        for token, sample in after.items():
            if sample is not None and sample != before.get(token):
                yield token, sample, 1

    def _near(self, state: Any, delta: Any) -> Iterator[tuple[Any, Sample | None]]:
        """Yield all tokens that `delta` can move, with what they stand for now."""
        if state.replica != delta.replica:
            yield from self.content(state)
            return
        aged = range(state.lo + 1, delta.lo + 1)
        kept = aged if len(aged) <= len(state.items) else sorted(state.items)
        for seq in dict.fromkeys((*kept, *sorted(delta.items))):
            yield (state.replica, seq), self._at(state, (state.replica, seq))

    @staticmethod
    def _at(state: Any, token: tuple[Replica, int]) -> Sample | None:
        replica, seq = token
        sample = state.items.get(seq) if replica == state.replica else None
        return None if sample is None else Sample(seq, sample[0], sample[1])

    def content(self, state: Any) -> Iterator[tuple[Any, Any]]:
        return (
            ((state.replica, seq), self._at(state, (state.replica, seq))) for seq in state.items
        )

    def live(self, shadow: Any) -> Iterator[Any]:
        return ((shadow.replica, seq) for seq in shadow.items)

    def is_live(self, shadow: Any, token: Any) -> bool:
        return self._at(shadow, token) is not None

    def to_plain(self, token: Any) -> Any:
        replica, seq = token
        return *replica, seq

    def from_plain(self, plain: Any) -> Any:
        return _numbered(plain)


def _numbered(plain: Any) -> tuple[Replica, int]:
    incarnation, nonce, device, seq = need_tuple(plain, "a write", 4)
    version = Version.checked(incarnation, nonce, seq)
    return Replica.checked(incarnation, nonce, device), version.seq


_VIEWS: dict[type[Lattice], View] = {
    ORSet: _Dots(),
    ORMap: _Dots(),
    GSet: _Grown(),
    TwoPSet: _TwoPhases(),
    BoundedLWWSet: _Windows(),
}
_SHADOWS: dict[type[Lattice], View] = {
    EWFlag: _VIEWS[ORSet],
    **{kind: _VIEWS[kind] for kind in (GSet, TwoPSet, BoundedLWWSet)},
}


def view_of(state: Lattice | None) -> View | None:
    """Return how to read `state` as a set; None where it is none."""
    return _VIEWS.get(type(state)) if state is not None else None


def view_of_shadow(shadow: Lattice) -> View:
    """Return how to read a shadow.

    Raises:
        ValueError: it is none.
    """
    view = _SHADOWS.get(type(shadow))
    if view is None:
        raise ValueError(f"a derived set needs sets as its leaves, got {type(shadow).__name__}")
    return view


def are_alike(state: Lattice, held: Lattice) -> bool:
    """Return whether the two can be joined: of one type, and made of the same."""
    # The limits of a window are part of what is joined.
    limited = isinstance(state, BoundedLWWSet)
    return type(state) is type(held) and (limited or state.bottom() == held.bottom())
