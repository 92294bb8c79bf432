"""Samples of one writer: how a bounded set holds them, hands them out, and packs them.

On the wire they are columns. Times are packed as second differences and integers as differences, so
samples at a steady pace need two bytes each.

>>> columns = columns_of({1: (100, 7, 100), 2: (200, 8, 200)}, complete=True)
>>> columns
(None, (100, 0), None, True, (7, 1))
>>> items_of(0, 2, columns)
{1: (100, 7, 100), 2: (200, 8, 200)}
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from crdts.plain import (
    COLUMN_INTEGERS,
    differences,
    need_column,
    need_int,
    need_tuple,
    need_value,
    sums,
)

HeldSample = tuple[int, Any, int]
"""(time_us, value, accepted_us), as a set holds it: a plain tuple, since it is made often."""


class Sample(NamedTuple):
    """A sample as an element of its set; `seq` tells equal ones apart."""

    seq: int
    time_us: int
    value: Any


def need_time(number: Any) -> int:
    """Return `number` if it is a time whose second differences have 64 bits.

    Raises:
        ValueError: it is something else.
    """
    return need_int(number, "a time in µs", least=-COLUMN_INTEGERS, below=COLUMN_INTEGERS)


def columns_of(items: Mapping[int, HeldSample], *, complete: bool) -> tuple[Any, ...]:
    """Return samples by seq as columns: seqs, times, delays, whether all are integers, values.

    Where they are `complete` no seq is missing, so that none need be written.
    """
    seqs = sorted(items)
    samples = [items[seq] for seq in seqs]
    times = [time_us for time_us, _, _ in samples]
    delays = [accepted_us - time_us for time_us, _, accepted_us in samples]
    values = tuple(value for _, value, _ in samples)
    numbers = all(type(value) is int and abs(value) < COLUMN_INTEGERS for value in values)
    return (
        None if complete else differences(seqs),
        differences(differences(times)),
        differences(delays) if any(delays) else None,
        numbers,
        differences(values) if numbers else values,
    )


def items_of(lo: int, hi: int, columns: Sequence[Any]) -> dict[int, HeldSample]:
    """Return what `columns_of` was given, of which every seq is above `lo` and at most `hi`.

    Raises:
        ValueError: `columns` came from a peer and are not such columns.
    """
    seqs, times, delays, numbers, values = columns
    times = sums(sums(need_column(times, "the times")))
    size = len(times)
    delays = (0,) * size if delays is None else sums(need_column(delays, "the delays", size))
    if numbers:
        values = sums(need_column(values, "the values", size))
    else:
        values = tuple(map(need_value, need_tuple(values, "the values", size)))
    numbered = range(lo + 1, hi + 1) if seqs is None else sums(need_column(seqs, "the seqs"))
    if len(numbered) != size or any(seq <= lo or seq > hi for seq in numbered):
        raise ValueError(f"{size} samples need as many numbers from {lo + 1} to {hi}")
    stamps = tuple(time_us + delay for time_us, delay in zip(times, delays, strict=True))
    for column in (times, stamps, values if numbers else ()):
        for number in column:
            need_time(number)
    return dict(zip(numbered, zip(times, values, stamps, strict=True), strict=True))
