"""What the cloud costs: landing, joining and whole steps, beside the bare machinery.

Run: `python -m simulations.benchmarks.cloud [--rows N] [--steps N] [--devices N]`. It prints

- rows landed per CPU-second: decoded from frames, as Arrow, committed;
- rows joined per CPU-second: each entry three times, shuffled; beside it, in the same run, one
  `max` per entry in bare Spark, and the same join in DuckDB where that is installed;
- the time and CPU of a step of 2,000 rows, when the lake is young and when it is not.

CPU counts both this process and Spark's JVM, and is read from Linux's /proc.
"""

import argparse
import contextlib
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from cloud_tier.job import merge
from cloud_tier.job.job import Job
from cloud_tier.job.step import MergedState, step
from cloud_tier.job.streaming import CONF, LOCAL_CONF
from cloud_tier.lake.tables import ABSENT, LakeTables, landed_schema
from cloud_tier.lander.columns import LandedColumns
from cloud_tier.lander.landing import Landing, collector_off
from cloud_tier.spark.session import spark_session
from crdts import Replica
from lasp_edge import Program, Window, folds
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acceptance import Acceptance, Record
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.frames import PaneFrame
from lasp_edge.protocol.frontier import NOTHING_HEARD, Listening, Tick
from lasp_edge.protocol.topics import Topics

SPAN_US = 10_000_000
BEGIN_US = 1_700_000_000_000_000
STEP_ROWS = 2_000
FRAME_ROWS = 1_000
WARM = 5
"""Steps at the begin that are not shown."""
SHOWN = 10
"""Steps at the begin and at the end whose median is printed."""


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def program() -> Plan:
    """Return the program that is measured: a mean per room over a minute, every ten seconds."""
    made = Program("benchmark")
    event = made.event("temperature", resolution="0.01")
    made.window("by_room", source=event, fold=folds.mean(), size_s=60, slide_s=10, key=lambda _: "")
    return made.plan()


