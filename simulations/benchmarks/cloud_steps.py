"""What a step of the cloud costs, beside a naive one and for ever.

The program is the greenhouse: a window by room, a fleet-wide value, promises.

Run: `python -m simulations.benchmarks.cloud_steps [--steps N] [--devices N]`: a soak. It makes
steps in one session, and prints after 10, 30, 100, ... of them what they cost and what is held:
Python's and the JVM's memory, what lives on the JVM's heap, its compiled code and classes; each
also as a multiple of what it was after 100 steps, when the JVM has compiled what it will.

Beside a naive step, after much history and with many keys: `simulations.benchmarks.cloud steps`.
"""

import gc
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession

from cloud_tier.job.job import Job
from cloud_tier.job.maintenance import maintain, pack
from cloud_tier.job.step import MergedState, step
from cloud_tier.job.streaming import LOCAL_CONF, USUAL
from cloud_tier.lake.tables import LakeTables
from cloud_tier.spark.session import spark_session
from lasp_edge.language.plan import Plan
from simulations.benchmarks.cloud_naive import Naive
from simulations.benchmarks.cloud_rows import fleet_rows, greenhouse, keyed_rows, landed
from simulations.benchmarks.measure import Line
from simulations.benchmarks.measure_spark import Cpu, beside, measured
from simulations.commands import parser_of

WARM = 10
"""Steps at the begin that are not counted."""
SHOWN = 10
"""Steps whose median is printed."""
NAIVE_STEPS = 16
HISTORY = 100
"""Times as many rows as there were that a lake gets as its past."""
HISTORY_ROWS = 40_000
"""Rows of a batch by which a lake gets a history: as many as a step takes into the driver."""
SOAK_SHOWN = (10, 30, 100, 300, 600, 1_000, 1_500, 2_000, 3_000, 5_000, 10_000)
"""Steps of a soak after which it is shown what is held."""
SETTLED = 100
"""Steps after which the JVM has compiled what it will: what is held later is compared with that."""


class Machine:
    """What Python and Spark's JVM hold.

    Args:
        spark: the session.
    """

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm  # noqa: SLF001 - pyspark has no public word for it
        self._jvm = jvm
        pid = jvm.java.lang.ProcessHandle.current().pid()
        self._status = {"python": Path("/proc/self/status"), "jvm": Path(f"/proc/{pid}/status")}

    def compiled(self) -> int:
        """Return how many classes Spark has generated and compiled so far."""
        metrics = self._jvm.org.apache.spark.metrics.source.CodegenMetrics
        return int(metrics.METRIC_COMPILATION_TIME().getCount())

    def mib(self) -> dict[str, float]:
        """Return MiB by what holds them, after both have collected their garbage."""
        gc.collect()
        self._jvm.System.gc()
        held = {}
        for name, status in self._status.items():
            (line,) = (each for each in status.read_text().splitlines() if "VmRSS" in each)
            held[name] = int(line.split()[1]) / 1024
        management = self._jvm.java.lang.management.ManagementFactory
        held["heap"] = management.getMemoryMXBean().getHeapMemoryUsage().getUsed() / 2**20
        held |= {"code cache": 0.0, "metaspace": 0.0}
        for pool in management.getMemoryPoolMXBeans():
            kind = "code cache" if "Code" in pool.getName() else "metaspace"
            if "Code" in pool.getName() or pool.getName() == "Metaspace":
                held[kind] += pool.getUsage().getUsed() / 2**20
        return held


class StepCost(NamedTuple):
    """What one step took."""

    wall_s: float
    cpu_s: float
    compiled: int


class Steps:
    """Steps over a fresh lake, each measured; maintenance comes as often as in the job.

    Args:
        spark: a session.
        made: the program.
        folder: where the lake is made.
    """

    def __init__(self, spark: SparkSession, made: Plan, folder: Path) -> None:
        self._spark, self._cpu, self._machine = spark, Cpu(spark), Machine(spark)
        lake = LakeTables(folder)
        lake.create(made.columns)
        self._job = Job(made, lake)
        self._known = MergedState.of(self._job)
        self.costs: list[StepCost] = []

    def __call__(self, rows: pa.Table) -> None:
        """Merge a batch."""
        number = len(self.costs)
        batch = self._spark.createDataFrame(rows)
        compiled = self._machine.compiled()
        with measured(self._cpu) as figures:
            self._known = step(batch, number, self._job, self._known).known
        self.costs.append(StepCost(figures[0], figures[1], self._machine.compiled() - compiled))
        if len(self.costs) % USUAL.maintain_every == 0:
            self.maintain()
        elif len(self.costs) % USUAL.pack_every == 0:
            self.pack()

    def merge(self, rows: pa.Table) -> None:
        """Merge a batch that is not measured."""
        batch = self._spark.createDataFrame(rows)
        self._known = step(batch, 0, self._job, self._known).known

    def maintain(self) -> None:
        """Compact the lake, as the job does seldom."""
        maintain(self._spark, self._job)

    def pack(self) -> None:
        """Put small files together, as the job does often."""
        pack(self._job)

    def median(self, part: slice) -> StepCost:
        """Return the medians over some steps, and all classes that they compiled."""
        walls, cpus, compiled = zip(*self.costs[part], strict=True)
        return StepCost(statistics.median(walls), statistics.median(cpus), sum(compiled))


