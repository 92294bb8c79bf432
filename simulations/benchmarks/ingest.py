"""Readings per CPU-second through an agent, beside bytewax and a bare Python loop.

Run: `python -m simulations.benchmarks ingest`. Each runner does the same job for each device:
quantise a reading, drop it if it is a repeat, add it to the last 100 and bring their mean up to
date, and add it to the count and total of its pane. All runners end with the same numbers, which
is checked.

- Ours is the agent's core: column batches, one agent a device. The mean is brought up to date and
  all changes are packed for the store once a batch; with commits, they are also in SQLite.
- One at a time: batches of one reading. Its changes are packed once a thousand readings, as in a
  group commit, or with a commit for each reading, which is what a flash disk should not have.
- bytewax does it in one stateful step, in memory: nothing is kept over a crash. `stateful_map` is
  called for each reading; `stateful_batch` with a list of a device's readings, over which the bare
  loop runs.
- The bare loop keeps a set, a deque and two dicts, and nothing over a crash.

The readings are real where the recorded data is found, see `ingest_readings`.
"""

import gc
import tempfile
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from crdts import BoundedLWWSet
from device_agent.core import Core
from device_agent.durable import Durable
from device_agent.intake.batch import Batch
from device_agent.settings import SECOND_US
from device_agent.state.changes import Changes, Restored
from device_agent.state.store import Store
from lasp_edge import Event, Plan, Program, Update, folds
from lasp_edge.folds.columns import Partial
from simulations.benchmarks.ingest_peers import BOUND, Totals, bare, bytewax, items
from simulations.benchmarks.ingest_readings import (
    COPIES,
    ReadingColumns,
    Readings,
    recorded,
    tiled,
)
from simulations.benchmarks.measure import OURS, Line, cpu_s, is_installed, missing, rates

READINGS, QUICK_READINGS = 2_000_000, 20_000
BATCH, REPLAYED_BATCH, GROUP = 5_000, 500, 1_000
NO_TAGS: Mapping[str, str] = {}
UNIT = "readings/s"
GOAL, GOAL_ONE, GOAL_RATIO = 750e3, 150e3, 5
MAP, BATCHES, BARE = "bytewax", "bytewax batch", "bare loop"
BRING = "not installed: pip install 'lasp-edge[bench]'"


def program(slide_s: int, *, handler: bool = False) -> Plan:
    """Return the job: the last 100, their mean, and panes of `slide_s` of a window of a minute."""
    made = Program("ingest")
    temperature = made.event("temperature", resolution="0.01")
    samples = made.declare_dynamic(BoundedLWWSet(bound=BOUND), "samples")
    if handler:

        @made.on_event(temperature)
        def sampled(event: Event, update: Update) -> None:
            update(samples, BoundedLWWSet.add, event.value, event.time_us)

    else:
        made.collect(temperature, into=samples)
    made.fold_dynamic(made.fold(samples, folds.mean(), "local_average"), "global_average")
    made.window("minute", source=temperature, fold=folds.mean(), size_s=60, slide_s=slide_s)
    return made.plan()


def batches(column: ReadingColumns, size: int) -> Iterator[Batch]:
    """Yield a device's readings in batches of `size`."""
    times_us, values = column
    if size == 1:
        for time_us, value in zip(times_us, values, strict=True):
            yield Batch("bench", ["temperature"], [time_us], [value], [NO_TAGS])
        return
    for start in range(0, len(values), size):
        part = values[start : start + size]
        names, tags = ["temperature"] * len(part), [NO_TAGS] * len(part)
        yield Batch("bench", names, times_us[start : start + size], part, tags)


