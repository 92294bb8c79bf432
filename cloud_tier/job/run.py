"""Running the job until it is stopped, or until nothing new comes.

Idle means: for a while no data has landed, no result has changed, and no batch is under way. Ticks
and promises land for ever while devices are alive, and count only by what they change.

Spark plans its next batch by the wall clock. Where that is set back, as when a time server is
reached, Spark waits until it shows the planned time again, for years if it was years ahead. So a
query ends at a step of the clock, and another one goes on.
"""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from cloud_tier.job import failures, streaming
from cloud_tier.job.job import Job
from cloud_tier.job.opened import Superseded
from cloud_tier.job.repair import repair_all
from cloud_tier.job.step import Outcome
from cloud_tier.job.watching import BatchWatch, steps_run_here
from cloud_tier.lake.coverage import host_us
from cloud_tier.lake.failed import forget_failure, note_failure, noted_failure
from cloud_tier.lake.held import note_held
from cloud_tier.lake.tables import LakeUnreadable
from lasp_edge.errors import CommandError
from lasp_edge.protocol.listening import ListeningClock
from lasp_edge.timers import NEVER_US
from lasp_edge.tool.stalls import waiting_for

log = logging.getLogger(__name__)

_MOST_FAILURES: Final = 5
"""Failures in a row, without a batch between them, after which the run gives up."""
_CHECK_EVERY_S: Final = 0.2
"""How often the query's state is checked, in seconds: a delay that nobody sees at the end."""
_PRINT_EVERY_S: Final = 2.0
"""The least time between two lines of progress, in seconds: as long as a batch at least takes."""
_BATCH_ENDS_WITHIN_S: Final = 30.0
"""How long a running batch is waited for at the end, in seconds: ten times what one takes."""

_OF_CONNECT: Final = "pyspark.errors.exceptions.connect"
"""The module of a server's errors, and of its absence; only the extra `connect` brings it."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Feeder(Protocol):
    """What fills `landing` while the job runs."""

    @property
    def runs(self) -> bool:
        """Whether it runs, so that it lands what it holds when it is stopped."""

    def watch(self, now_s: float) -> None:
        """Start it if it does not run."""

    def stop(self) -> None:
        """Have it land what it holds, and end."""


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

    def check(self, query: StreamingQuery) -> None:
        """Do nothing: the steps report all."""

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
        count = len(self._last.known.liveness.promises.entries)
        final = "nothing final yet"
        if coverage.frontier is not None:
            moment = _EPOCH + timedelta(microseconds=coverage.frontier)
            final = f"final up to {moment:%Y-%m-%d %H:%M:%S} UTC"
        without = f", without {', '.join(coverage.excluded)}" if coverage.excluded else ""
        devices = "device" if count == 1 else "devices"
        late = f" ({self._too_late:,} too late for their windows)" if self._too_late else ""
        line = f"{count} {devices} heard, {self._panes:,} panes merged{late}, {final}{without}"
        return "; ".join([", ".join([line, *waiting_for(self._last.holding)]), *self.held])

    @property
    def held(self) -> list[str]:
        """The scans with local events that do not go on as they should, a text each."""
        last = self._last
        return [] if last is None else [*map(_no_gateway, last.unanswered), *last.stalls]


def _no_gateway(scan: str) -> str:
    return (
        f"{scan} has no row, since no device has answered its events in order: does `lasp-edge "
        "gateway` run? It publishes them"
    )


class ServerProgress(Progress):
    """The same where steps run in a Spark Connect server: only the query's progress is known."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        super().__init__(now_s)
        self._batch = -1
        self._rows = 0

    def check(self, query: StreamingQuery) -> None:
        """Take over the last batch with rows."""
        last = query.lastProgress
        if last is None or not last["numInputRows"] or last["batchId"] == self._batch:
            return
        self._batch, self._rows = last["batchId"], last["numInputRows"]
        self.batches += 1
        self.active_s = self._now_s()

    def _line(self) -> str:
        return f"batch {self._batch}: {self._rows:,} rows merged" if self._rows else ""