def measure_naive(spark: SparkSession, made: Plan, folder: Path, devices: int) -> StepCost:
    """Return what a naive step costs."""
    naive, cpu, machine = Naive(spark, made, folder), Cpu(spark), Machine(spark)
    costs = []
    for number in range(NAIVE_STEPS):
        batch = spark.createDataFrame(landed(made, list(fleet_rows(made, number, devices))))
        compiled = machine.compiled()
        with measured(cpu) as figures:
            naive(batch, number)
        costs.append(StepCost(figures[0], figures[1], machine.compiled() - compiled))
    walls, cpus, compiled_each = zip(*costs[-SHOWN:], strict=True)
    return StepCost(statistics.median(walls), statistics.median(cpus), sum(compiled_each))


def measure_keys(spark: SparkSession, folder: Path, keys: int, changing: int) -> StepCost:
    """Return what a step costs in which some of a device's keys change."""
    made = greenhouse(keyed=True)
    steps = Steps(spark, made, folder)
    for number in range(WARM + SHOWN):
        steps(landed(made, list(keyed_rows(made, number, keys, changing))))
    return steps.median(slice(WARM, None))


def lines(spark: SparkSession, folder: Path, devices: int) -> Iterator[Line]:
    """Yield what steps cost beside naive ones, when the lake is young and when it is not."""
    made = greenhouse()
    rows = len(list(fleet_rows(made, 0, devices)))
    naive = measure_naive(spark, made, folder / "naive", devices)
    ours = Steps(spark, made, folder / "lake")
    young = measure_fleet(ours, made, range(WARM + SHOWN), devices)
    what, note = f"a step of {rows:,} rows", f"{young.compiled} classes compiled in {SHOWN} steps"
    yield from beside(what, young.cpu_s, "a naive step", naive.cpu_s, 1 / 3, note)
    old = measure_fleet(ours, made, age(ours, made, WARM + SHOWN, devices, HISTORY), devices)
    what = f"a step of {rows:,} rows, after {HISTORY}x more"
    yield from beside(what, old.cpu_s, "before", young.cpu_s, 1.1)
    few = measure_keys(spark, folder / "few", 30, 30)
    many = measure_keys(spark, folder / "many", 3_000, 30)
    yield from beside("a step, 30 of 3,000 keys", many.cpu_s, "30 keys", few.cpu_s, 1.5)


def measure_fleet(ours: Steps, made: Plan, numbers: range, devices: int) -> StepCost:
    """Return what the last of some steps cost."""
    for number in numbers:
        ours(landed(made, list(fleet_rows(made, number, devices))))
    return ours.median(slice(-SHOWN, None))


def age(ours: Steps, made: Plan, steps: int, devices: int, history: int) -> range:
    """Merge many times what `steps` steps have, in large batches; return the numbers that follow.

    So the fleet has the past of all these steps, and its lake was kept small on the way.
    """
    each = len(list(fleet_rows(made, 0, devices)))
    together = max(1, HISTORY_ROWS // each)
    end = steps * (1 + history)
    for first in range(steps, end, together):
        numbers = range(first, min(first + together, end))
        rows = [row for number in numbers for row in fleet_rows(made, number, devices)]
        ours.merge(landed(made, rows))
        ours.pack()
    ours.maintain()
    return range(end, end + WARM + SHOWN)


def soak(spark: SparkSession, folder: Path, steps: int, devices: int) -> None:
    """Print what steps cost and what is held, and what that is beside the first of them."""
    made, machine = greenhouse(), Machine(spark)
    ours, first = Steps(spark, made, folder), dict[str, float]()
    shown = {number for number in (*SOAK_SHOWN, steps) if number <= steps}
    for number in range(steps):
        ours(landed(made, list(fleet_rows(made, number, devices))))
        if number + 1 in shown:
            cost = ours.median(slice(-min(number + 1, SETTLED), None))
            held = {"s": cost.wall_s, "CPU-s": cost.cpu_s, **machine.mib()}
            first = held if number < SETTLED else first
            print(f"up to step {number + 1:,}: {cost.compiled} classes compiled")
            for name, figure in held.items():
                print(f"  {name:<22}{figure:10.2f}  {figure / first[name]:5.2f}x", flush=True)


def main() -> None:
    """Run the soak."""
    parser = parser_of("simulations.benchmarks.cloud_steps", __doc__)
    parser.add_argument("--steps", type=int, default=3_000)
    parser.add_argument("--devices", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spark = spark_session(app_name="steps", master="local[2]", conf=LOCAL_CONF)
        soak(spark, Path(folder), arguments.steps, arguments.devices)
        spark.stop()


if __name__ == "__main__":
    main()