class Ours:
    """An agent a device, one after the other.

    Args:
        made: the program.
        size: readings a batch.
        group: batches of which the changes are packed, or committed, together.
    """

    def __init__(self, made: Plan, size: int, group: int = 1) -> None:
        self._made, self._size, self._group = made, size, group

    def core_only(self, readings: Readings) -> dict[str, Totals]:
        """Take all in; what would be committed is dropped."""
        return {device: self._one(device, column) for device, column in readings.items()}

    def _one(self, device: str, column: ReadingColumns) -> Totals:
        core = Core(self._made, device, 7, Restored())
        panes: dict[int, Partial] = {}
        now_us = _end_us(column)
        took = batches(column, self._size)
        while group := list(islice(took, self._group)):
            for batch in group:
                wanted = core.intake.wanted(batch, now_us)
                assert not wanted.blocks, "the recording is in order"
                core.handle_batch(batch, now_us)
            _note(panes, core.prepare_commit())
            core.committed()
            core.samples.refold()
        return _totals(core, panes)

    def with_commits(self, readings: Readings) -> dict[str, Totals]:
        """Take all in, with a commit for each batch."""
        with tempfile.TemporaryDirectory() as directory:
            return {
                device: self._durable(Path(directory, str(number)), device, column)
                for number, (device, column) in enumerate(readings.items())
            }

    def _durable(self, directory: Path, device: str, column: ReadingColumns) -> Totals:
        store = Store(directory)
        durable = Durable(Core(self._made, device, 7, store.restored()), store)
        now_us = _end_us(column)
        for batch in batches(column, self._size):
            durable.read(batch, now_us)
            durable.core.samples.refold()
        window = self._made.windows["minute"]
        stored = store.panes(durable.core.replica, window.stream, 0, 2**62)
        panes = {pane.pane_us: row.partial for pane, row in stored}
        store.close()
        return _totals(durable.core, panes)


def _end_us(column: ReadingColumns) -> int:
    return max(time_us for time_us in column[0] if time_us is not None)


def _note(panes: dict[int, Partial], changes: Changes) -> None:
    for pane, row in changes.panes.items():
        panes[pane.pane_us] = row.partial


def _totals(core: Core, panes: dict[int, Partial]) -> Totals:
    accepted = core.counters.totals["accepted"]
    return Totals(accepted, core.results.local()["local_average"][""].partial, panes)


Runner = Callable[[], dict[str, Totals]]
Runners = dict[str, Runner]


def measured(runners: Runners, rounds: int) -> dict[str, float]:
    """Return runner -> CPU seconds, the least of some rounds.

    What is in memory before is hidden from Python's cyclic collector, else each runner pays
    for walking over the readings and over what the others gave.

    Raises:
        RuntimeError: two runners give different numbers.
    """
    seconds: dict[str, float] = {}
    truth: dict[str, Totals] | None = None
    for name, runner in runners.items():
        found: list[dict[str, Totals]] = []

        def work(_: object, run: Runner = runner, found: list[dict[str, Totals]] = found) -> None:
            found[:] = [run()]

        gc.collect()
        gc.freeze()
        try:
            seconds[name] = cpu_s(work, rounds=rounds)
        finally:
            gc.unfreeze()
        truth = truth or found[0]
        if found[0] != truth:
            raise RuntimeError(f"{name} does not give the same numbers as {OURS}")
    return seconds


