"""A lake that is looked at for a page: the newest windows, read again only where it grew."""

import pytest

from cloud_tier.lake.definitions import record
from cloud_tier.lake.follower import MOST_ROWS, STARTS, LakeFollower
from cloud_tier.lake.lake import Lake
from cloud_tier.lake.tables import LakeTables
from tests.brokers import until_true
from tests.cloud_tier.written_lakes import window, write
from tests.device_agent.agents import greenhouse

SECOND_US = 1_000_000
PROGRAM = greenhouse()
STREAM = PROGRAM.windows["by_room"].stream


def row(start_s, revision=0, *, key="", status="final", devices=2):
    columns = PROGRAM.windows["by_room"].fold.columns_named
    values = dict.fromkeys(columns, 100)
    made = window("by_room", start_s * SECOND_US, revision, key=key, stream=STREAM, **values)
    return made | {"devices_in": devices, "status": status}


@pytest.fixture
def lake(tmp_path):
    made = LakeTables(tmp_path / "lake")
    made.create(PROGRAM.columns)
    record(PROGRAM, made)
    return made


def test_a_lakes_windows_come_with_status_and_coverage_the_newest_first(lake):
    write(
        lake.windows, [row(0), row(10, 0, status="tentative", devices=1), row(10, 1, key="attic")]
    )
    views = []
    LakeFollower(lake.root, views.append)
    ((name, shown_window),) = views[-1]["windows"].items()
    assert (name, shown_window["parts"]) == ("by_room", ["count", "total", "low"])
    assert shown_window["units"] == ["", "°C", "°C"]
    rows = list(shown_window["rows"].values())
    shown = [(r["start"], r["key"], r["status"], r["in"], r["expected"]) for r in rows]
    assert shown == [
        (10, "", "tentative", 1, 2),
        (10, "attic", "final", 2, 2),
        (0, "", "final", 2, 2),
    ]
    assert rows[0]["parts"] == [100, 1.0, 1.0]


def test_only_the_last_starts_and_rows_are_shown(lake):
    write(lake.windows, [row(10 * n) for n in range(2 * STARTS)])
    views = []
    LakeFollower(lake.root, views.append)
    (shown_window,) = views[-1]["windows"].values()
    assert [r["start"] for r in shown_window["rows"].values()] == [
        10 * n for n in reversed(range(STARTS, 2 * STARTS))
    ]
    write(lake.windows, [row(10 * 2 * STARTS, key=str(n)) for n in range(2 * MOST_ROWS)])
    views = []
    LakeFollower(lake.root, views.append)
    assert len(views[-1]["windows"]["by_room"]["rows"]) == MOST_ROWS


def test_a_lake_is_read_again_only_where_it_grew(lake, monkeypatch):
    views, reads = [], []
    monkeypatch.setattr("cloud_tier.lake.follower.LOOK_S", 0.01)
    follower = LakeFollower(lake.root, views.append)
    monkeypatch.setattr(
        "cloud_tier.lake.follower._shown", lambda *a: reads.append(a) or {"n": len(reads)}
    )
    follower.look()
    assert reads == []
    write(lake.windows, [row(0)])
    follower.start()
    until_true(lambda: views[-1]["windows"] == {"by_room": {"n": 1}})
    monkeypatch.setattr(follower, "_lake", Lake(f"{lake.root}-gone"))
    until_true(lambda: "no lake with a table" in views[-1].get("trouble", ""))
    monkeypatch.setattr(follower, "_lake", Lake(lake.root))
    until_true(lambda: "trouble" not in views[-1])
    follower.stop()
