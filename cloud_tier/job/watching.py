"""What watches a job: a line of the log for each batch, and the page for Prometheus.

The page has a loop of its own, since the job's waits for Spark. It reads one immutable `Figures`,
which each batch replaces.
"""

import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from deltalake.exceptions import DeltaError

from cloud_tier.job.job import Job
from cloud_tier.job.step import Outcome
from cloud_tier.lake.coverage import DeviceState, FleetCoverage, fleet_coverage, host_us
from cloud_tier.lake.query import selected
from cloud_tier.lake.status import merged_of, newest_landed_us
from cloud_tier.lake.tables import LakeTables
from lasp_edge.errors import CommandError
from lasp_edge.metrics.exposition import (
    COUNTER,
    GAUGE,
    Labels,
    Metric,
    metrics_reply,
    process_metrics,
)
from lasp_edge.metrics.page import Page, Reply, no_such_page, page_at
from lasp_edge.release import RELEASE
from lasp_edge.tool.times import shown_time

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

PATHS = ("/metrics",)
_SIZES_EVERY_US: Final = 60_000_000
"""In microseconds: how often the tables are looked at, at most; it costs some 50 ms."""
_NOTHING: Mapping[str, int] = MappingProxyType({})


class Figures(NamedTuple):
    """Totals since the start of the process, and the newest state.

    Attributes:
        batches: steps whose commits all returned; one that is done again counts once.
        rows: landing rows merged, after the join inside each batch.
        panes: pane rows among them: those whose windows were touched.
        windows: window rows written.
        values: rows of dynamic folds written.
        too_late: pane rows that a window lacks, because they landed after `--retain-days`.
        compiled: classes that Spark generated and compiled.
        rejects: frames in the lake that were not taken, by reason.
        frontier_us: results are final up to there; None for nothing yet.
        lag_us: how far that was behind the landers' clock at the last batch, for the log; None
            where one of them is missing. The page has how far it is behind now.
        expected: devices that are waited for or were excluded.
        excluded: those of them that are not waited for.
        seconds: that all steps took.
        last_seconds: that the last one took.
        last_us: when the last one was complete, by the clock of this machine; None before one.
        failures: how often the query failed and was started again.
        landers_us: the newest clock of each lander, as far as it is believed.
        ahead_us: how far that clock itself was ahead of this machine's, then.
        mended: how often a table was found to be changed by others, and was mended.
    """

    batches: int = 0
    rows: int = 0
    panes: int = 0
    windows: int = 0
    values: int = 0
    too_late: int = 0
    compiled: int = 0
    rejects: Mapping[str, int] = _NOTHING
    frontier_us: int | None = None
    lag_us: int | None = None
    expected: int = 0
    excluded: int = 0
    seconds: float = 0.0
    last_seconds: float = 0.0
    last_us: int | None = None
    failures: int = 0
    landers_us: Mapping[str, int] = _NOTHING
    ahead_us: Mapping[str, int] = _NOTHING
    mended: int = 0

    @classmethod
    def of(cls, found: FleetCoverage) -> "Figures":
        """Return the figures of a lake at the start of a process: its landers may have ended."""
        counting = [each.state for each in found.devices if each.state is not DeviceState.RETIRED]
        final_us, now_us = found.recorded_us, found.now_us
        return cls(
            frontier_us=final_us,
            lag_us=None if final_us is None or now_us is None else now_us - final_us,
            expected=len(counting),
            excluded=counting.count(DeviceState.EXCLUDED),
            landers_us={name: each.now_us for name, each in found.landers.items()},
        )

    def after(self, outcome: Outcome, rejects: Mapping[str, int], compiled: int) -> "Figures":
        """Return the figures after one more batch."""
        coverage, liveness, now_us = outcome.coverage, outcome.known.liveness, host_us()
        listening, lag_us = liveness.listening, None
        if coverage.frontier is not None and listening is not None:
            lag_us = listening.now_us - coverage.frontier
        return Figures(
            self.batches + 1,
            self.rows + outcome.rows,
            self.panes + outcome.panes,
            self.windows + outcome.windows,
            self.values + outcome.globals,
            self.too_late + outcome.too_late,
            compiled,
            rejects,
            coverage.frontier,
            lag_us,
            len(coverage.expected),
            len(coverage.excluded),
            self.seconds + outcome.seconds,
            outcome.seconds,
            now_us,
            self.failures,
            {name: each.now_us for name, each in liveness.clocks.items()},
            {
                name: tick.clock.now_us - now_us
                for name, tick in liveness.ticks.items()
                if name not in liveness.membership.retired
            },
            self.mended,
        )

    def line(self, before: "Figures") -> str:
        """Return what one batch did, for the log.

        Args:
            before: the figures before it.
        """
        parts = [
            f"batch {self.batches}: {self.rows - before.rows:,} rows",
            f"{self.panes - before.panes:,} panes touched",
            f"{self.windows - before.windows:,} windows written",
            f"{self.values - before.values:,} values written",
        ]
        if self.too_late > before.too_late:
            parts.append(f"{self.too_late - before.too_late:,} panes too late")
        if self.frontier_us is not None:
            parts.append(f"final up to {shown_time(self.frontier_us)} UTC")
        if self.lag_us is not None:
            parts.append(f"{self.lag_us / 1e6:,.1f} s behind")
        parts.append(f"{sum(self.rejects.values()) - sum(before.rejects.values()):,} rejects")
        parts.append(f"{self.compiled - before.compiled:,} classes compiled")
        return ", ".join(parts)

    def metrics(self, program: str) -> Iterator[Metric]:
        """Yield all metrics of the job.

        Args:
            program: the program's name.
        """
        info, final_us = {"program": program, "release": RELEASE}, self.frontier_us
        # Of now, not of the last batch: it grows while a step hangs, or landers land nothing.
        lag_us = None if final_us is None else host_us() - final_us
        yield Metric("lasp_edge_cloud_info", GAUGE, "1; what runs.", [(info, 1)])
        for name, total, text in (
            ("batches", self.batches, "Batches merged since the start of the process."),
            ("rows", self.rows, "Landed rows merged, after the join inside each batch."),
            ("panes", self.panes, "Pane rows merged, whose windows were touched."),
            ("windows", self.windows, "Rows of windows written."),
            ("values", self.values, "Rows of fleet-wide values written."),
            ("too_late_panes", self.too_late, "Pane rows merged too late for their windows."),
            ("compiled_classes", self.compiled, "Classes that Spark generated and compiled."),
            ("step_seconds", self.seconds, "Seconds that all steps took."),
            ("failures", self.failures, "Times that the query failed and was started again."),
            ("mended", self.mended, "Times that a table was changed by others, and mended."),
        ):
            yield Metric(f"lasp_edge_cloud_{name}_total", COUNTER, text, [({}, total)])
        for name, microseconds, text in (
            ("frontier", final_us, "Results are final up to here, since the epoch."),
            ("frontier_lag", lag_us, "How far that is behind now, by the job's machine's clock."),
            ("last_step", self.last_seconds * 1e6, "How long the last step took."),
            ("last_batch_time", self.last_us, "When the last batch was merged, since the epoch."),
        ):
            if microseconds is not None:
                sample: tuple[Labels, float] = ({}, microseconds / 1e6)
                yield Metric(f"lasp_edge_cloud_{name}_seconds", GAUGE, text, [sample])
        yield Metric(
            "lasp_edge_cloud_devices",
            GAUGE,
            "Devices that are expected, by whether they are waited for.",
            [
                ({"state": "awaited"}, self.expected - self.excluded),
                ({"state": "excluded"}, self.excluded),
            ],
        )
        yield Metric(
            "lasp_edge_cloud_rejects_total",
            COUNTER,
            "Frames in the lake that were not taken, by reason.",
            [({"reason": reason}, total) for reason, total in sorted(self.rejects.items())],
        )
        for name, clocks_us, text in (
            ("time", self.landers_us, "The clock of each lander when it last landed something."),
            ("ahead", self.ahead_us, "How far that was ahead of the clock of the job's machine."),
        ):
            samples = [({"lander": each}, us / 1e6) for each, us in sorted(clocks_us.items())]
            yield Metric(f"lasp_edge_cloud_lander_{name}_seconds", GAUGE, text, samples)
        yield from process_metrics()


