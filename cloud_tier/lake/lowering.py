"""Readable values beside stored integers: a fold's parts as Arrow columns.

    stored    total_q 4400 and count 2, at resolution 0.01
    lowered   mean 22.0

A part that is itself a stored column, such as `count`, is not there twice.
"""

from typing import Any, Final

import pyarrow as pa

from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.declarations import TEXT
from lasp_edge.language.described import ResultDefinition
from lasp_edge.language.row_limits import in_unit

_PROBE: Final = range(64)
"""Samples whose partial tells which types the parts have: more than a `top(k)` has parts."""


def lowered(stored: pa.Table, meaning: ResultDefinition) -> dict[str, pa.ChunkedArray]:
    """Return the value columns by name.

    Args:
        stored: has the fold's columns.
        meaning: of the result.
    """
    found = {name: stored.column(name) for name in meaning.columns}
    if meaning.steps:
        return found | _shown(stored, meaning)
    parts = [part for part in meaning.parts if part not in found]
    if parts:
        rows = _lowered_rows(stored, meaning)
        for part, type_ in _part_types(meaning).items():
            if part in parts:
                found[part] = pa.chunked_array([_array([row.get(part) for row in rows], type_)])
    return found


def _shown(stored: pa.Table, meaning: ResultDefinition) -> dict[str, pa.ChunkedArray]:
    """Return the parts of rows of a result: numbers in their unit, and texts."""
    found = {}
    for part, column, step in zip(meaning.parts, meaning.columns, meaning.steps, strict=True):
        values = stored.column(column)
        if step != TEXT:
            shown = [None if n is None else in_unit(step, n) for n in values.to_pylist()]
            is_whole = Resolution(step).denominator == 1
            values = pa.chunked_array([_array(shown, pa.int64() if is_whole else pa.float64())])
        found[part] = values
    return found


def _lowered_rows(stored: pa.Table, meaning: ResultDefinition) -> list[dict[str, Any]]:
    if meaning.fold is None:
        return [{}] * stored.num_rows
    columns = [stored.column(name).to_pylist() for name in meaning.columns]
    for place, name in enumerate(meaning.columns):
        if name not in meaning.binary:
            columns[place] = [None if n is None else int(n) for n in columns[place]]
    return [dict(meaning.fold.lower(row, meaning.resolution)) for row in zip(*columns, strict=True)]


def _part_types(meaning: ResultDefinition) -> dict[str, pa.DataType]:
    probe: dict[str, Any] = {}
    if meaning.fold is not None:
        partial = meaning.fold.lift_column(_PROBE, _PROBE)
        probe = dict(meaning.fold.lower(partial, meaning.resolution))
    made = {bool: pa.bool_(), int: pa.int64()}
    return {part: made.get(type(probe.get(part)), pa.float64()) for part in meaning.parts}


def _array(values: list[Any], type_: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, type_)
    except (OverflowError, pa.ArrowInvalid):  # beyond 64 bits
        return pa.array(values, pa.decimal128(38, 0))
