"""What a fold says exactly is what it says in doubles, but for the rounding of the doubles."""

from fractions import Fraction
from math import isclose
from random import Random

import pytest

from lasp_edge import Column, Fold, Op, folds
from lasp_edge.folds.exactly import exact_part
from lasp_edge.folds.numbers import Resolution
from tests.lasp_edge.support_folds import ONE_EACH

TENTHS = Resolution("0.1")


class Range(Fold):
    """Warmest less coldest."""

    name, parts = "range", ("range", "half")
    columns = (Column("low_q", Op.MIN), Column("high_q", Op.MAX))

    def lift(self, value, time_us=0):
        return (value, value)

    def lower(self, partial, resolution):
        low, high = partial
        width = None if low is None else resolution.real(high - low)
        return {"range": width, "half": None if width is None else width / 2}


class Shown(Range):
    """A fold that only knows doubles."""

    name = "shown"

    def lower(self, partial, resolution):
        shown = super().lower(partial, resolution)
        return {part: value and value.hex() and value for part, value in shown.items()}


@pytest.mark.parametrize("fold", [*ONE_EACH.values(), Range(), Shown()], ids=lambda fold: fold.name)
def test_exact_parts_are_the_shown_ones(fold):
    fold, random = fold.at(TENTHS), Random(7)
    for count in (0, 1, 2, 30):
        values = [random.randint(-500, 500) for _ in range(count)]
        partial = fold.lift_column(values, list(range(count)))
        for part, shown in fold.lower(partial, TENTHS).items():
            found = exact_part(fold, partial, TENTHS, part)
            assert (found is None) == (shown is None)
            assert shown is None or isclose(float(found), shown, rel_tol=1e-12, abs_tol=1e-12)


def test_means_and_users_folds_are_exact():
    struct = folds.struct(mean=folds.mean(), high=folds.max())
    assert exact_part(struct, (3, 843, 282), TENTHS, "mean") == Fraction(281, 10)
    assert exact_part(struct, (3, 843, 282), TENTHS, "high") == Fraction(282, 10)
    assert exact_part(Range(), (1, 4), TENTHS, "range") == Fraction(3, 10)
    assert exact_part(Range(), (1, 4), TENTHS, "half") == Fraction(3, 20)
    assert exact_part(Shown(), (1, 4), TENTHS, "range") == Fraction(3, 10)
