"""Step 0: from pip alone to one streaming micro-batch in a Delta table that others can read."""

import json
import sys
from types import SimpleNamespace

import pytest

from cloud_tier.spark import session
from cloud_tier.spark.session import spark_session, starts_directly
from lasp_edge.errors import CommandError, EnvironmentLacks, UsageError

pyspark = pytest.importorskip("pyspark", reason="needs the extra `cloud`")
pytestmark = pytest.mark.spark

ROWS = [("kitchen", 1, 2150), ("kitchen", 2, 2160), ("hall", 1, -40)]


@pytest.fixture
def landing(tmp_path):
    """A Delta table written without Spark, as the lander writes it."""
    deltalake = pytest.importorskip("deltalake", reason="needs the extra `cloud`")
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra `cloud`")
    rows = [dict(zip(("device", "version", "total"), row, strict=True)) for row in ROWS]
    path = tmp_path / "landing"
    deltalake.write_deltalake(str(path), pyarrow.Table.from_pylist(rows))
    return path


@pytest.fixture
def merged(spark, landing, tmp_path):
    """The table that one micro-batch over `landing` leaves."""
    path = tmp_path / "merged"

    def step(batch, batch_id):
        largest = batch.groupBy("device").agg({"version": "max"})
        newest = largest.withColumnRenamed("max(version)", "version")
        rows = batch.join(newest, on=["device", "version"])
        rows.write.format("delta").mode("append").save(str(path))

    stream = spark.readStream.format("delta").load(str(landing)).writeStream.foreachBatch(step)
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = stream.trigger(availableNow=True).start()
    query.awaitTermination()
    assert [progress.batchId for progress in query.recentProgress] == [0]
    return path


def first_commit(table):
    lines = (table / "_delta_log" / "00000000000000000000.json").read_text().splitlines()
    return {action: body for line in lines for action, body in json.loads(line).items()}


def test_another_reader_sees_the_rows_of_a_micro_batch(merged):
    deltalake = pytest.importorskip("deltalake", reason="needs the extra `cloud`")
    rows = deltalake.DeltaTable(str(merged)).to_pyarrow_table().to_pylist()
    seen = sorted((row["device"], row["version"], row["total"]) for row in rows)
    assert seen == [("hall", 1, -40), ("kitchen", 2, 2160)]


def test_another_release_of_spark_is_refused_and_named(monkeypatch):
    """Its JVM would end with a class that Delta's JAR does not find."""
    monkeypatch.setattr(pyspark, "__version__", "3.5.1")
    said = r"pyspark 3\.5\.1 is installed, and 4\.2 is needed; to bring it, type: "
    with pytest.raises(EnvironmentLacks, match=said):
        spark_session(app_name="another")


@pytest.mark.parametrize("version", ["3.5.1", "4.20.0"])
def test_a_server_of_another_release_is_refused_and_named(version):
    with pytest.raises(CommandError, match=f"Spark {version} runs there, and 4.2 is needed"):
        session.check_release(SimpleNamespace(version=version))


def test_a_table_uses_the_plain_protocol(merged):
    commit = first_commit(merged)
    assert commit["protocol"] == {"minReaderVersion": 1, "minWriterVersion": 2}
    configuration = commit["metaData"]["configuration"]
    assert configuration.get("delta.enableDeletionVectors", "false") == "false"
    assert configuration["delta.checkpointInterval"] == "100"


def test_overflow_is_an_error_and_never_a_wrap(spark):
    errors = pytest.importorskip("pyspark.errors", reason="needs the extra `cloud`")
    with pytest.raises(errors.ArithmeticException, match="overflow"):
        spark.sql("SELECT CAST(9223372036854775807 AS BIGINT) + id FROM range(1, 2)").collect()


def test_time_is_utc(spark):
    (row,) = spark.sql("SELECT CAST(TIMESTAMP '1970-01-02 00:00:00' AS BIGINT) AS s").collect()
    assert row.s == 86_400


def test_python_workers_are_this_python(spark):
    (executable,) = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    assert executable == sys.executable


def test_classes_that_each_column_asks_for_are_looked_up_once(spark):
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra `cloud`")
    asked = []

    class Asked(type(spark._jvm)):
        def __getattr__(self, name):
            asked.append(name)
            return super().__getattr__(name)

    jvm, before = spark._jvm, type(spark._jvm)
    jvm.__class__ = Asked
    try:
        spark.createDataFrame(pyarrow.table({"id": [1]})).select("id", "id").toArrow()
    finally:
        jvm.__class__ = before
    assert not [name for name in asked if "." not in name]


def test_an_active_session_is_used_and_given_the_callers_settings(spark):
    again = spark_session(app_name="another", conf={"spark.sql.shuffle.partitions": "3"})
    try:
        assert again.sparkContext is spark.sparkContext
        assert again.conf.get("spark.sql.shuffle.partitions") == "3"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")


def test_a_setting_that_comes_too_late_is_refused_by_name(spark):
    with pytest.raises(UsageError, match=r"--conf spark.executor.memory: .* runs already"):
        spark_session(app_name="another", conf={"spark.executor.memory": "4g"})


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.jars": "mine.jar"},
        {"spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.4.1"},
        {"spark.driver.extraJavaOptions": "-Da=b"},
        {"spark.submit.pyFiles": "mine.py"},
    ],
)
def test_what_only_sparks_launcher_understands_is_left_to_it(conf):
    assert not starts_directly(conf, {})
    assert starts_directly({"spark.sql.ansi.enabled": "true"}, {})
    assert not starts_directly({}, {"PYSPARK_SUBMIT_ARGS": "--packages x pyspark-shell"})


def test_a_missing_client_of_spark_connect_is_told_with_what_brings_it(monkeypatch):
    sql = pytest.importorskip("pyspark.sql", reason="needs the extra `cloud`")
    monkeypatch.setattr(sql.SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(session, "find_spec", lambda package: None)
    with pytest.raises(EnvironmentLacks, match=r"client is missing; .*\[connect\]"):
        spark_session(app_name="another", master="sc://127.0.0.1:1")
