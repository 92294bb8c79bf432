"""The built-in folds, each made by a function of its name: `folds.mean()`, `folds.quantile(0.5)`.

- `sums`: count, sum, mean, variance, stddev
- `extremes`: min, max, first, last, top
- `truth`: any, all
- `histogram`, `quantile`, `distinct`: how samples are spread, and how many differ
- `structs`: struct, several folds in one
- `built_in`: the functions, and which folds are built in
"""

from lasp_edge.folds.built_in import (
    all,  # noqa: A004 - users write folds.all()
    any,  # noqa: A004
    as_fold,
    count,
    distinct,
    first,
    fold_of,
    histogram,
    last,
    max,  # noqa: A004
    mean,
    min,  # noqa: A004
    quantile,
    stddev,
    struct,
    sum,  # noqa: A004
    top,
    variance,
)

__all__ = [
    "all",
    "any",
    "as_fold",
    "count",
    "distinct",
    "first",
    "fold_of",
    "histogram",
    "last",
    "max",
    "mean",
    "min",
    "quantile",
    "stddev",
    "struct",
    "sum",
    "top",
    "variance",
]
