"""The laws of a CRDT of one's own, tried on some of its states.

>>> from crdts import Max
>>> broken_law([Max(), Max(3), Max(5)])
''
"""

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import product
from operator import or_
from typing import Any

from crdts import Lattice
from lasp_edge.errors import pass_interrupt
from lasp_edge.reasons import reason_of

Sides = Iterator[tuple[str, Any, Any]]
"""What is computed, and two values that must be equal."""


def _idempotent(a: Lattice) -> Sides:
    yield "a | a == a", a | a, a


def _bottom(a: Lattice) -> Sides:
    yield "a | a.bottom() == a", a | a.bottom(), a
    yield "a.bottom() | a == a", a.bottom() | a, a


def _commutative(a: Lattice, b: Lattice) -> Sides:
    yield "a | b == b | a", a | b, b | a


def _associative(a: Lattice, b: Lattice, c: Lattice) -> Sides:
    yield "(a | b) | c == a | (b | c)", (a | b) | c, a | (b | c)


def _in_place(a: Lattice, b: Lattice) -> Sides:
    joined, before = a.copy(), b.copy()
    joined |= b
    yield "a |= b gives a | b", joined, a | b
    yield "a |= b leaves b as it was", b, before


def _order(a: Lattice, b: Lattice) -> Sides:
    yield "a <= (a | b)", a <= (a | b), True
    yield "(a <= b) == (a | b == b)", a <= b, a | b == b


def _delta(a: Lattice, b: Lattice) -> Sides:
    yield "b | (a - b) == a | b", b | (a - b), a | b


def _irreducibles(a: Lattice) -> Sides:
    parts = list(a.irreducibles())
    yield "the irreducibles of a join to a", reduce(or_, parts, a.bottom()), a


def _plain_form(a: Lattice) -> Sides:
    yield "from_plain(a.to_plain()) == a", type(a).from_plain(a.to_plain()), a


LAWS: tuple[Callable[..., Sides], ...] = (
    _idempotent,
    _bottom,
    _commutative,
    _associative,
    _in_place,
    _order,
    _delta,
    _irreducibles,
    _plain_form,
)


def broken_law(states: Sequence[Lattice]) -> str:
    """Return the first law that some of the states break, with them; empty text where all hold.

    The states that break a law are the first such ones: give small ones first.
    """
    for law in LAWS:
        names = law.__code__.co_varnames[: law.__code__.co_argcount]
        for given in product(states, repeat=len(names)):
            shown = ", ".join(f"{n} = {each!r}" for n, each in zip(names, given, strict=True))
            try:
                copies = [each.copy() for each in given]
                for statement, found, expected in law(*copies):
                    if found != expected:
                        return f"{statement}: {found!r} is not {expected!r}, with {shown}"
            except BaseException as error:  # noqa: BLE001 - a user's type may raise anything
                pass_interrupt(error)
                return f"{law.__name__[1:]}: {reason_of(error)}, with {shown}"
    return ""
