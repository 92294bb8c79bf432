"""What the batches have done up to now, as one line of the log and as metrics for Prometheus."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from cloud_tier.job.step import Outcome
from lasp_edge.metrics.exposition import COUNTER, GAUGE, Labels, Metric, process_metrics
from lasp_edge.release import RELEASE
from lasp_edge.tool.times import shown_time

_NOTHING: Mapping[str, int] = MappingProxyType({})


class Figures(NamedTuple):
    """Totals since the start of the process, and the newest state.

    Attributes:
        batches: steps whose commits all returned; one that is done again counts once.
        rows: landing rows merged, after the join inside each batch.
        panes: pane rows among them: those whose windows were touched.
        windows: window rows written.
        values: rows of dynamic folds written.
        too_late: pane rows that a window lacks, because they came after `--retain-days`.
        compiled: classes that Spark generated and compiled.
        rejects: frames in the lake that were not taken, by reason.
        frontier_us: results are final up to there; None for nothing yet.
        lag_us: how far that is behind the landers' clock; None where one of them is missing.
        expected: devices that are waited for or were excluded.
        excluded: those of them that are not waited for.
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

    def after(self, outcome: Outcome, rejects: Mapping[str, int], compiled: int) -> "Figures":
        """Return the figures after one more batch."""
        coverage, listening = outcome.coverage, outcome.known.liveness.listening
        lag_us = None
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
        info = {"program": program, "release": RELEASE}
        yield Metric("lasp_edge_cloud_info", GAUGE, "1; what runs.", [(info, 1)])
        for name, total, text in (
            ("batches", self.batches, "Batches merged since the start of the process."),
            ("rows", self.rows, "Landed rows merged, after the join inside each batch."),
            ("panes", self.panes, "Pane rows merged, whose windows were touched."),
            ("windows", self.windows, "Rows of windows written."),
            ("values", self.values, "Rows of fleet-wide values written."),
            ("too_late_panes", self.too_late, "Pane rows merged too late for their windows."),
            ("compiled_classes", self.compiled, "Classes that Spark generated and compiled."),
        ):
            yield Metric(f"lasp_edge_cloud_{name}_total", COUNTER, text, [({}, total)])
        for name, microseconds, text in (
            ("frontier", self.frontier_us, "Results are final up to here, since the epoch."),
            ("frontier_lag", self.lag_us, "How far that is behind the landers' clock."),
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
        yield from process_metrics()
