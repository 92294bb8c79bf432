"""What the batches have done up to now, as one line for people."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from pyspark.sql.streaming.query import StreamingQuery

from cloud_tier.job.step import Outcome

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Progress:
    """What the steps have done up to now, as one line for people.

    Args:
        now_s: a monotonic clock.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self.active_s = now_s()
        self.batches = 0
        self._panes = self._too_late = 0
        self._last_line = ""
        self._last: Outcome | None = None

    def __call__(self, outcome: Outcome) -> None:
        """Count a step."""
        self.batches += 1
        self._panes += outcome.panes
        self._too_late += outcome.too_late
        self._last = outcome
        written = outcome.windows or outcome.globals or outcome.results
        if outcome.panes or outcome.variables or written:
            self.active_s = self._now_s()

    def look(self, query: StreamingQuery) -> None:
        """Do nothing: the steps tell all."""

    def news(self) -> str | None:
        """Return the line if it has changed since it was last returned."""
        line = self._line()
        if line == self._last_line:
            return None
        self._last_line = line
        return line

    def _line(self) -> str:
        if self._last is None:
            return ""
        coverage = self._last.coverage
        heard = len(self._last.known.liveness.promises.entries)
        final = "nothing final yet"
        if coverage.frontier is not None:
            moment = _EPOCH + timedelta(microseconds=coverage.frontier)
            final = f"final up to {moment:%Y-%m-%d %H:%M:%S} UTC"
        without = f", without {', '.join(coverage.excluded)}" if coverage.excluded else ""
        devices = "device" if heard == 1 else "devices"
        late = f" ({self._too_late:,} too late for their windows)" if self._too_late else ""
        return f"{heard} {devices} heard, {self._panes:,} panes merged{late}, {final}{without}"


class ServerProgress(Progress):
    """The same where steps run in a Spark Connect server: only what its query tells is known."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        super().__init__(now_s)
        self._batch = -1
        self._rows = 0

    def look(self, query: StreamingQuery) -> None:
        """See which batch with rows was the last one."""
        last = query.lastProgress
        if last is None or not last["numInputRows"] or last["batchId"] == self._batch:
            return
        self._batch, self._rows = last["batchId"], last["numInputRows"]
        self.batches += 1
        self.active_s = self._now_s()

    def _line(self) -> str:
        return f"batch {self._batch}: {self._rows:,} rows merged" if self._rows else ""
