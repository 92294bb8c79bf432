"""What a lake held at an earlier frontier, and what was appended since: against snapshots."""

import random
from pathlib import Path

import pytest
from deltalake import DeltaTable

from cloud_tier import Lake
from lasp_edge.errors import Exit, NotFound
from lasp_edge.tool.command_line import main
from tests.cloud_tier.written_lakes import PROGRAM, window, write, written

STEP = 10


@pytest.fixture
def tables(tmp_path):
    return written(tmp_path / "lake")


def newest(rows):
    """The current rows, by a definition of their own."""
    found = {}
    for row in rows:
        at = (row["window"], row["key"], row["start_us"])
        if at not in found or row["revision"] > found[at]["revision"]:
            found[at] = row
    return found


def recorded(tables, steps=12, seed=3):
    """Write steps as the job does; return the frontier and the rows that were there after each."""
    draw = random.Random(seed)
    after = []
    rows = {}
    frontier = None
    for step in range(steps):
        if step > 2:
            frontier = (frontier or 0) + draw.choice([0, STEP, 3 * STEP])
        changed = []
        for start_us in draw.sample(range(1000, 1100, STEP), 3):
            at = ("by_room", draw.choice("ab"), start_us)
            before = rows.get(at)
            values = {"count": draw.randrange(9), "total_q": draw.randrange(99)}
            row = window(*at[::2], 0 if before is None else before["revision"] + 1, **values)
            row |= {"key": at[1], "frontier": frontier}
            changed.append(row)
            rows[at] = row
        write(tables.windows, changed)
        after.append((frontier, dict(rows)))
    return after


def test_table_as_of_a_frontier_is_what_was_there_when_it_stood_there(tables):
    written_by_hand = newest(DeltaTable(tables.windows).to_pyarrow_table().to_pylist())
    after = recorded(tables)
    lake = Lake(tables.root)
    assert lake.frontiers() == sorted({frontier for frontier, _ in after if frontier is not None})
    beside = {frontier + by for frontier in lake.frontiers() for by in (-1, 0, 1)}
    for asked in sorted({-1, *beside}):  # between two frontiers nothing changes
        known = {}
        for frontier, rows in after:
            if frontier is None or frontier <= asked:
                known = rows
        expected = {
            at: (row["revision"], row["total_q"])
            for at, row in {**written_by_hand, **known}.items()
            if at[0] != "by_room" or row["stream"] == PROGRAM.windows["by_room"].stream
        }
        found = lake.table_as_of(asked).to_pylist()
        assert {
            (r["window"], r["key"], r["start_us"]): (r["revision"], r["total_q"]) for r in found
        } == expected
        of_one = lake.windows("by_room").current(as_of=asked).to_pylist()
        ours = [row for row in found if row["window"] == "by_room"]
        assert [row["revision"] for row in of_one] == [row["revision"] for row in ours]
    DeltaTable(tables.windows).optimize.compact()
    assert lake.table_as_of(asked).to_pylist() == found


def test_windows_are_printed_as_of_a_time_that_a_person_types(tables, capsys):
    late = window("totals", 0, 1, size_us=30_000_000, total_q=7) | {"frontier": 60_000_000}
    first = window("totals", 0, 0, size_us=30_000_000, total_q=5) | {"frontier": 30_000_000}
    write(tables.windows, [first])
    write(tables.windows, [late])
    words = ["windows", "totals", "--lake", tables.root, "--csv", "--as-of"]
    for typed, total in (("1970-01-01T00:00:59", "5"), ("1970-01-01 01:01:00+01:00", "7")):
        assert main([*words, typed]) == Exit.FINE
        _, row = capsys.readouterr().out.splitlines()
        assert row.split(",")[4] == total
    assert main([*words, "yesterday"]) == Exit.USAGE
    assert "such as" in capsys.readouterr().err


def rewritten(tables):
    """Write rows once more in other files, as what deletes others does, and a compaction."""
    with tables.open_to_changes(tables.windows):
        table = DeltaTable(tables.windows)
        assert table.delete("\"window\" = 'odd'")["num_copied_rows"] > 0
    DeltaTable(tables.windows).optimize.compact()


def test_a_consumer_gets_every_row_once_in_the_order_of_its_commits(tables):
    by_room = Lake(tables.root).windows("by_room")
    got, version = by_room.changes()
    assert got.num_rows == by_room.revisions().num_rows == 4
    seen = [tuple(row.values()) for row in got.drop_columns("commit_version").to_pylist()]
    for round_ in range(4):
        recorded(tables, steps=round_, seed=round_)
        if round_ == 2:
            rewritten(tables)
        before, (got, version) = version, by_room.changes(version)
        assert version == DeltaTable(tables.windows).version()
        commits = got.column("commit_version").to_pylist()
        assert commits == sorted(commits)
        assert all(before < commit <= version for commit in commits)
        assert len(commits) == 3 * round_
        seen += [tuple(row.values()) for row in got.drop_columns("commit_version").to_pylist()]
    every = [tuple(row.values()) for row in by_room.revisions().to_pylist()]
    assert sorted(map(repr, seen)) == sorted(map(repr, every))
    assert by_room.changes(version).rows.num_rows == 0
    assert by_room.changes(version).rows.schema == got.schema == by_room.changes().rows.schema


def test_values_have_a_feed_as_windows_have(tables):
    values = Lake(tables.root).values("global_average")
    version = values.changes().version
    row = {"name": "global_average", "key": "", "devices_in": 3, "inputs": "1", "revision": 0}
    stream = PROGRAM.dynamic_folds["global_average"].stream
    write(tables.globals, [row | {"stream": stream, "count": 2, "total_q": 4400}])
    (found,) = values.changes(version).rows.to_pylist()
    assert (found["mean"], found["commit_version"]) == (22.0, 1)


def test_a_version_that_is_not_there_is_refused(tables):
    by_room = Lake(tables.root).windows("by_room")
    with pytest.raises(ValueError, match=r"no version 9 .* the newest is 1"):
        by_room.changes(9)
    recorded(tables, steps=2)
    DeltaTable(tables.windows).create_checkpoint()
    for version in range(3):
        Path(tables.windows, "_delta_log", f"{version:020d}.json").unlink()
    with pytest.raises(NotFound, match=r"after version 1 .*go on from version 3"):
        by_room.changes(1)
    assert by_room.changes(2).rows.num_rows == 3
