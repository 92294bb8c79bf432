"""Folds: the laws that let partials be cut, reordered and taken back, for each built-in fold."""

from fractions import Fraction
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lasp_edge import folds
from lasp_edge.folds import fold as contract
from lasp_edge.folds.columns import COUNT_LIMIT, TOTAL_LIMIT
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import LIMIT, Resolution
from tests.lasp_edge.support_folds import BUILT_IN, HUNDREDTHS, partial_of

every_fold = pytest.mark.parametrize("fold", BUILT_IN.values(), ids=BUILT_IN)
invertible = [name for name, fold in BUILT_IN.items() if fold.invertible]

moderate = st.integers(-40_000, 40_000)
values = moderate | st.integers(-9, 9) | st.integers(-LIMIT + 1, LIMIT - 1)
times = st.integers(0, 5)
samples = st.lists(st.tuples(moderate | st.integers(-9, 9), times), max_size=12)
columns = st.lists(values, max_size=12)


def test_every_built_in_fold_is_tried_here():
    assert {type(fold) for fold in BUILT_IN.values()} == set(contract.BUILT_IN.values())
    assert all(getattr(folds, name) is made for name, made in contract.BUILT_IN.items())


def partial_of_samples(fold, chosen):
    return fold.lift_column([value for value, _ in chosen], [time_us for _, time_us in chosen])


# Drawing takes longer than a law of one fold, so all folds are tried with the same samples.


@given(samples, samples, samples)
def test_combine_is_associative_and_commutative_and_zero_is_its_identity(one, other, third):
    for fold in BUILT_IN.values():
        a, b, c = (partial_of_samples(fold, some) for some in (one, other, third))
        assert fold.combine(a, fold.combine(b, c)) == fold.combine(fold.combine(a, b), c)
        assert fold.combine(a, b) == fold.combine(b, a)
        assert fold.combine(a, fold.zero) == a == fold.combine(fold.zero, a)


@given(samples)
def test_lifting_a_column_is_combining_lifted_samples(chosen):
    in_order = [list(column) for column in zip(*chosen, strict=True)] or [[], []]
    for fold in BUILT_IN.values():
        one_by_one = reduce(fold.combine, [fold.lift(*sample) for sample in chosen], fold.zero)
        assert partial_of_samples(fold, chosen) == one_by_one
        assert fold.within_limits(one_by_one)
        assert Fold.lift_column(fold, *in_order) == one_by_one


@every_fold
def test_extreme_readings_are_lifted_within_the_limits(fold):
    for value in (-LIMIT + 1, -1, 0, 1, LIMIT - 1):
        lifted = fold.lift(value, 2**53)
        assert fold.within_limits(lifted)
        assert lifted == fold.lift_column([value], [2**53])
        assert list(fold.lower(lifted, HUNDREDTHS)) == list(fold.parts)


@every_fold
def test_without_samples_a_partial_is_the_zero_and_can_be_read(fold):
    assert fold.lift_column([], []) == fold.zero
    assert fold.within_limits(fold.zero)
    lowered = fold.lower(fold.zero, HUNDREDTHS)
    assert list(lowered) == list(fold.parts)
    assert set(lowered.values()) <= {None, 0, True}


@given(samples, st.integers(0, 50), values.map(abs), st.sampled_from([-1, 1]))
def test_where_there_is_room_no_samples_leave_the_limits(chosen, count, peak, sign):
    for fold in BUILT_IN.values():
        held = partial_of_samples(fold, chosen)
        alike = fold.lift_column([sign * peak] * count, [0] * count)
        after = fold.combine(held, alike)
        assert fold.within_limits(after) or not fold.room_for(count, peak)(held)


def test_squares_are_what_room_runs_out_for():
    variance = folds.variance()
    assert not variance.room_for(3)(variance.zero)
    assert variance.room_for(1_000, peak=2**26)(variance.zero)
    assert not variance.room_for(1_000, peak=2**26)((1, 0, 2**63 - 1_000 * 2**52))
    mean = folds.mean()
    assert mean.room_for(2**20)((2**30, 2**61))
    assert not mean.room_for(2**20)((2**31 - 2**20, 0))
    assert not mean.room_for(2**20)((0, 2**62 - 2**51 + 2**20))


