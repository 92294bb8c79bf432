from itertools import pairwise
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from lasp_edge.protocol.spans import (
    Span,
    joined,
    panes_of,
)


class Odd(NamedTuple):
    """A window whose size is no multiple of its slide."""

    size_us: int = 50
    slide_us: int = 20
    span_us: int = 10


ODD = Odd()


def test_panes_of_a_window_end_before_it_does():
    assert panes_of(ODD, [Span(100, 120)]) == [Span(100, 160)]


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 100)), min_size=1, max_size=80),
    st.integers(1, 8),
)
def test_joined_spans_are_few_ordered_and_cover_everything(pairs, most):
    spans = [Span(first, first + length) for first, length in pairs]
    found = joined(spans, most=most)
    assert len(found) <= most
    assert found == sorted(found)
    assert all(a.last < b.first for a, b in pairwise(found))
    assert all(any(f.first <= s.first and s.last <= f.last for f in found) for s in spans)
    assert {found[0].first, found[-1].last} <= {x for span in spans for x in span}


def test_nearest_spans_are_joined_first():
    assert joined([Span(0, 1), Span(5, 6), Span(100, 101)], most=2) == [Span(0, 6), Span(100, 101)]


def test_equal_gaps_still_become_few():
    assert len(joined([Span(n, n) for n in range(0, 1_000, 10)], most=3)) <= 3
