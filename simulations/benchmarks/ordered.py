"""Scans in order and out of it, beside bytewax's stateful map and a bare loop.

Run: `python -m simulations.benchmarks ordered`. Each line is a whole stage of `lasp_edge.ordered`:
the key, the places, the log that a late item is put into, and what changes as a delta. The peers
take the same events in the same order, and neither keep them nor could take a late one.

The replay ratio is how often an item is stepped where items come out of order: by at most two
places, as in FlameStream's own measurement. Beside it stands its algorithm (`Grouping.apply`) on
the same shuffles: each group that holds a new item leaves once more.

Source: Trofimov, Kuralenok, Marshalkin and Novikov, "Delivery, consistency, and determinism", 2019.
"""

import gc
import json
import tracemalloc
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from random import Random
from typing import Any

from lasp_edge import Event, Program, folds, scans
from lasp_edge.evaluation.history import StreamHistory
from lasp_edge.event import StreamItem
from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.streaming import stream_plan
from lasp_edge.ordered.cells import PRESENT, Item, packed
from lasp_edge.ordered.deltas import Delta
from lasp_edge.ordered.engine import StreamEngine
from lasp_edge.ordered.inputs import in_cells
from lasp_edge.ordered.places import Place, reading_place
from lasp_edge.ordered.stages import ScanStage
from simulations.benchmarks.measure import (
    OURS,
    Line,
    cpu_s,
    is_installed,
    missing,
    rates,
    sizes,
)

ITEMS, QUICK_ITEMS = 100_000, 4_000
BATCH = 500
KEYS = 50
KEPT_US, CUT_ITEMS = 10_000_000, 25_000
"""What is older than this is let go each time that this number of items has come."""
MAP, BARE = "bytewax", "bare loop"
BRING = "not installed: pip install 'lasp-edge[bench]'"
UNIT = "items/s"
DIFFERENCES_GOAL, SINGLE_GOAL, GROUPING_GOAL, SESSIONS_GOAL = 250e3, 150e3, 200e3, 150e3
ENGINE_GOALS = {100: 100e3, 500: 100e3, 2_000: 100e3, 8_000: 75e3}
"""Items of a batch -> items a CPU second."""
SHUFFLES, SHUFFLED, DISORDER, WINDOW = 10, 1_000, 2, 2
BATCHED_GOAL = 1.02
START_US = 1_700_000_000_000_000
LIVE = 10_000
LIVE_GOAL_MB, FAST_GOAL, SLOW_GOAL = 8, 4, 6.5
RUN, PAUSE_US, GAP_S = 10, 1_000_000, 0.2
"""Events of a key until a pause, that pause, and the gap that ends a session."""

Stepped = tuple[Any, Sequence[Any]]
StepOf = Callable[[Any, Event], Stepped]


def events(count: int, keys: int = 1) -> list[tuple[Place, Event]]:
    """Return events a millisecond apart, each at its place; devices are the keys.

    After ten of each there is a pause.
    """
    made = []
    for n in range(count):
        time_us, device = n * 1_000 + n // (RUN * keys) * PAUSE_US, f"pi-{n % keys}"
        event = Event("x", float(n % 100), time_us, device, {})
        made.append((reading_place("x", "", n % 100, time_us, device), event))
    return made


def in_batches(items: list[tuple[Place, Event]], size: int) -> list[Delta]:
    """Return events as the deltas that a stage takes."""
    return [
        {place: (None, event) for place, event in items[at : at + size]}
        for at in range(0, len(items), size)
    ]


def staged(make: Callable[[], scans.Scan], deltas: list[Delta], *, keyed: bool) -> ScanStage:
    """Return a stage that has taken all."""
    stage = ScanStage(make(), "items", (lambda event: event.device) if keyed else None)
    since = 0
    for delta in deltas:
        time_us = next(iter(delta))[0]
        stage.push([delta], time_us)
        stage.advance(time_us)
        since += len(delta)
        if since >= CUT_ITEMS:
            stage.cut(time_us - KEPT_US)
            since = 0
    return stage


def bare(step: StepOf, zero: Any, items: list[tuple[Place, Event]]) -> int:
    """Step each event in a loop, and count the items."""
    states: dict[str, Any] = {}
    count = 0
    for _, event in items:
        key = event.device
        states[key], values = step(states.get(key, zero), event)
        count += len(values)
    return count


