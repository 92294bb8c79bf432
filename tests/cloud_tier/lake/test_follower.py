"""A lake that is looked at for a page: the newest windows, read again only where it grew."""

from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cloud_tier.lake.definitions import record
from cloud_tier.lake.follower import MOST_ROWS, STARTS, LakeFollower
from cloud_tier.lake.lake import Lake
from cloud_tier.lake.tables import LakeTables
from tests.brokers import until_true
from tests.device_agent.agents import greenhouse

SECOND_US = 1_000_000
PROGRAM = greenhouse()


def row(start_s, revision=0, *, key="", status="final", devices=2, **columns):
    parts = {name: Decimal(n) if name in {"count", "total_q"} else n for name, n in columns.items()}
    return {
        "window": "by_room",
        "key": key,
        "start_us": start_s * SECOND_US,
        "end_us": (start_s + 60) * SECOND_US,
        "devices_in": devices,
        "devices_expected": 2,
        "excluded": "",
        "status": status,
        "revision": revision,
        "frontier": None,
        "stream": PROGRAM.windows["by_room"].stream,
        **parts,
    }


def write(lake, rows):
    columns = PROGRAM.windows["by_room"].fold.columns_named
    values = dict.fromkeys(columns, 100)
    schema = pa.schema(DeltaTable(lake.windows).schema().to_arrow())
    made = [
        {name: Decimal(value) if pa.types.is_decimal(schema.field(name).type) else value
         for name, value in (row | values).items()}
        for row in rows
    ]  # fmt: skip
    write_deltalake(lake.windows, pa.Table.from_pylist(made, schema=schema), mode="append")


@pytest.fixture
def lake(tmp_path):
    made = LakeTables(tmp_path / "lake")
    made.create(PROGRAM.columns)
    record(PROGRAM, made)
    return made


def test_a_lakes_windows_come_with_status_and_coverage_the_newest_first(lake):
    write(lake, [row(0), row(10, 0, status="tentative", devices=1), row(10, 1, key="attic")])
    told = []
    LakeFollower(lake.root, told.append)
    (window,) = told[-1]["windows"]
    assert (window["name"], window["parts"]) == ("by_room", ["count", "total", "low"])
    shown = [(r["start"], r["key"], r["status"], r["in"], r["expected"]) for r in window["rows"]]
    assert shown == [
        (10, "", "tentative", 1, 2),
        (10, "attic", "final", 2, 2),
        (0, "", "final", 2, 2),
    ]
    assert window["rows"][0]["parts"] == [100, 1.0, 1.0]


def test_only_the_last_starts_and_rows_are_shown(lake):
    write(lake, [row(10 * n) for n in range(2 * STARTS)])
    told = []
    LakeFollower(lake.root, told.append)
    (window,) = told[-1]["windows"]
    assert [r["start"] for r in window["rows"]] == [
        10 * n for n in reversed(range(STARTS, 2 * STARTS))
    ]
    write(lake, [row(10 * 2 * STARTS, key=str(n)) for n in range(2 * MOST_ROWS)])
    told = []
    LakeFollower(lake.root, told.append)
    assert len(told[-1]["windows"][0]["rows"]) == MOST_ROWS


def test_a_lake_is_read_again_only_where_it_grew(lake, monkeypatch):
    told, reads = [], []
    monkeypatch.setattr("cloud_tier.lake.follower.LOOK_S", 0.01)
    follower = LakeFollower(lake.root, told.append)
    monkeypatch.setattr(
        "cloud_tier.lake.follower._shown", lambda *a: reads.append(a) or {"n": len(reads)}
    )
    follower.look()
    assert reads == []
    write(lake, [row(0)])
    follower.start()
    until_true(lambda: told[-1]["windows"] == [{"n": 1}])
    monkeypatch.setattr(follower, "_lake", Lake(f"{lake.root}-gone"))
    until_true(lambda: "no lake with a table" in (told[-1]["trouble"] or ""))
    monkeypatch.setattr(follower, "_lake", Lake(lake.root))
    until_true(lambda: told[-1]["trouble"] is None)
    follower.stop()
