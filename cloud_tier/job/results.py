"""Rows of results from devices' entries: a place whose entries changed is computed again.

A device's row is its newest entry of that place, so computing it again is always right. A row is
appended where the entry or the status differs from the current row's:

    present    whether there is something at its place; what was taken back stays, without its parts
    revision   0, 1, 2, ... for each (result, device, place); the current row has the greatest
    status     tentative until the frontier has passed its time, then final; then revised
               (`lasp_edge.protocol.status`)

A result's values were made by the user's functions, on the device; here they are only placed. So
no function of the user runs in Spark, and few rows are read: those of the times that were touched
or that the frontier has passed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from cloud_tier.job.job import Job
from cloud_tier.lake.sqltext import newest_of, standard_identifier, within
from cloud_tier.lake.tables import PANE, arrow_schema, row_types
from lasp_edge.language.declarations import StreamResult
from lasp_edge.ordered.places import place_text
from lasp_edge.ordered.sent_rows import Landed, SentRow, newest_rows
from lasp_edge.protocol.lake_columns import RESULT_ROW, ROW_IDENTITY, ROW_RECORD
from lasp_edge.protocol.spans import Span, joined
from lasp_edge.protocol.status import TENTATIVE, status_after

MOST_ROWS: Final = 10_000
"""Rows that are computed together, about: some 10 MB, and 0.1 s."""
ROW: Final = ("device", "place")
"""What tells the rows of a result apart."""
_NEAR_US: Final = 60_000_000
"""Microseconds between two times that are looked up as one span."""

Touched = Mapping[int, Mapping[int, int]]
"""Stream -> time -> how many entries a batch has."""
Rows = dict[tuple[str, str], dict[str, Any]]
"""(device, place) -> its newest row."""


class Frontiers(NamedTuple):
    """How far results were final, and are now; None is bottom.

    Attributes:
        before: all rows before this time are final already.
        now: rows before this time are final.
    """

    before: int | None
    now: int | None


def append_results(job: Job, touched: Touched, frontiers: Frontiers) -> int:
    """Append the rows of results that differ from the current ones; return how many."""
    count = 0
    for result in job.plan.device_results.values():
        times = Counter(touched.get(result.stream, {})) + _passed(job, result, frontiers)
        for chunk in chunks(times):
            count += _append(job, result, chunk, frontiers.now)
    return count


def _passed(job: Job, result: StreamResult, frontiers: Frontiers) -> Counter[int]:
    """Return the times of the tentative rows that the frontier has passed."""
    before, now = frontiers
    if now is None or now == before:
        return Counter()
    bounds = f"stream = {result.stream} AND time_us < {now}"
    if before is not None:
        bounds += f" AND time_us >= {before}"
    newest = newest_of("source", "time_us, status", bounds, ", ".join(ROW))
    query = f"SELECT time_us FROM ({newest}) WHERE status = '{TENTATIVE}'"  # noqa: S608 - ours
    return Counter(job.tables.select(job.lake.results, query).column("time_us").to_pylist())


def chunks(times: Mapping[int, int]) -> Iterator[list[int]]:
    """Yield times in order, of about `MOST_ROWS` rows together."""
    chunk: list[int] = []
    rows = 0
    for time_us in sorted(times):
        if rows >= MOST_ROWS:
            yield chunk
            chunk, rows = [], 0
        chunk.append(time_us)
        rows += times[time_us]
    if chunk:
        yield chunk


def _append(job: Job, result: StreamResult, times: Sequence[int], frontier: int | None) -> int:
    newest = newest_rows(_entries(job, result, times))
    current = _current(job, result, times)
    rows = list(_revisions(result, newest, current, frontier))
    columns = {**ROW_IDENTITY, **row_types([result]), **ROW_RECORD}
    job.tables.append(job.lake.results, pa.Table.from_pylist(rows, arrow_schema(columns)), frontier)
    return len(rows)


def _at(column: str, times: Sequence[int]) -> str:
    """Return whether a column holds one of the times; the spans tell which files may have them."""
    spans = joined((Span(time_us, time_us) for time_us in times), _NEAR_US)
    return f"{within(column, spans)} AND {column} IN ({', '.join(map(str, times))})"


def _entries(job: Job, result: StreamResult, times: Sequence[int]) -> Iterator[Landed]:
    """Yield the merged entries of these times; several may be of one row."""
    query = (
        f"SELECT device, pane_us, key, incarnation, nonce, seq, {RESULT_ROW} FROM source WHERE "  # noqa: S608
        f"kind = '{PANE}' AND stream = {result.stream} AND {_at('pane_us', times)}"
    )
    for row in _listed(job.tables.select(job.lake.lattice, query)):
        device, time_us, name, incarnation, nonce, seq, packed = row
        yield Landed(device, time_us, name, (incarnation, nonce, seq), packed)


def _current(job: Job, result: StreamResult, times: Sequence[int]) -> Rows:
    listed = [*ROW, "key", "present", "status", "revision", *result.columns]
    named = ", ".join(map(standard_identifier, listed))
    where = f"stream = {result.stream} AND {_at('time_us', times)}"
    query = newest_of("source", named, where, ", ".join(ROW))
    rows = job.tables.select(job.lake.results, query).to_pylist()
    return {(row["device"], row["place"]): row for row in rows}


def _revisions(
    result: StreamResult,
    newest: Mapping[tuple[str, Any], SentRow],
    current: Rows,
    frontier: int | None,
) -> Iterator[dict[str, Any]]:
    """Yield the rows to append, in order."""
    found = [(place[0], place_text(place), device, row) for (device, place), row in newest.items()]
    for time_us, text, device, row in sorted(found, key=_in_order):
        before = current.get((device, text))
        if before is None and row.parts is None:
            continue  # it was taken back before a row showed it
        parts = dict.fromkeys(result.columns)
        if row.parts is not None:
            parts = dict(zip(result.columns, row.parts, strict=True))
        shown = {"key": row.key, "present": row.parts is not None, **parts}
        differs = before is None or any(before[name] != value for name, value in shown.items())
        passed = frontier is not None and time_us < frontier
        was = None if before is None else before["status"]
        status = status_after(was, passed=passed, differs=differs)
        if not differs and status == was:
            continue
        yield {
            "result": result.name,
            "device": device,
            "time_us": time_us,
            "place": text,
            **shown,
            "status": status,
            "revision": 0 if before is None else before["revision"] + 1,
            "frontier": frontier,
            "stream": result.stream,
        }


def _in_order(found: tuple[int, str, str, SentRow]) -> tuple[Any, ...]:
    return found[:3]


def _listed(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)
