"""Years of readings, and a day at a high rate, through the job: how many files the lake keeps.

Run: `python -m simulations.benchmarks.cloud_years [--quick] [--devices N]`. It replays 20 years of
hourly readings, and a day of ten readings a second, as the frames in which devices send them, and
prints what landing, merging and maintenance cost, and how many files each table has after that. It
ends with 1 where a lake has more than `MOST_FILES`, or a result is not what the readings say.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from cloud_tier.job.job import Job
from cloud_tier.job.maintenance import maintain
from cloud_tier.job.streaming import LOCAL_CONF, Batches
from cloud_tier.lake.query import selected
from cloud_tier.lake.tables import LakeTables
from cloud_tier.spark.session import spark_session
from simulations.benchmarks.cloud_replay import FleetReplay, RecordedFleet
from simulations.benchmarks.measure_spark import Cpu, measured
from simulations.commands import parser_of

HOUR_US, PANE_US = 3_600_000_000, 10_000_000
YEARS = 20
MOST_FILES = 300
"""Files that the data of one lake is in, at most, after maintenance."""


def recordings(
    devices: int, years: int = YEARS, *, quick: bool = False
) -> tuple[RecordedFleet, ...]:
    """Return what is replayed; quick: in fewer parts."""
    hours, panes = years * 8_766, 24 * HOUR_US // PANE_US
    hourly, day = f"{years} years, hourly", "a day at 10 Hz"
    return (
        RecordedFleet(hourly, HOUR_US, hours, 1, devices, parts=2 if quick else years),
        RecordedFleet(day, PANE_US, panes, 100, devices, parts=2 if quick else 24),
    )


class Replayed:
    """A recording in a lake of its own, and what that cost.

    Args:
        spark: a session.
        recording: what is replayed.
        folder: where the lake is made.

    Attributes:
        costs: wall seconds and CPU seconds by what was done.
    """

    def __init__(self, spark: SparkSession, recording: RecordedFleet, folder: Path) -> None:
        self.recording, self.costs = recording, dict[str, tuple[float, float]]()
        self._lake = LakeTables(folder)
        plan = recording.plan()
        self._lake.create(plan.columns)
        self._job = Job(plan, self._lake, dead_after_us=HOUR_US, retain_us=0)
        self._replay(spark, Cpu(spark))

    def _replay(self, spark: SparkSession, cpu: Cpu) -> None:
        replay = FleetReplay(self.recording, self._lake)
        batches = Batches(self._job, lambda _: None)
        for number, panes in enumerate(self.recording.spans()):
            with self._spent("landed", cpu):
                received_us = pc.max(replay.land(panes)["received_us"]).as_py()
            landed = spark.read.format("delta").load(self._lake.landing)
            with self._spent("merged", cpu):
                batches(landed.where(f"received_us = {received_us}"), number)
        with self._spent("maintained", cpu):
            maintain(spark, self._job)

    @contextmanager
    def _spent(self, what: str, cpu: Cpu) -> Iterator[None]:
        with measured(cpu) as figures:
            yield
        wall_s, cpu_s = self.costs.get(what, (0.0, 0.0))
        self.costs[what] = (wall_s + figures[0], cpu_s + figures[1])

    @property
    def files(self) -> dict[str, int]:
        """How many files each table has."""
        tables = {path.rpartition("/")[2]: path for path in self._lake.grown}
        return {name: len(self._lake.table(path).file_uris()) for name, path in tables.items()}

    def wrong(self) -> Iterator[str]:
        """Yield what is not as it should be."""
        recorded = self.recording
        devices = range(recorded.devices)
        totals = sum(recorded.total_q(at, pane) for at in devices for pane in range(recorded.panes))
        expected = (recorded.panes, recorded.rows * recorded.readings, totals, recorded.panes)
        query = (
            "SELECT count(DISTINCT start_us) AS windows, sum(count) AS count, "
            "sum(total_q) AS total_q, sum(CAST(status = 'final' AS INT)) AS final FROM source"
        )
        (row,) = selected(self._lake.table(self._lake.windows), query).to_pylist()
        found = tuple(int(number or 0) for number in row.values())
        if found != expected:
            yield f"windows, readings, total, final: {found}, not {expected}"
        files = sum(self.files.values())
        if files > MOST_FILES:
            yield f"{files} files"


def replay(spark: SparkSession, recording: RecordedFleet, folder: Path) -> bool:
    """FleetReplay a recording, print what it cost, and return whether all is as it should be."""
    replayed = Replayed(spark, recording, folder)
    print(f"{recording.name}, {recording.devices} devices: {recording.rows:,} panes")
    for what, (wall_s, cpu_s) in replayed.costs.items():
        rate = f"{recording.rows / cpu_s:,.0f} panes per CPU-second"
        print(f"  {what:<11}{wall_s:8.1f} s {cpu_s:8.1f} CPU-s  {rate}")
    files = replayed.files
    listed = ", ".join(f"{name} {count}" for name, count in files.items() if count)
    print(f"  {sum(files.values())} files: {listed}", flush=True)
    wrong = list(replayed.wrong())
    for what in wrong:
        print(f"  NOT as it should be: {what}")
    return not wrong


def main() -> int:
    """Run the benchmark."""
    parser = parser_of("simulations.benchmarks.cloud_years", __doc__)
    parser.add_argument("--devices", type=int, help="default: 100, quick 1")
    parser.add_argument("--quick", action="store_true", help="fewer devices, in fewer parts")
    arguments = parser.parse_args()
    devices = arguments.devices or (1 if arguments.quick else 100)
    with tempfile.TemporaryDirectory() as folder:
        spark = spark_session(app_name="years", conf=LOCAL_CONF)
        each = recordings(devices, quick=arguments.quick)
        fine = [replay(spark, one, Path(folder) / str(at)) for at, one in enumerate(each)]
        spark.stop()
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
