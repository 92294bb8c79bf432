"""What a step costs by the size of a fleet, who is silent, and how its devices' readings arrive.

Each device has a key of its own, so a step has as many rows of each window as there are devices.
Silent devices are those that have not sent for less than `--dead-after`: all windows wait for them.
Readings of one span arrive in one step, or in four: by the names of the devices, or at random.

    python -m simulations.benchmarks.cloud_scale [--devices N ...] [--windows N ...]
                                                 [--silent WHO ...] [--arrival HOW ...]

All takes an hour; these options ask for a part. It prints a table of CPU seconds of Python and
Spark's JVM for each span, then the goals: ten times the devices cost ten times as much at most;
with silent devices a step costs 1.2 times as much at most as with none; 10,000 devices with 20
windows take at most 40 of the 60 s between two steps; and after a year of history a step costs 1.1
times as much at most as on a fresh lake. It ends with 1 where one is missed.
"""

import random
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession

from cloud_tier.job.streaming import LOCAL_CONF
from cloud_tier.spark.session import spark_session
from lasp_edge.language.plan import Plan
from lasp_edge.units import SECOND_US
from simulations.benchmarks.cloud_rows import BEGIN_US, SPAN_US, landed, lander_tick
from simulations.benchmarks.cloud_silent import sums
from simulations.benchmarks.cloud_steps import Steps
from simulations.commands import parser_of

DEVICES: Final = (100, 1_000, 10_000)
WINDOWS: Final = (1, 20)
SILENT: Final = ("none", "1 %", "half")
ARRIVALS: Final = ("at once", "by name", "at random")
PARTS: Final = 4
"""Steps in which readings of a span arrive, if not at once."""
WARM, SHOWN = 2, 3
"""Spans at the begin that are not counted, and those of which the median is printed."""
MOST_OF_SILENT: Final = 1.2
MOST_CPU_S: Final = 40.0
MOST_OF_A_YEAR: Final = 1.1
NOISE_S: Final = 0.5
"""CPU seconds by which a step may miss a goal that compares small ones: the JVM's own work."""
_DAYS: Final = 365
_STEPS: Final = 18
"""Less than after which small files are put together: that would be in some steps alone."""
_PANES_A_DAY: Final = 100


class Case(NamedTuple):
    """A fleet, and how its readings arrive."""

    devices: int
    windows: int
    silent: str
    arrival: str


def main() -> int:
    """Print the table and the goals."""
    parser = parser_of("simulations.benchmarks.cloud_scale", __doc__)
    parser.add_argument("--devices", type=int, nargs="+", default=DEVICES)
    parser.add_argument("--windows", type=int, nargs="+", default=WINDOWS)
    parser.add_argument("--silent", choices=SILENT, nargs="+", default=SILENT)
    parser.add_argument("--arrival", choices=ARRIVALS, nargs="+", default=ARRIVALS)
    parser.add_argument("--no-year", action="store_true", help="leave the year of history out")
    arguments = parser.parse_args()
    spark = spark_session(app_name="scale", conf=LOCAL_CONF)
    found: dict[Case, float] = {}
    for _ in range(2):  # the JVM compiles what it will
        cpu_s(spark, Case(1_000, 1, "1 %", "at random"))
    print(f"{'devices':>8} {'windows':>8}  {'silent':<7} {'arrival':<10} {'CPU-s a span':>13}")
    asked = (arguments.devices, arguments.windows, arguments.silent, arguments.arrival)
    for case in map(Case._make, product(*asked)):
        found[case] = cpu_s(spark, case)
        print(
            f"{case.devices:>8,} {case.windows:>8}  {case.silent:<7} {case.arrival:<10} "
            f"{found[case]:>13.1f}",
            flush=True,
        )
    missed = [*misses(found), *([] if arguments.no_year else missed_by_a_year(spark))]
    print("\n".join(missed) or "all goals are met")
    spark.stop()
    return bool(missed)


