"""Shared variables in Spark: its own operators join their rows, and compaction changes no value."""

import pytest
from deltalake import DeltaTable, write_deltalake

from cloud_tier.job import maintenance
from cloud_tier.job.job import Job
from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.lake import Lake
from cloud_tier.lake.shared import state_in, table_of
from cloud_tier.lake.sqltext import identifier
from cloud_tier.lake.tables import LakeTables
from cloud_tier.shared import relation
from crdts import Counter, ORSet, Replica
from lasp_edge import Program
from lasp_edge.protocol.acceptance import SharedNews
from tests.cloud_tier.lakes import QUICK
from tests.cloud_tier.shared.support_histories import histories, read_rows, value_rows

pytestmark = pytest.mark.spark

OF_EACH = 4
KITCHEN, CELLAR = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")


@pytest.fixture(scope="module")
def drawn():
    return list(histories(OF_EACH))


@pytest.fixture(scope="module")
def stored(spark, drawn, tmp_path_factory):
    for name, value in QUICK.items():
        spark.conf.set(name, value)
    path = str(tmp_path_factory.mktemp("shared") / "shared")
    write_deltalake(path, table_of(part for history in drawn for part in history.parts))
    return path


def by_stream(frame):
    found = {}
    for row in frame.toArrow().to_pylist():
        found.setdefault(row["stream"], []).append(row)
    return found


def test_spark_joins_every_type_as_python_does(spark, drawn, stored):
    rows = by_stream(maintenance.counting_shared(spark, stored, 0))
    for meaning, parts, joined in drawn:
        assert state_in(meaning.bottom, rows.get(meaning.stream, ())) == joined, parts


def test_spark_shows_the_values_that_python_has(spark, drawn, stored):
    rows = by_stream(spark.sql(relation.values(f"delta.{identifier(stored)}")))
    for meaning, parts, joined in drawn:
        assert read_rows(rows.get(meaning.stream, ())) == value_rows(joined), parts


@pytest.mark.parametrize("text", [relation.merged, relation.counting, relation.values])
def test_joining_is_hashing_and_needs_no_python(spark, stored, text):
    frame = spark.sql(text(f"delta.{identifier(stored)}"))
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "HashAggregate" in plan
    assert "SortAggregate" not in plan
    assert "Python" not in plan
    if text is relation.merged:
        assert "Sort" not in plan


def house():
    program = Program("house")
    program.event("door")
    return program, program.declare(ORSet(), "doors"), program.declare(Counter(), "opened")


def test_compaction_keeps_every_value_and_what_lands_meanwhile(spark, tmp_path, monkeypatch):
    program, doors, opened = house()
    plan, lake = program.plan(), LakeTables(tmp_path / "lake")
    prepare(plan, lake)
    states = {doors.name: ORSet(), opened.name: Counter()}

    def land(name, delta):
        states[name] |= delta
        news = SharedNews(name, plan.shared_streams[name], delta, 5)
        write_deltalake(lake.shared, table_of([news]), mode="append")

    for number in range(6):
        land("opened", states["opened"].increment(KITCHEN, number + 1))
        land("doors", states["doors"].add(KITCHEN, f"door {number}"))
    for number in range(5):
        land("doors", states["doors"].remove(CELLAR, f"door {number}"))
    reader, replaced = Lake(lake.root), maintenance.counting_shared

    def landing_meanwhile(*arguments):
        found = replaced(*arguments)
        land("doors", states["doors"].add(CELLAR, "cat flap"))
        return found

    monkeypatch.setattr(maintenance, "counting_shared", landing_meanwhile)
    maintenance.compact_shared(spark, Job(plan, lake))
    assert DeltaTable(lake.shared).to_pyarrow_table().num_rows == 4
    # The total, the last door, one run of what is gone, and what came meanwhile.
    assert reader.shared("doors").value == {"door 5", "cat flap"} == states["doors"].value
    assert reader.shared("opened").value == 21 == states["opened"].value
    shown = reader.shared("doors").spark_frame(spark).toArrow().column("value").to_pylist()
    assert sorted(shown) == ['"cat flap"', '"door 5"']
