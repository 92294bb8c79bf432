"""What makes a type a lattice, or an incremental set; `tests/crdts/test_laws.py` runs it for all.

A law takes three states and asserts. Where a type overrides what `Lattice` derives, the derived
definition is the oracle.
"""

from collections.abc import Callable
from functools import reduce
from operator import or_

import msgpack

from crdts import Lattice, decode, encode
from crdts.tally import Tally, tally

Law = Callable[[Lattice, Lattice, Lattice], None]


def join_is_associative(a: Lattice, b: Lattice, c: Lattice) -> None:
    assert (a | b) | c == a | (b | c)


def join_is_commutative(a: Lattice, b: Lattice, _c: Lattice) -> None:
    assert a | b == b | a


def join_is_idempotent(a: Lattice, b: Lattice, _c: Lattice) -> None:
    assert a | a == a
    assert (a | b) | b == a | b


def join_in_place_is_the_join(a: Lattice, b: Lattice, _c: Lattice) -> None:
    joined = a.copy()
    before = joined
    joined |= b
    assert joined is before
    assert joined == a | b


def join_leaves_its_arguments_alone(a: Lattice, b: Lattice, c: Lattice) -> None:
    written = [encode(state) for state in (a, b, c)]
    joined = a | b
    joined |= c
    joined |= a - b
    copied = a.copy()
    copied |= c
    from_bottom = a.bottom()
    from_bottom |= b
    from_bottom |= c
    assert [encode(state) for state in (a, b, c)] == written


def bottom_is_below_everything(a: Lattice, _b: Lattice, _c: Lattice) -> None:
    assert a | a.bottom() == a
    assert a.bottom() | a == a
    assert a.bottom() <= a
    assert list(a.bottom().irreducibles()) == []


def order_agrees_with_join(a: Lattice, b: Lattice, c: Lattice) -> None:
    assert (a <= b) == Lattice.__le__(a, b)
    assert (a < b) == (a | b == b != a)
    assert a <= a | b
    assert b <= a | b
    assert a | b <= (a | b) | c


def delta_brings_up_to_date(a: Lattice, b: Lattice, _c: Lattice) -> None:
    assert b | (a - b) == a | b


def delta_is_minimal(a: Lattice, b: Lattice, _c: Lattice) -> None:
    assert a - b == Lattice.__sub__(a, b)
    assert not any(part <= b for part in (a - b).irreducibles())
    assert (a | b) - (a | b) == (a | b).bottom()


def digest_stands_for_a_state(a: Lattice, b: Lattice, _c: Lattice) -> None:
    assert b | a.delta_against(b.digest()) == a | b
    assert (a | b).delta_against((a | b).digest()) == (a | b).bottom()


def digest_is_bounded(a: Lattice, b: Lattice, _c: Lattice) -> None:
    assert len(msgpack.packb((a | b).digest())) <= 4_096


def tally_keeps_up_with_the_join(a: Lattice, b: Lattice, c: Lattice) -> None:
    kept = Tally(a.copy())
    for part in (b, c, *c.irreducibles(), a):
        kept.join(part)
        assert kept.total == tally(kept.state)
    assert kept.total == tally(c | (b | a))
    assert kept.state == a | b | c


def tally_tells_states_apart(a: Lattice, b: Lattice, _c: Lattice) -> None:
    assert (tally(a) == tally(b)) == (a == b)
    assert (tally(a) == tally(a | b)) == (b <= a)


def pieces_join_to_the_state(a: Lattice, b: Lattice, _c: Lattice) -> None:
    for most_bytes in (1, 40, 10_000):
        pieces = list((a | b).pieces(most_bytes))
        bottom = (a | b).bottom()
        assert reduce(or_, pieces, bottom) == a | b
        assert all(piece <= a | b and piece != bottom for piece in pieces)


