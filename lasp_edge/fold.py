"""The fold contract: an aggregate written once, as lift, combine and lower.

A **fold** turns a sample into a partial (`lift`), joins partials (`combine`) and reads an answer
off one (`lower`). Its partial is a tuple of integers, one for each named column, and each column
says how it combines: by sum, min or max. That is all a tier needs to know, so `combine` is derived
here and in Spark from the same declaration, and it is associative and commutative by construction.
A fold whose columns are all sums also has an inverse, `retract`.

    >>> class Range(Fold):
    ...     name, parts = "range", ("range",)
    ...     columns = (Column("min_q", Op.MIN), Column("max_q", Op.MAX))
    ...
    ...     def lift(self, value, time_us=0):
    ...         return (value, value)
    ...
    ...     def lower(self, partial, resolution):
    ...         least, greatest = partial
    ...         return {"range": None if least is None else resolution.real(greatest - least)}
    >>> fold = Range()
    >>> partial = fold.combine(fold.lift(2150), fold.lift(2250))
    >>> partial, fold.lower(partial, Resolution("0.01"))
    ((2150, 2250), {'range': 1.0})

Source: lift, combine and lower after Tangwongsan, Hirzel, Schneider and Wu, "General Incremental
Sliding-Window Aggregation", VLDB 2015; named columns after twitter/algebird's aggregators.
"""

import json
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import reduce
from typing import Any, NamedTuple, Self

from lasp_edge.numbers import Resolution

Partial = tuple[int | None, ...]
"""One integer for each column. The zero of a sum is 0, that of a min or max is None."""

COUNT_LIMIT = 2**31
TOTAL_LIMIT = 2**62
MAX_COLUMNS = 64
"""A fold has at most this many columns."""

RESERVED = frozenset(
    {"kind", "stream", "key", "pane_us", "pane_date", "device", "incarnation", "nonce", "seq"}
    | {"low_us", "since_us", "received_us", "done", "window", "name", "start_us", "end_us"}
    | {"devices_in", "devices_expected", "excluded", "status", "revision", "frontier", "inputs"}
)
"""Columns of the lake that a fold's columns and parts stand beside."""

_HALVES = Resolution("0.5")


class Op(StrEnum):
    """How a column combines; also the name of the SQL aggregate that does the same."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"


class Column(NamedTuple):
    """One integer of a partial.

    Attributes:
        name: the column's name on the wire and in the lake.
        op: how two of them combine.
        limit: absolute values below this are valid in one device's partial.
    """

    name: str
    op: Op
    limit: int = TOTAL_LIMIT


def _least(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)


def _greatest(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return max(a, b)


_COMBINE: dict[Op, Callable[[Any, Any], Any]] = {
    Op.SUM: operator.add,
    Op.MIN: _least,
    Op.MAX: _greatest,
}


class Fold(ABC):
    """An aggregate of integers. Define the columns, `lift` and `lower`; the rest follows.

    Attributes:
        name: part of the fold's fingerprint.
        version: raise it whenever `lift` or the meaning of a column changes.
        parameters: whatever else gives the partial its meaning, as canonical text.
        columns: the integers of a partial, in order.
        parts: names of the values that `lower` gives.
    """

    name: str
    version: int = 1
    parameters: str = ""
    columns: tuple[Column, ...]
    parts: tuple[str, ...]

    @abstractmethod
    def lift(self, value: int, time_us: int = 0) -> Partial:
        """Return the partial of one sample.

        Args:
            value: the quantised value, in steps of the resolution.
            time_us: the sample's own time, microseconds since the epoch.
        """

    @abstractmethod
    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        """Return the readable values by part; None where there is no sample."""

    @property
    def columns_named(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def zero(self) -> Partial:
        """The partial of no sample at all."""
        return tuple(0 if column.op is Op.SUM else None for column in self.columns)

    @property
    def invertible(self) -> bool:
        """Whether `retract` exists."""
        return all(column.op is Op.SUM for column in self.columns)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        """Return the partial of many samples: `combine` over `lift`, by a shorter way if any."""
        return reduce(self.combine, map(self.lift, values, times_us), self.zero)

    def combine(self, a: Partial, b: Partial) -> Partial:
        """Return the partial of the samples of both."""
        return tuple(
            [_COMBINE[column.op](x, y) for column, x, y in zip(self.columns, a, b, strict=True)]
        )

    def retract(self, a: Partial, b: Partial) -> Partial:
        """Return the partial of the samples of `a` without those of `b`.

        Raises:
            ValueError: the fold has no inverse.
        """
        if not self.invertible:
            raise ValueError(f"fold {self.name}: min and max have no inverse")
        return tuple(map(operator.sub, a, b))

    def within_limits(self, partial: Sequence[Any]) -> bool:
        """Return whether `partial`, which may be anything, is valid as one device's partial."""
        return len(partial) == len(self.columns) and all(
            -column.limit < value < column.limit
            if type(value) is int
            else value is None and column.op is not Op.SUM
            for value, column in zip(partial, self.columns, strict=True)
        )

    def checked(self) -> Self:
        """Return the fold itself.

        Raises:
            ValueError: it cannot be used as it is defined; the text says why.
        """
        names = self.columns_named
        if not 0 < len(names) <= MAX_COLUMNS or not self.parts:
            raise ValueError(f"fold {self.name}: 1 to {MAX_COLUMNS} columns and a part are needed")
        for name in (*names, *self.parts):
            if not name.isidentifier() or name.casefold() in RESERVED:
                raise ValueError(f"fold {self.name}: {name!r} cannot name a column or a part")
        for several in (names, self.parts):
            doubled = sorted(
                {name for name in several if _folded(several).count(name.casefold()) > 1}
            )
            if doubled:
                raise ValueError(f"fold {self.name}: {doubled} would stand twice; rename a part")
        self._check_sample()
        return self

    def _check_sample(self) -> None:
        """Try one sample: what `lift` and `lower` give must be what was declared."""
        partial = self.lift(3, 0)
        if not self.within_limits(partial):
            raise ValueError(f"fold {self.name}: lift gives {partial!r} for {self.columns_named}")
        lowered = self.lower(partial, _HALVES)
        if set(lowered) != set(self.parts):
            raise ValueError(f"fold {self.name}: lower gives {sorted(lowered)}, not {self.parts}")
        for name, value in zip(self.columns_named, partial, strict=True):
            if lowered.get(name, value) != value:
                raise ValueError(f"fold {self.name}: part {name!r} is not the column of that name")

    def fingerprint(self, resolution: Resolution) -> str:
        """Return canonical text that differs for partials that must not meet."""
        columns = [[column.name, column.op] for column in self.columns]
        meaning = [self.name, self.version, self.parameters, columns, resolution.canonical]
        return json.dumps(meaning)

    def description(self) -> dict[str, Any]:
        """Return plain data from which `folds.fold_of` makes a built-in fold again."""
        return {"fold": self.name, "version": self.version}

    def __repr__(self) -> str:
        return f"folds.{self.name}({self.parameters})"


def _folded(names: Sequence[str]) -> list[str]:
    """Return names as Spark compares columns: without regard to case."""
    return [name.casefold() for name in names]
