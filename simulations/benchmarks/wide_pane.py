"""One reading at a time into a pane of many keys, beside a bare Python loop.

Run: `python -m simulations.benchmarks wide_pane`. The agent holds a part of the pane in memory, and
looks up the one entry that a reading needs; each reading is committed. The bare loop adds to a dict
and keeps nothing over a crash. The ratio must not grow with the number of keys.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from device_agent.agent.core import Core, Durable
from device_agent.agent.intake.batch import Batch
from device_agent.agent.state.store import Store
from lasp_edge import Plan, Program, folds
from lasp_edge.units import SECOND_US
from simulations.benchmarks.measure import OURS, Line, cpu_s, rates

START_US = 1_700_000_000 * SECOND_US
BARE = "bare loop"


def program() -> Plan:
    """Return a window of a minute with a row for each room."""
    made = Program("wide")
    load = made.event("load", resolution="0.01")
    made.window(
        "by_room",
        source=load,
        fold=folds.mean(),
        size_s=60,
        key=lambda event: event.tags["room"],
    )
    return made.plan()


def table(*, quick: bool = False) -> Iterator[Line]:
    """Yield the lines of this benchmark."""
    readings = 20 if quick else 500
    for keys in (200, 3_000) if quick else (300, 30_000):
        yield from _lines(keys, readings)


def _lines(keys: int, readings: int) -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory))
        durable = Durable(Core(program(), "pi-1", 7, store.restored()), store)
        for start in range(0, keys, 500):
            _take(durable, range(start, min(keys, start + 500)), keys)
        rooms = [number * 7 % keys for number in range(readings)]

        def ours(_: object) -> None:
            for at, room in enumerate(rooms):
                _take(durable, (room,), keys, at)

        seconds = {OURS: cpu_s(ours, rounds=1), BARE: cpu_s(lambda _: _bare(rooms), rounds=5)}
        store.close()
    what = f"one reading at a time into a pane of {keys:,} keys, each in a commit"
    yield from rates(what, "readings/s", readings, seconds)


def _take(durable: Durable, rooms: range | tuple[int], keys: int, at: int = 0) -> None:
    times: list[int | None] = [START_US + room + at * keys % SECOND_US for room in rooms]
    tags = [{"room": f"room-{room}"} for room in rooms]
    count = len(tags)
    batch = Batch("bench", ["load"] * count, times, [20.0 + at] * count, [*tags])
    durable.read(batch, START_US + SECOND_US, is_pressing=True)


def _bare(rooms: list[int]) -> dict[str, tuple[int, int]]:
    panes: dict[str, tuple[int, int]] = {}
    for room in rooms:
        count, total = panes.get(f"room-{room}", (0, 0))
        panes[f"room-{room}"] = count + 1, total + 2_000
    return panes
