"""Rows of devices and operators that have landed, read where they are few.

`landing` holds years, and of a device a promise a minute. The job has merged nearly all of it into
`lattice`, which keeps such rows in one partition, and of promises the newest. What is missing there
lies in the files of `landing` that are newer than the version which `lattice` states to have
merged. So the start of a lander reads as much after years as on the first day.
"""

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from cloud_tier.lake.query import plain, selected
from cloud_tier.lake.sqltext import standard_literal
from cloud_tier.lake.statements import newest_statement
from cloud_tier.lake.tables import LakeTables
from lasp_edge.protocol.lake_columns import PANE_DATE


def landed_rows(
    tables: LakeTables, landing: DeltaTable, kind: str, columns: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield columns of all rows of a kind that have landed and are no panes; rows may repeat.

    Args:
        tables: of the lake.
        landing: its table, as of some version.
        kind: of the rows.
        columns: of the table.
    """
    named, where = ", ".join(columns), f"kind = {standard_literal(kind)}"
    newer = _newer_files(tables, landing)
    if newer is None:
        query = f"SELECT DISTINCT {named} FROM source WHERE {where}"  # noqa: S608 - ours
        yield from selected(landing, query).to_pylist()
        return
    query = (
        f"SELECT DISTINCT {named} FROM source "  # noqa: S608 - ours
        f"WHERE {PANE_DATE} = DATE '1970-01-01' AND {where}"
    )
    yield from selected(tables.table(tables.lattice), query).to_pylist()
    files = PyFileSystem(DeltaStorageHandler(landing.table_uri))
    for path in newer:
        with files.open_input_file(unquote(path)) as opened:
            file = pq.ParquetFile(opened)
            there = [name for name in ("kind", *columns) if name in file.schema_arrow.names]
            rows = plain(file.read(columns=there, use_threads=False))
        yield from rows.filter(pc.equal(rows["kind"], kind)).to_pylist()


def _newer_files(tables: LakeTables, landing: DeltaTable) -> list[str] | None:
    """Return the files of `landing` that may hold rows which `lattice` lacks; None for all."""
    stated = newest_statement(tables.table(tables.lattice))
    if stated is None or stated.landing < 0:
        return None
    try:
        merged = DeltaTable(landing.table_uri, version=min(stated.landing, landing.version()))
    except DeltaError:  # its log is deleted by now
        return None
    known = set(_paths(merged))
    return [path for path in _paths(landing) if path not in known]


def _paths(table: DeltaTable) -> list[str]:
    found: list[str] = pa.table(table.get_add_actions()).column("path").to_pylist()
    return found
