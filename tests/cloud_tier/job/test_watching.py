"""A job's figures, for batches that a test makes up: its log, and what Prometheus reads."""

import json
import logging
import re
import urllib.request
from types import SimpleNamespace

import pytest

from crdts import Frontier, Membership, Version
from crdts.frontier import Promise
from lasp_edge.errors import Exit
from lasp_edge.protocol.frontier import Coverage, Listening, Liveness, Tick
from lasp_edge.tool.command_line import main
from tests.cloud_tier.lake.test_status import NOW_US, ROWS, land, merge, offset
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US
from tests.cloud_tier.written_lakes import PROGRAM, write, written
from tests.lasp_edge.metrics.support_exposition import read
from tests.support_readme import CHECKOUT

pytest.importorskip("pyspark", reason="needs the extra `cloud`")

from cloud_tier.job import watching
from cloud_tier.job.job import Job
from cloud_tier.job.step import MergedState, Outcome
from cloud_tier.lake.tables import LakeTables
from tests.brokers import PATIENCE_S


class Compiler:
    """Where Spark counts the classes that it has compiled."""

    def __init__(self):
        self.count = 40
        counter = SimpleNamespace(getCount=lambda: self.count)
        codegen = SimpleNamespace(METRIC_COMPILATION_TIME=lambda: counter)
        source = SimpleNamespace(source=SimpleNamespace(CodegenMetrics=codegen))
        spark = SimpleNamespace(metrics=source)
        self._jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(spark=spark)))


def outcome(frontier_us, **counts):
    job = Job(PROGRAM, LakeTables("unused"))
    now = Tick(1, Listening(BEGIN_US + 60 * SECOND_US, BEGIN_US))
    promises = Frontier({"a": Promise(Version(1, 1, 1), BEGIN_US, done=False, heard_us=BEGIN_US)})
    liveness = Liveness(promises, {"lander": now})
    coverage = Coverage(frontier_us, ("a", "b", "c"), ("c",))
    known = MergedState.of(job)._replace(frontier=frontier_us, liveness=liveness)
    return Outcome(known, coverage, **counts)


@pytest.fixture
def job(tmp_path):
    return Job(PROGRAM, written(tmp_path / "lake"))


def refuse(job, reason, frames):
    row = {"received_us": 1, "topic": "t", "reason": reason, "frames": frames, "frame": b""}
    write(job.lake.rejects, [row])


def test_each_batch_is_a_line_of_the_log(job, caplog):
    caplog.set_level(logging.INFO)
    watch, spark = watching.BatchWatch(job, None), Compiler()
    watch(outcome(None, rows=3), spark)
    refuse(job, "no frame", 2)
    spark.count += 7
    counts = {"rows": 1_200, "panes": 900, "windows": 40, "globals": 1, "too_late": 9}
    watch(outcome(BEGIN_US + 48 * SECOND_US, **counts), spark)
    assert [record.getMessage() for record in caplog.records] == [
        (
            "batch 1: 3 rows, 0 panes touched, 0 windows written, 0 values written, 0 rejects, "
            "40 classes compiled"
        ),
        (
            "batch 2: 1,200 rows, 900 panes touched, 40 windows written, 1 values written, "
            "9 panes too late, final up to 2023-11-14 22:13:48 UTC, 12.0 s behind, 2 rejects, "
            "7 classes compiled"
        ),
    ]


def test_prometheus_reads_totals_frontier_and_rejects(job, monkeypatch):
    watch = watching.BatchWatch(job, "0")
    refuse(job, "no frame", 2)
    refuse(job, "unknown stream", 1)
    for _ in range(2):
        counts = {"rows": 5, "panes": 4, "windows": 3, "seconds": 1.5}
        watch(outcome(BEGIN_US + 48 * SECOND_US, **counts), Compiler())
    watch.failed()
    watch.mended()
    # Six minutes without a batch: results are that much older.
    monkeypatch.setattr(watching, "host_us", lambda: BEGIN_US + (60 + 360) * SECOND_US)
    url = f"http://127.0.0.1:{watch.page.port}/metrics"
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        found = read(answer.read().decode())
    of_job = {
        (name.removeprefix("lasp_edge_cloud_"), labels): n for (name, labels), n in found.items()
    }
    for name, labels, number in (
        ("batches_total", (), 2),
        ("rows_total", (), 10),
        ("panes_total", (), 8),
        ("windows_total", (), 6),
        ("values_total", (), 0),
        ("too_late_panes_total", (), 0),
        ("compiled_classes_total", (), 40),
        ("frontier_seconds", (), BEGIN_US / 1e6 + 48),
        ("frontier_lag_seconds", (), 12 + 360),
        ("devices", (("state", "awaited"),), 2),
        ("devices", (("state", "excluded"),), 1),
        ("step_seconds_total", (), 3),
        ("last_step_seconds", (), 1.5),
        ("failures_total", (), 1),
        ("mended_total", (), 1),
        ("lander_time_seconds", (("lander", "lander"),), BEGIN_US / 1e6 + 60),
        ("table_files", (("table", "windows"),), 1),
        ("rejects_total", (("reason", "no frame"),), 2),
        ("rejects_total", (("reason", "unknown stream"),), 1),
    ):
        assert of_job[name, labels] == number, name
    assert of_job["last_batch_time_seconds", ()] > BEGIN_US / 1e6
    assert of_job["table_bytes", (("table", "windows"),)] > 1_000
    assert ("process_cpu_seconds_total", ()) in found
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{watch.page.port}/x", timeout=PATIENCE_S)
    watch.close()


