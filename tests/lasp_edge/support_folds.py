"""One of each built-in fold: a new fold gets its line here, and every test of all folds runs it."""

from lasp_edge import folds

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
    "struct": folds.struct(mean=folds.mean(), last=folds.last(), p=folds.quantile(0.5)),
}
