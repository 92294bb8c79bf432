"""Reading a lake without Spark and without the program, and the commands that print it."""

import csv
import subprocess
import sys
from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cloud_tier.lake.definitions import record
from cloud_tier.lake.reading import fleet_values, windows
from cloud_tier.lake.tables import LakeTables
from lasp_edge import Column, Op, Program, folds
from lasp_edge.errors import Exit, NotFound, UsageError
from lasp_edge.tool.command_line import main
from tests.cloud_tier.support_devices import rooms

PROGRAM = rooms()


def write(path, rows):
    schema = pa.schema(DeltaTable(path).schema().to_arrow())
    write_deltalake(path, pa.Table.from_pylist(rows, schema=schema), mode="append")


def window(name, start_us, revision, *, key="", stream=None, size_us=60_000_000, **columns):
    made = {
        "window": name,
        "key": key,
        "start_us": start_us,
        "end_us": start_us + size_us,
        "devices_in": 1,
        "devices_expected": 2,
        "excluded": "",
        "status": "tentative",
        "revision": revision,
        "frontier": None,
        "stream": PROGRAM.windows[name].stream if stream is None else stream,
    }
    parts = {name: Decimal(n) if name in SUMS else n for name, n in columns.items()}
    return made | parts


SUMS = {name for name, column in PROGRAM.columns.items() if column.op is Op.SUM}


@pytest.fixture
def lake(tmp_path):
    made = LakeTables(tmp_path / "lake")
    made.create(PROGRAM.columns)
    record(PROGRAM, made)
    write(
        made.windows,
        [
            window("by_room", 20, 0, key="b", count=1, total_q=2000),
            window("by_room", 10, 1, key="b", count=2, total_q=4400),
            window("by_room", 10, 0, key="b", count=1, total_q=2000),
            window("by_room", 30, 0, key="a", count=10**20, total_q=3 * 10**21),
            window("by_room", 40, 0, key="a", stream=5, count=1, total_q=1),
            window("odd", 0, 0, size_us=50_000_000, min_q=-5, max_q=7, n_count=3),
        ],
    )
    return made


def test_current_windows_are_sorted_lowered_and_of_the_newest_definition(lake):
    found = windows(lake, "by_room")
    assert found.columns == [
        *("key", "start_us", "end_us", "mean", "count", "total_q"),
        *("devices_in", "devices_expected", "status", "revision"),
    ]
    assert [(r["key"], r["start_us"], r["mean"], r["count"]) for r in found.rows] == [
        ("a", 30, 0.3, 10**20),
        ("b", 10, 22.0, 2),
        ("b", 20, 20.0, 1),
    ]


def test_all_revisions_come_in_order(lake):
    found = windows(lake, "by_room", all_revisions=True)
    assert [(r["start_us"], r["revision"]) for r in found.rows if r["key"] == "b"] == [
        (10, 0),
        (10, 1),
        (20, 0),
    ]


def test_parts_of_a_struct_stand_before_their_integers(lake):
    found = windows(lake, "odd")
    assert found.columns[3:9] == ["min", "max", "n", "min_q", "max_q", "n_count"]
    (row,) = found.rows
    assert [row[name] for name in found.columns[3:9]] == [-0.05, 0.07, 3, -5, 7, 3]


def test_csv_prints_floats_in_full_and_nothing_for_no_key(lake, capsys):
    assert main(["windows", "odd", "--lake", lake.root, "--csv"]) == Exit.FINE
    (row,) = csv.DictReader(capsys.readouterr().out.splitlines())
    assert (row["key"], row["start_us"], row["min"], row["n"]) == ("", "0", "-0.05", "3")


def test_table_for_people_is_aligned(lake, capsys):
    assert main(["windows", "odd", "--lake", lake.root]) == Exit.FINE
    head, row = capsys.readouterr().out.splitlines()
    assert head.startswith("key  start")
    assert "1970-01-01 00:00:50" in row


