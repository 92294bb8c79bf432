"""Readings per CPU-second through an agent, beside bytewax and a bare Python loop.

Run: `python -m simulations.benchmarks ingest`. Each way does the same job for each device: quantise
a reading, drop it if it is a repeat, add it to the last 100 and bring their mean up to date, and
add it to the count and total of its pane. All ways end with the same numbers, which is checked.

- Ours is the agent's core: column batches, one agent a device. The mean is brought up to date and
  all changes are packed for the store once a batch; with commits, they are also in SQLite.
- One at a time: batches of one reading. They are taken in, and their changes packed, once a
  thousand readings, as in a group commit, or with a commit for each reading, which is what a flash
  disk should not have.
- bytewax does it in one stateful step, in memory: nothing is kept over a crash. `stateful_map` is
  called for each reading; `stateful_batch` with a list of a device's readings, over which the bare
  loop runs.
- The bare loop keeps a set, a deque and two dicts, and nothing over a crash.

The readings are real where the recorded data is found, see `recordings`.
"""

import gc
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Self

from crdts import BoundedLWWSet
from device_agent.agent.changes import Changes, Restored
from device_agent.agent.core import Core, Durable
from device_agent.agent.intake.batch import Batch
from device_agent.agent.state.store import Store
from lasp_edge import Event, Plan, Program, Update, folds
from lasp_edge.folds.columns import Partial
from lasp_edge.units import SECOND_US
from simulations.benchmarks.measure import OURS, Line, cpu_s, is_installed, missing, rates
from simulations.benchmarks.recordings import COPIES, Column, Fleet, recorded, tiled
from simulations.world.disk import EmptyStore

BOUND = 100
READINGS, QUICK_READINGS = 2_000_000, 20_000
BATCH, REPLAYED_BATCH, GROUP = 5_000, 500, 1_000
NO_TAGS: Mapping[str, str] = {}
UNIT = "readings/s"
GOAL, GOAL_ONE, GOAL_RATIO = 750e3, 150e3, 5
MAP, BATCHES, BARE = "bytewax", "bytewax batch", "bare loop"
BRING = "not installed: pip install 'lasp-edge[bench]'"


class Totals(NamedTuple):
    """What a device's readings amount to: the same numbers for every way of counting them."""

    accepted: int
    last: Partial  # count and total of the last 100
    panes: dict[int, Partial]  # start -> count and total


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


def batches(column: Column, size: int) -> Iterator[Batch]:
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

    def core_only(self, fleet: Fleet) -> dict[str, Totals]:
        """Take all in; what would be committed is dropped."""
        return {device: self._one(device, column) for device, column in fleet.items()}

    def _one(self, device: str, column: Column) -> Totals:
        core, nothing = Core(self._made, device, 7, Restored()), EmptyStore()
        panes: dict[int, Partial] = {}
        now_us = _end_us(column)
        took = batches(column, self._size)
        while group := list(islice(took, self._group)):
            for batch in group:
                core.hold(batch, now_us)
            core.part_list.read(nothing, now_us)
            _note(panes, core.prepare_commit())
            core.committed()
            core.samples.refold()
        return _outcome(core, panes)

    def with_commits(self, fleet: Fleet) -> dict[str, Totals]:
        """Take all in, with a commit for each batch."""
        with tempfile.TemporaryDirectory() as directory:
            return {
                device: self._durable(Path(directory, str(number)), device, column)
                for number, (device, column) in enumerate(fleet.items())
            }

    def _durable(self, directory: Path, device: str, column: Column) -> Totals:
        store = Store(directory)
        durable = Durable(Core(self._made, device, 7, store.restored()), store)
        now_us = _end_us(column)
        for batch in batches(column, self._size):
            durable.read(batch, now_us)
            durable.core.samples.refold()
        window = self._made.windows["minute"]
        stored = store.newest_panes(window.stream, 2**62)
        panes = {pane.pane_us: row.partial for pane, row in stored}
        store.close()
        return _outcome(durable.core, panes)


def _end_us(column: Column) -> int:
    return max(filter(None, column[0]))


def _note(panes: dict[int, Partial], changes: Changes) -> None:
    for pane, row in changes.panes.items():
        panes[pane.pane_us] = row.partial


def _outcome(core: Core, panes: dict[int, Partial]) -> Totals:
    accepted = core.counters.totals["accepted"]
    return Totals(accepted, core.results.local()["local_average"][""].partial, panes)