def entries(window: Window, rows: int, devices: int, seed: int) -> dict[str, list[Any]]:
    """Return pane entries by column: panes of the last minutes of `devices` devices."""
    draw = random.Random(seed)
    panes = max(1, rows // devices)
    return {
        "device": [f"pi-{row % devices}" for row in range(rows)],
        "key": [f"room {row % devices % 7}" for row in range(rows)],
        "pane_us": [BEGIN_US + row // devices % panes * SPAN_US for row in range(rows)],
        "count": [draw.randrange(1, 60) for _ in range(rows)],
        "total_q": [draw.randrange(100_000) for _ in range(rows)],
        "stream": [window.stream] * rows,
        "seq": list(range(1, rows + 1)),
    }


def landed(made: Plan, columns: dict[str, list[Any]]) -> pa.Table:
    """Return entries as rows of `landing`."""
    rows = len(columns["seq"])
    same = {"kind": "pane", "incarnation": 1, "nonce": 7, "received_us": BEGIN_US}
    schema = landed_schema(made.columns)
    filled = {name: [same.get(name, ABSENT.get(name))] * rows for name in schema.names}
    return pa.table(filled | columns, schema=schema)


class Cpu:
    """Seconds of processor time of this process and of Spark's JVM."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm  # noqa: SLF001 - pyspark has no public word for it
        self._stat = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/stat")
        self._ticks = os.sysconf("SC_CLK_TCK")

    def __call__(self) -> float:
        """Return the seconds so far."""
        user, system = self._stat.read_text().rpartition(")")[2].split()[11:13]
        return time.process_time() + (int(user) + int(system)) / self._ticks


@contextlib.contextmanager
def measured(cpu: Callable[[], float]) -> Iterator[list[float]]:
    """Give a list that holds wall seconds and CPU seconds once the block is over."""
    figures: list[float] = []
    began_s, began_cpu_s = time.perf_counter(), cpu()
    yield figures
    figures += [time.perf_counter() - began_s, cpu() - began_cpu_s]


def measure_landing(made: Plan, lake: LakeTables, rows: int, devices: int) -> None:
    """Print what it costs to decode frames and commit them."""
    window = made.windows["by_room"]
    topics = Topics(made.name)
    at = range(FRAME_ROWS)
    records = []
    for number in range(rows // FRAME_ROWS):
        replica, frame = Replica(1, 7, f"pi-{number % devices}"), number // devices
        block = PaneEntries(
            window.stream,
            SPAN_US,
            1,
            7,
            (tuple(range(1, FRAME_ROWS + 1)), tuple(at)),
            ("attic",) * FRAME_ROWS,
            tuple(BEGIN_US + (frame * FRAME_ROWS + pane) * SPAN_US for pane in at),
            tuple(frame * FRAME_ROWS + seq + 1 for seq in at),
        )
        payload = PaneFrame(replica, frame + 1, (block,)).encode()
        records.append(
            Record(2 * BEGIN_US, topics.of("pane", replica.device), retained=False, payload=payload)
        )
    acceptance = Acceptance(
        made.windows.values(), made.published_folds.values(), topics, ("lake", "benchmark")
    )
    columns, landing = LandedColumns(made), Landing(lake, "benchmark")
    with measured(time.process_time) as figures, collector_off():
        accepted = acceptance.take(records)
        table = columns.table(accepted, "benchmark", Tick(1, Listening(1, 0)))
    assert table.num_rows >= rows // FRAME_ROWS * FRAME_ROWS, accepted.refused
    _say(f"land    {table.num_rows / figures[1]:>12,.0f} rows decoded per CPU-second")
    with measured(time.process_time) as figures:
        landing.land(1, table, accepted.refused)
    _say(f"        {figures[0] * 1000:>12,.0f} ms to commit {table.num_rows:,} rows")


def measure_join(spark: SparkSession, made: Plan, rows: int, devices: int, folder: Path) -> None:
    """Print what the join costs, and bare machinery beside it."""
    window = made.windows["by_room"]
    once = landed(made, entries(window, rows // 3, devices, seed=1))
    thrice = pa.concat_tables([once] * 3)
    order = list(range(thrice.num_rows))
    random.Random(2).shuffle(order)
    path = folder / "rows.parquet"
    pq.write_table(thrice.take(order), path, row_group_size=max(1, rows // 8))
    frame, names = spark.read.parquet(str(path)), list(made.columns)
    identity = ("kind", "stream", "key", "pane_us", "device", "incarnation", "nonce")
    rivals = {
        "join    ": lambda: merge.joined(frame, names),
        "bare max": lambda: frame.groupBy(*identity).agg({"seq": "max"}),
    }
    for name, query in rivals.items():
        _joined(spark, name, query, thrice.num_rows)
    _duckdb(path, identity, names, thrice.num_rows)


def _joined(spark: SparkSession, name: str, query: Callable[[], DataFrame], rows: int) -> None:
    cpu, best = Cpu(spark), float("inf")
    for _ in range(4):
        with measured(cpu) as figures:
            query().write.format("noop").mode("overwrite").save()
        best = min(best, figures[1])
    _say(f"{name}{rows / best:>12,.0f} rows per CPU-second in Spark, {rows:,} rows")


def _duckdb(path: Path, identity: tuple[str, ...], names: list[str], rows: int) -> None:
    try:
        import duckdb  # noqa: PLC0415 - for comparison only
    except ImportError:
        return
    newest = ", ".join(f"max_by({name}, seq)" for name in names)
    query = f"SELECT {', '.join(identity)}, max(seq), {newest} FROM '{path}' GROUP BY ALL"  # noqa: S608
    best = float("inf")
    for _ in range(3):
        with measured(time.process_time) as figures:
            duckdb.execute(f"CREATE OR REPLACE TEMP TABLE joined AS {query}")
        best = min(best, figures[1])
    _say(f"DuckDB  {rows / best:>12,.0f} rows per CPU-second, the same maxima")


def measure_steps(spark: SparkSession, job: Job, made: Plan, steps: int, devices: int) -> None:
    """Print what a step costs at the beginning and at the end of `steps` steps."""
    window, cpu = made.windows["by_room"], Cpu(spark)
    known, walls, cpus = MergedState(None, NOTHING_HEARD), [], []
    for number in range(steps):
        columns = entries(window, STEP_ROWS, devices, seed=number)
        shift_us = number * SPAN_US
        columns["pane_us"] = [pane_us % (3 * SPAN_US) + shift_us for pane_us in columns["pane_us"]]
        columns["pane_us"] = [
            BEGIN_US + pane_us // SPAN_US * SPAN_US for pane_us in columns["pane_us"]
        ]
        columns["seq"] = [seq + number * STEP_ROWS for seq in columns["seq"]]
        batch = spark.createDataFrame(landed(made, columns))
        with measured(cpu) as figures:
            known = step(batch, number, job, known).known
        walls.append(figures[0])
        cpus.append(figures[1])
    for name, part in (("first", slice(WARM, WARM + SHOWN)), ("last ", slice(-SHOWN, None))):
        wall_s, cpu_s = statistics.median(walls[part]), statistics.median(cpus[part])
        _say(f"step    {wall_s:>12.2f} s, {cpu_s:.2f} CPU-seconds, the {name} {SHOWN} of {steps}")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_500_000)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--devices", type=int, default=200)
    arguments = parser.parse_args()
    if arguments.steps <= WARM:
        parser.error(f"--steps: more than {WARM} are needed, not {arguments.steps}")
    made = program()
    with tempfile.TemporaryDirectory() as folder:
        lake = LakeTables(Path(folder) / "lake")
        lake.create(made.columns)
        measure_landing(made, lake, 200_000, arguments.devices)
        spark = spark_session(app_name="benchmark", conf={**CONF, **LOCAL_CONF})
        measure_join(spark, made, arguments.rows, arguments.devices, Path(folder))
        measure_steps(spark, Job(made, lake), made, arguments.steps, arguments.devices)
        spark.stop()


if __name__ == "__main__":
    main()
