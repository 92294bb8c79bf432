"""Rows as any tool reads them: times as times, values in the unit of the event, no wide numbers.

A lake stores whole numbers, because these are equal everywhere. Whoever plots wants `21.37`, and a
time that sorts as one. What is left out is what only a join needs: parts in steps of a resolution
(`_q`) and the bytes of sketches. Names are those of `lasp_edge.language.shown_names`.
"""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
from pyarrow import compute

from lasp_edge.errors import EnvironmentLacks
from lasp_edge.language.shown_names import shown_names

_TIME: Final = pa.timestamp("us", tz="UTC")
_TIMES: Final = frozenset({"frontier"})
"""Columns that hold a time without a name that says so; others end with `_us`."""


def readable(
    rows: pa.Table,
    about: Mapping[str, str] = MappingProxyType({}),
    names: Mapping[str, str] | None = None,
) -> pa.Table:
    """Return rows with times, doubles and texts only.

    Args:
        rows: of a result.
        about: what they are, for the schema's metadata.
        names: column -> the name that it gets, which a time alone changes; None: what
            `shown_names` gives for these columns.

    >>> rows = pa.table({"start_us": [1735689600000000], "mean": [21.5], "total_q": [2150]})
    >>> readable(rows).to_pylist()[0]["start"].isoformat(), readable(rows).column_names
    ('2025-01-01T00:00:00+00:00', ['start', 'mean'])
    """
    names = shown_names(rows.column_names) if names is None else names
    return pa.table(dict(_columns(rows, names))).replace_schema_metadata(dict(about))


def as_pandas(rows: pa.Table) -> Any:
    """Return rows as a frame of pandas, whose `attrs` are the schema's metadata.

    Raises:
        EnvironmentLacks: pandas is not installed.
    """
    if find_spec("pandas") is None:
        raise EnvironmentLacks("pandas is not installed; type: pip install pandas")
    frame = rows.to_pandas()
    frame.attrs.update({k.decode(): v.decode() for k, v in (rows.schema.metadata or {}).items()})
    return frame


def _columns(rows: pa.Table, names: Mapping[str, str]) -> Iterator[tuple[str, pa.ChunkedArray]]:
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if names[name] != name or name in _TIMES:
            yield names[name], column.cast(_TIME)
        elif pa.types.is_decimal(column.type):
            if not name.endswith("_q"):
                yield name, _number(column)
        elif not name.endswith("_q") and not pa.types.is_binary(column.type):
            yield name, column


def _number(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a count as an integer of 64 bits, or as a double where it is greater."""
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return compute.cast(column, pa.float64())