class Run:
    """The job and its lander, until they are stopped or nothing new comes.

    Args:
        spark: a session.
        job: the program over a lake whose tables exist.
        feeder: fills `landing`; None where somebody else does.
        trigger_s: the least time between the beginnings of two batches; None to end when all is
            merged that had landed at the start.
        until_idle_s: end when nothing new landed for this long; None for never.
        say: prints a line.
        watch: is given what each step did, in the query's thread, and each failure.
    """

    def __init__(
        self,
        spark: SparkSession,
        job: Job,
        feeder: Feeder | None,
        *,
        trigger_s: float | None = 2.0,
        until_idle_s: float | None = None,
        say: Callable[[str], None] = print,
        watch: BatchWatch | None = None,
    ) -> None:
        self._spark = spark
        self._job = job
        self._feeder = feeder
        self._trigger_s = trigger_s
        self._until_idle_s = until_idle_s
        self._say = say
        elsewhere = not steps_run_here(spark)
        self._progress = ServerProgress(_now_s) if elsewhere else Progress(_now_s)
        self._watch = watch
        self._clock = ListeningClock(0, host_us, lambda: round(_now_s() * 1e6), NEVER_US)
        self._was_set = self._stopping = False
        self._failures = 0
        self._is_noted = noted_failure(job.lake) is not None
        self._batches_before = 0

    def run(self) -> None:
        """Return when it was stopped or has become idle, everything landed being merged.

        Raises:
            CommandError: the query fails again and again.
        """
        try:
            query = self._watched(self._start())
            if self._is_noted and self._progress.batches > self._batches_before:
                self._note_success()
            if self._feeder is not None:
                self._feeder.stop()
            _stop(query)
        except (Py4JError, ConnectionError, EOFError) as error:
            raise CommandError(f"Spark has gone away ({type(error).__name__})") from error
        except PySparkException as error:
            if type(error).__module__ != _OF_CONNECT:
                raise
            raise CommandError(f"the Spark Connect server says: {_first_line(error)}") from error
        self._report_progress()

    def stop(self) -> None:
        """Make `run` return; allowed in a signal handler."""
        self._stopping = True

    def _watched(self, query: StreamingQuery) -> StreamingQuery:
        """Watch over query and lander; return the query that runs when it is time to end."""
        printed_s = 0.0
        while not self._stopping:
            if self._feeder is not None:
                self._feeder.watch(_now_s())
            if not query.isActive:
                if self._trigger_s is None and query.exception() is None:
                    self._note_success()
                    return query
                query = self._start_again(query)
            query = self._not_waiting(query)
            self._progress.check(query)
            if self._is_noted and query.lastProgress is not None:
                self._note_success()
            if self._is_idle(query):
                return self._merge_all(query)
            if _now_s() - printed_s >= _PRINT_EVERY_S and self._report_progress():
                printed_s = _now_s()
            time.sleep(_CHECK_EVERY_S)
        return query

    def _start(self, failed: str = "") -> StreamingQuery:
        """Start the query; try again where it does not, as where a server has no room for it.

        A job that a newer one has superseded ends here: it may have nothing to commit any more.

        Args:
            failed: the text of the exception that ended the query before.
        """
        report = self._progress if self._watch is None else self._report
        while True:
            try:
                self._job.tables.check()
                if not self._follow_deletion():
                    self._report_mended(failures.mended(failed, self._job.lake))
                self._report_mended(failures.filled(self._job.lake))
                self._recompute()
                return streaming.start(self._spark, self._job, report, trigger_s=self._trigger_s)
            except (PySparkException, LakeUnreadable) as error:
                self._wait_after(str(error))

    def _report(self, outcome: Outcome) -> None:
        self._progress(outcome)
        if self._watch is not None:
            self._watch(outcome, self._spark)

    def _follow_deletion(self) -> bool:
        """Begin again where a deletion of ours took what was to be read; return whether one did."""
        line = failures.after_deletion(self._job.lake)
        if line:
            self._say(line)
        return bool(line)

    def _recompute(self) -> None:
        """Make all windows again, however old, where somebody may have deleted some."""
        if failures.recompute_may_begin(self._job.lake):
            repair_all(self._spark, self._job)
            self._job = replace(self._job)  # its tables are claimed again, as the repair's were
            self._say("all windows are made again, since rows were deleted")

    def _report_mended(self, lines: Iterable[str]) -> None:
        """Print what others had changed in the lake, a line for each."""
        for line in lines:
            self._say(line)
            if self._watch is not None:
                self._watch.mended()

    def _start_again(self, query: StreamingQuery) -> StreamingQuery:
        text = streaming.failure(query)
        if failures.is_superseded(text):
            raise Superseded(failures.reason(text))
        if self._progress.batches > self._batches_before:
            self._failures = 0
        self._batches_before = self._progress.batches
        self._wait_after(text)
        return self._start(text)

    def _not_waiting(self, query: StreamingQuery) -> StreamingQuery:
        """Return the query, or another one where it may wait for a time that the clock showed."""
        self._was_set = self._clock.look() or self._was_set
        if not self._was_set or query.status["isTriggerActive"]:
            return query
        self._was_set = False
        log.warning("the clock was set: the query is started again")
        _stop(query)
        return self._start()

    def _wait_after(self, text: str) -> None:
        self._failures += 1
        why = failures.reason(text)
        log.debug("%s", text)
        if self._watch is not None:
            self._watch.failed()
        advice = failures.advice(text, self._job.lake)
        note_failure(self._job.lake, f"{why}; {advice}", self._failures)
        self._is_noted = True
        if self._failures > _MOST_FAILURES:
            raise CommandError(
                f"the query failed {self._failures} times on one batch: {why}; {advice}"
            )
        log.warning("the query failed and is started again: %s", why)
        time.sleep(min(2.0 ** (self._failures - 1), 30.0))

    def _note_success(self) -> None:
        forget_failure(self._job.lake)
        self._is_noted = False

    def _is_idle(self, query: StreamingQuery) -> bool:
        if self._until_idle_s is None or query.status["isTriggerActive"]:
            return False
        if query.lastProgress is None:  # Spark has not read once yet; its first read takes long.
            self._progress.active_s = _now_s()
        if self._feeder is not None and not self._feeder.runs:
            return False
        return _now_s() - self._progress.active_s >= self._until_idle_s

    def _merge_all(self, query: StreamingQuery) -> StreamingQuery:
        """Have the lander land all that it received, and merge all that has landed."""
        if self._feeder is not None:
            self._feeder.stop()
        while True:
            try:
                query.processAllAvailable()
            except StreamingQueryException:
                query = self._start_again(query)
            else:
                return query

    def _report_progress(self) -> bool:
        line = self._progress.news()
        if line:
            self._say(line)
            note_held(self._job.lake, self._progress.held)
        return bool(line)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _stop(query: StreamingQuery) -> None:
    """Stop a query, at the end of its batch if that is near: half of one would be done again."""
    ends_s = _now_s() + _BATCH_ENDS_WITHIN_S
    while query.isActive and query.status["isTriggerActive"] and _now_s() < ends_s:
        time.sleep(_CHECK_EVERY_S)
    query.stop()


def _now_s() -> float:
    return time.monotonic()  # noqa: TID251 - the clock of the process