@given(samples, samples)
def test_retract_undoes_combine(one, other):
    for fold in map(BUILT_IN.__getitem__, invertible):
        a, b = (partial_of_samples(fold, some) for some in (one, other))
        assert fold.retract(fold.combine(a, b), b) == a
        assert fold.retract(a, fold.zero) == a


def test_only_folds_of_sums_and_counts_have_an_inverse():
    structs = {"struct", "extremes", "nested", "many"}
    without = {"min", "max", "first", "last", "top", "distinct"} | structs
    assert set(BUILT_IN) - set(invertible) == without
    with pytest.raises(ValueError, match="only sums and counts have an inverse"):
        folds.min().retract((1,), (1,))
    with pytest.raises(ValueError, match="have an inverse"):
        BUILT_IN["extremes"].retract((1, 1, 1, 1), (1, 1, 1, 1))


@given(columns)
def test_struct_equals_its_parts(column):
    parts = {"mean": folds.mean(), "low": folds.min(), "n": folds.count()}
    fold = folds.struct(**parts)
    partial = partial_of(fold, column)
    assert partial == sum((partial_of(part, column) for part in parts.values()), ())
    lowered = fold.lower(partial, HUNDREDTHS)
    assert list(lowered) == ["mean", "low", "n"]
    for name, part in parts.items():
        (alone,) = part.lower(partial_of(part, column), HUNDREDTHS).values()
        assert lowered[name] == alone


@given(st.lists(values, min_size=1, max_size=20))
def test_lowered_values_are_what_they_are_called(column):
    exact = [value * HUNDREDTHS.exact for value in column]
    assert lower(folds.count(), column) == len(column)
    assert lower(folds.sum(), column) == float(sum(exact, Fraction(0)))
    assert lower(folds.min(), column) == float(min(exact))
    assert lower(folds.max(), column) == float(max(exact))
    assert lower(folds.mean(), column) == float(sum(exact, Fraction(0)) / len(exact))


def lower(fold, column, resolution=HUNDREDTHS):
    (value,) = fold.lower(partial_of(fold, column), resolution).values()
    return value


def test_a_mean_is_rounded_once():
    """Division by the count and then by ten gives 127.30000000000001."""
    assert lower(folds.mean(), [567, 1979], Resolution("0.1")) == 127.3
    assert lower(folds.mean(), [1, 1, 2]) == float(Fraction(4, 300))


def test_without_samples_there_is_no_mean_and_no_extreme():
    nothing = folds.struct(count=folds.count(), sum=folds.sum(), mean=folds.mean(), min=folds.min())
    lowered = nothing.lower(nothing.zero, HUNDREDTHS)
    assert lowered == {"count": 0, "sum": 0, "mean": None, "min": None}


def test_columns_are_named_without_doubling():
    named = folds.struct(
        count=folds.count(), total=folds.sum(), min=folds.min(), warmest=folds.max()
    )
    assert named.columns_named == ("count", "total_q", "min_q", "warmest_max_q")
    assert named.parts == ("count", "total", "min", "warmest")
    assert BUILT_IN["nested"].columns_named == ("inner_n_count", "inner_t_total_q", "max_q")
    assert BUILT_IN["nested"].parts == ("inner_n", "inner_t", "max")


def test_limits_are_those_of_one_device():
    mean = folds.mean()
    assert mean.within_limits((COUNT_LIMIT - 1, 1 - TOTAL_LIMIT))
    assert not mean.within_limits((COUNT_LIMIT, 0))
    assert not mean.within_limits((0, TOTAL_LIMIT))
    assert not mean.within_limits((0, -TOTAL_LIMIT))
    assert folds.max().within_limits((1 - LIMIT,))
    assert not folds.max().within_limits((LIMIT,))
    assert folds.min().within_limits((None,))


@pytest.mark.parametrize(
    "stranger", [(), (1,), (1, 2, 3), (None, 2), (1, b"2"), (True, 2), (1.0, 2), ("1", 2), ((), 2)]
)
def test_a_partial_of_the_wrong_shape_is_outside_the_limits(stranger):
    assert not folds.mean().within_limits(stranger)
