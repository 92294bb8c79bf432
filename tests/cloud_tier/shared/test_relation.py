"""The rows of shared variables, merged in SQL, are the join: random histories of every type."""

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cloud_tier.lake.query import selected
from cloud_tier.lake.shared import counting, state_in, table_of
from cloud_tier.shared import relation
from cloud_tier.shared.forms import FORMS, NOT_STORED
from crdts.wire import TYPES
from tests.cloud_tier.shared.support_histories import histories, read_rows, value_rows

OF_EACH = 10


@pytest.fixture(scope="module")
def drawn():
    return list(histories(OF_EACH))


@pytest.fixture(scope="module")
def stored(drawn, tmp_path_factory):
    path = tmp_path_factory.mktemp("shared") / "shared"
    write_deltalake(path, table_of(part for history in drawn for part in history.parts))
    return DeltaTable(path)


def by_stream(rows):
    found = {}
    for row in rows.to_pylist():
        found.setdefault(row["stream"], []).append(row)
    return found


def test_every_type_has_rows_or_a_reason():
    assert {*FORMS, *NOT_STORED} == set(TYPES)
    assert not FORMS.keys() & NOT_STORED.keys()


def test_merged_rows_are_the_join(drawn, stored):
    rows = by_stream(counting(stored))
    for meaning, parts, joined in drawn:
        found = state_in(meaning.bottom, rows.get(meaning.stream, ()))
        assert found == joined, parts


def test_values_in_sql_are_those_in_python(drawn, stored):
    rows = by_stream(selected(stored, relation.values("source")))
    for meaning, parts, joined in drawn:
        assert read_rows(rows.get(meaning.stream, ())) == value_rows(joined), parts


def test_fewest_rows_are_stable(stored, tmp_path):
    """What was put together joins to itself, and with what it was made from."""
    fewest = counting(stored)
    write_deltalake(tmp_path / "again", fewest)
    again = DeltaTable(tmp_path / "again")
    order = [(name, "ascending") for name in fewest.column_names if name != "received_us"]
    assert counting(again).drop_columns("received_us").sort_by(order) == fewest.drop_columns(
        "received_us"
    ).sort_by(order)
    everything = pa.table(stored.to_pyarrow_table()).cast(fewest.schema)
    assert fewest.num_rows < everything.num_rows
