"""Folds: the laws that let partials be cut, reordered and taken back, for each built-in fold."""

import json
from fractions import Fraction
from functools import reduce
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crdts import BoundedLWWSet
from lasp_edge import Program, folds
from lasp_edge.folds import fold as contract
from lasp_edge.folds.columns import COUNT_LIMIT, TOTAL_LIMIT, Column, Op
from lasp_edge.folds.fold import MAX_COLUMNS, Fold
from lasp_edge.folds.numbers import LIMIT, Resolution
from tests.lasp_edge.support_folds import ONE_EACH

HUNDREDTHS = Resolution("0.01")

BUILT_IN = {name: fold.at(HUNDREDTHS) for name, fold in ONE_EACH.items()} | {
    "population variance": folds.variance(population=True),
    "extremes": folds.struct(mean=folds.mean(), low=folds.min(), high=folds.max()),
    "nested": folds.struct(inner=folds.struct(n=folds.count(), t=folds.sum()), max=folds.max()),
    "many": folds.struct(
        first=folds.first(),
        p=folds.quantile(0.5),
        bins=folds.histogram([0]),
        top=folds.top(2),
        kinds=folds.distinct(),
    ).at(HUNDREDTHS),
}
every_fold = pytest.mark.parametrize("fold", BUILT_IN.values(), ids=BUILT_IN)
invertible = [name for name, fold in BUILT_IN.items() if fold.invertible]

moderate = st.integers(-40_000, 40_000)
values = moderate | st.integers(-9, 9) | st.integers(-LIMIT + 1, LIMIT - 1)
times = st.integers(0, 5)
samples = st.lists(st.tuples(moderate | st.integers(-9, 9), times), max_size=12)
columns = st.lists(values, max_size=12)


def test_every_built_in_fold_is_tried_here():
    assert {type(fold) for fold in ONE_EACH.values()} == set(contract.BUILT_IN.values())
    assert all(getattr(folds, name) is made for name, made in contract.BUILT_IN.items())


def partial_of_samples(fold, chosen):
    return fold.lift_column([value for value, _ in chosen], [time_us for _, time_us in chosen])


def partial_of(fold, column):
    return fold.lift_column(column, [0] * len(column))


@every_fold
def test_combine_is_associative_and_commutative_and_zero_is_its_identity(fold):
    @given(samples, samples, samples)
    def check(a, b, c):
        a, b, c = (partial_of_samples(fold, chosen) for chosen in (a, b, c))
        assert fold.combine(a, fold.combine(b, c)) == fold.combine(fold.combine(a, b), c)
        assert fold.combine(a, b) == fold.combine(b, a)
        assert fold.combine(a, fold.zero) == a == fold.combine(fold.zero, a)

    check()


@every_fold
def test_lifting_a_column_is_combining_lifted_samples(fold):
    @given(samples)
    def check(chosen):
        one_by_one = reduce(fold.combine, [fold.lift(*sample) for sample in chosen], fold.zero)
        assert partial_of_samples(fold, chosen) == one_by_one
        assert fold.within_limits(one_by_one)
        in_order = [list(column) for column in zip(*chosen, strict=True)] or [[], []]
        assert Fold.lift_column(fold, *in_order) == one_by_one

    check()


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


@every_fold
def test_where_there_is_room_no_samples_leave_the_limits(fold):
    @given(samples, st.integers(0, 50), values.map(abs), st.sampled_from([-1, 1]))
    def check(chosen, count, peak, sign):
        held = partial_of_samples(fold, chosen)
        alike = fold.lift_column([sign * peak] * count, [0] * count)
        after = fold.combine(held, alike)
        assert fold.within_limits(after) or not fold.room_for(count, peak)(held)

    check()


def test_squares_are_what_room_runs_out_for():
    variance = folds.variance()
    assert not variance.room_for(3)(variance.zero)
    assert variance.room_for(1_000, peak=2**26)(variance.zero)
    assert not variance.room_for(1_000, peak=2**26)((1, 0, 2**63 - 1_000 * 2**52))
    mean = folds.mean()
    assert mean.room_for(2**20)((2**30, 2**61))
    assert not mean.room_for(2**20)((2**31 - 2**20, 0))
    assert not mean.room_for(2**20)((0, 2**62 - 2**51 + 2**20))


@pytest.mark.parametrize("name", invertible)
def test_retract_undoes_combine(name):
    fold = BUILT_IN[name]

    @given(samples, samples)
    def check(a, b):
        a, b = partial_of_samples(fold, a), partial_of_samples(fold, b)
        assert fold.retract(fold.combine(a, b), b) == a
        assert fold.retract(a, fold.zero) == a

    check()


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


DIFFERENT = [
    folds.mean(),
    folds.sum(),
    folds.any(),
    folds.all(),
    folds.min(),
    folds.first(),
    folds.last(),
    folds.variance(),
    folds.variance(population=True),
    folds.stddev(),
    folds.stddev(population=True),
    folds.top(2),
    folds.top(3),
    folds.histogram([1]),
    folds.histogram([2]),
    folds.histogram([1, 2]),
    folds.histogram(["1/3"]),
    folds.histogram(["0.333"]),
    folds.quantile(0.5),
    folds.quantile(0.25),
    folds.quantile(0.5, 0.25),
    folds.quantile(0.25, 0.5),
    folds.quantile(0.5, relative_error=0.02),
    folds.distinct(),
    folds.distinct(11),
    folds.struct(mean=folds.mean()),
    folds.struct(low=folds.min()),
    folds.struct(low=folds.max()),
    folds.struct(top=folds.top(2)),
    folds.struct(top=folds.top(3)),
    folds.struct(p=folds.quantile(0.5)),
    folds.struct(p=folds.quantile(0.25)),
    folds.struct(a=folds.histogram([1])),
    folds.struct(a=folds.histogram([2])),
]