class TableSizes:
    """The sizes of a lake's tables, and how much of `landing` is not merged; read now and then.

    Args:
        tables: of the lake.
    """

    def __init__(self, tables: LakeTables) -> None:
        self._tables = tables
        self._read_us = 0
        self._sizes: dict[str, tuple[int, int]] = {}

    def metrics(self) -> Iterator[Metric]:
        """Yield the figures; each table is looked at once a minute at most."""
        landing = self._tables.table(self._tables.landing)
        progress = merged_of(self._tables, landing.version())
        if progress is not None:
            help_ = "Commits of landing that no finished batch has read."
            yield Metric(
                "lasp_edge_cloud_unmerged_commits", GAUGE, help_, [({}, progress["commits_behind"])]
            )
        if host_us() - self._read_us > _SIZES_EVERY_US:
            self._read_us = host_us()
            for path in self._tables.grown:
                added = pa.table(self._tables.table(path).get_add_actions())
                sizes = added.column("size_bytes").to_pylist()
                self._sizes[path.rpartition("/")[2]] = (len(sizes), sum(sizes))
        for at, (name, text) in enumerate((("files", "Data files"), ("bytes", "Bytes"))):
            samples = [({"table": table}, each[at]) for table, each in self._sizes.items()]
            yield Metric(f"lasp_edge_cloud_table_{name}", GAUGE, f"{text} of each table.", samples)


