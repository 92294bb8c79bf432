"""Folds of a user's own, and structs: they work like built-in ones, or are refused at once."""

import pytest

from lasp_edge import Event, folds
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fold import MAX_COLUMNS, Fold
from lasp_edge.folds.numbers import Refused
from tests.lasp_edge.support_folds import AT_B, HUNDREDTHS, Range, partial_of, variant


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


def unpacks(self, value, time_us=0):
    low, high = value
    return low, high


def lifts(*partial):
    return lambda self, value, time_us=0: partial


def lowers(**parts):
    return lambda self, partial, resolution: parts


@pytest.mark.parametrize(
    ("fold", "why"),
    [
        (None, "a fold such as"),
        ("mean", "a fold such as"),
        (sum, r"the function sum of Python is no fold; write folds.sum\(\)"),
        (all, r"write folds.all\(\)"),
        (len, r"the function len of Python is no fold; one such as folds.mean\(\) is needed"),
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
        (variant(lift=lifts(1)), "lift must give"),
        (variant(lift=unpacks), "a whole number, .* fails for the value 3: TypeError: .*py:"),
        (
            variant(lift=lambda self, value: (value, value)),
            r"and the time: \(self, value, time_us=0\); it fails for the value 3: TypeError",
        ),
        (variant(parts=("range")), r"parts is a tuple, .*: write parts = \('range',\)"),
        (variant(columns=Column("low", Op.MIN)), r"write columns = \(Column\(..\),\)"),
        (variant(lift=lifts(1, 2.5)), "lift must give"),
        (variant(lower=lowers(other=1)), "lower must give the parts"),
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
        (
            {"count": folds.mean()},
            "part 'count' is not what the column of that name holds; give one",
        ),
        (
            {"min_q": folds.min()},
            "part 'min_q' is not what the column of that name holds; give one",
        ),
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


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("3", r"field 2 \(str\) is not a number: write float\(\.\.\)"),
        (None, r"field 2 \(NoneType\) is missing value"),
    ],
)
def test_a_field_that_is_no_number_is_named(given, said):
    fold = folds.weighted_mean(lambda e: e.value, lambda e: given, steps=("0.1", "1"))
    with pytest.raises(Refused, match=said):
        fold.lift_event(Event("load", 1.5, 0, "pi-1", {}))
