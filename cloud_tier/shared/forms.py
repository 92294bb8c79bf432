"""The one table of types: how a state becomes rows, and rows a state again.

A new type of `crdts` is a line here, or a line that says why no shared variable is of it. Products
and maps are made of others; what they hold needs a line, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from cloud_tier.shared import ranked
from cloud_tier.shared.causal import causal_rows, causal_state
from cloud_tier.shared.rows import WHOLE, Place, SharedRow, alike
from crdts import (
    BoundedLWWSet,
    ControlLog,
    DerivedSet,
    DWFlag,
    EWFlag,
    Frontier,
    GCounter,
    GSet,
    IVar,
    Lattice,
    LWWRegister,
    Max,
    Membership,
    Min,
    MVRegister,
    ORMap,
    ORSet,
    OwnedMap,
    Pair,
    PNCounter,
    Product,
    TwoPSet,
)


class _ToRows(Protocol):
    def __call__(self, state: Any, place: Place, /) -> Iterator[SharedRow]: ...


class _ToState(Protocol):
    def __call__(self, bottom: Any, rows: Sequence[SharedRow], /) -> Lattice: ...


class Form(NamedTuple):
    """How a type is stored.

    Attributes:
        rows: gives the irreducibles of a state as rows.
        state: gives the state of rows that count, and of those that say what is gone.
    """

    rows: _ToRows
    state: _ToState


def rows_of(state: Lattice, place: Place = WHOLE) -> Iterator[SharedRow]:
    """Yield the rows of a state; those of bottom are no rows."""
    yield from FORMS[type(state)].rows(state, place)


def state_of(bottom: Lattice, rows: Sequence[SharedRow]) -> Lattice:
    """Return the state of rows that count (`relation.counting`)."""
    return FORMS[type(bottom)].state(bottom, rows)


def is_stored(bottom: Lattice) -> bool:
    """Return whether a variable that starts so can become rows."""
    if isinstance(bottom, ORMap):
        return is_stored(bottom.of)
    if isinstance(bottom, Product):
        return all(map(is_stored, bottom.parts))
    return type(bottom) in FORMS


def _product_rows(state: Product, place: Place) -> Iterator[SharedRow]:
    for at, part in enumerate(state.parts):
        yield from rows_of(part, place.inside(at))


def _product_state(bottom: Product, rows: Sequence[SharedRow]) -> Product:
    parts = list(bottom.bottom().parts)
    for at, of_part in alike(rows):
        parts[at] = state_of(parts[at], of_part)
    return bottom.of(tuple(parts))


def _causal_rows(state: Any, place: Place) -> Iterator[SharedRow]:
    return causal_rows(state, place, rows_of)


def _causal_state(bottom: Any, rows: Sequence[SharedRow]) -> Lattice:
    return causal_state(bottom, rows, state_of)


_CAUSAL: Final = Form(_causal_rows, _causal_state)
_PRODUCT: Final = Form(_product_rows, _product_state)
_EXTREMUM: Final = Form(ranked.extremum_rows, ranked.extremum_state)

FORMS: Final[Mapping[type[Lattice], Form]] = {
    GCounter: Form(ranked.counter_rows, ranked.counter_state),
    PNCounter: Form(ranked.pn_counter_rows, ranked.pn_counter_state),
    Max: _EXTREMUM,
    Min: _EXTREMUM,
    LWWRegister: Form(ranked.register_rows, ranked.register_state),
    IVar: Form(ranked.variable_rows, ranked.variable_state),
    GSet: Form(ranked.set_rows, ranked.set_state),
    TwoPSet: Form(ranked.two_phase_rows, ranked.two_phase_state),
    OwnedMap: Form(ranked.owned_rows, ranked.owned_state),
    Frontier: Form(ranked.frontier_rows, ranked.frontier_state),
    Membership: Form(ranked.membership_rows, ranked.membership_state),
    ControlLog: Form(ranked.control_rows, ranked.control_state),
    ORSet: _CAUSAL,
    MVRegister: _CAUSAL,
    EWFlag: _CAUSAL,
    DWFlag: _CAUSAL,
    ORMap: _CAUSAL,
    Pair: _PRODUCT,
    Product: _PRODUCT,
}

NOT_STORED: Final[Mapping[type[Lattice], str]] = {
    BoundedLWWSet: "each device has samples of its own; what they are worth lands as a fold",
    DerivedSet: "it is made from other variables wherever these are known",
}
"""Types that no shared variable has, and why."""
