"""The lake's tables: their columns, and which lakes are refused."""

import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType

from cloud_tier.lake.definitions import definitions, outdated_windows, prepare
from cloud_tier.lake.tables import FORMAT, LakeTables, LakeUnreadable
from lasp_edge.errors import UsageError
from lasp_edge.language.declarations import StreamResult
from lasp_edge.language.described import WINDOW
from lasp_edge.protocol.lake_columns import ITEMS, LAKE_COLUMNS
from tests.cloud_tier.support_devices import rooms
from tests.device_agent.agents import greenhouse


def columns_of(path):
    return {field.name for field in DeltaTable(path).schema().fields}


def test_every_column_beside_a_folds_is_reserved(tmp_path):
    lake, columns = LakeTables(tmp_path), rooms().columns
    lake.create(columns, [StreamResult("used", (("litres", "1"),), 7)], ["offset"])
    made = [columns_of(path) for path in (lake.landing, lake.lattice, lake.windows, lake.globals)]
    assert set().union(*made) - set(columns) == LAKE_COLUMNS - {ITEMS}  # gateways take those


def test_lake_that_is_there_stays_as_it_is(tmp_path):
    lake = LakeTables(tmp_path)
    lake.create(rooms().columns)
    before = lake.lake_id()
    lake.create(rooms().columns)
    assert (lake.lake_id(), DeltaTable(lake.landing).version()) == (before, 0)


def test_a_damaged_table_is_told_in_one_line_and_a_lander_tries_again(tmp_path):
    tables = LakeTables(tmp_path)
    tables.create(rooms().columns)
    (tmp_path / "landing" / "_delta_log" / f"{0:020}.json").write_text("{")
    with pytest.raises(LakeUnreadable, match=f"{tmp_path} cannot be read: .+") as raised:
        tables.table(tables.landing)
    assert "\n" not in str(raised.value)
    assert "a power cut has torn is mended at the next start of `lasp-edge cloud`" in str(
        raised.value
    )
    assert isinstance(raised.value, OSError)


def test_a_unit_that_an_earlier_release_did_not_describe_is_no_other_meaning(tmp_path, monkeypatch):
    plan, lake = greenhouse(), LakeTables(tmp_path / "lake")
    with monkeypatch.context() as earlier:
        earlier.setattr("lasp_edge.language.described._unit", lambda _: {})
        prepare(plan, lake)
    assert definitions(lake, WINDOW)["by_room"].unit == ""
    prepare(plan, lake)
    assert outdated_windows(plan, lake) == []  # otherwise all of it is computed again
    assert definitions(lake, WINDOW)["by_room"].unit == "°C"


@pytest.mark.parametrize(
    ("description", "number"), [(None, "1"), (f"lasp-edge lake, format {FORMAT + 1}", FORMAT + 1)]
)
def test_lake_of_another_format_is_refused_in_one_line_and_left_as_it_is(
    tmp_path, description, number
):
    lake = LakeTables(tmp_path)
    schema = Schema([Field("kind", PrimitiveType("string"))])
    DeltaTable.create(lake.landing, schema=schema, description=description)
    with pytest.raises(UsageError, match=f"has the lake format {number}, and") as refused:
        lake.create(rooms().columns)
    assert "\n" not in str(refused.value)
    assert DeltaTable(lake.landing).version() == 0
    assert not DeltaTable.is_deltatable(lake.lattice)
