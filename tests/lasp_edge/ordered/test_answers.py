"""Answers: what travels of them, and what a stranger may send in their place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lasp_edge.event import Event
from lasp_edge.ordered.answers import (
    GoneOn,
    PartAnswer,
    is_incomplete,
    made_of,
    part_answer,
    sent_answers,
    standing,
    stated,
    without,
)
from lasp_edge.ordered.parted import ordered_place, sent_at
from lasp_edge.ordered.plain import same
from lasp_edge.ordered.sent_outputs import (
    OutputForm,
    content_of,
    output_at,
    packed_outputs,
    sent_outputs,
)
from lasp_edge.ordered.short_answers import ANSWER

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


HOSTILE = [
    ("a", b"", (), 1, 2, 3),
    None,
    (),
    ("a",),
    ("a", b"", (), 1),
    ["a", b"", (), 1, 2],
    ("a", "", (), 1, 2),
]


@pytest.mark.parametrize("value", [*HOSTILE, ("g", b"", 1, 2)])
def test_what_is_no_answer_is_none(value):
    assert part_answer("pi", value) is None


@pytest.mark.parametrize("value", [*HOSTILE, ("g", "", 1, 2), ("g", b"", True, 2), ("g", b"", 1)])
def test_what_is_no_statement_states_nothing(value):
    assert stated(value) == GoneOn()
    assert stated(("g", b"12345678", 1, 2)) == GoneOn(b"12345678", 1, 2)


COMPLETE = PartAnswer("pi", b"first", (7,), b"", 1, 5)
INCOMPLETE = PartAnswer("pi", b"first", (), b"", 2, 0, is_incomplete=True)
"""Of a life, and of the next one on a store that lacks readings."""


def test_an_incomplete_answer_takes_the_place_of_none_that_was_made_of_the_same_share():
    assert standing(COMPLETE, INCOMPLETE) == COMPLETE
    assert standing(None, INCOMPLETE) == INCOMPLETE
    assert standing(COMPLETE._replace(basis=b"other"), INCOMPLETE) == INCOMPLETE
    last = INCOMPLETE._replace(is_last=True)
    assert standing(COMPLETE, last) == COMPLETE._replace(is_incomplete=True)


def test_a_complete_answer_that_is_given_later_counts_alone():
    later = COMPLETE._replace(incarnation=2, beats=1, basis=b"other")
    assert standing(later, INCOMPLETE._replace(is_last=True)) == later


@given(
    *[st.tuples(st.sampled_from([b"first", b"other"]), st.integers(1, 3), st.integers(0, 3))] * 2,
    st.booleans(),
)
def test_of_two_answers_by_different_shares_the_one_that_was_given_later_counts(
    before, after, is_last
):
    """The other share is the one that counts now, or its device has not heard of that yet."""
    complete, incomplete = (
        PartAnswer("pi", basis, (), b"", *life) for basis, *life in (before, after)
    )
    incomplete = incomplete._replace(is_incomplete=True, is_last=is_last)
    found = standing(complete, incomplete)
    later = before if before[1:] > after[1:] else after
    assert found.basis == later[0]
    assert found.is_incomplete <= (later == after)


@pytest.mark.parametrize("is_last", [False, True])
def test_an_incomplete_answer_stands_apart_and_says_whether_it_is_the_last_one(is_last):
    place = (20, "desk", ("end", "", 1), (1,))
    at = sent_at(place).place("pi")
    answer = Event("leaf", (ANSWER, b"first", (7,)), 20, "pi", {}, "oak")
    delta = sent_answers({at: (None, answer)}, (2, 3), lambda _, key: is_last if key else None)
    ((apart, (_, sent)),) = delta.items()
    assert apart != at
    assert is_incomplete(apart[3])
    assert ordered_place(apart) == ordered_place(at) == place
    assert sent.key == ""
    assert part_answer("pi", sent.value) == PartAnswer(
        "pi", b"first", (7,), b"", 2, 3, is_incomplete=True, is_last=is_last
    )
    cell = {output_at(apart): content_of(sent)}
    assert sent_outputs(packed_outputs(cell)) == cell
    assert OutputForm((("end", False),)).within_limits((packed_outputs(cell),))
