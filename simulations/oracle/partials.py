"""What a fold makes of values: lifted one by one, combined column by column.

A fold that combines by itself is defined by its own `combine`, so one after the other goes into it.
"""

from collections import defaultdict
from collections.abc import Iterable
from functools import reduce
from typing import Any

from lasp_edge.folds import hll
from lasp_edge.folds.columns import Column, ColumnValue, Op, Partial
from lasp_edge.folds.fold import Fold


def folded(fold: Fold, samples: Iterable[tuple[int, int]]) -> Partial:
    """Return the fold of (quantised value, time) samples, column by column."""
    return combined(fold, [fold.lift(value, time_us) for value, time_us in samples])


def combined(fold: Fold, partials: Iterable[Partial]) -> Partial:
    """Return the combination of partials, column by column."""
    if fold.combines_itself:
        return reduce(fold.combine, partials, fold.zero)
    rows = list(partials)
    names = fold.columns_named
    found: list[ColumnValue] = []
    for at, column in enumerate(fold.columns):
        present = [part for row in rows if (part := row[at]) is not None]
        if column.by:
            by = names.index(column.by)
            beside = [(row[by], row[at]) for row in rows if row[by] is not None]
            found.append(_extreme(column.op, beside)[1] if beside else None)
        elif column.binary:
            found.append(_combined_bytes(column, present))
        elif column.op is Op.SUM:
            found.append(sum(present))
        else:
            found.append(_extreme(column.op, present) if present else None)
    return tuple(found)


def _extreme(op: Op, several: list[Any]) -> Any:
    return min(several) if op in {Op.MIN, Op.AT_MIN} else max(several)


def _combined_bytes(column: Column, parts: list[Any]) -> bytes:
    """Return the combination of binary parts, taken apart byte by byte."""
    if column.op is Op.HLL:
        return reduce(lambda a, b: hll.joined(a, b, column.size), parts, b"")
    if column.op is Op.TOP:
        values = [part[at : at + 4] for part in parts for at in range(0, len(part), 4)]
        return b"".join(sorted(values, reverse=True)[: column.size])
    if column.op is Op.VALUES:
        return _values(parts)
    counts: dict[bytes, int] = defaultdict(int)
    for part in parts:
        for at in range(0, len(part), 8):
            counts[part[at : at + 2]] += int.from_bytes(part[at + 2 : at + 8], "big")
    return b"".join(bucket + counts[bucket].to_bytes(6, "big") for bucket in sorted(counts))


def _values(parts: list[Any]) -> bytes:
    counts: dict[bytes, int] = defaultdict(int)
    for part in parts:
        for at in range(0, len(part), 8):
            counts[part[at : at + 4]] += int.from_bytes(part[at + 4 : at + 8], "big") - 2**31
    found = ((value, count + 2**31) for value, count in sorted(counts.items()) if count)
    return b"".join(value + count.to_bytes(4, "big") for value, count in found)
