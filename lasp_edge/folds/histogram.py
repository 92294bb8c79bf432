"""A fold that counts samples between given edges. It slides by `retract`.

>>> fold = Histogram(["20", "22.5"]).at(Resolution("0.01"))
>>> partial = fold.lift_column([1999, 2000, 2249, 2250], [0, 0, 0, 0])
>>> fold.lower(partial, Resolution("0.01"))
{'bin_0': 1, 'bin_1': 2, 'bin_2': 1}
"""

# ruff: noqa: ARG002 - lift and lower have one signature, whatever a fold needs of it

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from copy import copy
from functools import partial as applied
from itertools import pairwise
from math import ceil
from typing import Any, Self

from lasp_edge.folds.columns import COUNT_LIMIT, Column, Op, Partial
from lasp_edge.folds.decimals import exact
from lasp_edge.folds.fold import MAX_COLUMNS, Fold, built_in
from lasp_edge.folds.numbers import Resolution


@built_in
class Histogram(Fold):
    """How many samples lie between each two edges, below the first and from the last on.

    Part and column `bin_0` counts samples below the first edge, `bin_i` those from edge i on
    (counted from 1) and below the next: an edge belongs to the bin above it. Exactly so: in steps
    of the resolution an edge is ceil(edge / resolution).

    >>> from lasp_edge import Resolution, folds
    >>> step, fold = Resolution("0.1"), folds.histogram([21, "22.5"]).at(Resolution("0.1"))
    >>> fold.lower(fold.lift_column([210, 215, 235], [0] * 3), step)
    {'bin_0': 0, 'bin_1': 2, 'bin_2': 1}

    Args:
        edges: at least one, ascending, at most 63, in the unit of the readings: numbers or decimal
            text. A float counts as the decimal it prints as.
    """

    name = "histogram"

    def __init__(self, edges: Iterable[Any]) -> None:
        if isinstance(edges, str) or not isinstance(edges, Iterable):
            raise ValueError(f"histogram: several edges are needed, as in [18, 20], not {edges!r}")
        self._edges = [exact(edge, "histogram: edge") for edge in edges]
        if not self._edges or not all(low < high for low, high in pairwise(self._edges)):
            raise ValueError("histogram: one or more edges are needed, each above the one before")
        if len(self._edges) >= MAX_COLUMNS:
            raise ValueError(
                f"histogram: {MAX_COLUMNS - 1} edges are the most, not {len(self._edges)}"
            )
        self.parts = tuple(f"bin_{index}" for index in range(len(self._edges) + 1))
        self.columns = tuple(Column(part, Op.SUM, COUNT_LIMIT) for part in self.parts)
        self.parameters = ",".join(map(str, self._edges))
        self._steps: list[int] | None = None

    def at(self, resolution: Resolution) -> Self:
        bound = copy(self)
        bound._steps = [ceil(edge / resolution.exact) for edge in self._edges]  # noqa: SLF001
        return bound

    def lift(self, value: int, time_us: int = 0) -> Partial:
        counts = [0] * len(self.columns)
        counts[bisect_right(self._bound, value)] = 1
        return tuple(counts)

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        counts = [0] * len(self.columns)
        for index in map(applied(bisect_right, self._bound), values):
            counts[index] += 1
        return tuple(counts)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        return dict(zip(self.parts, partial, strict=True))

    def description(self) -> dict[str, Any]:
        return super().description() | {"arguments": {"edges": list(map(str, self._edges))}}

    @property
    def _bound(self) -> list[int]:
        """The edges in steps.

        Raises:
            ValueError: the fold is not bound to a resolution yet.
        """
        if self._steps is None:
            raise ValueError(
                "histogram: its edges are in units; call `.at(resolution)` before it lifts"
            )
        return self._steps
