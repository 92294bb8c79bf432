"""A step of a fleet in which one device is silent, beside the same step with all of them in step.

Each device has a key of its own, so a step has as many rows of each window as there are devices.
"""

import random
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from lasp_edge import Program, folds
from lasp_edge.language.plan import Plan
from simulations.benchmarks.cloud_rows import BEGIN_US, SPAN_US, landed, lander_tick
from simulations.benchmarks.cloud_steps import Steps
from simulations.benchmarks.measure import Line
from simulations.benchmarks.measure_spark import beside

MOST: Final = 1.2
"""Times the CPU of a step with all in step that one with a silent device takes, at most."""
WARM = 2
"""Steps at the begin that are not counted."""
SHOWN = 4
"""Steps whose median is printed."""
SHAPES: Final = ((1, 1), (20, 5))
"""Windows of a program, and by how much fewer devices have them."""


def lines(spark: SparkSession, folder: Path, devices: int) -> Iterator[Line]:
    """Yield what steps cost with one of the devices silent, and with none."""
    for windows, fewer in SHAPES:
        for order in ("sorted", "shuffled"):
            fleet = max(2, devices // fewer)
            made = sums(windows)
            steps = {
                silent: Steps(spark, made, folder / f"{windows} {order} {silent}")
                for silent in (False, True)
            }
            for number in range(WARM + SHOWN):
                for silent, step in steps.items():
                    rows = list(_rows(made, number, fleet, silent=silent))
                    if order == "shuffled":
                        random.Random(number).shuffle(rows)
                    step(landed(made, rows))
            in_step_s, silent_s = map(_median, steps.values())
            what = f"a step, one of {fleet:,} devices silent, windows: {windows}, {order}"
            yield from beside(what, silent_s, "all in step", in_step_s, MOST)


def sums(windows: int) -> Plan:
    """Return a program of windows of ten seconds, by device."""
    made = Program("benchmark")
    event = made.event("temperature", resolution="0.01")
    for number in range(windows):
        made.window(
            f"of_each_{number}",
            source=event,
            fold=folds.sum(),
            size_s=10,
            key=lambda event: event.tags["room"],
        )
    return made.plan()


def _median(steps: Steps) -> float:
    return statistics.median(cost.cpu_s for cost in steps.costs[WARM:])


def _rows(made: Plan, number: int, devices: int, *, silent: bool) -> Iterator[dict[str, Any]]:
    """Yield a pane of each window and device, and the devices' promises, but for one of them."""
    pane_us = BEGIN_US + number * SPAN_US
    end_us = pane_us + SPAN_US
    for device in range(devices):
        own = {"device": f"pi-{device}", "incarnation": 1, "nonce": 7, "received_us": end_us}
        seq = number * (len(made.windows) + 1)
        if silent and number and not device:
            continue
        for window in made.windows.values():
            seq += 1
            pane = {"kind": "pane", "stream": window.stream, "pane_us": pane_us}
            yield own | pane | {"key": f"room {device}", "seq": seq, "total_q": number + device}
        yield own | {"kind": "promise", "seq": seq + 1, "low_us": end_us, "done": False}
    yield lander_tick(number, end_us)