class State:
    """What a bare loop keeps of one device."""

    __slots__ = ("known", "last", "mean", "pane_us", "panes", "total")

    def __init__(self, pane_us: int) -> None:
        self.pane_us = pane_us
        self.known: set[tuple[int, int]] = set()
        self.last: deque[int] = deque(maxlen=BOUND)
        self.total = 0
        self.mean = 0.0
        self.panes: dict[int, Partial] = {}

    def take(self, time_us: int, value: float) -> None:
        """Do the job for one reading."""
        quantised = round(value * 100)
        identity = (time_us, quantised)
        if identity in self.known:
            return
        self.known.add(identity)
        last = self.last
        self.total += quantised - (last[0] if len(last) == BOUND else 0)
        last.append(quantised)
        self.mean = self.total / len(last)
        pane_us = time_us - time_us % self.pane_us
        count, total = self.panes.get(pane_us, (0, 0))
        self.panes[pane_us] = (count + 1, total + quantised)

    def outcome(self) -> Totals:
        """Return what came of it."""
        return Totals(len(self.known), (len(self.last), self.total), self.panes)


Item = tuple[str, tuple[int, float]]


def items(fleet: Fleet) -> list[Item]:
    """Return the readings as one stream of (device, (time, value)), in the order of time."""
    stream = [
        (device, (time_us or 0, value))
        for device, column in fleet.items()
        for time_us, value in zip(*column, strict=True)
    ]
    return sorted(stream, key=lambda item: item[1][0])


class Latest(dict[str, State]):
    """What a flow gives, in place of a list of all of it: the last of each device."""

    def __iadd__(self, given: Iterable[tuple[str, State]]) -> Self:
        self.update(given)
        return self


def bare(stream: Iterable[Item], pane_us: int) -> dict[str, Totals]:
    """Do the job in a loop."""
    states: dict[str, State] = {}
    for device, (time_us, value) in stream:
        state = states.get(device)
        if state is None:
            state = states[device] = State(pane_us)
        state.take(time_us, value)
    return {device: state.outcome() for device, state in states.items()}


def bytewax(
    stream: Sequence[Item], pane_us: int, *, by_batch: bool = False, source_batch: int = BATCH
) -> dict[str, Totals]:
    """Do the job in one stateful step of a bytewax flow with one worker.

    The step is given lists `by_batch`; `source_batch` readings enter the flow at once.
    """
    operators, testing = import_module("bytewax.operators"), import_module("bytewax.testing")
    flow = import_module("bytewax.dataflow").Dataflow("ingest")

    def step(state: State | None, reading: tuple[int, float]) -> tuple[State, State]:
        state = state or State(pane_us)
        state.take(*reading)
        return state, state

    class ListStep(operators.StatefulBatchLogic):  # type: ignore[name-defined, misc]
        def __init__(self, resumed: State | None) -> None:
            self.state = resumed or State(pane_us)

        def on_batch(self, values: list[tuple[int, float]]) -> tuple[list[State], bool]:
            for reading in values:
                self.state.take(*reading)
            return [self.state], False

        def snapshot(self) -> None:
            return None

    readings = operators.input("in", flow, testing.TestingSource(stream, batch_size=source_batch))
    stateful = operators.stateful_batch if by_batch else operators.stateful_map
    states = Latest()
    kept = stateful("step", readings, ListStep if by_batch else step)
    operators.output("out", kept, testing.TestingSink(states))
    testing.run_main(flow)
    return {device: state.outcome() for device, state in states.items()}


Contender = Callable[[], dict[str, Totals]]
Contenders = dict[str, Contender]
"""Who does the job, by name, and how."""


def measured(contenders: Contenders, rounds: int) -> dict[str, float]:
    """Return way -> CPU seconds, the least of some rounds.

    What is in memory before is hidden from Python's cyclic collector, else each way pays for
    walking over the readings and over what the other contenders gave.

    Raises:
        RuntimeError: two ways come to different numbers.
    """
    seconds: dict[str, float] = {}
    truth: dict[str, Totals] | None = None
    for name, run in contenders.items():
        found: list[dict[str, Totals]] = []

        def work(_: object, run: Contender = run, found: list[dict[str, Totals]] = found) -> None:
            found[:] = [run()]

        gc.collect()
        gc.freeze()
        try:
            seconds[name] = cpu_s(work, rounds=rounds)
        finally:
            gc.unfreeze()
        truth = truth or found[0]
        if found[0] != truth:
            raise RuntimeError(f"{name} does not come to the same numbers as {OURS}")
    return seconds