def table(*, quick: bool = False) -> Iterator[Line]:
    """Yield the lines of this benchmark."""
    recording, origin = recorded()
    wanted, copies, rounds = (QUICK_READINGS, 1, 1) if quick else (READINGS, COPIES, 2)
    readings = tiled(recording, wanted, copies)
    count = sum(len(values) for _, values in readings.values())
    note = f"{origin}, tiled to {len(readings)} devices and {count:,} readings"
    yield from _by_columns(readings, note, rounds)
    yield from _narrow_panes(readings, rounds)
    yield from _one_by_one(tiled(recording, wanted // 20, 1), rounds)
    yield from _one_a_commit(tiled(recording, wanted // 1_000, 1))


def _by_columns(readings: Readings, note: str, rounds: int) -> Iterator[Line]:
    """Yield the lines of column batches."""
    what = f"repeat check, last {BOUND}, mean, panes of 60 s; column batches of {BATCH:,}"
    made, stream, pane_us = program(60), items(readings), 60 * SECOND_US
    ours, replayed = Ours(made, BATCH), Ours(made, REPLAYED_BATCH)
    runners: Runners = {
        OURS: lambda: ours.core_only(readings),
        "with commits": lambda: ours.with_commits(readings),
        f"of {REPLAYED_BATCH}": lambda: replayed.core_only(readings),
        "and commits": lambda: replayed.with_commits(readings),
        BARE: lambda: bare(stream, pane_us),
    }
    if is_installed("bytewax"):
        runners[MAP] = lambda: bytewax(stream, pane_us)
        runners[BATCHES] = lambda: bytewax(stream, pane_us, by_batch=True)
    notes = {
        OURS: f"the core only; {note}",
        "with commits": "the same, each batch in a commit of SQLite's",
        f"of {REPLAYED_BATCH}": "the core only, batches as small as a replayed file's",
        "and commits": f"of {REPLAYED_BATCH}, each in a commit",
        MAP: "stateful_map, in memory",
        BATCHES: "stateful_batch, in memory: the step is given lists, and runs the bare loop",
    }
    seconds = measured(runners, rounds)
    for line in rates(what, UNIT, len(stream), seconds, goal=GOAL, notes=notes):
        if line.way == MAP and line.ratio is not None:
            verdict = "met" if line.ratio >= GOAL_RATIO else "NOT met"
            yield line._replace(goal=f"ours >= {GOAL_RATIO}x: {verdict}")
        else:
            yield line
    if MAP not in runners:
        yield missing(what, MAP, BRING)


def _narrow_panes(readings: Readings, rounds: int) -> Iterator[Line]:
    """Yield the lines of panes that hold two or three readings each."""
    what = f"the same, panes of 10 s, of two or three readings; column batches of {BATCH:,}"
    ours, stream = Ours(program(10), BATCH), items(readings)
    runners: Runners = {
        OURS: lambda: ours.core_only(readings),
        "with commits": lambda: ours.with_commits(readings),
        BARE: lambda: bare(stream, 10 * SECOND_US),
    }
    yield from rates(what, UNIT, len(stream), measured(runners, rounds))


def _one_a_commit(readings: Readings) -> Iterator[Line]:
    """Yield the line of readings that come one at a time and are each committed."""
    runners: Runners = {OURS: lambda: Ours(program(60), 1).with_commits(readings)}
    count = sum(len(values) for _, values in readings.values())
    what = "one reading at a time, each in a commit of its own"
    yield from rates(what, UNIT, count, measured(runners, 1))


def _one_by_one(readings: Readings, rounds: int) -> Iterator[Line]:
    """Yield the lines of readings that come one at a time, or are seen one by one."""
    what = f"the same job, one reading at a time; panes of 60 s, packed every {GROUP:,} readings"
    stream, pane_us = items(readings), 60 * SECOND_US
    single, handled = Ours(program(60), 1, GROUP), Ours(program(60, handler=True), BATCH)
    runners: Runners = {
        OURS: lambda: single.core_only(readings),
        "by a handler": lambda: handled.core_only(readings),
        BARE: lambda: bare(stream, pane_us),
    }
    if is_installed("bytewax"):
        runners[MAP] = lambda: bytewax(stream, pane_us, source_batch=1)
    notes = {
        OURS: "batches of one, the core only",
        "by a handler": f"an Event for each reading to a Python handler, in batches of {BATCH:,}",
        MAP: "stateful_map, one reading enters the flow at a time",
    }
    yield from rates(what, UNIT, len(stream), measured(runners, rounds), goal=GOAL_ONE, notes=notes)
    if MAP not in runners:
        yield missing(what, MAP, BRING)
