"""Devices that are missing in rows of results over the fleet, as a lake's readers see them."""

import json

import pytest
from deltalake import DeltaTable

from cloud_tier import Lake
from cloud_tier.lake import tables as lake_tables
from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.tables import LakeTables
from lasp_edge import Program, scans
from lasp_edge.errors import Exit
from lasp_edge.protocol.lake_columns import ROW_IDENTITY, ROW_RECORD
from lasp_edge.tool.command_line import main
from tests.cloud_tier.written_lakes import write

SECOND_US = 1_000_000
MISSING = ("excluded", "devices_awaited", "devices_excluded")


def doors():
    program = Program("doors")
    door = program.event("door", resolution="1")
    program.result(program.scan("moved", source=door, scan=scans.differences()))
    return program.plan()


PLAN = doors()


def row(time_s, revision, status, frontier_s, excluded="", counts=(0, 0)):
    (result,) = PLAN.fleet_results.values()
    return {
        "result": result.name,
        "device": "",
        "key": "",
        "time_us": time_s * SECOND_US,
        "place": f"{time_s:020}",
        "difference_q": 3,
        "present": True,
        "status": status,
        "revision": revision,
        "frontier": frontier_s * SECOND_US,
        "stream": result.stream,
        **dict(zip(MISSING, (excluded, *counts), strict=True)),
    }


@pytest.fixture
def root(tmp_path):
    made = LakeTables(tmp_path / "lake")
    prepare(PLAN, made)
    write(
        made.results,
        [
            row(5, 0, "final", 10),
            row(15, 0, "final", 20, r"attic\, left,cellar", (0, 2)),
            row(15, 1, "revised", 40, "cellar", (0, 1)),
            row(45, 0, "tentative", 40, "a,b,c,d,e,f,g,h", (10, 0)),
        ],
    )
    return made.root


def printed(capsys, root, *words):
    assert main(["results", "moved", "--lake", root, *words]) == Exit.FINE
    return capsys.readouterr().out.splitlines()


def test_people_see_whom_a_row_waits_for_and_whom_it_is_made_without(root, capsys):
    head, whole, without, waits = printed(capsys, root)
    assert head.split()[-2:] == ["waiting_for", "without"]
    at, last = head.index("waiting_for"), head.index("without")
    assert [line[at:].strip() for line in (whole, without)] == ["", "cellar"]
    assert without.index("cellar") == last
    assert waits[at:] == "a, b, c, d, e, f, g, h and 2 more"


def test_where_nobody_is_missing_there_are_no_such_columns(root, capsys):
    head, line = printed(capsys, root, "--until", "1970-01-01T00:00:10")
    assert head.split()[-2:] == ["status", "revision"]
    assert line.split()[-2:] == ["final", "0"]


def test_each_revision_and_each_earlier_time_has_its_own_names(root, capsys):
    until = ("--until", "1970-01-01T00:00:20", "--since", "1970-01-01T00:00:15")
    first, second = map(json.loads, printed(capsys, root, *until, "--history", "--json"))
    assert [first[name] for name in MISSING] == [r"attic\, left,cellar", 0, 2]
    assert [second[name] for name in MISSING] == ["cellar", 0, 1]
    (known,) = printed(capsys, root, *until, "--as-of", "1970-01-01T00:00:30", "--json")
    assert json.loads(known) == first


def test_csv_has_the_columns_that_it_had_before(root, capsys):
    head, *_ = printed(capsys, root, "--csv")
    assert head == "device,key,time_us,place,difference,difference_q,present,status,revision"


def test_a_lake_of_an_earlier_release_is_read_as_it_is_and_widened_by_the_next_start(
    tmp_path, monkeypatch, capsys
):
    former = {name: kind for name, kind in ROW_RECORD.items() if name not in MISSING}
    monkeypatch.setattr(lake_tables, "ROW_RECORD", former)
    made = LakeTables(tmp_path / "lake")
    prepare(PLAN, made)
    monkeypatch.undo()
    before = {n: v for n, v in row(5, 0, "final", 10).items() if n not in MISSING}
    write(made.results, [before])
    assert not set(MISSING) & set(Lake(made.root).results("moved").columns)
    shown = printed(capsys, made.root)
    prepare(PLAN, made)
    (known,) = Lake(made.root).results("moved").current().to_pylist()
    assert [known[name] for name in MISSING] == [None] * 3
    assert printed(capsys, made.root) == shown


def test_each_column_of_results_explains_itself_in_any_reader(root):
    fields = DeltaTable(f"{root}/results").schema().fields
    texts = {field.name: field.metadata.get("comment") for field in fields}
    assert all(texts[name] for name in (*ROW_IDENTITY, *ROW_RECORD))


@pytest.mark.parametrize("part", MISSING)
def test_a_part_of_a_result_has_no_such_name(part):
    program = Program("doors")
    moved = program.scan("moved", source=program.event("door"), scan=scans.differences())
    with pytest.raises(ValueError, match=f"{part}.*rows have such a column"):
        program.result(moved, parts={part: "1"})
