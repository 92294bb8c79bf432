from itertools import pairwise
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from lasp_edge.protocol.spans import (
    Span,
    above,
    become_due,
    joined,
    panes_of,
    passed,
    touched,
)


class Odd(NamedTuple):
    """A window whose size is no multiple of its slide."""

    size_us: int = 50
    slide_us: int = 20
    span_us: int = 10


ODD = Odd()


def starts(spans, window=ODD):
    return {
        start
        for span in spans
        for start in range(-(-span.first // window.slide_us) * window.slide_us, span.last + 1)
        if start % window.slide_us == 0
    }


@given(st.lists(st.integers(-50, 50).map(lambda n: 10 * n), max_size=20))
def test_touched_windows_are_those_that_hold_a_touched_pane(panes):
    truth = {s for s in range(-700, 700, 20) if any(s <= pane < s + 50 for pane in panes)}
    found = starts(touched(ODD, panes))
    assert truth <= found
    # Nearer spans are joined, so some windows between two panes may be looked at in vain.
    assert all(any(abs(s - pane) <= 60 for pane in panes) for s in found)


@given(st.none() | st.integers(-200, 200), st.integers(-200, 200))
def test_passed_windows_are_those_whose_end_lies_between_the_frontiers(before, after):
    if before is not None and before > after:
        return
    everywhere = range(-1_000, 400, 20)
    truth = {s for s in everywhere if (before is None or before < s + 50) and s + 50 <= after}
    spans = above(passed(ODD, before, after), -1_000)
    assert {s for s in everywhere if any(a <= s <= b for a, b in spans)} == truth


def test_nothing_is_passed_while_the_frontier_stands():
    assert passed(ODD, 100, 100) == []
    assert passed(ODD, None, None) == []


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


def test_windows_below_the_floor_are_left_out():
    assert above([Span(0, 10), Span(20, 40)], 30) == [Span(30, 40)]
    assert above([Span(0, 10)], None) == [Span(0, 10)]


@given(*[st.none() | st.integers(-200, 200)] * 3)
def test_windows_become_due_once_and_not_below_the_frontier(frontier, before, after):
    everywhere = range(-1_000, 400, 20)
    least = max((each for each in (frontier, before) if each is not None), default=-(10**9))
    truth = {s for s in everywhere if after is not None and least < s + 50 <= after}
    spans = above(become_due(ODD, frontier, before, after), -1_000)
    assert {s for s in everywhere if any(a <= s <= b for a, b in spans)} == truth
