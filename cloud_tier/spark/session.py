"""A Spark session that writes Delta tables, wherever the job runs.

    an active session (Databricks, a notebook, a test)    used as it is
    SPARK_REMOTE or `sc://host`                           Spark Connect
    under spark-submit                                    the master that spark-submit was given
    `local[...]`                                          our own JVM, started directly
    any other master                                      pyspark's own start

Two settings carry meaning and are set everywhere: overflow is an error, and time is UTC. All
others are about cost. The caller's `conf` wins over every setting.
"""

import logging
import os
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from cloud_tier.spark.cache import cache_folder
from cloud_tier.spark.driver import LOG_CONFIGURATION, Driver, spark_class_path, started
from cloud_tier.spark.jars import delta_jars, spark_home
from cloud_tier.spark.java import Java, find_java, launcher_home
from lasp_edge.errors import CommandError, EnvironmentLacks, UsageError
from lasp_edge.tool.installing import install_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

RELEASE = "4.2"
"""Of Spark, as in pyproject.toml: Delta's JARs (`cloud_tier.spark.jars`) are built for it alone."""

MEANING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}

_DELTA_DEFAULTS = "spark.databricks.delta.properties.defaults"
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Tables that any Delta reader opens: no deletion vectors, the oldest protocol.
    f"{_DELTA_DEFAULTS}.enableDeletionVectors": "false",
    f"{_DELTA_DEFAULTS}.minReaderVersion": "1",
    f"{_DELTA_DEFAULTS}.minWriterVersion": "2",
    f"{_DELTA_DEFAULTS}.checkpointInterval": "100",
    # The job compacts when it chooses to, in the thread that also appends.
    "spark.databricks.delta.autoCompact.enabled": "false",
}

# Without a page to show them on, Spark still keeps its last 1,000 jobs, stages and queries, each
# with its plan as text: 0.14 MB a step.
_REMEMBERED = "10"
REMEMBERED = {
    "spark.ui.retainedJobs": _REMEMBERED,
    "spark.ui.retainedStages": _REMEMBERED,
    "spark.ui.retainedTasks": "1000",
    "spark.ui.dagGraph.retainedRootRDDs": _REMEMBERED,
    "spark.sql.ui.retainedExecutions": _REMEMBERED,
}

# Measured on two cores. The defaults are for a cluster: 50 tasks to read a table's log cost an
# append 2 s, and listing files with as many tasks as files made a VACUUM take 28 s.
LOCAL = {
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    **REMEMBERED,
    "spark.sql.debug.maxToStringFields": "1000",
}
_LOCAL_PARTITIONS = 4
LOG_OPTION = f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()}"
_OF_CONNECT = ("grpc", "grpc_status", "pandas", "zstandard")
"""What pyspark's client of Spark Connect imports; it ends the process where some are missing."""

_ASKED_FOR = ("functions", "PythonSQLUtils", "PythonUtils")
"""Classes that pyspark names in short for each column and each frame. Py4J keeps none: each time
the JVM looks for the name in every package that pyspark imports, and so in all JARs again and
again."""

# What Spark's launcher does before the JVM starts, and a direct start does not.
_FOR_THE_LAUNCHER = (
    "spark.jars",
    "spark.archives",
    "spark.submit.",
    "spark.driver.extra",
    "spark.driver.defaultJavaOptions",
    "spark.driver.userClassPathFirst",
)


def spark_session(
    *,
    app_name: str,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    short_run: bool = False,
    say: Callable[[str], None] = _log.info,
) -> "SparkSession":
    """Return the active session, or start one that reads and writes Delta tables.

    Starting one replaces Python's handler of SIGINT, as pyspark does; install your own afterwards.

    Args:
        app_name: The name that Spark shows for the job.
        master: Where it runs; by default spark-submit's master, else `local[*]`. What a person
            typed is for `cloud_tier.spark.master.check_master` to check.
        conf: Spark settings, which win over ours.
        short_run: Say so for a job of seconds on a local master, to start and end it sooner.
        say: Is given one line about the Java runtime that was chosen, if one had to be.

    Raises:
        EnvironmentLacks: pyspark, Java or Delta's JARs are missing and cannot be had, or are of
            another release.
        CommandError: Spark does not start there, or is of another release; the text says why.
        UsageError: Spark runs already, and takes a setting at its start only.
    """
    spark_sql = _spark_sql()
    settings = {**MEANING, **(conf or {})}
    active: SparkSession | None = spark_sql.getActiveSession()
    if active is not None:
        check_release(active)
        return _with_settings(active, settings)
    remote = master if (master or "").startswith("sc://") else os.environ.get("SPARK_REMOTE")
    if remote:
        server = _remote_session(app_name, remote)
        check_release(server)
        return _with_settings(server, settings)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return _get_or_create(app_name, master, {**DELTA, **settings})
    master = master or "local[*]"
    if master.startswith("local"):
        return _local_session(app_name, master, conf or {}, short_run=short_run, say=say)
    return _launched_session(app_name, master, {**DELTA, **settings}, say)


