"""Histograms: exact edges, in units."""

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lasp_edge import folds
from lasp_edge.folds.numbers import Resolution

edges = st.lists(st.decimals(-5, 5, places=2), min_size=1, max_size=6, unique=True).map(sorted)
resolutions = st.sampled_from(["1", "0.01", "0.3", "0.07"]).map(Resolution)


@given(edges, resolutions, st.lists(st.integers(-600, 600), max_size=30))
def test_a_sample_lies_in_the_bin_of_its_exact_value(edges, resolution, values):
    fold = folds.histogram(edges).at(resolution)
    exact = [value * resolution.exact for value in values]
    bounds = [None, *map(Fraction, edges), None]
    expected = tuple(
        sum((low is None or low <= x) and (high is None or x < high) for x in exact)
        for low, high in pairwise(bounds)
    )
    assert fold.lift_column(values, [0] * len(values)) == expected
    assert fold.lower(expected, resolution) == {f"bin_{n}": c for n, c in enumerate(expected)}


def test_a_float_edge_is_the_decimal_that_was_written():
    fold = folds.histogram([0.1, 0.3]).at(Resolution("0.1"))
    assert Fraction(0.1) > Fraction(1, 10)  # the double is not
    assert fold.lift(1) == (0, 1, 0)
    assert fold.lift(3) == (0, 0, 1)


def test_edges_within_one_step_leave_an_empty_bin():
    fold = folds.histogram(["1.1", "1.2"]).at(Resolution("1"))
    assert fold.lift_column([1, 2], [0, 0]) == (1, 0, 1)


def test_a_histogram_lifts_only_when_it_knows_the_step():
    unbound = folds.histogram([20])
    assert folds.as_fold(unbound) is unbound
    for fold, size in ((unbound, 2), (folds.struct(a=unbound), 2)):
        for lift in (lambda fold=fold: fold.lift(3), lambda fold=fold: fold.lift_column([3], [0])):
            with pytest.raises(ValueError, match=r"call `.at\(resolution\)` before it lifts"):
                lift()
        assert fold.zero == (0,) * size
        assert fold.combine((1, 2), (3, 4)) == (4, 6)
        assert fold.at(Resolution("10")).lift(2) == (0, 1)
        assert fold.at(Resolution("10")).at(Resolution("1")).lift(2) == (1, 0)


def test_a_struct_without_units_stays_itself_at_a_resolution():
    fold = folds.struct(mean=folds.mean(), top=folds.top(2))
    assert fold.at(Resolution("0.1")) is fold


def test_bins_are_columns_of_their_own():
    fold = folds.struct(warmth=folds.histogram([18, 20]))
    assert fold.columns_named == fold.parts == ("warmth_bin_0", "warmth_bin_1", "warmth_bin_2")


@pytest.mark.parametrize(
    ("edges", "why"),
    [
        ([], "one or more edges"),
        ("20", "several edges"),
        (20, "not 20"),
        ([2, 1], "each above the one before"),
        ([1, 1.0], "each above the one before"),
        ([1, "warm"], "edge: a number or decimal text"),
        ([1, None], "edge: a number or decimal text"),
        ([False, True], "edge: a number or decimal text"),
        ([float("nan")], "edge: a number or decimal text"),
        ([Decimal("Infinity")], "edge: a number or decimal text"),
        (["1e99999999"], "edge: a number or decimal text"),
        (["1/0"], "edge: a number or decimal text"),
        (range(64), "63 edges are the most, not 64"),
    ],
)
def test_edges_that_cannot_be_are_refused(edges, why):
    with pytest.raises(ValueError, match=f"histogram: .*{why}"):
        folds.histogram(edges)
