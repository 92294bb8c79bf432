"""Which partitions maintenance rewrites together, and how pooled columns are called: no Spark."""

from datetime import date, timedelta
from types import SimpleNamespace

import pyarrow as pa

from cloud_tier.job import maintenance
from cloud_tier.job.combination import pooled, pooled_names
from lasp_edge.folds.columns import Column, Op
from lasp_edge.protocol.lake_columns import PANE_DATE

NEWEST = date(2024, 5, 20)
DAYS = [NEWEST - timedelta(days=back) for back in range(100)]


def rewritten(monkeypatch, files):
    """Return which partitions maintenance rewrites, and into which, of (day, rows) of files."""
    found = []
    table = pa.table(
        {
            f"partition.{PANE_DATE}": [day for day, _ in files],
            "num_records": [rows for _, rows in files],
            "size_bytes": [rows for _, rows in files],
        }
    )
    tables = SimpleNamespace(files=lambda _path: table, packed=set(), pack=lambda *_: None)
    lake = SimpleNamespace(lattice="lattice", grown=["lattice"])

    def compact(_spark, _job, dates, into=""):
        found.append((list(dates), into))

    monkeypatch.setattr(maintenance, "compact", compact)
    monkeypatch.setattr(maintenance, "compact_shared", lambda *_: None)
    maintenance.maintain(None, SimpleNamespace(tables=tables, lake=lake))
    return found


def test_each_partition_of_several_files_is_rewritten_once(monkeypatch):
    days = DAYS[:19]  # more than one commit takes
    found = rewritten(monkeypatch, [(day, 5) for day in days for _ in range(2)])
    every = [day for dates, into in found if not into for day in dates]
    assert sorted(every) == sorted(map(str, days))


def test_days_become_one_partition_once_their_whole_month_is_over_for_long(monkeypatch):
    months = [dates for dates, into in rewritten(monkeypatch, [(day, 5) for day in DAYS]) if into]
    over = [str(day) for day in reversed(DAYS) if day.month < 4]  # April was not, a month ago
    assert [day for dates in months for day in dates] == over


def test_pooled_columns_are_called_as_is_known_of_them():
    columns = [Column("total_q", Op.SUM), Column("last_us", Op.MAX, 2**58)]
    assert pooled_names(columns) == [text.rpartition(" AS ")[2] for text in pooled(columns)]
