"""The table of current rows for tools that know nothing of a lake."""

import shutil
from datetime import UTC, date, datetime, timedelta

import pytest
from deltalake import DeltaTable

from cloud_tier import Lake
from cloud_tier.lake.current import WrittenRows, write_current
from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.tables import LakeTables
from lasp_edge import Program, folds, scans
from lasp_edge.errors import Exit, UsageError
from lasp_edge.tool.command_line import main
from lasp_edge.units import SECOND_US
from tests.cloud_tier.written_lakes import PROGRAM, window, write, written

pl = pytest.importorskip("polars", reason="the extra `bench` brings it, in CI")

DAY_US = 86_400 * SECOND_US
BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path):
    made = written(tmp_path / "lake")
    write(made.windows, [window("by_room", 3 * DAY_US, 0, key="b", count=4, total_q=8400)])
    return Lake(made.root)


@pytest.fixture
def there(tmp_path):
    return str(tmp_path / "tables" / "rooms")


def rows_in(path):
    found = pl.read_delta(path).sort("start", "key")
    return [(r["key"], r["start"], r["mean"], r["day"]) for r in found.to_dicts()]


FIRST = [
    ("b", BEGIN + timedelta(microseconds=10), 22.0, date(1970, 1, 1)),
    ("b", BEGIN + timedelta(microseconds=20), 20.0, date(1970, 1, 1)),
    ("a", BEGIN + timedelta(microseconds=30), 0.3, date(1970, 1, 1)),
]


def test_it_has_times_units_comments_and_a_partition_for_each_day(lake, there):
    assert write_current(lake.windows("by_room"), there) == WrittenRows(rows=4, days=2)
    assert rows_in(there) == [*FIRST, ("b", BEGIN + timedelta(days=3), 21.0, date(1970, 1, 4))]
    table = DeltaTable(there)
    assert table.metadata().partition_columns == ["day"]
    assert "°C" in table.metadata().description
    comments = {each.name: each.metadata.get("comment") for each in table.schema().fields}
    assert all(comments.values())
    assert comments["start"] == "start of the window"
    assert comments["mean"] == "the mean of the readings, in °C"


def test_only_days_that_changed_are_written_again(lake, there):
    rows = lake.windows("by_room")
    write_current(rows, there)
    files = set(DeltaTable(there).file_uris())
    assert write_current(rows, there) == WrittenRows(0, 0, is_new=False)
    write(rows.table.table_uri, [window("by_room", 3 * DAY_US, 1, key="b", count=5, total_q=11000)])
    assert write_current(rows, there) == WrittenRows(rows=1, days=1)
    assert rows_in(there) == [*FIRST, ("b", BEGIN + timedelta(days=3), 22.0, date(1970, 1, 4))]
    kept = {uri for uri in files if "1970-01-01" in uri}
    assert kept <= set(DeltaTable(there).file_uris())


def test_what_is_deleted_from_a_lake_or_put_back_is_written_as_it_is(lake, there):
    rows = lake.windows("by_room")
    write_current(rows, there)
    table = rows.table
    table.alter.set_table_properties({"delta.appendOnly": "false"})
    table.delete("key = 'a'")
    assert write_current(rows, there) == WrittenRows(rows=3, days=2)
    assert [row[0] for row in rows_in(there)] == ["b", "b", "b"]
    table.restore(table.version() - 1)
    assert write_current(rows, there) == WrittenRows(rows=4, days=2)


def test_a_count_that_64_bits_do_not_hold_changes_the_column(there, tmp_path):
    made = LakeTables(tmp_path / "few")
    prepare(PROGRAM, made)
    write(made.windows, [window("by_room", DAY_US, 0, count=7, total_q=1)])
    rows = Lake(made.root).windows("by_room")
    write_current(rows, there)
    assert pl.read_delta(there)["count"].to_list() == [7]
    write(made.windows, [window("by_room", 0, 0, count=10**20, total_q=1)])
    assert write_current(rows, there) == WrittenRows(rows=2, days=2)
    assert sorted(pl.read_delta(there)["count"].to_list()) == [7.0, 1e20]


def test_another_table_is_never_overwritten(lake, there, tmp_path):
    write_current(lake.windows("by_room"), there)
    with pytest.raises(UsageError, match="holds current rows of 'by_room'; name another directory"):
        write_current(lake.windows("odd"), there)
    landing = str(tmp_path / "lake" / "landing")
    with pytest.raises(UsageError, match="holds another table; name another directory"):
        write_current(lake.windows("odd"), landing)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "note.txt").touch()
    for path in (tmp_path / "other", tmp_path / "lake"):
        with pytest.raises(UsageError, match="holds something else; name an empty or a new"):
            write_current(lake.windows("odd"), str(path))
    for path in ("", str(tmp_path / "other" / "note.txt")):
        with pytest.raises(UsageError, match="a directory is needed for the table, not"):
            write_current(lake.windows("odd"), path)


