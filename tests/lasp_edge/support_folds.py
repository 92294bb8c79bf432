"""The folds that tests share: one of each built-in fold, and one of a user's own.

A new fold gets its line in ONE_EACH, and every test of all folds runs it.
"""

from lasp_edge import folds
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution

ONE_EACH = {
    "count": folds.count(),
    "sum": folds.sum(),
    "mean": folds.mean(),
    "variance": folds.variance(),
    "stddev": folds.stddev(),
    "min": folds.min(),
    "max": folds.max(),
    "first": folds.first(),
    "last": folds.last(),
    "top": folds.top(3),
    "any": folds.any(),
    "all": folds.all(),
    "histogram": folds.histogram(["-0.05", 0, "0.07"]),
    "quantile": folds.quantile(0.5, 0.99, relative_error=0.05),
    "distinct": folds.distinct(lg_k=8),
    "revisable": folds.revisable(folds.struct(low=folds.min(), three=folds.top(3))),
    "struct": folds.struct(mean=folds.mean(), last=folds.last(), p=folds.quantile(0.5)),
}

HUNDREDTHS = Resolution("0.01")

BUILT_IN = {name: fold.at(HUNDREDTHS) for name, fold in ONE_EACH.items()} | {
    "weighted_mean": folds.weighted_mean(abs, abs, steps=("0.01", "1")),
    "correlation": folds.correlation(abs, abs, steps=("0.01", "1")),
    "regression": folds.regression(abs, abs, steps=("0.01", "1")),
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


def partial_of(fold, column):
    """Return the partial of samples with these values, all at time 0."""
    return fold.lift_column(column, [0] * len(column))


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


def variant(**attributes):
    """Return a range with other attributes of its class."""
    return type("Variant", (Range,), {"name": "variant", **attributes})()
