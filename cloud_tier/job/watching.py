"""What watches a job: a line of the log for each batch, and the page for Prometheus.

The page has a loop of its own, since the job's waits for Spark. It reads one immutable `Figures`,
which each batch replaces.
"""

import logging
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cloud_tier.job.figures import Figures
from cloud_tier.job.job import Job
from cloud_tier.job.step import Outcome
from cloud_tier.lake.query import selected
from lasp_edge.metrics.exposition import metrics_reply
from lasp_edge.metrics.page import Page, Reply, no_such_page, page_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

PATHS = ("/metrics",)


class BatchWatch:
    """Watches the batches of one job.

    Args:
        job: whose batches they are.
        address: `[HOST:]PORT` of the page; None for no page.

    Attributes:
        figures: after the last batch.

    Raises:
        ValueError: the page cannot be there.
    """

    def __init__(self, job: Job, address: str | None) -> None:
        self.figures = Figures()
        self._job = job
        self._rejects_version = -1
        self._rejects: Mapping[str, int] = {}
        self._woken = threading.Event()
        self._ends = False
        self.page: Page | None = None
        if address is not None:
            self.page = page_at(address, self._woken.set)
            threading.Thread(target=self._answer, args=(self.page,), daemon=True).start()

    def __call__(self, outcome: Outcome, spark: "SparkSession") -> None:
        """Count a batch, and log it."""
        before = self.figures
        self.figures = before.after(outcome, self._refused(), compiled_classes(spark))
        log.info("%s", self.figures.line(before))

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

    def _answer(self, page: Page) -> None:
        while not self._ends:
            self._woken.wait()
            self._woken.clear()
            page.turn(self._reply)

    def _reply(self, path: str) -> Reply:
        if path not in PATHS:
            return no_such_page(path, PATHS)
        return metrics_reply(self.figures.metrics(self._job.plan.name))


def steps_run_here(spark: "SparkSession") -> bool:
    """Return whether steps run in this process: under Spark Connect they run in the server's."""
    return getattr(spark, "_jvm", None) is not None


def compiled_classes(spark: "SparkSession") -> int:
    """Return how many classes Spark has generated and compiled in this process."""
    jvm: Any = spark._jvm  # noqa: SLF001 - pyspark has no public word for it
    metrics = jvm.org.apache.spark.metrics.source.CodegenMetrics
    return int(metrics.METRIC_COMPILATION_TIME().getCount())
