"""The cost table of the cloud: `python -m simulations.benchmarks.cloud [--quick] [NAME ...]`.

Ours and a peer's way, side by side in one run, in CPU seconds of Python and Spark's JVM together;
in brackets how many times better ours is. Sizes are those of the goals, and with `--quick` a
hundredth of them: there what Spark spends on planning outweighs what it spends on rows.

    steps      a step beside a naive one, after much history, with many keys
    silent     a step of a fleet with one device silent, beside one with all in step
    join       the lattice join beside a bare group-by
    windows    windows from panes beside Spark's own over the readings
    ingest     frames until they are in Delta, beside a stream of Parquet files
    offline    devices offline for hours, beside Spark's watermark
    order      streams over the fleet in a step, beside the step without them
    start      a process until its first append, beside Spark's launcher
    large      a step, the newest windows and a repair over millions of panes

Ends with 1 where a goal is not met. CPU is read from Linux's /proc.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from cloud_tier.job.streaming import LOCAL_CONF
from cloud_tier.spark.session import spark_session
from simulations.benchmarks import (
    cloud_ingest,
    cloud_large,
    cloud_offline,
    cloud_order,
    cloud_queries,
    cloud_silent,
    cloud_steps,
)
from simulations.benchmarks.measure import HEAD, MISSED, Line, show
from simulations.commands import parser_of

HUNDREDTH = 100
Row = Callable[[SparkSession, Path, int], Iterator[Line]]
"""Measures something of a size, and leaves its files in a folder."""
ROWS: Mapping[str, tuple[Row, int]] = {
    "steps": (cloud_steps.lines, 200),
    "silent": (cloud_silent.lines, 5_000),
    "join": (cloud_queries.join_lines, 10_000_000),
    "windows": (cloud_queries.window_lines, 20_000_000),
    "ingest": (cloud_ingest.ingest_lines, 1_000_000),
    "offline": (cloud_offline.lines, 200),
    "order": (cloud_order.lines, 500),
    "start": (cloud_ingest.start_lines, 1),
    "large": (cloud_large.lines, 50_000_000),
}
"""What is measured, and how large: in rows, readings, panes or devices."""
LEAST = 20
"""Devices, at least, however small a run is to be."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the rows that were asked for, or all."""
    parser = parser_of("simulations.benchmarks.cloud", __doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(ROWS)}")
    parser.add_argument("--quick", action="store_true", help="a hundredth of each size")
    parser.add_argument("--size", type=int, help="of what is named, in place of its own")
    arguments = parser.parse_args(argv)
    unknown = sorted(set(arguments.names) - set(ROWS))
    if unknown:
        parser.error(f"no row {', '.join(unknown)}; there are {', '.join(ROWS)}")
    print(HEAD)
    goals: list[str] = []
    spark = spark_session(app_name="benchmark", conf=LOCAL_CONF)
    for name in arguments.names or ROWS:
        row, full = ROWS[name]
        size = arguments.size or (max(LEAST, full // HUNDREDTH) if arguments.quick else full)
        with tempfile.TemporaryDirectory() as folder:
            lines = list(row(spark, Path(folder), size))
        goals += [line.goal for line in lines if line.goal]
        for text in show(iter(lines)):
            print(text, flush=True)
    spark.stop()
    missed = sum(MISSED in goal for goal in goals)
    print(f"\n{len(goals) - missed} of {len(goals)} goals met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
