"""Reading a lake's results without Spark and without the program."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cloud_tier.lake.definitions import FOLD, WINDOW, ResultDefinition, definitions
from cloud_tier.lake.query import rows
from cloud_tier.lake.sqltext import standard_identifier, standard_literal
from cloud_tier.lake.tables import Lake
from lasp_edge.errors import NotFound
from lasp_edge.protocol.lake_columns import WINDOW_IDENTITY, WINDOW_RECORD

_NOT_PRINTED = frozenset({"excluded", "frontier", "stream"})
"""What a window row records for whoever looks into the table itself."""

ResultRow = dict[str, Any]


class Table(NamedTuple):
    """Rows, and their columns in the order in which they are printed."""

    columns: list[str]
    rows: list[ResultRow]


def windows(
    lake: Lake, name: str, *, all_revisions: bool = False, starts: int | None = None
) -> Table:
    """Return a window's rows, the current ones or all, sorted by (key, start_us, revision).

    Args:
        lake: the lake.
        name: of the window.
        all_revisions: not only the current rows.
        starts: how many starts, the last ones; None for all.

    Returns:
        key, start_us, end_us, one value for each part of the fold and its integers, devices_in,
        devices_expected, status, revision. Binary columns are in the rows, but are not printed.

    Raises:
        NotFound: there is no such lake, or no such window in it.
    """
    meaning = _meaning(lake, WINDOW, name, "window")
    identity = [column for column in WINDOW_IDENTITY if column != "window"]
    record = [column for column in WINDOW_RECORD if column not in _NOT_PRINTED]
    where = f'"window" = {standard_literal(name)} AND stream = {meaning.stream}'
    if starts is not None:
        newest = f"SELECT max(start_us) FROM source WHERE {where}"  # noqa: S608 - quoted
        where += f" AND start_us > ({newest}) - {starts * meaning.slide_us}"
    query = _select(
        [*identity, *meaning.columns, *record],
        where,
        "key, start_us",
        all_revisions=all_revisions,
    )
    found = [_lowered(row, meaning) for row in rows(lake, lake.windows, query)]
    return Table([*identity, *_columns(meaning), *record], found)


def fleet_values(lake: Lake, name: str | None = None, *, all_revisions: bool = False) -> Table:
    """Return the values of a dynamic fold, or of all of them, sorted by (name, key, revision).

    Returns:
        name, key, one value for each part and its integers, devices_in, inputs, revision. A
        column that a fold lacks is missing in its rows. A key that nobody has any more has no
        device in.

    Raises:
        NotFound: there is no such lake, or no such fold in it.
    """
    names = list(definitions(lake, FOLD)) if name is None else [name]
    columns: list[str] = []
    found: list[ResultRow] = []
    record = ["devices_in", "inputs", "revision"]
    for fold in names:
        meaning = _meaning(lake, FOLD, fold, "fleet-wide value")
        columns += [column for column in _columns(meaning) if column not in columns]
        query = _select(
            ["name", "key", *meaning.columns, *record],
            f"name = {standard_literal(fold)} AND stream = {meaning.stream}",
            "name, key",
            all_revisions=all_revisions,
        )
        found += [_lowered(row, meaning) for row in rows(lake, lake.globals, query)]
    return Table(["name", "key", *columns, *record], found)


def _meaning(lake: Lake, kind: str, name: str, what: str) -> ResultDefinition:
    known = definitions(lake, kind)
    if name not in known:
        there = ", ".join(known) or "none"
        raise NotFound(f"no {what} {name!r} in {lake.root}; there are: {there}")
    return known[name]


def _columns(meaning: ResultDefinition) -> list[str]:
    """Return the value columns: the parts, then the integers that are no part themselves."""
    hidden = {*meaning.parts, *meaning.binary}
    return [*meaning.parts, *(column for column in meaning.columns if column not in hidden)]


def _select(fields: Sequence[str], where: str, entry: str, *, all_revisions: bool) -> str:
    """Return a query for the rows of each entry, its newest or all."""
    newest = f"row_number() OVER (PARTITION BY {entry} ORDER BY revision DESC)"
    listed = ", ".join(map(standard_identifier, fields))
    only = "" if all_revisions else "WHERE newest = 1"
    return (
        f"SELECT {listed} FROM (SELECT *, {newest} AS newest FROM source "  # noqa: S608 - quoted
        f"WHERE {where}) {only} ORDER BY {entry}, revision"
    )


def _lowered(row: ResultRow, meaning: ResultDefinition) -> ResultRow:
    """Return a row with whole numbers as int and the fold's parts beside them."""
    for column in meaning.columns:
        if row[column] is not None and column not in meaning.binary:
            row[column] = int(row[column])
    partial = tuple(row[column] for column in meaning.columns)
    parts: Mapping[str, Any] = {}
    if meaning.fold is not None:
        parts = meaning.fold.lower(partial, meaning.resolution)
    return {**row, **parts}
