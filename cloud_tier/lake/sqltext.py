r"""SQL text: the one place where names and values are put into it.

Spark and DataFusion differ in how a text is quoted: in Spark's dialect a backslash escapes, in
DataFusion's, as in the standard, a quote is doubled.

    >>> identifier("total_q"), literal("it's")
    ('`total_q`', "'it\\'s'")
    >>> standard_identifier("window"), standard_literal("it's")
    ('"window"', "'it''s'")
    >>> within("pane_us", [(0, 9), (30, 39)])
    '(pane_us BETWEEN 0 AND 9 OR pane_us BETWEEN 30 AND 39)'
    >>> one_of("kind", ["tick", "member"])
    "kind IN ('tick', 'member')"
"""

from collections.abc import Iterable
from datetime import date, timedelta


def identifier(name: str) -> str:
    """Return a column's name or a table's path in Spark's dialect."""
    return f"`{name.replace('`', '``')}`"


def literal(text: str) -> str:
    """Return a text in Spark's dialect."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def standard_identifier(name: str) -> str:
    """Return a column's name in DataFusion's dialect."""
    return '"' + name.replace('"', '""') + '"'


def standard_literal(text: str) -> str:
    """Return a text in DataFusion's dialect."""
    return "'" + text.replace("'", "''") + "'"


def day(number: int) -> str:
    """Return a day, counted from the epoch, as a date.

    >>> day(-1)
    "DATE'1969-12-31'"
    """
    return f"DATE'{date(1970, 1, 1) + timedelta(days=number)}'"


def any_of(conditions: Iterable[str]) -> str:
    """Return whether one of the conditions holds."""
    return "(" + " OR ".join(conditions) + ")"


def one_of(column: str, texts: Iterable[str]) -> str:
    """Return whether the column holds one of the texts."""
    return f"{column} IN ({', '.join(map(literal, texts))})"


def within(column: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return whether the column lies in one of the spans, both ends included."""
    return any_of(f"{column} BETWEEN {first} AND {last}" for first, last in spans)


def newest_of(
    source: str, listed: str, where: str, entry: str, *, all_revisions: bool = False
) -> str:
    """Return a query for the row of the greatest `revision` of each entry, or for all its rows.

    Args:
        source: the table, in the dialect of who runs the query, as all that follows.
        listed: the columns that are wanted.
        where: which rows count.
        entry: the columns by which rows are one entry.
        all_revisions: every row, not only the newest.
    """
    if all_revisions:
        return f"SELECT {listed} FROM {source} WHERE {where}"  # noqa: S608 - made of quoted parts
    newest = f"row_number() OVER (PARTITION BY {entry} ORDER BY revision DESC)"
    return (
        f"SELECT {listed} FROM (SELECT *, {newest} AS newest FROM {source} "  # noqa: S608
        f"WHERE {where}) WHERE newest = 1"
    )
