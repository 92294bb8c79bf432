"""Folds: the laws that let partials be cut, reordered and taken back, for each built-in fold."""

from fractions import Fraction
from functools import reduce
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lasp_edge import folds
from lasp_edge.fold import COUNT_LIMIT, MAX_COLUMNS, RESERVED, TOTAL_LIMIT, Column, Fold, Op
from lasp_edge.numbers import LIMIT, Resolution

HUNDREDTHS = Resolution("0.01")

BUILT_IN = {
    "count": folds.count(),
    "sum": folds.sum(),
    "mean": folds.mean(),
    "min": folds.min(),
    "max": folds.max(),
    "struct": folds.struct(mean=folds.mean(), low=folds.min(), high=folds.max()),
    "nested": folds.struct(inner=folds.struct(n=folds.count(), t=folds.sum()), max=folds.max()),
}
every_fold = pytest.mark.parametrize("fold", BUILT_IN.values(), ids=BUILT_IN)
invertible = [name for name, fold in BUILT_IN.items() if fold.invertible]

values = st.integers(-LIMIT + 1, LIMIT - 1)
columns = st.lists(values, max_size=12)


def partial_of(fold, column):
    return fold.lift_column(column, [0] * len(column))


@every_fold
def test_combine_is_associative_and_commutative_and_zero_is_its_identity(fold):
    @given(columns, columns, columns)
    def check(a, b, c):
        a, b, c = (partial_of(fold, column) for column in (a, b, c))
        assert fold.combine(a, fold.combine(b, c)) == fold.combine(fold.combine(a, b), c)
        assert fold.combine(a, b) == fold.combine(b, a)
        assert fold.combine(a, fold.zero) == a == fold.combine(fold.zero, a)

    check()


@every_fold
def test_lifting_a_column_is_combining_lifted_samples(fold):
    @given(columns)
    def check(column):
        one_by_one = reduce(fold.combine, map(fold.lift, column), fold.zero)
        assert partial_of(fold, column) == one_by_one
        assert fold.within_limits(one_by_one)
        assert Fold.lift_column(fold, column, [0] * len(column)) == one_by_one

    check()


@pytest.mark.parametrize("name", invertible)
def test_retract_undoes_combine(name):
    fold = BUILT_IN[name]

    @given(columns, columns)
    def check(a, b):
        a, b = partial_of(fold, a), partial_of(fold, b)
        assert fold.retract(fold.combine(a, b), b) == a

    check()


def test_only_sums_have_an_inverse():
    assert invertible == ["count", "sum", "mean"]
    with pytest.raises(ValueError, match="min and max have no inverse"):
        folds.min().retract((1,), (1,))
    with pytest.raises(ValueError, match="no inverse"):
        BUILT_IN["struct"].retract((1, 1, 1, 1), (1, 1, 1, 1))


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
    assert lower(folds.mean(), column) == pytest.approx(fmean(map(float, exact)), rel=1e-12)


def lower(fold, column, resolution=HUNDREDTHS):
    (value,) = fold.lower(partial_of(fold, column), resolution).values()
    return value


def test_mean_is_computed_in_the_order_that_every_tier_uses():
    assert lower(folds.mean(), [1, 1, 2]) == (4.0 / 3.0) * 0.01
    assert lower(folds.mean(), [7], Resolution("0.3")) == 7.0 * 0.3


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


def test_fingerprints_differ_where_partials_must_not_meet():
    different = [
        folds.mean().fingerprint(HUNDREDTHS),
        folds.mean().fingerprint(Resolution("0.1")),
        folds.sum().fingerprint(HUNDREDTHS),
        folds.struct(mean=folds.mean()).fingerprint(HUNDREDTHS),
        folds.struct(low=folds.min()).fingerprint(HUNDREDTHS),
        folds.struct(low=folds.max()).fingerprint(HUNDREDTHS),
        Range().fingerprint(HUNDREDTHS),
        Range(version=2).fingerprint(HUNDREDTHS),
        Range(parameters="closed").fingerprint(HUNDREDTHS),
        folds.struct(range=Range()).fingerprint(HUNDREDTHS),
        folds.struct(range=Range(version=2)).fingerprint(HUNDREDTHS),
    ]
    assert len(set(different)) == len(different)
    same = folds.mean().fingerprint(Resolution("1e-2"))
    assert same == folds.mean().fingerprint(HUNDREDTHS)


@every_fold
def test_built_in_folds_are_made_again_from_their_description(fold):
    again = folds.fold_of(fold.description())
    assert again.fingerprint(HUNDREDTHS) == fold.fingerprint(HUNDREDTHS)


