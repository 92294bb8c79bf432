"""How the columns of a partial combine: one rule an op, from which a fold's algebra follows.

A column is an integer, or nothing yet, or canonical bytes (`lasp_edge.folds.packed`,
`lasp_edge.folds.hll`). Each op is associative and commutative with a zero, so partials may be cut,
reordered and grouped at will, on a device, in the simulator and in Spark. Sums and bucket counts
have an inverse too.

    >>> columns = (Column("first_us", Op.MIN), Column("first_q", Op.AT_MIN, by="first_us"))
    >>> algebra = Algebra(columns)
    >>> algebra.combine((20, 7), (10, 9)), algebra.combine((10, 9), algebra.zero)
    ((10, 9), (10, 9))
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from lasp_edge.folds import hll
from lasp_edge.folds.packed import (
    MAX_BINARY_BYTES,
    counts_added,
    counts_taken,
    is_packed_counts,
    is_packed_top,
    top_joined,
)
from lasp_edge.folds.signed import is_packed_values, values_added, values_taken

ColumnValue = int | bytes | None
"""One column of a partial."""

Partial = tuple[Any, ...]
"""One `ColumnValue` for each column; the column's op says which kind. The zero of a sum is 0, of an
extreme None, of a binary column b""."""

COUNT_LIMIT = 2**31
"""A count of one partial is below this: 2**31 samples of 2**31 steps stay within `TOTAL_LIMIT`."""
TOTAL_LIMIT = 2**62
"""A total of one partial is below this, in steps: `COUNT_LIMIT` times the greatest sample."""
SQUARES_LIMIT = 2**63
"""A sum of squares of one partial is below this, in steps squared: the range of a BIGINT."""


class Op(StrEnum):
    """How a column combines; also its kind in the lake.

    >>> from lasp_edge import Column, folds
    >>> [(column.name, column.op.value) for column in folds.mean().columns]
    [('count', 'sum'), ('total_q', 'sum')]
    >>> Column("worst", Op.TOP, size=3).op is Op("top")
    True
    """

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AT_MIN = "at_min"
    """The value that came with the least of column `by`; the least of them where several did."""
    AT_MAX = "at_max"
    """The value that came with the greatest of column `by`; the greatest where several did."""
    COUNTS = "counts"
    """Counts by bucket, packed: counts of one bucket add up."""
    TOP = "top"
    """The `size` greatest values, packed."""
    HLL = "hll"
    """A HyperLogLog image with 2**`size` registers."""
    VALUES = "values"
    """Signed counts by value, packed: counts of one value add up, and 0 leaves no trace."""

    @property
    def is_signed(self) -> bool:
        """Whether what was taken back can be less than nothing, in a partial by itself."""
        return self in {Op.SUM, Op.VALUES}


class Column(NamedTuple):
    """One part of a partial.

    >>> from lasp_edge import Op
    >>> Column("warmest_q", Op.MAX).zero, Column("count", Op.SUM).zero
    (None, 0)
    >>> both = Column("first_us", Op.MIN), Column("first_q", Op.AT_MIN, by="first_us")

    Attributes:
        name: the column's name on the wire and in the lake.
        op: how two of them combine.
        limit: absolute values (of counts: each count) below this are valid in one device's partial;
            of AT_MIN and AT_MAX below 2**62 at most.
        by: for AT_MIN the MIN column, for AT_MAX the MAX column that decides.
        size: for TOP how many values are kept, for HLL the logarithm of the number of registers.
    """

    name: str
    op: Op
    limit: int = TOTAL_LIMIT
    by: str = ""
    size: int = 0

    @property
    def binary(self) -> bool:
        """Whether its parts are bytes."""
        return self.op in _BINARY

    @property
    def zero(self) -> ColumnValue:
        """What it holds where there is no sample."""
        if self.op is Op.SUM:
            return 0
        return b"" if self.binary else None

    def flaw(self, columns: Sequence["Column"]) -> str:
        """Return why it cannot stand among the columns of a fold; empty if it can."""
        decides = {Op.AT_MIN: Op.MIN, Op.AT_MAX: Op.MAX}.get(self.op)
        if decides:
            if not any(other.name == self.by and other.op is decides for other in columns):
                return f"column {self.name!r} needs by=, a column of op {decides}"
        elif self.by:
            return f"column {self.name!r}: by= is for at_min and at_max"
        if self.op is Op.TOP and not 0 < 4 * self.size <= MAX_BINARY_BYTES:
            return f"column {self.name!r}: size= must be from 1 to {MAX_BINARY_BYTES // 4}"
        if self.op is Op.HLL and not hll.LEAST_LG_K <= self.size <= hll.GREATEST_LG_K:
            return f"column {self.name!r}: size= must be {hll.LEAST_LG_K} to {hll.GREATEST_LG_K}"
        if self.op not in {Op.TOP, Op.HLL} and self.size:
            return f"column {self.name!r}: size= is for top and hll"
        return ""


def need_alike(known: Iterable[Column], added: Iterable[Column]) -> None:
    """Check that columns of one name are of one kind: the lake has one column for them.

    Raises:
        ValueError: an added column has the name of a known one that combines otherwise.
    """
    by_name = {column.name.casefold(): column for column in known}
    for column in added:
        other = by_name.get(column.name.casefold(), column)
        if meaning(other) != meaning(column):
            raise ValueError(
                f"column {other.name!r} is a {_in_words(other)} elsewhere in the program, and "
                f"{column.name!r} a {_in_words(column)} here; rename a part"
            )


def meaning(column: Column) -> tuple[str, Op, str, int]:
    """Return what must be equal where two columns have one name."""
    return column.name, column.op, column.by, column.size


def _in_words(column: Column) -> str:
    beside = f" by {column.by!r}" if column.by else ""
    return f"{column.op}{beside}" + (f" of size {column.size}" if column.size else "")


_BINARY = frozenset({Op.COUNTS, Op.TOP, Op.HLL, Op.VALUES})
_INVERTIBLE = frozenset({Op.SUM, Op.COUNTS, Op.VALUES})

Combine = Callable[[Partial, Partial], Partial]


class Algebra:
    """What follows from a fold's columns; made once a fold.

    Args:
        columns: the columns, each without a flaw.

    Attributes:
        zero: the partial of no sample at all.
        invertible: whether partials can be taken back.
        combine: gives the partial of the samples of both.
        retract: gives the first partial without the samples of the second, which it contains.
    """

    __slots__ = ("_beside", "_rules", "columns", "combine", "invertible", "retract", "zero")

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self.columns = columns
        self.zero: Partial = tuple(column.zero for column in columns)
        self.invertible = all(column.op in _INVERTIBLE for column in columns)
        places = {column.name: place for place, column in enumerate(columns)}
        self._beside = [
            (place, places[column.by], column.op is Op.AT_MIN)
            for place, column in enumerate(columns)
            if column.by
        ]
        self._rules = [(_limit(column), column.zero is None, _check(column)) for column in columns]
        self.combine = self._combiner()
        self.retract = self._retracter()

    def __reduce__(self) -> tuple[Any, ...]:
        return Algebra, (self.columns,)

    def within_limits(self, partial: Sequence[Any]) -> bool:
        """Return whether `partial`, which may hold anything, is valid as one device's partial."""
        if len(partial) != len(self._rules):
            return False
        for part, (limit, optional, check) in zip(partial, self._rules, strict=True):
            if check is not None:
                if not check(part):
                    return False
            elif type(part) is int:
                if not -limit < part < limit:
                    return False
            elif part is not None or not optional:
                return False
        return not self._beside or all(
            (partial[place] is None) == (partial[by] is None) for place, by, _ in self._beside
        )

    def rest(self, whole: Partial, part: Partial) -> Partial:
        """Return the first partial without the second, in the columns that have an inverse.

        In the others it is the first: to join what is there once more changes most of them not.
        """
        return tuple(
            [
                _RETRACT.get(column.op, _either)(a, b)
                for column, a, b in zip(self.columns, whole, part, strict=True)
            ]
        )

    def _combiner(self) -> Combine:
        if all(column.op is Op.SUM for column in self.columns):
            return _SUMS.get(len(self.columns), _sum_all)
        plain = _each([_combiner(column) for column in self.columns])
        return _with_beside(plain, self._beside) if self._beside else plain

    def _retracter(self) -> Combine:
        if all(column.op is Op.SUM for column in self.columns):
            return _DIFFERENCES.get(len(self.columns), _take_all)
        return _each([_RETRACT.get(column.op, _refuse) for column in self.columns])