def test_a_lander_whose_clock_is_ahead_is_seen_as_it_is(monkeypatch):
    """Results do not believe it, so only this figure shows that somebody has to set it."""
    monkeypatch.setattr(watching, "host_us", lambda: BEGIN_US)
    before = outcome(BEGIN_US)
    ticks = {
        "ahead": Tick(1, Listening(BEGIN_US + 3_600 * SECOND_US, BEGIN_US)),
        "right": Tick(9, Listening(BEGIN_US - SECOND_US, BEGIN_US - SECOND_US)),
        "retired": Tick(2, Listening(BEGIN_US - 86_400 * SECOND_US, BEGIN_US)),
    }
    members = Membership().retire("retired", Version(1, 1, 1))
    liveness = before.known.liveness._replace(ticks=ticks, membership=members, host_us=BEGIN_US)
    found = watching.Figures().after(
        before._replace(known=before.known._replace(liveness=liveness)), {}, 0
    )
    assert found.ahead_us == {"ahead": 3_600 * SECOND_US, "right": -SECOND_US}
    assert found.landers_us["ahead"] <= BEGIN_US + 300 * SECOND_US


def test_before_the_first_batch_there_are_figures_and_no_frontier(job):
    watch = watching.BatchWatch(job, "0")
    land(job.lake, "lander", 1, NOW_US)
    with urllib.request.urlopen(
        f"http://127.0.0.1:{watch.page.port}/metrics", timeout=PATIENCE_S
    ) as answer:
        samples = read(answer.read().decode())
    found = {name for name, _ in samples}
    # Else an alert would say that none has ever landed anything.
    last_us = samples["lasp_edge_cloud_lander_time_seconds", (("lander", "lander"),)]
    assert last_us == NOW_US / 1e6
    assert "lasp_edge_cloud_batches_total" in found
    assert "lasp_edge_cloud_frontier_seconds" not in found
    watch.close()


def test_a_job_that_starts_again_knows_its_landers_that_ended_before(job):
    """Nothing lands, so no batch would tell, and nobody would be called at night."""
    merge(job.lake, ROWS)
    figures = watching.BatchWatch(job, None).figures
    assert figures.landers_us == {"lander": NOW_US}
    assert (figures.batches, figures.last_us) == (0, None)
    assert (figures.expected, figures.excluded) == (5, 2)


def test_a_page_that_cannot_be_there_is_refused_in_one_line(tmp_path, capsys):
    words = ["cloud", "lasp_edge.examples.greenhouse:program", "--no-lander"]
    words += ["--lake", str(tmp_path), "--metrics", "x"]
    assert main(words) == Exit.USAGE
    printed = capsys.readouterr()
    assert printed.out == f"made a new lake in {tmp_path}\n"
    (line,) = printed.err.splitlines()
    assert "--metrics: a port such as 9100" in line


def test_alerts_and_the_page_of_grafana_ask_for_what_a_job_exports(job):
    watch = watching.BatchWatch(job, None)
    watch(outcome(BEGIN_US, rows=5), Compiler())
    refuse(job, "no frame", 1)
    watch(outcome(BEGIN_US, rows=5), Compiler())
    offset(job.lake, 0, 0)
    found = [*watch.figures.metrics("rooms"), *watching.TableSizes(job.lake).metrics()]
    exported = {
        metric.name: {label for labels, _ in metric.samples for label in labels} for metric in found
    }
    rules = (CHECKOUT / "docs" / "alerts.yml").read_text()
    asked = re.findall(r"^ +expr: (.+)$", rules, re.MULTILINE)
    page = json.loads((CHECKOUT / "docs" / "grafana-lake.json").read_text())
    asked += [target["expr"] for panel in page["panels"] for target in panel["targets"]]
    assert len(asked) > 12
    for each in asked:
        named = re.findall(r"lasp_edge_cloud_\w+", each)
        assert named
        assert set(named) <= set(exported), each
        for group in re.findall(r"by \((\w+)\)", each):
            assert group in exported[named[0]] | {"job"}, each  # Prometheus adds `job`
    for summary in re.findall(r"summary: (.+)$", rules, re.MULTILINE):
        shown = set(re.findall(r"\$labels\.(\w+)", summary))
        assert shown <= {"instance", "job", "lander", "reason"}
    for each in re.findall(r"^ +expr: (.+)$", rules, re.MULTILINE):
        # Over several lakes in one Prometheus, one that is well would hide one that is not.
        assert not re.search(r"\b(absent|count|max|min|sum)\(|on ?\(\)", each), each
    assert rules.count("- alert:") == rules.count("summary:") == rules.count("description:")