def test_fingerprints_differ_where_partials_must_not_meet():
    different = [
        *(fold.fingerprint(HUNDREDTHS) for fold in DIFFERENT),
        folds.mean().fingerprint(Resolution("0.1")),
        folds.histogram([1]).fingerprint(Resolution("0.1")),
        Range().fingerprint(HUNDREDTHS),
        Range(version=2).fingerprint(HUNDREDTHS),
        Range(parameters="closed").fingerprint(HUNDREDTHS),
        folds.struct(range=Range()).fingerprint(HUNDREDTHS),
        folds.struct(range=Range(version=2)).fingerprint(HUNDREDTHS),
        variant(columns=(Column("a", Op.MIN), Column("b", Op.MAX))).fingerprint(HUNDREDTHS),
        variant(columns=(Column("a", Op.MIN), Column("b", Op.MIN))).fingerprint(HUNDREDTHS),
        variant(columns=(Column("a", Op.MIN), AT_B)).fingerprint(HUNDREDTHS),
        variant(columns=(Column("a", Op.MIN), AT_B._replace(by="c"))).fingerprint(HUNDREDTHS),
        variant(columns=(Column("a", Op.TOP, size=1),)).fingerprint(HUNDREDTHS),
        variant(columns=(Column("a", Op.TOP, size=2),)).fingerprint(HUNDREDTHS),
    ]
    assert len(set(different)) == len(different)


def test_streams_differ_where_fingerprints_do():
    streams = set()
    for fold in DIFFERENT:
        program = Program("p")
        event = program.event("e", resolution="0.01")
        samples = program.declare_dynamic(BoundedLWWSet(bound=3), "samples")
        local = program.fold(samples, fold, "local")
        program.fold_dynamic(local, "fleet")
        streams |= {
            program.window("w", source=event, fold=fold, size_s=1).stream,
            program.plan().local_folds["local"].stream,
            program.plan().dynamic_folds["fleet"].stream,
        }
    assert len(streams) == 3 * len(DIFFERENT)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (folds.mean(), folds.mean()),
        (folds.histogram([0.1, 2]), folds.histogram(["0.10", "2e0"])),
        (folds.quantile(0.5, 1), folds.quantile("0.50", "1.0", relative_error="1/100")),
        (folds.histogram([1]), folds.histogram([1]).at(HUNDREDTHS)),
    ],
)
def test_one_meaning_has_one_fingerprint_however_it_is_written(one, other):
    same = other.fingerprint(Resolution("1e-2"))
    assert same == one.fingerprint(HUNDREDTHS)
    again = folds.fold_of(json.loads(json.dumps(one.description())))
    assert again.fingerprint(HUNDREDTHS) == same


@pytest.mark.parametrize("fold", [*BUILT_IN.values(), *DIFFERENT])
def test_built_in_folds_are_made_again_from_their_description(fold):
    again = folds.fold_of(json.loads(json.dumps(fold.description()))).at(HUNDREDTHS)
    assert type(again) is type(fold)
    assert again.fingerprint(HUNDREDTHS) == fold.fingerprint(HUNDREDTHS)
    assert (again.columns, again.parts) == (fold.columns, fold.parts)
    column = [-3, 0, 5, 700, 5], [1, 2, 3, 4, 5]
    assert again.lift_column(*column) == fold.at(HUNDREDTHS).lift_column(*column)
    partial = again.lift_column(*column)
    assert again.lower(partial, HUNDREDTHS) == fold.lower(partial, HUNDREDTHS)


def test_a_description_of_another_fold_or_version_makes_none():
    assert folds.fold_of({"fold": "median", "version": 1}) is None
    assert folds.fold_of({"fold": "mean", "version": 2}) is None
    assert folds.fold_of(folds.struct(range=Range()).description()) is None


AT_B = Column("b", Op.AT_MIN, by="a")


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
        (variant(columns=(Column("low", Op.MIN), Column("Low", Op.MAX))), "there twice"),
        (variant(parts=("range", "range")), "there twice"),
        (variant(columns=(Column("a", Op.MAX), AT_B)), "'b' needs by=, a column of op min"),
        (variant(columns=(Column("a", Op.MIN), AT_B._replace(by=""))), "'b' needs by="),
        (variant(columns=(Column("a", Op.MIN), Column("b", Op.MAX, by="a"))), "by= is for at_min"),
        (variant(columns=(Column("a", Op.TOP), Column("b", Op.MAX))), "size= must be from 1"),
        (variant(columns=(Column("a", Op.TOP, size=5001),)), "size= must be from 1 to 5000"),
        (variant(columns=(Column("a", Op.HLL, size=7),)), "size= must be 8 to 14"),
        (variant(columns=(Column("a", Op.HLL, size=15),)), "size= must be 8 to 14"),
        (variant(columns=(Column("a", Op.MAX, size=2),)), "size= is for top and hll"),
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
        ({"min": folds.min(), "min_q": folds.min()}, "there twice"),
        ({"A": folds.min(), "a": folds.min()}, "there twice"),
        ({"count": folds.mean()}, "part 'count' is not the column"),
        ({"min_q": folds.min()}, "part 'min_q' is not the column"),
        ({"a": folds.struct(b=folds.min(), c=folds.max()), "a_b": folds.max()}, "there twice"),
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
