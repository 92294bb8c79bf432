"""Readings per CPU-second through the whole of an agent, beside a plain loop of the same sums.

Run: `python -m simulations.benchmarks.ingest`. Each reading is quantised, looked up among the known
identities, added by a handler to a window of the last 100, and put into its pane; the mean over
the window is brought up to date and everything is committed to SQLite, once a batch. The plain loop
does the same sums with a set, a deque and a dict, and keeps nothing over a crash.
"""

import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from crdts import BoundedLWWSet
from device_agent.batch import Batch
from device_agent.core import Core
from device_agent.durable import Durable
from device_agent.settings import SECOND_US, Settings
from device_agent.store import Store
from lasp_edge import Event, Program, Update, folds

READINGS = 20_000
BOUND = 100
PANE_US = 10 * SECOND_US
START_US = 1_700_000_000 * SECOND_US
ROUNDS = 3
NO_TAGS: Mapping[str, str] = {}


def program() -> Program:
    """Return a window of the last 100, its mean, and a sliding window of a minute."""
    made = Program("ingest")
    temperature = made.event("temperature", resolution="0.01")
    samples = made.declare_dynamic(BoundedLWWSet(bound=BOUND), "samples")

    @made.on_event(temperature)
    def sampled(event: Event, update: Update) -> None:
        update(samples, BoundedLWWSet.add, event.value, event.time_us)

    made.fold_dynamic(made.fold(samples, folds.mean(), "local_average"), "global_average")
    made.window("minute", source=temperature, fold=folds.mean(), size_s=60, slide_s=10)
    return made


def columns() -> tuple[list[int | None], list[float]]:
    """Return times, one a second, and values."""
    times_us: list[int | None] = [START_US + number * SECOND_US for number in range(READINGS)]
    return times_us, [21.5 + number % 97 / 10 for number in range(READINGS)]


def agent(batch_size: int, *, keep_readings: bool = False) -> None:
    """Take all readings in, in batches of one size."""
    times_us, values = columns()
    now_us = START_US + READINGS * SECOND_US
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory))
        settings = Settings(keep_readings=keep_readings)
        durable = Durable(Core(program(), "pi-1", 7, store.restored(), settings), store)
        for start in range(0, READINGS, batch_size):
            part = slice(start, start + batch_size)
            size = len(values[part])
            names, tags = ["temperature"] * size, [NO_TAGS] * size
            durable.read(Batch("bench", names, times_us[part], values[part], tags), now_us)
            durable.core.variables.refold()
        store.close()


def plain_loop() -> None:
    """Do the same sums, and nothing else."""
    known: set[tuple[int, int]] = set()
    last: deque[int] = deque(maxlen=BOUND)
    total = 0
    panes: dict[int, tuple[int, int]] = {}
    for time_us, value in zip(*columns(), strict=True):
        quantised = round(value * 100)
        identity = (time_us or 0, quantised)
        if identity in known:
            continue
        known.add(identity)
        total += quantised - (last[0] if len(last) == BOUND else 0)
        last.append(quantised)
        pane_us = identity[0] // PANE_US
        count, pane_total = panes.get(pane_us, (0, 0))
        panes[pane_us] = (count + 1, pane_total + quantised)


def cpu_s(work: Callable[[], None]) -> float:
    """Return the least CPU time of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best


def main() -> None:
    """Print one line for each way."""
    bare = cpu_s(plain_loop)
    ways: dict[str, Callable[[], None]] = {
        "plain loop, nothing kept": plain_loop,
        "agent, batches of 2,000": lambda: agent(2_000),
        "agent, batches of 500": lambda: agent(500),
        "the same, readings kept": lambda: agent(500, keep_readings=True),
        "agent, batches of 10": lambda: agent(10),
    }
    for name, way in ways.items():
        seconds = cpu_s(way)
        rate, ratio = READINGS / seconds, seconds / bare
        line = f"{name:26} {rate:10,.0f} readings a CPU-second, {ratio:5.1f} times a plain loop"
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