def restriction_commutes_with_the_join(a: Lattice, b: Lattice, _c: Lattice) -> None:
    for device in ("kitchen", "cellar", "attic"):
        assert (a | b).restricted(device) == a.restricted(device) | b.restricted(device)
        assert a.restricted(device) <= a
        assert a.restricted(device).restricted(device) == a.restricted(device)
        assert a.restricted(device) | (a - a.restricted(device)) == a
        assert a.restricted(device).restricted("nobody here") == a.bottom()


def irreducibles_join_to_the_state(a: Lattice, b: Lattice, _c: Lattice) -> None:
    for state in (a, a | b):
        assert reduce(or_, state.irreducibles(), state.bottom()) == state


def no_irreducible_can_be_dropped(a: Lattice, b: Lattice, _c: Lattice) -> None:
    for state in (a, a | b):
        parts = list(state.irreducibles())
        for at in range(len(parts)):
            rest = reduce(or_, parts[:at] + parts[at + 1 :], state.bottom())
            assert rest < state


def irreducibles_are_irreducible(a: Lattice, b: Lattice, _c: Lattice) -> None:
    for part in a.irreducibles():
        assert list(part.irreducibles()) == [part]
        assert part - b in (part, part.bottom()), "no state knows a piece of it"


def decode_undoes_encode(a: Lattice, b: Lattice, _c: Lattice) -> None:
    for state in (a, a | b, a - b, a.bottom()):
        assert decode(encode(state)) == state


def equal_states_have_equal_bytes(a: Lattice, b: Lattice, c: Lattice) -> None:
    assert encode((a | b) | c) == encode(c | (b | a))
    assert [encode(p) for p in (a | b).irreducibles()] == [
        encode(p) for p in (b | a).irreducibles()
    ]


def tokens_keep_up_with_the_join(a: Lattice, b: Lattice, _c: Lattice) -> None:
    joined, tokens = a.copy(), dict(a.tokens())
    for token, element, weight in joined.join_tokens(b):
        if weight < 0:
            assert tokens.pop(token) == element
        else:
            assert tokens.setdefault(token, element) == element
    assert joined == a | b
    assert tokens == dict(joined.tokens())
    assert list(joined.join_tokens(b)) == []


def shadow_knows_the_tokens(a: Lattice, b: Lattice, _c: Lattice) -> None:
    before = encode(a)
    shadow = a.shadow()
    live = [token for token, _ in a.tokens()]
    assert sorted(map(repr, shadow.live())) == sorted(map(repr, live))
    assert all(map(shadow.is_live, live))
    for token, _ in b.tokens():
        assert shadow.is_live(token) == (token in live)
        assert shadow.token_from_plain(shadow.token_to_plain(token)) == token
    shadow |= b.shadow()
    assert shadow == (a | b).shadow()
    assert encode(a) == before


def what_grows_loses_nothing(a: Lattice, b: Lattice, _c: Lattice) -> None:
    assert not a.grows or all(weight > 0 for _, _, weight in a.join_tokens(b))


INCREMENTAL_LAWS: tuple[Law, ...] = (
    tokens_keep_up_with_the_join,
    shadow_knows_the_tokens,
    what_grows_loses_nothing,
)

LATTICE_LAWS: tuple[Law, ...] = (
    join_is_associative,
    join_is_commutative,
    join_is_idempotent,
    join_in_place_is_the_join,
    join_leaves_its_arguments_alone,
    bottom_is_below_everything,
    order_agrees_with_join,
    delta_brings_up_to_date,
    delta_is_minimal,
    digest_stands_for_a_state,
    digest_is_bounded,
    tally_keeps_up_with_the_join,
    tally_tells_states_apart,
    pieces_join_to_the_state,
    restriction_commutes_with_the_join,
    irreducibles_join_to_the_state,
    no_irreducible_can_be_dropped,
    irreducibles_are_irreducible,
    decode_undoes_encode,
    equal_states_have_equal_bytes,
)
