"""Blocks of pane entries, packed by column with differences of panes and seqs.

A mean's entry takes 9 bytes in a full block.

    >>> entries = PaneEntries(stream=5, span_us=10, incarnation=1, nonce=7, columns=((3,), (6600,)),
    ...                       keys=("attic",), panes_us=(120,), seqs=(9,))
    >>> unpacked(packed(entries)) == entries
    True
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from crdts import Version
from crdts.replica import SEQS
from lasp_edge.folds.fold import MAX_COLUMNS
from lasp_edge.protocol import checks
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.limits import TIME_LIMIT_US
from lasp_edge.protocol.sizes import MAX_FRAME_BYTES

PartColumn = tuple[int | bytes | None, ...]
"""One fold column of several entries: integers, None where a partial lacks it, or all bytes."""


class PaneEntries(NamedTuple):
    """Pane entries of one stream and one replica, by column; all columns are equally long.

    Attributes:
        incarnation: with `nonce` the replica that wrote them, which may be an earlier one of the
            frame's device.
        nonce: see `incarnation`.
        columns: one tuple for each fold column: integers, None where a partial lacks it, or bytes.
        keys: the group of each entry, empty text for none.
        panes_us: start of each entry's pane, a multiple of the span.
        seqs: version of each entry within its replica.
    """

    stream: int
    span_us: int
    incarnation: int
    nonce: int
    columns: tuple[PartColumn, ...]
    keys: tuple[str, ...]
    panes_us: tuple[int, ...]
    seqs: tuple[int, ...]


def packed(block: PaneEntries) -> list[Any]:
    """Return the block as msgpack takes it.

    Raises:
        ValueError: it has too many columns.
    """
    if len(block.columns) > MAX_COLUMNS:
        raise ValueError(f"at most {MAX_COLUMNS} columns a stream, not {len(block.columns)}")
    names = sorted(set(block.keys))
    order = {name: index for index, name in enumerate(names)}
    panes = _differences([pane_us // block.span_us for pane_us in block.panes_us])
    keys = [] if names in ([], [""]) else [names, [order[key] for key in block.keys]]
    return [
        *block[:4],
        [list(column) for column in block.columns],
        keys,
        panes,
        _differences(block.seqs),
    ]


def unpacked(plain: Any) -> PaneEntries:
    """Return the block that `packed` was given.

    Raises:
        FrameError, TypeError, ValueError: `plain` is no such block.
    """
    stream, span_us, incarnation, nonce, packed_columns, packed_keys, panes, seqs = checks.array(
        plain
    )
    checks.integer(stream)
    checks.integer(span_us, 1, TIME_LIMIT_US)
    Version.checked(incarnation, nonce, 0)
    columns = part_columns(packed_columns)
    indices = _restored(panes, -TIME_LIMIT_US // span_us, TIME_LIMIT_US // span_us)
    numbers = _restored(seqs, 0, SEQS)
    keys = _keys(packed_keys, len(indices))
    if not indices or {len(numbers), len(keys), *map(len, columns)} != {len(indices)}:
        raise FrameError("columns of unequal length")
    panes_us = tuple([index * span_us for index in indices])
    return PaneEntries(stream, span_us, incarnation, nonce, columns, keys, panes_us, numbers)


def part_columns(plain: Any) -> tuple[PartColumn, ...]:
    """Return the fold columns of several entries.

    Raises:
        FrameError: they are no columns of partials, or too many.
    """
    if len(checks.array(plain)) > MAX_COLUMNS:
        raise FrameError("too many columns")
    return tuple([checks.part_column(column) for column in plain])


def _differences(values: Sequence[int]) -> list[int]:
    return [*values[:1], *(after - before for before, after in pairwise(values))]


def _restored(differences: Any, least: int, below: int) -> tuple[int, ...]:
    return checks.integers(list(accumulate(checks.integers(differences))), least, below)


def _keys(plain: Any, length: int) -> tuple[str, ...]:
    if not checks.array(plain):
        return ("",) * length
    names, indices = plain
    known = checks.keys(names, MAX_FRAME_BYTES)
    return tuple([known[index] for index in checks.integers(indices, 0, len(known))])
