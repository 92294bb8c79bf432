"""What a late entry costs: a week of readings at one a second, and their panes made again.

Run: `python -m simulations.benchmarks control`. An operator says that a sensor was 0.3 too high
since a week: the agent's core reads the week's identities back, asks `value=` of the program for
each reading, makes its panes again and commits them; the old ones are deleted. The second line is
of a window whose size is changed, where nothing need be asked of a reading. The bare loop does the
same sums over lists that it has in memory, and keeps nothing. That all get the same panes is
checked.
"""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

from crdts import ControlLog, Replica
from device_agent.agent.core import Core, Durable
from device_agent.agent.intake.batch import Batch
from device_agent.agent.settings import Settings
from device_agent.agent.state.store import Store
from lasp_edge import Plan, Program, folds
from lasp_edge.folds.columns import Partial
from lasp_edge.language.regimes import WindowRegimes
from lasp_edge.protocol.commands import CommandFrame, CommandLog
from lasp_edge.protocol.topics import topic_of
from lasp_edge.units import SECOND_US
from simulations.benchmarks.measure import OURS, Line, cpu_s, times

BEGIN_US = 1_700_000_000 * SECOND_US
WEEK, QUICK = 604_800, 3_600
BATCH = 2_000
OPERATOR = Replica(1, 5, "operator")
BARE = "bare loop"
GOAL_S = 3.0
SET = {"offset": "-0.30", "span_s": "20"}
"""The entry that comes late; the window over the other parameter stays as it is."""


def program(parameter: str) -> Plan:
    """Return a window that a parameter changes."""
    made = Program("control")
    temperature = made.event("temperature", resolution="0.01")
    if parameter == "span_s":
        span = made.parameter("span_s", "10")
        made.window("mean", source=temperature, fold=folds.mean(), size_s=span)
    else:
        offset = made.parameter("offset", "0", resolution="0.01")
        made.window(
            "mean",
            source=temperature,
            fold=folds.mean(),
            size_s=10,
            uses=(offset,),
            value=lambda event, at: event.value + at[offset],
        )
    return made.plan()


def log_of(parameter: str) -> ControlLog:
    """Return the log of the operator."""
    return ControlLog().set(parameter, "", BEGIN_US, SET[parameter], "bench")


def table(*, quick: bool = False) -> Iterator[Line]:
    """Yield the lines of this benchmark."""
    for parameter in SET:
        yield from _lines(parameter, QUICK if quick else WEEK, None if quick else GOAL_S)


def _lines(parameter: str, count: int, goal_s: float | None) -> Iterator[Line]:
    drawn, plan, end_us = Random(1), program(parameter), BEGIN_US + count * SECOND_US
    steps = [drawn.randint(1_800, 2_400) for _ in range(count)]
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory))
        core = Core(plan, "pi-1", 7, store.restored(), Settings(fence_wait_us=0))
        durable = Durable(core, store)
        for batch in _batches(steps):
            durable.read(batch, end_us)
            durable.commit(end_us)

        def ours(_: object) -> None:
            frame = CommandFrame.of(
                OPERATOR, 1, (parameter, ""), CommandLog(control=log_of(parameter))
            )
            durable.hear(topic_of(frame, core.agent.topics), frame.encode(), end_us)
            while core.missing is not None and core.missing.waits:
                durable.commit(end_us)

        seconds = {OURS: cpu_s(ours, rounds=1)}
        regimes = WindowRegimes(plan.windows["mean"], plan.functions, log_of(parameter))
        found = {
            pane.pane_us: row.partial
            for piece in regimes.pieces
            for pane, row in store.newest_panes(piece.stream, WEEK * SECOND_US)
        }
        store.close()
    bare: list[dict[int, Partial]] = []
    seconds[BARE] = cpu_s(lambda _: bare.append(_bare(parameter, steps)), rounds=3)
    assert found == bare[0], "a late entry has to give the panes of the definition"
    what = f"{parameter} is changed for the last {count:,} readings"
    yield from times(what, seconds, goal_s=goal_s)


def _batches(steps: list[int]) -> Iterator[Batch]:
    tags: Mapping[str, str] = {}
    for first in range(0, len(steps), BATCH):
        several = steps[first : first + BATCH]
        times_us: list[int | None] = [
            BEGIN_US + (first + at) * SECOND_US for at in range(len(several))
        ]
        count, values = len(several), [each / 100 for each in several]
        yield Batch("bench", ["temperature"] * count, times_us, values, [tags] * count)


def _bare(parameter: str, steps: list[int]) -> dict[int, Partial]:
    span_us = (20 if parameter == "span_s" else 10) * SECOND_US
    offset = 0 if parameter == "span_s" else -30
    panes: dict[int, Partial] = {}
    time_us = BEGIN_US
    for step in steps:
        pane_us = time_us // span_us * span_us
        count, total = panes.get(pane_us, (0, 0))
        panes[pane_us] = count + 1, total + step + offset
        time_us += SECOND_US
    return panes