def bytewax(step: StepOf, zero: Any, items: list[tuple[Place, Event]], batch: int) -> None:
    """Step each event in a stateful map of a bytewax flow with one worker."""
    operators, testing = import_module("bytewax.operators"), import_module("bytewax.testing")
    flow = import_module("bytewax.dataflow").Dataflow("ordered")
    source = testing.TestingSource([event for _, event in items], batch_size=batch)
    read = operators.input("in", flow, source)
    keyed = operators.key_on("key", read, lambda event: event.device)

    def stepped(state: Any, event: Event) -> Stepped:
        return step(zero if state is None else state, event)

    operators.output("out", operators.stateful_map("step", keyed, stepped), testing.TestingSink([]))
    testing.run_main(flow)


def table(*, quick: bool = False) -> Iterator[Line]:
    """Yield the lines of this benchmark."""
    count, rounds = (QUICK_ITEMS, 1) if quick else (ITEMS, 3)
    yield from _rates(count, rounds)
    yield from _engine(count, rounds)
    yield from _replay()
    yield from _bytes()
    yield from _memory(LIVE // 10 if quick else LIVE)


def grouping() -> scans.Scan:
    """Return a grouping of three."""
    return scans.last(3)


def sessions() -> scans.Scan:
    """Return sessions of ten events."""
    return scans.sessions(gap_s=GAP_S, fold=folds.sum()).at(Resolution("1"))


def metered() -> scans.Scan:
    """Return differences in steps of a resolution."""
    return scans.differences(reset=True).at(Resolution("0.01"))


def _rates(count: int, rounds: int) -> Iterator[Line]:
    """Yield the lines of items in order."""
    cases: tuple[tuple[str, Callable[[], scans.Scan], int, int, float | None], ...] = (
        ("differences, one key", scans.differences, 1, BATCH, DIFFERENCES_GOAL),
        (f"differences, {KEYS} keys", scans.differences, KEYS, BATCH, None),
        ("differences in steps of 0.01, one key", metered, 1, BATCH, None),
        ("differences, one key", scans.differences, 1, 1, SINGLE_GOAL),
        (f"grouping(3), {KEYS} keys", grouping, KEYS, BATCH, GROUPING_GOAL),
        (f"sessions, {KEYS} keys", sessions, KEYS, BATCH, SESSIONS_GOAL),
    )
    for name, make, keys, batch, goal in cases:
        items, scan = events(count, keys), make()
        deltas = in_batches(items, batch)

        def ours(
            _: object,
            make: Callable[[], scans.Scan] = make,
            deltas: list[Delta] = deltas,
            keys: int = keys,
        ) -> None:
            staged(make, deltas, keyed=keys > 1)

        gc.collect()
        gc.freeze()
        seconds = {OURS: cpu_s(ours, rounds=rounds)}
        if is_installed("bytewax.operators"):
            flow = partial(bytewax, scan.step, scan.zero, items, batch)
            seconds[MAP] = cpu_s(lambda _, flow=flow: flow(), rounds=rounds)  # type: ignore[misc]
        loop = partial(bare, scan.step, scan.zero, items)
        seconds[BARE] = cpu_s(lambda _, loop=loop: loop(), rounds=rounds)  # type: ignore[misc]
        gc.unfreeze()
        how = "one by one" if batch == 1 else f"in batches of {batch}"
        what = f"{name}, in order, {how}"
        notes = {MAP: "stateful_map: no places, no log, no timers", BARE: "the step, a dict by key"}
        yield from rates(what, UNIT, count, seconds, goal=goal, notes=notes)
        if MAP not in seconds:
            yield missing(what, MAP, BRING)


def _engine(count: int, rounds: int) -> Iterator[Line]:
    """Yield the lines of a device's engine: items put in cells, scanned, cut and packed away."""
    items, scanned = metered_items(count), events(count)
    scan = scans.differences()
    for batch, goal in ENGINE_GOALS.items():
        gc.collect()
        gc.freeze()
        ours = partial(filled, items, batch, LIVE, waits=False)
        seconds = {OURS: cpu_s(lambda _, ours=ours: ours(), rounds=rounds)}  # type: ignore[misc]
        loop = partial(bare, scan.step, scan.zero, scanned)
        seconds[BARE] = cpu_s(lambda _, loop=loop: loop(), rounds=rounds)  # type: ignore[misc]
        gc.unfreeze()
        what = f"engine of differences, in order, in batches of {batch:,}"
        notes = {BARE: "the step, a dict by key"}
        yield from rates(what, UNIT, count, seconds, goal=goal, notes=notes)


def shuffled(seed: int) -> list[int]:
    """Return the numbers of events, each at most `DISORDER` places too late."""
    rng = Random(seed)
    return sorted(range(SHUFFLED), key=lambda n: (n + rng.randint(0, DISORDER), n))


def flamestream(order: list[int]) -> int:
    """Return how many groups leave FlameStream's grouping for events in this order."""
    here: list[int] = []
    left = 0
    for n in order:
        at = bisect_left(here, n)
        here.insert(at, n)
        left += min(at + WINDOW, len(here)) - at
    return left


def replayed(order: list[int], batch: int) -> int:
    """Return how many steps our grouping takes for them."""
    items = [(reading_place("x", "", n, n), Event("x", float(n), n, "", {})) for n in order]
    stage = ScanStage(scans.last(WINDOW))
    for delta in in_batches(items, batch):
        stage.push([delta])
    return stage.steps


def _replay() -> Iterator[Line]:
    """Yield the lines of the replay ratio."""
    orders = [shuffled(seed) for seed in range(SHUFFLES)]
    count = SHUFFLES * SHUFFLED
    theirs = sum(flamestream(order) for order in orders) / count
    what = f"steps an item, grouping({WINDOW}), each at most {DISORDER} places too late"
    singly = sum(replayed(order, 1) for order in orders) / count
    figures = {OURS: singly, "FlameStream": theirs}
    notes = {"FlameStream": "its algorithm, on the same shuffles"}
    yield from sizes(what, "steps", figures, goal=theirs, notes=notes)
    together = sum(replayed(order, 10) for order in orders) / count
    yield from sizes(f"{what}, in batches of 10", "steps", {OURS: together}, goal=BATCHED_GOAL)


def cell(rate_hz: int) -> dict[Item, int]:
    """Return the items of one cell of a sensor whose value wanders."""
    return {
        Item(START_US + n * 1_000_000 // rate_hz, value, ""): PRESENT
        for n, value in enumerate(wandering(10 * rate_hz))
    }


def wandering(count: int) -> Iterator[int]:
    """Yield the values of a sensor, in steps: each near the one before."""
    rng, value = Random(count), 2_150
    for _ in range(count):
        value += rng.randint(-3, 3)
        yield value


def _bytes() -> Iterator[Line]:
    """Yield the lines of bytes in the store."""
    for rate_hz, goal in ((10, FAST_GOAL), (1, SLOW_GOAL)):
        items = cell(rate_hz)
        texts = [
            json.dumps({"event": "x", "device": "pi-1", "ts": item.time_us / 1e6, "x": item.value})
            for item in items
        ]
        figures = {
            OURS: len(packed(items)) / len(items),
            "JSON": sum(map(len, texts)) / len(items),
        }
        what = f"bytes an item in the store, a sensor of {rate_hz} Hz, cells of 10 s"
        yield from sizes(what, "B", figures, goal=goal)


def engine_of(live_most: int) -> tuple[StreamEngine, StreamHistory]:
    """Return the streams of a device that takes differences, before any item, and their store."""
    program = Program("water")
    litres = program.event("litres", resolution="1")
    used = program.scan("used", source=litres, scan=scans.differences(), per_device=True)
    program.result(used)
    plan = program.plan()
    history = StreamHistory(plan, "pi-1", _nothing)
    return StreamEngine(stream_plan(plan, "pi-1"), history, live_most), history


def filled(items: list[StreamItem], batch: int, live_most: int, *, waits: bool) -> StreamEngine:
    """Return an engine that has taken all.

    Args:
        items: what it takes.
        batch: items that it takes together.
        live_most: see `StreamEngine`.
        waits: nothing ever becomes final, so nothing is packed away.
    """
    engine, history = engine_of(live_most)
    for first in range(0, len(items), batch):
        taken = items[first : first + batch]
        engine.take(in_cells(taken), None if waits else taken[0].time_us)
        history.take_changes()
    return engine


def metered_items(count: int) -> list[StreamItem]:
    """Return items of a sensor that is read once a second."""
    return [
        StreamItem("litres", START_US + n * 1_000_000, value, "", "pi-1")
        for n, value in enumerate(wandering(count))
    ]


def _nothing(*_asked: Any) -> list[Any]:
    return []


def _memory(live: int) -> Iterator[Line]:
    """Yield the line of the memory of live items."""
    items = metered_items(live)
    tracemalloc.start()
    engine = filled(items, BATCH, 2 * live, waits=True)
    spent, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert engine.since_us < 0, "no item was packed away"
    what = f"memory of {live:,} live items of differences"
    yield from sizes(what, "MB", {OURS: spent / 1e6}, goal=LIVE_GOAL_MB)
