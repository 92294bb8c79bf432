"""First, last and top."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lasp_edge import folds
from lasp_edge.folds.columns import TOTAL_LIMIT
from lasp_edge.folds.numbers import LIMIT, Resolution
from lasp_edge.folds.packed import packed_top

samples = st.lists(st.tuples(st.integers(-9, 9), st.integers(-4, 4)), max_size=20)
TENTHS = Resolution("0.1")


def partial_of(fold, chosen):
    return fold.lift_column([value for value, _ in chosen], [time_us for _, time_us in chosen])


@given(samples)
def test_first_and_last_go_by_time_and_then_by_value(chosen):
    by_time = sorted((time_us, value) for value, time_us in chosen)
    first = partial_of(folds.first(), chosen)
    last = partial_of(folds.last(), chosen)
    assert first == (by_time[0] if by_time else (None, None))
    assert last == (by_time[-1] if by_time else (None, None))
    assert folds.first().lower(first, TENTHS) == {"first": by_time[0][1] / 10 if by_time else None}
    assert folds.last().lower(last, TENTHS) == {"last": by_time[-1][1] / 10 if by_time else None}


def test_of_several_at_one_time_first_is_the_least_and_last_the_greatest():
    at_once = [(5, 7), (3, 7), (8, 7)]
    assert partial_of(folds.first(), at_once) == (7, 3)
    assert partial_of(folds.last(), at_once) == (7, 8)


@pytest.mark.parametrize(
    ("partial", "valid"),
    [
        ((None, None), True),
        ((0, 0), True),
        ((TOTAL_LIMIT - 1, 1 - LIMIT), True),
        ((TOTAL_LIMIT, 0), False),
        ((0, LIMIT), False),
        ((0, None), False),
        ((None, 0), False),
        ((0, b""), False),
        ((0, True), False),
    ],
)
def test_a_value_stands_beside_a_time_or_neither_does(partial, valid):
    assert folds.first().within_limits(partial) is valid
    assert folds.last().within_limits(partial) is valid
    both = folds.struct(a=folds.first(), last=folds.last())
    assert both.within_limits((*partial, 1, 1)) is valid
    assert both.within_limits((1, 1, *partial)) is valid


def test_in_a_struct_each_value_stands_beside_its_own_time():
    fold = folds.struct(morning=folds.first(), last=folds.last())
    assert fold.columns_named == (
        "morning_first_us",
        "morning_first_q",
        "last_us",
        "last_q",
    )
    assert [column.by for column in fold.columns] == ["", "morning_first_us", "", "last_us"]
    a, b = fold.lift(3, time_us=10), fold.lift(4, time_us=20)
    assert fold.combine(b, a) == (10, 3, 20, 4)


@given(samples, st.integers(1, 5))
def test_top_keeps_the_greatest_each_for_itself(chosen, k):
    fold = folds.top(k)
    greatest = sorted((value for value, _ in chosen), reverse=True)[:k]
    partial = partial_of(fold, chosen)
    assert partial == (packed_top(greatest),)
    padded = [value / 10 for value in greatest] + [None] * (k - len(greatest))
    assert fold.lower(partial, TENTHS) == {f"top_{n}": v for n, v in enumerate(padded, 1)}


def test_top_in_a_struct_names_its_parts_without_doubling():
    fold = folds.struct(top=folds.top(2), warm=folds.top(1))
    assert fold.parts == ("top_1", "top_2", "warm")
    assert fold.columns_named == ("top_2_q", "warm_top_1_q")


@pytest.mark.parametrize("k", [0, -1, 1001, 2.0, True, "3", None])
def test_top_refuses_what_is_no_size(k):
    with pytest.raises(ValueError, match="top: a whole number from 1 to 1000 is needed"):
        folds.top(k)
