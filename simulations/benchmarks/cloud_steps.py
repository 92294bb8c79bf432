"""What a step of the cloud costs beside a naive one, and whether it costs the same for ever.

Run: `python -m simulations.benchmarks.cloud_steps [--soak] [--steps N] [--devices N]`. The program
is the greenhouse: a window by room, a fleet-wide value, promises. It prints, in one warm session,

- CPU-seconds of a naive step: three appends with app transactions, everything read back by Spark;
- CPU-seconds of a step over the same rows, how many times less that is, and how many classes each
  of its steps compiles, at the beginning and after `--steps` steps;
- what a step costs of whose 3,000 keys 30 change, beside one of 30 keys.

With `--soak` it only makes steps, and prints ten times on the way what they cost and what Python
and the JVM hold: memory, its code cache and its classes.

CPU counts this process and Spark's JVM, and is read from Linux's /proc.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from cloud_tier.job.job import Job
from cloud_tier.job.maintenance import maintain, pack
from cloud_tier.job.step import MergedState, step
from cloud_tier.job.streaming import CONF, LOCAL_CONF, USUAL
from cloud_tier.lake.tables import ABSENT, LakeTables, landed_schema
from cloud_tier.spark.session import spark_session
from crdts import BoundedLWWSet
from lasp_edge import Program, folds
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.frontier import NOTHING_HEARD
from lasp_edge.protocol.shards import key_shard
from simulations.benchmarks.cloud import BEGIN_US, SPAN_US, Cpu, measured

STEP_US = 2_000_000
WARM = 10
"""Steps at the begin that are not counted."""
SHOWN = 10
"""Steps whose median is printed."""
NAIVE_STEPS = 16
PANES = 8
"""Pane rows of a device in a step: it was offline for a while, or sends some windows' panes."""


def greenhouse(*, keyed: bool = False) -> Plan:
    """Return the program: a mean by room each ten seconds, and a fleet-wide one."""
    made = Program("benchmark")
    event = made.event("temperature", resolution="0.01")
    key = (lambda event: event.tags["room"]) if keyed else None
    samples = made.declare_dynamic(BoundedLWWSet(bound=100), "samples", key=key)
    made.collect(event, into=samples)
    made.fold_dynamic(made.fold(samples, folds.mean(), "here"), "everywhere")
    made.window("by_room", source=event, fold=folds.mean(), size_s=60, slide_s=10, key=lambda _: "")
    return made.plan()


def landed(made: Plan, rows: list[dict[str, Any]]) -> pa.Table:
    """Return rows of `landing`."""
    schema = landed_schema(made.columns)
    columns = {name: [row.get(name, ABSENT.get(name)) for row in rows] for name in schema.names}
    return pa.table(columns, schema=schema)


