"""Ctrl-C in the middle of the first merge, as a person types it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import write_deltalake

from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.tables import LakeTables
from lasp_edge.errors import Exit
from lasp_edge.examples.greenhouse import program
from tests.brokers import PATIENCE_S, until_true
from tests.cloud_tier.support_devices import BEGIN_US, table, tick

PLAN = program.plan()


@pytest.mark.slow
@pytest.mark.spark
def test_ctrl_c_ends_the_first_merge_in_one_line(tmp_path):
    pytest.importorskip("pyspark", reason="needs the extra `cloud`")
    tables = LakeTables(tmp_path / "lake")
    prepare(PLAN, tables)
    write_deltalake(tables.landing, table(PLAN, [tick(1, BEGIN_US)]), mode="append")
    words = ["cloud", "lasp_edge.examples.greenhouse:program", "--no-lander", "--lake", tables.root]
    words += ["--master", "local[1]", "--until-idle", "600", "--log-format", "json"]
    errors = (tmp_path / "err").open("w+")
    job = subprocess.Popen(
        [sys.executable, "-m", "lasp_edge", *words],
        stdout=subprocess.DEVNULL,
        stderr=errors,
        env=os.environ | {"LASP_EDGE_SPARK_LOG": "info"},
    )
    try:
        until_true(lambda: Path(tables.checkpoint, "offsets", "0").exists(), 300)
        assert not Path(tables.checkpoint, "commits", "0").exists()
        job.send_signal(signal.SIGINT)
        assert job.wait(PATIENCE_S) == Exit.INTERRUPTED
    finally:
        job.kill()
    errors.seek(0)
    lines = [json.loads(line) for line in errors]
    assert {line["program"] for line in lines} == {"cloud", "spark"}
    (error,) = (line for line in lines if line["level"] not in {"info", "warn", "warning"})
    assert error["event"] == "interrupted; what is not merged yet is merged at the next start"
    assert error == lines[-1]
