"""Local events, live: bytes and delays on virtual time, and what a device takes in.

Run: `python -m simulations.benchmarks local_live`. It is the program and the fleet of
`local_events`, for some hours at a reading a second and one hour at ten a second, with the default
interval (`energy_wire`). At a reading a second more than half of our bytes tell only that a device
and its gateway are there.

A value barrier's rate is bound by what devices do with local readings, which concern nobody else.
So that is measured alone, in CPU seconds and without the start of any process: batches in memory
come through a device's core to their commit, with all that becomes of them there. No file is read,
and no event in order comes between. Beside it the same readings in a window, which needs no order
and takes whole columns; and a bare loop that calls the scan's own step for each reading, and keeps
nothing. Two cores of devices give twice the rate.
"""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

from device_agent.agent.core import Core, Durable
from device_agent.agent.intake.batch import Batch
from device_agent.agent.state.store import Store
from lasp_edge.collecting import collect_rarely
from lasp_edge.event import Event
from lasp_edge.language.plan import Plan
from lasp_edge.units import SECOND_US
from simulations.benchmarks import energy
from simulations.benchmarks.energy_wire import ANSWERS, SHARES, WireCost, cost_of, delays_of
from simulations.benchmarks.local_events import (
    BARRIER_RATE,
    DEVICES,
    QUICK_SLICES,
    SLICES,
    START_S,
    SentRun,
    lines,
)
from simulations.benchmarks.measure import OURS, Line, at_most, cpu_s, rates

PLACE_BYTES, MODEL_BYTES = 290, 390
"""Goals: bytes of an event in order, a device, both ways: part and share with a total, and with
sums and a model of ten numbers."""
DELAYED = 20
"""Slices whose rows are waited for."""
PUBLICATIONS = 3
"""The goal of publications of an event in order, one after the other: it, its place, the parts."""
LIVE_HZ, INTERVAL_S = {1: 15, 10: SLICES}, 60.0
"""Readings a second -> slices; and seconds between two publications: the default."""
TAKEN, QUICK_TAKEN, BATCH = 200_000, 10_000, 5_000
"""Readings that a device takes in, and how many of them are in a batch."""
CORES = 2
"""Cores of the machine that the goal is for."""


def table(*, quick: bool = False) -> Iterator[Line]:
    """Yield the lines of this benchmark."""
    yield from _intake_lines(QUICK_TAKEN if quick else TAKEN)
    yield from _delay_lines(QUICK_SLICES if quick else DELAYED)
    for rate_hz, most in LIVE_HZ.items():
        slices = min(most, QUICK_SLICES) if quick else most
        costs = {
            name: cost_of(plan, len(DEVICES), slices, rate_hz, INTERVAL_S)
            for name, plan in (("sent", energy.sent.plan()), ("local", energy.local.plan()))
        }
        runs = [SentRun(each.sizes, each.rows) for each in costs.values()]
        live = f"live, {rate_hz} Hz"
        yield from lines(live, slices, *runs, goals=False)
        yield _place_line(live, costs["local"], slices, "a total", PLACE_BYTES)
        few = min(slices, DELAYED)
        cost = cost_of(energy.modelled.plan(), len(DEVICES), few, rate_hz, INTERVAL_S)
        yield _place_line(live, cost, few, "sums and a model of ten", MODEL_BYTES)


def _intake_lines(count: int) -> Iterator[Line]:
    """Yield how many local readings a device takes in, in a CPU second."""
    collect_rarely()  # as an agent with streams does
    batches = _batches(count)
    plans = {OURS: energy.local.plan(), "ours, no order": energy.windowed.plan()}
    seconds = {
        name: cpu_s(partial(_take, plan), lambda: batches, rounds=2) for name, plan in plans.items()
    }
    seconds["bare loop"] = cpu_s(_step, lambda: batches, rounds=2)
    goal, what = BARRIER_RATE / CORES, "a device's local readings to their commit, of CPU"
    yield from rates(what, "readings/s", count, seconds, goal=goal)


def _batches(count: int) -> list[Batch]:
    random, tags = Random(1), {"house": "h"}
    times_us = [START_S * SECOND_US + at * SECOND_US // max(LIVE_HZ) for at in range(count)]
    values = [round(random.gauss(200, 60)) for _ in times_us]
    return [
        Batch(
            "file", ["power"] * len(part), list(part), values[at : at + BATCH], [tags] * len(part)
        )
        for at in range(0, count, BATCH)
        for part in [times_us[at : at + BATCH]]
    ]


def _take(plan: Plan, batches: list[Batch]) -> None:
    """Let a device take batches in, each with a commit."""
    with tempfile.TemporaryDirectory(prefix="local-", dir="/var/tmp") as directory:
        store = Store(Path(directory))
        durable = Durable(Core(plan, DEVICES[0], 7, store.restored()), store)
        now_us = batches[-1].times_us[-1]
        assert now_us is not None, "all have a time"
        for batch in batches:
            durable.read(batch, now_us)
        assert durable.core.counters.totals["accepted"] == sum(map(len, batches))
        store.close()


def _step(batches: list[Batch]) -> None:
    """Step the scan for each reading, and do nothing else."""
    scan = energy.Load()
    state: energy.State = scan.zero
    for batch in batches:
        for time_us, value, tags in zip(batch.times_us, batch.values, batch.tags, strict=True):
            state, _ = scan.step(state, Event("power", value, time_us or 0, DEVICES[0], tags))


def _delay_lines(slices: int) -> Iterator[Line]:
    """Yield after which time the row of an event in order is final: half of them, and 19 of 20."""
    what = f"virtual time: an event in order to its final row, {len(DEVICES)} devices, a gateway"
    for name, plan in (("sent", energy.sent.plan()), ("local", energy.local.plan())):
        found = delays_of(plan, len(DEVICES), slices, max(LIVE_HZ), 1.0)
        delays = sorted(found.seconds)
        for part in (0.5, 0.95):
            delay_s = delays[round(part * (len(delays) - 1))]
            note = f"{name}, p{part * 100:.0f}; a message takes a second, so does a tick"
            yield Line(what, OURS, None, delay_s, "s", None, "", note)
        if name == "local":
            what, goal = f"{what}: publications", at_most(found.publications, PUBLICATIONS, "")
            note = "one after the other, each at once: the event, its place, what each has made"
            yield Line(what, OURS, None, found.publications, "", None, goal, note)


def _place_line(how: str, cost: WireCost, slices: int, made: str, goal: int) -> Line:
    """Return the line of what an event in order takes of each device."""
    size = sum(cost.frames[kind] for kind in (ANSWERS, SHARES)) / slices / len(DEVICES)
    around = sum(cost.sizes[kind] - cost.frames[kind] for kind in (ANSWERS, SHARES))
    more = around / sum(cost.counts[kind] for kind in (ANSWERS, SHARES))
    what = f"{how}: bytes of an event in order, a device: part and share, {made}"
    note = f"frames; with topics, MQTT's heads and acknowledgements {more:.0f} B more a message"
    return Line(what, OURS, None, size, "B", None, at_most(size, goal, "B"), note)