class BatchWatch:
    """Watches the batches of one job.

    Args:
        job: whose batches they are.
        address: `[HOST:]PORT` of the page; None for no page.

    Attributes:
        figures: after the last batch; before one as the lake has them.

    Raises:
        ValueError: the page cannot be there.
    """

    def __init__(self, job: Job, address: str | None) -> None:
        self.figures = Figures()
        with contextlib.suppress(CommandError, DeltaError, OSError):  # the store may not answer
            self.figures = Figures.of(fleet_coverage(job.lake, job.roster, job.dead_after_us))
        self._job = job
        self._rejects_version = -1
        self._rejects: Mapping[str, int] = {}
        self._woken = threading.Event()
        self._ends = False
        self._sizes = TableSizes(job.lake)
        self.page: Page | None = None
        if address is not None:
            self.page = page_at(address, self._woken.set)
            threading.Thread(target=self._answer, args=(self.page,), daemon=True).start()

    def __call__(self, outcome: Outcome, spark: "SparkSession") -> None:
        """Count a batch, and log it."""
        before = self.figures
        self.figures = before.after(outcome, self._refused(), compiled_classes(spark))
        log.info("%s", self.figures.line(before))

    def failed(self) -> None:
        """Count a failure of the query."""
        self.figures = self.figures._replace(failures=self.figures.failures + 1)

    def mended(self) -> None:
        """Count a table that others had changed."""
        self.figures = self.figures._replace(mended=self.figures.mended + 1)

    def close(self) -> None:
        """End with the job."""
        self._ends = True
        self._woken.set()
        if self.page is not None:
            self.page.close()

    def _refused(self) -> Mapping[str, int]:
        """Return the frames that were refused, by reason; read again where there are new ones."""
        table = self._job.lake.table(self._job.lake.rejects)
        if table.version() != self._rejects_version:
            query = "SELECT reason, sum(frames) AS frames FROM source GROUP BY reason"
            rows = selected(table, query).to_pylist()
            self._rejects = {row["reason"]: row["frames"] for row in rows}
            self._rejects_version = table.version()
        return self._rejects

    def _landed(self, figures: Figures) -> Figures:
        """Return figures with what landers have landed; a batch would tell, and none is merged."""
        landing = self._job.lake.table(self._job.lake.landing)
        known = dict(figures.landers_us)
        for name, us in newest_landed_us(landing, known).items():
            known[name] = max(us, known.get(name, us))
        return figures._replace(landers_us=known)

    def _answer(self, page: Page) -> None:
        while not self._ends:
            self._woken.wait()
            self._woken.clear()
            page.turn(self._reply)

    def _reply(self, path: str) -> Reply:
        if path not in PATHS:
            return no_such_page(path, PATHS)
        figures = self.figures
        with contextlib.suppress(CommandError, DeltaError, OSError):  # the store may not answer
            figures = figures if figures.batches else self._landed(figures)
        found = list(figures.metrics(self._job.plan.name))
        with contextlib.suppress(CommandError, DeltaError, OSError):  # the store may not answer
            found += self._sizes.metrics()
        return metrics_reply(found)


def steps_run_here(spark: "SparkSession") -> bool:
    """Return whether steps run in this process: under Spark Connect they run in the server's."""
    return getattr(spark, "_jvm", None) is not None


def compiled_classes(spark: "SparkSession") -> int:
    """Return how many classes Spark has generated and compiled in this process."""
    jvm: Any = spark._jvm  # noqa: SLF001 - pyspark has no public word for it
    metrics = jvm.org.apache.spark.metrics.source.CodegenMetrics
    return int(metrics.METRIC_COMPILATION_TIME().getCount())