def test_fleet_values_are_printed_by_name(lake, capsys):
    stream = PROGRAM.dynamic_folds["global_average"].stream
    value = {"name": "global_average", "key": "", "stream": stream, "devices_in": 3}
    number = {"count": Decimal(2), "total_q": Decimal(4400)}
    rows = [value | number | {"inputs": f"{n:016x}", "revision": n} for n in range(2)]
    write(lake.globals, rows)
    (row,) = fleet_values(lake).rows
    assert (row["mean"], row["inputs"], row["revision"]) == (22.0, f"{1:016x}", 1)
    assert main(["globals", "--lake", lake.root, "--csv"]) == Exit.FINE
    (printed,) = csv.DictReader(capsys.readouterr().out.splitlines())
    assert (printed["name"], printed["mean"], printed["count"]) == ("global_average", "22.0", "2")


def test_key_that_is_gone_shows_that_nobody_has_it(lake, capsys):
    stream = PROGRAM.dynamic_folds["global_average"].stream
    zero = {"count": Decimal(0), "total_q": Decimal(0), "devices_in": 0, "inputs": f"{7:016x}"}
    value = {"name": "global_average", "key": "attic", "stream": stream, "revision": 1}
    write(lake.globals, [value | zero])
    (row,) = fleet_values(lake).rows
    assert (row["key"], row["mean"], row["devices_in"]) == ("attic", None, 0)
    assert main(["globals", "--lake", lake.root, "--csv"]) == Exit.FINE
    (printed,) = csv.DictReader(capsys.readouterr().out.splitlines())
    assert (printed["key"], printed["mean"], printed["devices_in"]) == ("attic", "", "0")


def test_binary_columns_are_lowered_and_not_printed(tmp_path, capsys):
    program = Program("p")
    event = program.event("temperature", resolution="0.01")
    fold = folds.struct(seen=folds.distinct(), p=folds.quantile(0.5))
    program.window("w", source=event, fold=fold, size_s=60)
    program = program.plan()
    lake = LakeTables(tmp_path)
    lake.create(program.columns)
    record(program, lake)
    made = program.windows["w"].fold
    partial = made.lift_column([2150, 2150, 2150], [0, 1, 2])
    parts = dict(zip(made.columns_named, partial, strict=True))
    stream = program.windows["w"].stream
    write(lake.windows, [window("odd", 0, 0, stream=stream) | {"window": "w"} | parts])
    found = windows(lake, "w")
    assert found.columns[3:5] == ["seen", "p"]
    assert not set(found.columns) & {c.name for c in made.columns if c.binary}
    (row,) = found.rows
    assert row["seen"] == 1
    assert row["p"] == pytest.approx(21.5, rel=0.01)
    assert main(["windows", "w", "--lake", lake.root]) == Exit.FINE
    assert "\\x" not in capsys.readouterr().out


def test_own_fold_leaves_its_values_empty_and_prints_its_integers(tmp_path):
    class Own(type(folds.max())):
        name = "own"

    program = Program("p")
    event = program.event("temperature", resolution="0.01")
    program.window("w", source=event, fold=Own(), size_s=60)
    program = program.plan()
    lake = LakeTables(tmp_path)
    lake.create(program.columns)
    record(program, lake)
    stream = program.windows["w"].stream
    made = window("odd", 0, 0, stream=stream) | {"window": "w", "max_q": 7}
    write(lake.windows, [made])
    (row,) = windows(lake, "w").rows
    assert (row.get("max"), row["max_q"]) == (None, 7)


def test_unknown_names_say_what_there_is(lake, capsys, tmp_path):
    with pytest.raises(NotFound, match=r"'x'.*there are: by_room, odd, totals"):
        windows(lake, "x")
    with pytest.raises(NotFound, match=r"'x'.*there are: global_average"):
        fleet_values(lake, "x")
    assert main(["windows", "odd", "--lake", str(tmp_path / "none")]) == Exit.NOT_FOUND
    assert "no lake" in capsys.readouterr().err


def test_reading_commands_need_neither_spark_nor_java(lake):
    code = (
        "import sys; from lasp_edge.tool.command_line import main;"
        f"main(['windows', 'odd', '--lake', {lake.root!r}]);"
        "assert not {'pyspark', 'pandas', 'py4j'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def columns(**ops):
    return {name: Column(name, op) for name, op in ops.items()}


def test_tables_are_plain_and_widen(lake):
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