def misses(found: dict[Case, float]) -> Iterator[str]:
    """Yield a line for each goal that is missed."""
    for case, each_s in found.items():
        in_step_s = found.get(case._replace(silent="none"))
        if in_step_s is not None and each_s > MOST_OF_SILENT * in_step_s + NOISE_S:
            yield f"{each_s / in_step_s:.2f} times the cost with all in step: {case}"
        smaller_s = found.get(case._replace(devices=case.devices // 10))
        if smaller_s is not None and each_s > 10 * smaller_s:
            yield f"{each_s / smaller_s:.1f} times the cost of a tenth of the devices: {case}"
        if case[:2] == (10_000, 20) and case.arrival == "at once" and each_s > MOST_CPU_S:
            yield f"{each_s:.0f} CPU-s: {case}"


def missed_by_a_year(spark: SparkSession) -> Iterator[str]:
    """Print what a step costs after a year; yield a line if the goal is missed."""
    fresh_s, old_s = years(spark)
    print(f"a step on a fresh lake, and after a year: {fresh_s:.2f} and {old_s:.2f} CPU-s")
    if old_s > MOST_OF_A_YEAR * fresh_s:
        yield f"after a year a step costs {old_s / fresh_s:.2f} times a fresh one"


def cpu_s(spark: SparkSession, case: Case) -> float:
    """Return the CPU seconds of all steps of a span: the median over some."""
    made = sums(case.windows)
    spans_s: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        steps = Steps(spark, made, Path(folder))
        for number in range(WARM + SHOWN):
            before = len(steps.costs)
            for rows in _arriving(made, number, case):
                steps(rows)
            spans_s.append(sum(cost.cpu_s for cost in steps.costs[before:]))
    return statistics.median(spans_s[WARM:])


def _arriving(made: Plan, number: int, case: Case) -> Iterator[pa.Table]:
    """Yield what arrives of a span, a table for each step."""
    silent = {"none": 0, "1 %": -(-case.devices // 100), "half": case.devices // 2}[case.silent]
    devices = list(range(silent if number else 0, case.devices))
    if case.arrival == "at random":
        random.Random(number).shuffle(devices)
    parts = 1 if case.arrival == "at once" else PARTS
    each = -(-len(devices) // parts)
    for part in range(parts):
        own = devices[part * each : (part + 1) * each]
        yield _span(made, number, own, tick=parts * number + part)


def _span(made: Plan, number: int, devices: Iterable[int], tick: int) -> pa.Table:
    """Return a pane of each window and device, their promises, and a lander's clock."""
    pane_us = BEGIN_US + number * SPAN_US
    end_us, rows = pane_us + SPAN_US, []
    for device in devices:
        seq = number * (len(made.windows) + 1)
        own = {"device": f"pi-{device:05}", "incarnation": 1, "nonce": 7, "received_us": end_us}
        for window in made.windows.values():
            seq += 1
            pane = {"kind": "pane", "stream": window.stream, "pane_us": pane_us}
            rows.append(
                own | pane | {"key": f"room {device}", "seq": seq, "total_q": number + device}
            )
        rows.append(own | {"kind": "promise", "seq": seq + 1, "low_us": end_us, "done": False})
    return landed(made, [*rows, lander_tick(tick, end_us)])


def years(spark: SparkSession) -> tuple[float, float]:
    """Return what a step of 100 devices costs on a fresh lake, and on one with a year of panes."""
    made, case = sums(1), Case(100, 1, "none", "at once")
    with tempfile.TemporaryDirectory() as folder:
        fresh, old = (Steps(spark, made, Path(folder, name)) for name in ("fresh", "old"))
        for first in range(-_DAYS, 0, 30):
            old.merge(_history(made, range(first, min(first + 30, 0))))
        old.maintain()
        for number in range(_STEPS):
            for steps in (fresh, old):  # by turns: what the JVM still compiles is in both
                for rows in _arriving(made, number, case):
                    steps(rows)
    last = slice(-_STEPS // 2, None)
    return fresh.median(last).cpu_s, old.median(last).cpu_s


def _history(made: Plan, days: range) -> pa.Table:
    """Return panes of some days before the begin, all of one device."""
    (window,) = made.windows.values()
    day_us = 86_400 * SECOND_US
    rows = [
        {
            "kind": "pane",
            "stream": window.stream,
            "key": f"room {place}",
            "device": "pi-00000",
            "incarnation": 1,
            "nonce": 6,
            "received_us": BEGIN_US,
            "pane_us": (BEGIN_US // SPAN_US + place) * SPAN_US + day * day_us,
            "seq": (day + _DAYS) * _PANES_A_DAY + place + 1,
            "total_q": place,
        }
        for day in days
        for place in range(_PANES_A_DAY)
    ]
    return landed(made, rows)


if __name__ == "__main__":
    sys.exit(main())
