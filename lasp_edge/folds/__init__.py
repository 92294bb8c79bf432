"""The built-in folds under the names by which users make them: `folds.mean()`, `folds.top(3)`.

A built-in fold is its class, marked `@built_in`, and its line here.

- `fold`: the contract; `columns`: how the columns of partials combine; `numbers`: exact numbers
- `sums`: count, sum, mean, variance, stddev
- `extremes`: min, max, first, last, top
- `truth`: any, all
- `histogram`, `quantile`, `distinct`: how samples are spread, and how many differ
- `structs`: struct, several folds in one; `fields`: of several numbers of an event
- `packed`, `hll`, `signed`: parts that are bytes; `revisable`: of outputs that may be taken back
- `lowered`: what a fold gives to people; `units`: the unit of that
"""

from lasp_edge.folds.distinct import Distinct
from lasp_edge.folds.extremes import First, Last, Maximum, Minimum, Top
from lasp_edge.folds.fields import Correlation, FieldsFold, Regression, WeightedMean
from lasp_edge.folds.fold import as_fold as as_fold
from lasp_edge.folds.fold import fold_of as fold_of
from lasp_edge.folds.histogram import Histogram
from lasp_edge.folds.quantile import Quantile
from lasp_edge.folds.revisable import Revisable
from lasp_edge.folds.structs import Struct
from lasp_edge.folds.sums import Count, Mean, Stddev, Sum, Variance
from lasp_edge.folds.truth import All, Any

Fields = FieldsFold
all = All  # noqa: A001 - users write folds.all()
any = Any  # noqa: A001
correlation = Correlation
count = Count
distinct = Distinct
first = First
histogram = Histogram
last = Last
max = Maximum  # noqa: A001
mean = Mean
min = Minimum  # noqa: A001
quantile = Quantile
regression = Regression
revisable = Revisable
stddev = Stddev
struct = Struct
sum = Sum  # noqa: A001
top = Top
variance = Variance
weighted_mean = WeightedMean

__all__ = [
    "Fields",
    "all",
    "any",
    "as_fold",
    "correlation",
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
    "regression",
    "revisable",
    "stddev",
    "struct",
    "sum",
    "top",
    "variance",
    "weighted_mean",
]