def fleet_rows(made: Plan, number: int, devices: int) -> Iterator[dict[str, Any]]:
    """Yield what a fleet sends in one step: panes, a variable and a promise of each device."""
    window, local = made.windows["by_room"], made.published_folds["here"]
    now_us = BEGIN_US + number * STEP_US
    for device in range(devices):
        own = {"device": f"pi-{device}", "incarnation": 1, "nonce": 7, "received_us": now_us}
        seq = number * (PANES + 2)
        for pane in range(PANES):
            seq += 1
            yield own | {
                "kind": "pane",
                "stream": window.stream,
                "key": f"room {device % 7}",
                "pane_us": (now_us // SPAN_US - pane % 4) * SPAN_US,
                "seq": seq,
                "count": 1 + number % 5,
                "total_q": 1_000 * number + device,
            }
        yield own | {
            "kind": "variable",
            "stream": local.stream,
            "key": "",
            "seq": seq + 1,
            "changed": seq + 1,
            "count": 100,
            "total_q": 100 * number + device,
        }
        yield own | {"kind": "promise", "seq": seq + 2, "low_us": now_us - STEP_US, "done": False}
    yield _tick(number)


def keyed_rows(made: Plan, number: int, keys: int, changing: int) -> Iterator[dict[str, Any]]:
    """Yield what one device sends of whose keys some change: each shard of them, whole."""
    local = made.published_folds["here"]
    version = {"incarnation": 1, "nonce": 7, "seq": number * changing + changing}
    now_us = BEGIN_US + number * STEP_US
    names = [f"room {key}" for key in range(keys)]
    first = number * changing % keys
    changed = {names[(first + at) % keys] for at in range(changing)} if number else set(names)
    shards = {key_shard(name) for name in changed}
    for at, name in enumerate(names):
        if key_shard(name) in shards:
            # The step in which this key last changed, when the keys change in turn.
            last = number - (first + changing - 1 - at) % keys // changing if number else 0
            yield version | {
                "kind": "variable",
                "device": "pi-0",
                "received_us": now_us,
                "stream": local.stream,
                "shard": key_shard(name),
                "key": name,
                "changed": 1 + max(0, last) * changing,
                "count": 10,
                "total_q": max(0, last) * 100 + at,
            }
    yield _tick(number)


def _tick(number: int) -> dict[str, Any]:
    now_us = BEGIN_US + number * STEP_US
    clock = {"now_us": now_us, "since_us": BEGIN_US - 3_600_000_000, "received_us": now_us}
    return {"kind": "tick", "lander": "benchmark", "seq": number + 1, **clock}


class Naive:
    """A step as one would write it first: each result by one query, appended once by its number.

    It serves one window and one value without keys, and no frontier at all.

    Args:
        spark: a session.
        made: the program.
        folder: where its tables are made.
    """

    def __init__(self, spark: SparkSession, made: Plan, folder: Path) -> None:
        self._spark = spark
        self._window = made.windows["by_room"]
        self._variable = made.published_folds["here"].stream
        self._paths = {name: str(folder / name) for name in ("lattice", "windows", "globals")}
        self._tables: set[str] = set()

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Merge a batch."""
        entry = "kind, stream, key, pane_us, device, incarnation, nonce"
        batch.createOrReplaceTempView("batch")
        self._append(
            f"SELECT {entry}, max(seq) AS seq, max_by(count, seq) AS count, "  # noqa: S608
            f"max_by(total_q, seq) AS total_q FROM batch GROUP BY {entry}",
            "lattice",
            number,
        )
        touched = self._spark.sql(
            "SELECT min(pane_us), max(pane_us) FROM batch WHERE kind = 'pane'"
        ).first()
        assert touched is not None
        self._show()
        self._append(self._windows(*touched), "windows", number)
        self._append(self._values(), "globals", number)

    def _windows(self, first_us: int, last_us: int) -> str:
        size_us, slide_us = self._window.size_us, self._window.slide_us
        begin_us = first_us - size_us + slide_us
        entries = (
            "SELECT key, pane_us, device, incarnation, nonce, max_by(count, seq) AS count, "  # noqa: S608
            f"max_by(total_q, seq) AS total_q FROM lattice WHERE kind = 'pane' "
            f"AND stream = {self._window.stream} AND pane_us "
            f"BETWEEN {begin_us} AND {last_us + size_us} "
            "GROUP BY key, pane_us, device, incarnation, nonce"
        )
        starts = f"sequence(pane_us - {size_us - slide_us}, pane_us, {slide_us})"
        computed = (
            "SELECT key, start_us, sum(count) AS count, sum(total_q) AS total_q, "  # noqa: S608
            f"count(DISTINCT device) AS devices_in FROM (SELECT *, explode({starts}) AS start_us "
            f"FROM ({entries})) WHERE start_us BETWEEN {begin_us} AND {last_us} "
            "GROUP BY key, start_us"
        )
        current = (
            "SELECT key, start_us, max(revision) AS revision, max_by(count, revision) AS count, "  # noqa: S608
            "max_by(total_q, revision) AS total_q FROM windows "
            f"WHERE start_us BETWEEN {begin_us} AND {last_us} GROUP BY key, start_us"
        )
        return self._differing(computed, current, "key, start_us", "windows")

    def _values(self) -> str:
        entries = (
            "SELECT device, max_by(count, seq) AS count, max_by(total_q, seq) AS total_q "  # noqa: S608
            f"FROM lattice WHERE kind = 'variable' AND stream = {self._variable} GROUP BY device"
        )
        computed = (
            "SELECT '' AS key, sum(count) AS count, sum(total_q) AS total_q, "  # noqa: S608
            f"count(1) AS devices_in FROM ({entries})"
        )
        current = (
            "SELECT key, max(revision) AS revision, max_by(count, revision) AS count, "
            "max_by(total_q, revision) AS total_q FROM globals GROUP BY key"
        )
        return self._differing(computed, current, "key", "globals")

    def _differing(self, computed: str, current: str, identity: str, name: str) -> str:
        if name not in self._tables:
            return f"SELECT *, 0 AS revision FROM ({computed})"  # noqa: S608
        return (
            "SELECT new.*, coalesce(old.revision + 1, 0) AS revision "  # noqa: S608
            f"FROM ({computed}) new LEFT JOIN ({current}) old USING ({identity}) "
            "WHERE NOT (new.count <=> old.count AND new.total_q <=> old.total_q)"
        )

    def _append(self, query: str, name: str, number: int) -> None:
        once = {"txnAppId": "naive", "txnVersion": str(number)}
        writer = self._spark.sql(query).write.format("delta").mode("append").options(**once)
        writer.save(self._paths[name])
        self._tables.add(name)

    def _show(self) -> None:
        for name in self._tables:
            read = self._spark.read.format("delta").load(self._paths[name])
            read.createOrReplaceTempView(name)


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
        """Return MiB by what holds them."""
        held = {}
        for name, status in self._status.items():
            (line,) = (each for each in status.read_text().splitlines() if "VmRSS" in each)
            held[name] = int(line.split()[1]) / 1024
        held |= {"code cache": 0.0, "metaspace": 0.0}
        for pool in self._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans():
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
        self._known = MergedState(None, NOTHING_HEARD)
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
            maintain(self._spark, self._job)
        elif len(self.costs) % USUAL.pack_every == 0:
            pack(self._job)

    def median(self, part: slice) -> StepCost:
        """Return the medians over some steps, and all classes that they compiled."""
        walls, cpus, compiled = zip(*self.costs[part], strict=True)
        return StepCost(statistics.median(walls), statistics.median(cpus), sum(compiled))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _show(what: str, cost: StepCost, beside: StepCost | None = None, word: str = "") -> None:
    ratio = "" if beside is None else f"   {cost.cpu_s / beside.cpu_s:.2f} of {word}"
    classes = f"{cost.compiled} classes compiled"
    _say(f"{what:<42}{cost.wall_s:6.2f} s  {cost.cpu_s:6.2f} CPU-s  {classes}{ratio}")


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


def measure_beside(spark: SparkSession, folder: Path, steps: int, devices: int) -> None:
    """Print what steps cost beside naive ones, when the lake is young and when it is not."""
    made = greenhouse()
    rows = len(list(fleet_rows(made, 0, devices)))
    naive = measure_naive(spark, made, folder / "naive", devices)
    _show(f"a naive step of {rows:,} rows, its last {SHOWN}", naive)
    ours = Steps(spark, made, folder / "lake")
    for number in range(steps):
        ours(landed(made, list(fleet_rows(made, number, devices))))
    first, last = ours.median(slice(WARM, WARM + SHOWN)), ours.median(slice(-SHOWN, None))
    _show(f"a step of these rows, the first {SHOWN} of {steps}", first, naive, "it")
    _show(f"a step of these rows, the last {SHOWN} of {steps}", last, naive, "it")
    _say(f"    after this history it costs {last.cpu_s / first.cpu_s:.2f} of the first")
    few = measure_keys(spark, folder / "few", 30, 30)
    _show("a step of 30 keys that change", few)
    many = measure_keys(spark, folder / "many", 3_000, 30)
    _show("a step of 3,000 keys of which 30 change", many, few, "that of 30 keys")


def measure_soak(spark: SparkSession, folder: Path, steps: int, devices: int) -> None:
    """Print what steps cost and what is held, ten times on the way."""
    made, machine, ours = greenhouse(), Machine(spark), Steps(spark, greenhouse(), folder)
    every = max(1, steps // 10)
    for number in range(steps):
        ours(landed(made, list(fleet_rows(made, number, devices))))
        if (number + 1) % every == 0:
            held = ", ".join(f"{what} {size:,.0f}" for what, size in machine.mib().items())
            _show(f"up to step {number + 1:,}", ours.median(slice(number + 1 - every, None)))
            _say(f"    MiB: {held}")


def main(start: Callable[..., SparkSession] = spark_session) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--devices", type=int, default=200)
    parser.add_argument("--soak", action="store_true", help="many steps in one session, alone")
    arguments = parser.parse_args()
    if arguments.steps < WARM + SHOWN:
        parser.error(f"--steps: at least {WARM + SHOWN} are needed, not {arguments.steps}")
    with tempfile.TemporaryDirectory() as folder:
        spark = start(app_name="steps", master="local[2]", conf={**CONF, **LOCAL_CONF})
        measure = measure_soak if arguments.soak else measure_beside
        measure(spark, Path(folder), arguments.steps, arguments.devices)
        spark.stop()


if __name__ == "__main__":
    main()
