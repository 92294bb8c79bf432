"""Quantiles: a stated relative error, kept; the same ranks as the field's reference."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lasp_edge import folds
from lasp_edge.folds.columns import COUNT_LIMIT
from lasp_edge.folds.numbers import LIMIT, Resolution
from lasp_edge.folds.packed import MAX_BINARY_BYTES, counts_of, packed_counts

ONE = Resolution("1")
errors = st.sampled_from(["0.0072", "0.01", "0.05", "1/3", "0.9"])
values = st.integers(-60, 60) | st.integers(-100_000, 100_000) | st.integers(-LIMIT + 1, LIMIT - 1)
fractions = st.sampled_from(["0", "0.01", "0.25", "0.5", "0.9", "0.999", "1", "1/3"])


def lowered(fold, column, resolution=ONE):
    partial = fold.lift_column(column, [0] * len(column))
    assert fold.within_limits(partial)
    return fold.lower(partial, resolution)


@given(st.lists(values, min_size=1, max_size=60), errors, fractions)
def test_a_quantile_is_as_near_to_the_sample_of_its_rank_as_was_promised(column, error, fraction):
    (estimate,) = lowered(folds.quantile(fraction, relative_error=error), column).values()
    exact = sorted(column)[math.floor(Fraction(fraction) * (len(column) - 1))]
    allowed = Fraction(error) * abs(exact)
    assert abs(Fraction(estimate) - exact) <= allowed + abs(exact) * Fraction(1, 2**52)


@pytest.mark.parametrize("error", ["0.0072", "0.01", "0.1", "0.5"])
def test_every_bound_keeps_the_promise_on_both_sides(error):
    """A bucket is wrong first at its ends: try each, and the value before it."""
    fold, allowed = folds.quantile(0.5, relative_error=error), Fraction(error)
    ends, value = [], 1
    while value < LIMIT:
        ends += [value, value - 1]
        value = max(value + 1, math.floor(value * (1 + allowed) / (1 - allowed)) + 1)
    for end in [*ends, LIMIT - 1]:
        for exact in (end, -end):
            estimate = Fraction(lowered(fold, [exact])["p50"])
            assert abs(estimate - exact) <= allowed * abs(exact) * (1 + Fraction(1, 2**40))


def test_small_values_and_zero_are_exact():
    fold = folds.quantile(0.5)
    for value in range(-49, 50):
        assert lowered(fold, [value])["p50"] == value
    assert lowered(fold, [1, 0, -1], Resolution("0.01")) == {"p50": 0.0}


def test_zero_and_the_signs_have_buckets_of_their_own():
    fold = folds.quantile(0.5)
    assert counts_of(fold.lift_column([0, 0, 1, -1, -1, -1], [0] * 6)[0]) == {-1: 3, 0: 2, 1: 1}
    assert lowered(folds.quantile(0, 1), [-500, 500]) == {
        "p0": -lowered(fold, [500])["p50"],
        "p100": lowered(fold, [500])["p50"],
    }


def test_parts_are_named_by_percentage():
    assert folds.quantile(0, 0.5, "0.99", 0.999, 1).parts == ("p0", "p50", "p99", "p99_9", "p100")
    assert folds.struct(load=folds.quantile(0.5, 0.9)).parts == ("load_p50", "load_p90")


def test_the_whole_range_fits_a_partial():
    for error in ("0.0072", "0.01"):
        fold = folds.quantile(0.5, relative_error=error)
        everywhere, value = [0], 1
        while value < LIMIT:
            everywhere += [value, -value]
            value += max(1, value // 500)
        (packed,) = fold.lift_column(everywhere, [0] * len(everywhere))
        assert len(packed) <= MAX_BINARY_BYTES
        assert fold.within_limits((packed,))
    assert len(packed) == 8 * 1815  # what the documentation says of 0.01


def test_counts_have_the_limit_of_counts():
    fold = folds.quantile(0.5)
    assert fold.within_limits((packed_counts({0: COUNT_LIMIT - 1}),))
    assert not fold.within_limits((packed_counts({0: COUNT_LIMIT}),))


@pytest.mark.parametrize(
    ("asked", "error", "why"),
    [
        ((), 0.01, "one or more from 0 to 1"),
        ((1.5,), 0.01, "one or more from 0 to 1"),
        ((-0.1,), 0.01, "one or more from 0 to 1"),
        (("half",), 0.01, "a number or decimal text"),
        ((0.5,), 0, "a relative_error from 0.0072"),
        ((0.5,), 1, "a relative_error from 0.0072"),
        ((0.5,), -1, "a relative_error from 0.0072"),
        ((0.5,), 0.0071, "a relative_error from 0.0072"),
        ((0.5,), 1e-30, "a relative_error from 0.0072"),
        ((0.5,), "a bit", "relative_error: a number or decimal text"),
    ],
)
def test_what_cannot_be_promised_is_refused(asked, error, why):
    with pytest.raises(ValueError, match=why):
        folds.quantile(*asked, relative_error=error)


def test_a_quantile_that_is_asked_twice_is_refused():
    with pytest.raises(ValueError, match=r"'p50'.* there twice"):
        folds.as_fold(folds.quantile(0.5, "1/2"))


@given(st.lists(values, min_size=1, max_size=60), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]))
def test_ranks_are_those_of_ddsketch_and_so_is_the_error(column, fraction):
    ddsketch = pytest.importorskip("ddsketch", reason="compares with ddsketch 3.0.1")
    reference = ddsketch.DDSketch(0.01)
    for value in column:
        reference.add(value)
    ours = lowered(folds.quantile(fraction), column)
    theirs = reference.get_quantile_value(fraction)
    (estimate,) = ours.values()
    # Both are within 1 % of the same sample.
    exact = sorted(column)[math.floor(fraction * (len(column) - 1))]
    assert abs(theirs - exact) <= 0.010001 * abs(exact)
    assert abs(estimate - theirs) <= 0.020002 * abs(exact)
