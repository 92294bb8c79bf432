"""Answers: what travels of them, and what a stranger may send in their place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lasp_edge.ordered.answers import GoneOn, made_of, part_answer, stated, without
from lasp_edge.ordered.plain import same

LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, -0.0, 1.0, "a"])
PLAIN = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=8)


@given(made=PLAIN, share=PLAIN)
def test_what_was_made_of_a_share_is_known_from_what_is_sent_of_it(made, share):
    assert same(made_of(without(made, share), share), made)


def test_parts_that_are_those_of_the_share_are_left_out_and_equal_ones_of_another_kind_are_not():
    assert without(((1, 2), 3, 0), ((1, 2), 0, 0)) == (0b101, 3)
    assert without((1, 0.0), (1.0, -0.0)) == (0, 1, 0.0)
    assert without((1, 2), (1, 2, 3)) == (-1, (1, 2))


@pytest.mark.parametrize("sent", [(), (0,), (0b11, 5), ("x", 1), (-1,), (-1, 1, 2), (0, 1, 2, 3)])
def test_a_part_of_another_share_is_not_taken_for_one_of_this(sent):
    with pytest.raises((ValueError, TypeError, StopIteration)):
        made_of(sent, (1, 2))


HOSTILE = [None, (), ("a",), ("a", b"", (), 1), ["a", b"", (), 1, 2], ("a", "", (), 1, 2)]


@pytest.mark.parametrize("value", [*HOSTILE, ("g", b"", 1, 2)])
def test_what_is_no_answer_is_none(value):
    assert part_answer("pi", value) is None


@pytest.mark.parametrize("value", [*HOSTILE, ("g", "", 1, 2), ("g", b"", True, 2), ("g", b"", 1)])
def test_what_is_no_statement_states_nothing(value):
    assert stated(value) == GoneOn()
    assert stated(("g", b"12345678", 1, 2)) == GoneOn(b"12345678", 1, 2)
