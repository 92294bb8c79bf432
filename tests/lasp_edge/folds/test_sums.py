"""Variance and standard deviation: the nearest double of the exact value."""

import math
import statistics
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lasp_edge import folds
from lasp_edge.folds.columns import TOTAL_LIMIT
from lasp_edge.folds.numbers import LIMIT, Resolution

resolutions = st.sampled_from(["1", "0.01", "0.3", "1e-9", "250", "1e30", "1e-30"]).map(Resolution)
columns = st.lists(
    st.integers(-50, 50) | st.integers(-LIMIT + 1, LIMIT - 1), min_size=2, max_size=40
)


def lowered(fold, values, resolution):
    ((_, value),) = fold.lower(fold.lift_column(values, [0] * len(values)), resolution).items()
    return value


@given(columns, resolutions)
def test_a_variance_is_the_nearest_double_of_the_exact_one(values, resolution):
    exact = [value * resolution.exact for value in values]
    mean = sum(exact) / len(exact)
    squares = sum((value - mean) ** 2 for value in exact)
    assert lowered(folds.variance(), values, resolution) == float(squares / (len(exact) - 1))
    population = folds.variance(population=True)
    assert lowered(population, values, resolution) == float(squares / len(exact))
    assert float(statistics.variance(exact)) == lowered(folds.variance(), values, resolution)


@given(columns, resolutions)
def test_a_standard_deviation_is_the_nearest_double_of_the_exact_one(values, resolution):
    exact = [value * resolution.exact for value in values]
    for fold, variance in (
        (folds.stddev(), Fraction(statistics.variance(exact))),
        (folds.stddev(population=True), Fraction(statistics.pvariance(exact))),
    ):
        with localcontext() as context:
            context.prec = 200
            root = (Decimal(variance.numerator) / Decimal(variance.denominator)).sqrt()
            nearest = float(root)
        assert lowered(fold, values, resolution) == nearest


def test_a_root_that_lies_just_off_the_middle_of_two_doubles_goes_to_the_right_one():
    # n samples of -1 and of 1: variance 2n / (2n - 1), its root just above 1.
    for size in (1, 2, 3, 1000, 10**9):
        partial = (2 * size, 0, 2 * size)
        exact = Fraction(2 * size, 2 * size - 1)
        value = folds.stddev().lower(partial, Resolution("1"))["stddev"]
        below, above = math.nextafter(value, 0), math.nextafter(value, 2)
        assert ((Fraction(below) + Fraction(value)) / 2) ** 2 < exact
        assert exact < ((Fraction(above) + Fraction(value)) / 2) ** 2


def test_cancellation_loses_nothing():
    values = [LIMIT - 1, LIMIT - 2] * 2
    naive = sum(float(v) ** 2 for v in values) / 4 - (sum(map(float, values)) / 4) ** 2
    assert naive != 0.25
    assert lowered(folds.variance(population=True), values, Resolution("1")) == 0.25


@pytest.mark.parametrize("fold", [folds.variance, folds.stddev])
def test_too_few_samples_have_no_variance(fold):
    assert lowered(fold(), [7], Resolution("1")) is None
    assert lowered(fold(), [], Resolution("1")) is None
    assert lowered(fold(population=True), [7], Resolution("1")) == 0.0
    assert lowered(fold(population=True), [], Resolution("1")) is None


def test_squares_have_a_limit_of_their_own():
    fold = folds.variance()
    extreme = fold.lift(LIMIT - 1)
    assert fold.within_limits(extreme)
    assert fold.within_limits(fold.combine(extreme, extreme))
    assert not fold.within_limits(fold.lift_column([LIMIT - 1] * 3, [0] * 3))
    assert fold.within_limits((1, TOTAL_LIMIT - 1, 2**63 - 1))
    assert not fold.within_limits((1, 0, 2**63))
    assert not fold.within_limits((1, TOTAL_LIMIT, 0))


def test_population_is_a_truth_value():
    with pytest.raises(ValueError, match="stddev: population must be True or False, not 1"):
        folds.stddev(population=1)
