import errno
import os
import re
import select
import signal
import subprocess
import sys
import zipfile

import pytest

from cloud_tier.spark.driver import Driver, mark_used, module_options, started
from cloud_tier.spark.jars import spark_home
from cloud_tier.spark.java import Java
from lasp_edge.errors import EnvironmentLacks


@pytest.fixture
def driver(tmp_path, monkeypatch):
    monkeypatch.setenv("LASP_EDGE_CACHE", str(tmp_path / "cache"))
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"1")
    return Driver(Java(tmp_path / "java", 17), (jar,))


def test_an_archive_that_was_used_is_young_again_where_that_can_be_noted(tmp_path, monkeypatch):
    archive = tmp_path / "a.jsa"
    archive.touch(0o444)
    os.utime(archive, (1, 1))
    mark_used(archive)
    assert archive.stat().st_mtime > 1

    def refuse(*_words, **_more):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "utime", refuse)  # as in a container
    mark_used(archive)


def test_the_module_options_are_those_of_sparks_launcher():
    pytest.importorskip("pyspark", reason="needs the extra `cloud`")
    (launcher,) = (spark_home() / "jars").glob("spark-launcher_*.jar")
    with zipfile.ZipFile(launcher) as archive:
        code = archive.read("org/apache/spark/launcher/JavaModuleOptions.class")
    asked = set(re.findall(rb"--add-opens=[\w./]+=ALL-UNNAMED|-Dio\.[\w.]+=\w+", code))
    ours = {option.encode() for option in module_options()}
    assert asked == {option for option in ours if option.startswith((b"--add-opens", b"-Dio"))}


def test_the_archive_is_used_where_it_is_and_another_jar_means_another_archive(driver):
    assert not any("SharedArchiveFile" in option for option in driver.command())
    driver.archive.parent.mkdir(parents=True)
    driver.archive.touch()
    assert f"-XX:SharedArchiveFile={driver.archive}" in driver.command()
    before = driver.archive
    driver.class_path[0].write_bytes(b"22")
    assert driver.archive != before


def test_a_jvm_that_ends_at_once_is_told_and_leaves_the_environment_alone(driver):
    pytest.importorskip("pyspark", reason="needs the extra `cloud`")
    executable = driver.java.executable
    executable.parent.mkdir(parents=True)
    executable.write_text("#!/bin/sh\nexit 3\n")
    executable.chmod(0o755)
    with pytest.raises(EnvironmentLacks, match="ended with code 3"), started(driver):
        pass
    assert "PYSPARK_GATEWAY_PORT" not in os.environ


@pytest.mark.spark
def test_a_short_run_compiles_quickly_and_has_the_code_cache_of_a_long_one(spark):
    beans = spark.sparkContext._jvm.java.lang.management.ManagementFactory
    quickly = {"-XX:TieredStopAtLevel=1", "-XX:CompileThresholdScaling=0.1", "-XX:+UseSerialGC"}
    assert quickly <= set(beans.getRuntimeMXBean().getInputArguments())
    pools = [pool for pool in beans.getMemoryPoolMXBeans() if pool.getName().startswith("Code")]
    assert sum(pool.getUsage().getMax() for pool in pools) == 240 * 2**20


# Ctrl-C goes to the whole foreground process group; the JVM must not be in it.
HOLDS_A_SESSION = """
import signal, sys
from cloud_tier.spark.session import spark_session
spark = spark_session(app_name="holds", master="local[1]", short_run=True)
try:
    print("ready", flush=True)
    signal.pause()
except KeyboardInterrupt:
    print(spark.range(7).count(), flush=True)
    signal.pause()
"""


@pytest.mark.spark
@pytest.mark.slow
def test_the_jvm_outlives_ctrl_c_still_answers_and_dies_with_a_killed_parent():
    pytest.importorskip("pyspark", reason="needs the extra `cloud`")
    reads, writes = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS_A_SESSION],
        stdout=subprocess.PIPE,
        stderr=writes,
        text=True,
        process_group=0,
    )
    os.close(writes)
    # Standard error is the JVM's as well: its reader sees the end only when both are gone.
    with process, os.fdopen(reads) as everything_ended:
        try:
            assert process.stdout.readline() == "ready\n"
            os.killpg(process.pid, signal.SIGINT)
            assert process.stdout.readline() == "7\n"
            assert not select.select([everything_ended], [], [], 0)[0]
        finally:
            process.kill()
        assert select.select([everything_ended], [], [], 60)[0]
        assert everything_ended.read() == ""