def _each(functions: list[Callable[[Any, Any], Any]]) -> Combine:
    """Return what applies one function to each column."""
    if len(functions) == 1:
        (only,) = functions
        return lambda a, b: (only(a[0], b[0]),)

    def combine(a: Partial, b: Partial) -> Partial:
        return tuple([f(x, y) for f, x, y in zip(functions, a, b, strict=True)])

    return combine


def _with_beside(plain: Combine, beside: list[tuple[int, int, bool]]) -> Combine:
    """Return `plain`, followed by each (column, column that decides, whether by the least)."""

    def combine(a: Partial, b: Partial) -> Partial:
        parts = list(plain(a, b))
        for place, by, least in beside:
            parts[place] = _beside(a[by], a[place], b[by], b[place], least=least)
        return tuple(parts)

    return combine


def _beside(a_by: Any, a: Any, b_by: Any, b: Any, *, least: bool) -> Any:
    if a_by is None or b_by is None:
        return b if a_by is None else a
    if least:
        return min((a_by, a), (b_by, b))[1]
    return max((a_by, a), (b_by, b))[1]


def _least(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return a if a < b else b  # noqa: FURB136 - three times as fast as `min`


def _greatest(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return b if a < b else a  # noqa: FURB136


def _either(a: Any, _b: Any) -> Any:
    return a


def _refuse(_a: Any, _b: Any) -> Any:
    raise ValueError("only sums and counts have an inverse")


def _sum_all(a: Any, b: Any) -> Partial:
    return tuple(map(operator.add, a, b))


def _take_all(a: Any, b: Any) -> Partial:
    return tuple(map(operator.sub, a, b))


_DIFFERENCES: dict[int, Combine] = {
    1: lambda a, b: (a[0] - b[0],),
    2: lambda a, b: (a[0] - b[0], a[1] - b[1]),
}
_SUMS: dict[int, Combine] = {
    1: lambda a, b: (a[0] + b[0],),
    2: lambda a, b: (a[0] + b[0], a[1] + b[1]),
}
_COMBINE: dict[Op, Callable[[Any, Any], Any]] = {
    Op.SUM: operator.add,
    Op.MIN: _least,
    Op.MAX: _greatest,
    Op.AT_MIN: _either,  # decided afterwards, by another column
    Op.AT_MAX: _either,
    Op.COUNTS: counts_added,
    Op.VALUES: values_added,
}
_RETRACT: dict[Op, Callable[[Any, Any], Any]] = {
    Op.SUM: operator.sub,
    Op.COUNTS: counts_taken,
    Op.VALUES: values_taken,
}


def _combiner(column: Column) -> Callable[[Any, Any], Any]:
    size = column.size
    if column.op is Op.TOP:
        return lambda a, b: top_joined(a, b, size)
    if column.op is Op.HLL:
        return lambda a, b: hll.joined(a, b, size)
    return _COMBINE[column.op]


def _limit(column: Column) -> int:
    return min(column.limit, TOTAL_LIMIT) if column.by else column.limit


def _check(column: Column) -> Callable[[Any], bool] | None:
    """Return what tells whether a part, which may be anything, is valid in a binary column."""
    limit, size = column.limit, column.size
    if column.op is Op.COUNTS:
        return lambda part: is_packed_counts(part, limit)
    if column.op is Op.TOP:
        return lambda part: is_packed_top(part, size)
    if column.op is Op.HLL:
        return lambda part: hll.is_canonical(part, size)
    if column.op is Op.VALUES:
        return is_packed_values
    return None
