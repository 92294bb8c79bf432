"""A lake of the former format is carried over as it is, wherever that is cut short."""

import contextlib
import itertools

import pytest
from deltalake import DeltaTable

from cloud_tier.lake.tables import FORMAT, LakeTables
from cloud_tier.lake.upgrade import upgrade
from lasp_edge.errors import Exit, UsageError
from lasp_edge.tool.command_line import main
from tests.cloud_tier.support_devices import BEGIN_US, history, readings_of, rooms, row, tick
from tests.cloud_tier.support_former import FormerLake

PROGRAM = rooms()
RETIRED = row("member", "pi-2", 1, 7, 30, control=3, retired=True)
ROWS = [*history(PROGRAM, readings_of(5, each=4)), RETIRED, tick(1, BEGIN_US)]


class KilledError(Exception):
    """The process ends here."""


def former(folder):
    made = FormerLake(LakeTables(folder), PROGRAM, "1")
    made.land(ROWS[:20])
    made.land(ROWS[20:])
    return made.tables


def rows_of(path):
    found = DeltaTable(path).to_pyarrow_table().to_pylist()
    return sorted([sorted(each.items()) for each in found], key=str)


def expected(path):
    columns = {field.name for field in DeltaTable(path).schema().fields} - {"pane_date"}
    return sorted([sorted((n, each.get(n)) for n in columns) for each in ROWS], key=str)


def without_day(rows):
    return [[each for each in row if each[0] != "pane_date"] for row in rows]


def check(tables):
    for path in (tables.landing, tables.lattice):
        assert without_day(rows_of(path)) == expected(path)
    assert tables.format_of(tables.table(tables.landing)) == str(FORMAT)
    assert DeltaTable(tables.landing).metadata().configuration["delta.appendOnly"] == "true"


def test_every_row_is_as_the_present_release_writes_it(tmp_path):
    tables = former(tmp_path / "lake")
    before = tables.lake_id()
    assert upgrade(tables) == 2 * len(ROWS)
    check(tables)
    assert tables.lake_id() == before, "else devices would send everything again"
    assert upgrade(tables) == 0


def test_it_is_carried_over_by_runs_that_are_killed_one_step_later_each(tmp_path, monkeypatch):
    tables, opens = former(tmp_path / "lake"), LakeTables.table
    versions = set()
    for last in itertools.count(1):
        number = itertools.count()

        def opened_or_killed(self, path, number=number, last=last):
            if next(number) == last:
                raise KilledError
            return opens(self, path)

        with monkeypatch.context() as patched:
            patched.setattr(LakeTables, "table", opened_or_killed)
            with contextlib.suppress(KilledError):
                upgrade(tables)
                break
        versions |= {DeltaTable(path).version() for path in (tables.landing, tables.lattice)}
    assert len(versions) > 4, "there was a kill between any two commits"
    check(tables)


def test_a_start_names_the_command_and_the_command_refuses_a_later_format(tmp_path, capsys):
    tables = former(tmp_path / "lake")
    with pytest.raises(UsageError, match=f"lasp-edge lake upgrade --lake {tables.root}"):
        tables.create(PROGRAM.columns)
    assert main(["lake", "upgrade", "--lake", tables.root]) == Exit.FINE
    assert main(["lake", "upgrade", "--lake", tables.root]) == Exit.FINE
    printed = capsys.readouterr().out
    assert f"{2 * len(ROWS)} rows were rewritten" in printed
    assert "has the format 2 already" in printed
    tables.create(PROGRAM.columns)
    tables.table(tables.landing).alter.set_table_description("lasp-edge lake, format 9")
    with pytest.raises(UsageError, match="a later lasp-edge wrote it"):
        upgrade(tables)