def table(*, quick: bool = False) -> Iterator[Line]:
    """Yield the lines of this benchmark."""
    recording, origin = recorded()
    wanted, copies, rounds = (QUICK_READINGS, 1, 1) if quick else (READINGS, COPIES, 2)
    fleet = tiled(recording, wanted, copies)
    count = sum(len(values) for _, values in fleet.values())
    note = f"{origin}, tiled to {len(fleet)} devices and {count:,} readings"
    yield from _by_columns(fleet, note, rounds)
    yield from _narrow_panes(fleet, rounds)
    yield from _one_by_one(tiled(recording, wanted // 20, 1), rounds)
    yield from _one_a_commit(tiled(recording, wanted // 1_000, 1))


def _by_columns(fleet: Fleet, note: str, rounds: int) -> Iterator[Line]:
    """Yield the lines of column batches."""
    what = f"repeat check, last {BOUND}, mean, panes of 60 s; column batches of {BATCH:,}"
    made, stream, pane_us = program(60), items(fleet), 60 * SECOND_US
    ours, replayed = Ours(made, BATCH), Ours(made, REPLAYED_BATCH)
    contenders: Contenders = {
        OURS: lambda: ours.core_only(fleet),
        "with commits": lambda: ours.with_commits(fleet),
        f"of {REPLAYED_BATCH}": lambda: replayed.core_only(fleet),
        "and commits": lambda: replayed.with_commits(fleet),
        BARE: lambda: bare(stream, pane_us),
    }
    if is_installed("bytewax"):
        contenders[MAP] = lambda: bytewax(stream, pane_us)
        contenders[BATCHES] = lambda: bytewax(stream, pane_us, by_batch=True)
    notes = {
        OURS: f"the core only; {note}",
        "with commits": "the same, each batch in a commit of SQLite's",
        f"of {REPLAYED_BATCH}": "the core only, batches as small as a replayed file's",
        "and commits": f"of {REPLAYED_BATCH}, each in a commit",
        MAP: "stateful_map, in memory",
        BATCHES: "stateful_batch, in memory: the step is given lists, and runs the bare loop",
    }
    seconds = measured(contenders, rounds)
    for line in rates(what, UNIT, len(stream), seconds, goal=GOAL, notes=notes):
        if line.way == MAP and line.ratio is not None:
            verdict = "met" if line.ratio >= GOAL_RATIO else "NOT met"
            yield line._replace(goal=f"ours >= {GOAL_RATIO}x: {verdict}")
        else:
            yield line
    if MAP not in contenders:
        yield missing(what, MAP, BRING)


def _narrow_panes(fleet: Fleet, rounds: int) -> Iterator[Line]:
    """Yield the lines of panes that hold two or three readings each."""
    what = f"the same, panes of 10 s, of two or three readings; column batches of {BATCH:,}"
    ours, stream = Ours(program(10), BATCH), items(fleet)
    contenders: Contenders = {
        OURS: lambda: ours.core_only(fleet),
        "with commits": lambda: ours.with_commits(fleet),
        BARE: lambda: bare(stream, 10 * SECOND_US),
    }
    yield from rates(what, UNIT, len(stream), measured(contenders, rounds))


def _one_a_commit(fleet: Fleet) -> Iterator[Line]:
    """Yield the line of readings that come one at a time and are each committed."""
    contenders: Contenders = {OURS: lambda: Ours(program(60), 1).with_commits(fleet)}
    count = sum(len(values) for _, values in fleet.values())
    what = "one reading at a time, each in a commit of its own"
    yield from rates(what, UNIT, count, measured(contenders, 1))


def _one_by_one(fleet: Fleet, rounds: int) -> Iterator[Line]:
    """Yield the lines of readings that come one at a time, or are seen one by one."""
    what = f"the same job, one reading at a time; panes of 60 s, packed every {GROUP:,} readings"
    stream, pane_us = items(fleet), 60 * SECOND_US
    single, handled = Ours(program(60), 1, GROUP), Ours(program(60, handler=True), BATCH)
    contenders: Contenders = {
        OURS: lambda: single.core_only(fleet),
        "by a handler": lambda: handled.core_only(fleet),
        BARE: lambda: bare(stream, pane_us),
    }
    if is_installed("bytewax"):
        contenders[MAP] = lambda: bytewax(stream, pane_us, source_batch=1)
    notes = {
        OURS: "batches of one, taken in as columns when they are packed; the core only",
        "by a handler": f"an Event for each reading to a Python handler, in batches of {BATCH:,}",
        MAP: "stateful_map, one reading enters the flow at a time",
    }
    seconds = measured(contenders, rounds)
    yield from rates(what, UNIT, len(stream), seconds, goal=GOAL_ONE, notes=notes)
    if MAP not in contenders:
        yield missing(what, MAP, BRING)