def test_a_copy_of_a_lake_writes_over_no_table_of_the_first_one(lake, there, tmp_path, capsys):
    """A copy has the id of the first lake and stands elsewhere; a new one in its place has not."""
    write_current(lake.windows("by_room"), there)
    shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    path = str(tmp_path / "copy")
    write(f"{path}/windows", [window("by_room", 0, 0, key="c", count=1, total_q=100)])
    words = ["lake", "current", "by_room", "--lake", path, "--to", there]
    before = rows_in(there)
    assert main(words) == Exit.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    made = (
        f"{there} was made from the lake {tmp_path}/lake, not from {path}: name another directory"
    )
    assert line.removeprefix("lasp-edge lake: ").startswith(f"{made}, or add --replace where")
    assert rows_in(there) == before
    assert main([*words, "--replace"]) == Exit.FINE
    assert [row[0] for row in rows_in(there)] == ["c", "b", "b", "a", "b"]
    assert main(words) == Exit.FINE
    assert capsys.readouterr().out.splitlines() == [
        f"{there}: 5 rows of 2 days",
        f"{there}: nothing new",
    ]
    shutil.rmtree(path)
    written(path)
    assert main(words) == Exit.USAGE
    assert f"made from the lake {path}, which was another one: name" in capsys.readouterr().err


def test_the_command_writes_it_and_names_what_is_there(lake, there, tmp_path, capsys):
    where = ["--lake", str(tmp_path / "lake")]
    assert main(["lake", "current", "by_room", *where, "--to", there]) == Exit.FINE
    assert capsys.readouterr().out == f"{there}: 4 rows of 2 days\n"
    assert main(["lake", "current", "by_room", *where, "--to", there]) == Exit.FINE
    assert capsys.readouterr().out == f"{there}: nothing new\n"
    assert main(["lake", "current", "rooms", *where, "--to", there]) == Exit.NOT_FOUND
    assert "no window or result 'rooms'; there are: by_room, odd" in capsys.readouterr().err
    assert main(["lake", "current", *where]) == Exit.USAGE
    assert "--to DIR are needed" in capsys.readouterr().err


VALUES = {"last": 21.89, "end": 23.0, "day": 0.01, "least_us": 1.5}
TIMES = {
    "start": BEGIN,
    "end_time": BEGIN + timedelta(minutes=1),
    "last_time": BEGIN + timedelta(microseconds=3),
}


@pytest.fixture
def parts(tmp_path):
    """A lake with a window whose parts are called as times are shown, and as no time is."""
    program = Program("parts")
    heat = program.event("heat", resolution="0.01", unit="°C")
    of = {"last": folds.last(), "end": folds.max(), "day": folds.min(), "least_us": folds.min()}
    program.window("w", source=heat, fold=folds.struct(**of), size_s=60)
    plan = program.plan()
    made = LakeTables(tmp_path / "parts")
    prepare(plan, made)
    seen = {"last_us": 3, "last_q": 2189, "end_max_q": 2300, "day_min_q": 1, "least_us_min_q": 150}
    row = window("w", 0, 0, stream=plan.windows["w"].stream, **seen)
    write(made.windows, [row])
    return Lake(made.root), row


def test_parts_keep_their_names_beside_times(parts, there):
    rows = parts[0].windows("w")
    (found,) = rows.readable().to_pylist()
    assert found.items() >= (VALUES | TIMES).items()
    assert rows.readable(columns=["last_us"]).column_names == ["last_time"]
    for revision in (1, 2):
        write_current(rows, there)
        (found,) = pl.read_delta(there).to_dicts()
        assert found.items() >= (VALUES | TIMES | {"day_utc": date(1970, 1, 1)}).items()
        write(rows.table.table_uri, [parts[1] | {"revision": revision}])
    comments = {each.name: each.metadata["comment"] for each in DeltaTable(there).schema().fields}
    assert comments["end_time"].startswith("end of the window")
    assert comments["day_utc"] == "the day, in UTC, of start"
    assert {part: comments[part] for part in ("last", "end", "day")} == {
        "last": "the latest reading, in °C",
        "end": "the greatest reading, in °C",
        "day": "the least reading, in °C",
    }
    assert "°C" not in comments["last_time"]


def test_columns_of_sessions_and_of_several_folds_say_what_they_are(tmp_path, there):
    program = Program("home")
    heat = program.event("heat", resolution="0.01", unit="°C")
    fold = folds.struct(time=folds.count(), mid=folds.quantile(0.5), high=folds.top(2))
    program.window("w", source=heat, fold=fold, size_s=60)
    of_visit = folds.struct(n=folds.count(), mean=folds.mean())
    visits = program.scan("v", source=heat, scan=scans.sessions(gap_s=60, fold=of_visit))
    program.result(visits)
    made = LakeTables(tmp_path / "home")
    prepare(program.plan(), made)
    write_current(Lake(made.root).windows("w"), there)
    write_current(Lake(made.root).results("v"), f"{there} v")
    of = [
        {each.name: each.metadata["comment"] for each in DeltaTable(path).schema().fields}
        for path in (there, f"{there} v")
    ]
    for comments, column, text in (
        (of[0], "time", "how many readings"),
        (of[0], "mid", "the 50 % quantile of the readings, in °C"),
        (of[0], "high_top_2", "reading number 2, counted from the greatest, in °C"),
        (of[1], "start", "of a session, the time of its first reading"),
        (of[1], "end", "of a session, the time of its last reading"),
        (of[1], "mean", "the mean of the readings"),
    ):
        assert comments[column] == text
    assert of[1]["device"].endswith("; empty: made of readings of all")


def test_no_two_printed_columns_have_one_name(parts, capsys):
    assert main(["windows", "w", "--lake", parts[0].tables.root]) == Exit.FINE
    head, line = (text.split() for text in capsys.readouterr().out.splitlines())
    assert {*VALUES, "end_time", "last_time"} <= set(head)
    assert len(set(head)) == len(head)
    assert {"21.89", "23.00", "1.50", "0.01"} <= set(line)