def _remote_session(app_name: str, remote: str) -> "SparkSession":
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra

    if any(find_spec(package) is None for package in _OF_CONNECT):
        raise EnvironmentLacks("Spark Connect's client is missing", install_line("connect"))
    try:
        return _spark_sql().builder.appName(app_name).remote(remote).getOrCreate()
    except PySparkException as error:
        raise CommandError(
            f"Spark does not start on {remote}: {str(error).partition(chr(10))[0]}"
        ) from error


def starts_directly(conf: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether a local driver needs nothing that only Spark's own launcher does.

    >>> starts_directly({"spark.sql.shuffle.partitions": "8"}, {})
    True
    >>> starts_directly({"spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.4.1"}, {})
    False
    """
    if "PYSPARK_SUBMIT_ARGS" in environ or "SPARK_CONF_DIR" in environ:
        return False
    return not any(name.startswith(_FOR_THE_LAUNCHER) for name in conf)


def _local_session(
    app_name: str,
    master: str,
    conf: Mapping[str, str],
    *,
    short_run: bool,
    say: Callable[[str], None],
) -> "SparkSession":
    partitions = str(min(_LOCAL_PARTITIONS, os.cpu_count() or 1))
    settings = {**MEANING, **DELTA, **LOCAL, "spark.sql.shuffle.partitions": partitions}
    settings["spark.sql.warehouse.dir"] = (cache_folder() / "warehouse").as_uri()
    settings["spark.driver.memory"] = "2g"
    settings.update(conf)
    if not starts_directly(conf) or (spark_home() / "conf").is_dir():
        return _launched_session(app_name, master, settings, say)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if _gateway_runs():
        return _get_or_create(app_name, master, settings)
    memory = settings["spark.driver.memory"]
    java = _java(say)
    class_path = spark_class_path(delta_jars(java=java))
    with started(Driver(java, class_path, memory=memory, short_run=short_run)):
        return _get_or_create(app_name, master, settings)


def _launched_session(
    app_name: str, master: str, settings: Mapping[str, str], say: Callable[[str], None]
) -> "SparkSession":
    """Start a session the way pyspark does, on any master."""
    settings = dict(settings)
    java = _java(say)
    jars = ",".join(map(str, delta_jars(java=java)))
    settings["spark.jars"] = ",".join(filter(None, (jars, settings.get("spark.jars"))))
    settings.setdefault("spark.driver.extraJavaOptions", LOG_OPTION)
    settings.setdefault("spark.ui.showConsoleProgress", "false")
    if master.startswith(("local", "spark:")):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["JAVA_HOME"] = str(launcher_home(java))
    return _get_or_create(app_name, master, settings)


def _java(say: Callable[[str], None]) -> Java:
    java = find_java()
    say(str(java))
    return java


def _get_or_create(app_name: str, master: str | None, conf: Mapping[str, str]) -> "SparkSession":
    builder = _spark_sql().builder.appName(app_name)
    if master is not None:
        builder = builder.master(master)
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        session = builder.config(map=dict(conf)).getOrCreate()
    except (Py4JError, PySparkException) as error:
        # Of a Java exception, py4j's first line only says that there was one.
        lines = [line.lstrip(": ") for line in str(error).splitlines() if line.strip()]
        why = lines[1] if isinstance(error, Py4JError) and len(lines) > 1 else lines[0]
        raise CommandError(f"Spark does not start on {master or 'its master'}: {why}") from error
    jvm: Any = session._jvm  # noqa: SLF001 - pyspark has no public word for it
    for name in _ASKED_FOR:
        setattr(jvm, name, getattr(jvm, name))
    return session


def _with_settings(spark: "SparkSession", settings: Mapping[str, str]) -> "SparkSession":
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra

    for name, value in settings.items():
        try:
            spark.conf.set(name, value)
        except PySparkException as error:
            why = "it is set where Spark is started, and Spark runs already"
            raise UsageError(f"--conf {name}: {why}") from error
    return spark


def _gateway_runs() -> bool:
    """Return whether pyspark holds a JVM already, as it does after a session was stopped."""
    from pyspark import SparkContext  # noqa: PLC0415 - an extra

    return SparkContext._gateway is not None  # noqa: SLF001 - pyspark has no public word for it


def _spark_sql() -> type["SparkSession"]:
    try:
        import pyspark  # noqa: PLC0415 - an extra
        from pyspark.sql import SparkSession  # noqa: PLC0415
    except ImportError as error:
        raise EnvironmentLacks("pyspark is missing", install_line("cloud")) from error
    if not _fits(pyspark.__version__):
        what = f"pyspark {pyspark.__version__} is installed, and {RELEASE} is needed"
        raise EnvironmentLacks(what, install_line("cloud"))
    return SparkSession


def _fits(version: str) -> bool:
    return version.startswith(f"{RELEASE}.")


def check_release(spark: "SparkSession") -> None:
    """See that a Spark that others have started is of the release that the job is made for.

    Raises:
        CommandError: it is of another one, and would fail at some class that Delta does not find.
    """
    if not _fits(spark.version):
        raise CommandError(f"Spark {spark.version} runs there, and {RELEASE} is needed")