def test_a_description_of_another_fold_or_version_makes_none():
    assert folds.fold_of({"fold": "median", "version": 1}) is None
    assert folds.fold_of({"fold": "mean", "version": 2}) is None
    assert folds.fold_of(folds.struct(range=Range()).description()) is None


class Range(Fold):
    """Greatest less least, as a user would write it."""

    name, parts = "range", ("range",)
    columns = (Column("least_q", Op.MIN), Column("greatest_q", Op.MAX))

    def __init__(self, version=1, parameters=""):
        self.version, self.parameters = version, parameters

    def lift(self, value, time_us=0):
        return (value, value)

    def lower(self, partial, resolution):
        least, greatest = partial
        return {"range": None if least is None else resolution.real(greatest - least)}


class TwoParts(Range):
    """Says its parts in another order than it lowers them."""

    name, parts = "two_parts", ("lowest", "highest")

    def lower(self, partial, resolution):
        return {"highest": partial[1], "lowest": partial[0]}


def test_a_fold_of_the_users_own_works_like_a_built_in_one():
    fold = folds.as_fold(Range)
    partial = partial_of(fold, [2150, 2250, 2200])
    assert partial == (2150, 2250)
    assert fold.lower(partial, HUNDREDTHS) == {"range": 1.0}


def test_struct_reads_parts_by_name_not_by_order():
    fold = folds.struct(t=TwoParts())
    assert fold.lower((1, 9), HUNDREDTHS) == {"t_lowest": 1, "t_highest": 9}


def variant(**attributes):
    return type("Variant", (Range,), {"name": "variant", **attributes})()


def lifts(*partial):
    return lambda self, value, time_us=0: partial


def lowers(**parts):
    return lambda self, partial, resolution: parts


@pytest.mark.parametrize(
    ("fold", "why"),
    [
        (None, "a fold such as"),
        ("mean", "a fold such as"),
        (sum, "a fold such as .*argument"),
        (folds.struct, "at least one fold"),
        (type("Unfinished", (Fold,), {"name": "unfinished"}), "abstract"),
        (variant(columns=()), "1 to 64 columns"),
        (variant(parts=()), "and a part"),
        (variant(columns=tuple(Column(f"c{i}", Op.SUM) for i in range(65))), "1 to 64 columns"),
        (variant(columns=(Column("a b", Op.MIN), Column("b", Op.MAX))), "'a b' cannot name"),
        (variant(columns=(Column("Key", Op.MIN), Column("b", Op.MAX))), "'Key' cannot name"),
        (variant(parts=("end_us",)), "'end_us' cannot name"),
        (variant(columns=(Column("low", Op.MIN), Column("Low", Op.MAX))), "stand twice"),
        (variant(parts=("range", "range")), "stand twice"),
        (variant(lift=lifts(1)), "lift gives"),
        (variant(lift=lifts(1, 2.5)), "lift gives"),
        (variant(lower=lowers(other=1)), "lower gives"),
        (variant(name="mean"), "a built-in fold's name"),
    ],
)
def test_a_fold_that_cannot_work_is_refused_at_once(fold, why):
    with pytest.raises(ValueError, match=why):
        folds.as_fold(fold)


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({}, "at least one"),
        ({"a": 5}, "a fold such as"),
        ({"device": folds.mean()}, "'device' cannot name"),
        ({"min": folds.min(), "min_q": folds.min()}, "stand twice"),
        ({"A": folds.min(), "a": folds.min()}, "stand twice"),
        ({"count": folds.mean()}, "part 'count' is not the column"),
        ({"min_q": folds.min()}, "part 'min_q' is not the column"),
        ({"a": folds.struct(b=folds.min(), c=folds.max()), "a_b": folds.max()}, "stand twice"),
    ],
)
def test_a_struct_that_says_a_name_twice_is_refused(parts, why):
    with pytest.raises(ValueError, match=why):
        folds.struct(**parts)


def test_a_struct_as_wide_as_a_frame_is_allowed_and_a_wider_one_is_not():
    parts = {f"p{index}": folds.count() for index in range(MAX_COLUMNS)}
    assert len(folds.struct(**parts).columns) == MAX_COLUMNS
    with pytest.raises(ValueError, match="1 to 64 columns"):
        folds.struct(more=folds.count(), **parts)


def test_reserved_names_cover_the_lake():
    assert {"window", "key", "start_us", "devices_in", "status", "revision"} <= RESERVED
