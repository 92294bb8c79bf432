"""The peers of the ingest benchmark: a bare Python loop, and bytewax with one stateful step."""

from collections import deque
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import NamedTuple, Self

from lasp_edge.folds.columns import Partial
from simulations.benchmarks.ingest_readings import Readings

BOUND = 100
"""Readings of which the mean is kept up to date."""
SOURCE_BATCH = 5_000
"""Readings that enter a bytewax flow at once."""


class Totals(NamedTuple):
    """What one device's readings gave: the same numbers for every runner."""

    accepted: int
    last: Partial  # count and total of the last 100
    panes: dict[int, Partial]  # start -> count and total


class LoopState:
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

    def totals(self) -> Totals:
        """Return what its readings gave."""
        return Totals(len(self.known), (len(self.last), self.total), self.panes)


Item = tuple[str, tuple[int, float]]


def items(readings: Readings) -> list[Item]:
    """Return the readings as one stream of (device, (time, value)), in the order of time."""
    stream = [
        (device, (time_us or 0, value))
        for device, column in readings.items()
        for time_us, value in zip(*column, strict=True)
    ]
    return sorted(stream, key=lambda item: item[1][0])


class Latest(dict[str, LoopState]):
    """What a flow gives, in place of a list of all of it: the last of each device."""

    def __iadd__(self, given: Iterable[tuple[str, LoopState]]) -> Self:
        self.update(given)
        return self


def bare(stream: Iterable[Item], pane_us: int) -> dict[str, Totals]:
    """Do the job in a loop."""
    states: dict[str, LoopState] = {}
    for device, (time_us, value) in stream:
        state = states.get(device)
        if state is None:
            state = states[device] = LoopState(pane_us)
        state.take(time_us, value)
    return {device: state.totals() for device, state in states.items()}


def bytewax(
    stream: Sequence[Item],
    pane_us: int,
    *,
    by_batch: bool = False,
    source_batch: int = SOURCE_BATCH,
) -> dict[str, Totals]:
    """Do the job in one stateful step of a bytewax flow with one worker.

    Args:
        stream: the readings.
        pane_us: length of a pane.
        by_batch: the step is given lists.
        source_batch: how many readings enter the flow at once.
    """
    operators, testing = import_module("bytewax.operators"), import_module("bytewax.testing")
    flow = import_module("bytewax.dataflow").Dataflow("ingest")

    def step(state: LoopState | None, reading: tuple[int, float]) -> tuple[LoopState, LoopState]:
        state = state or LoopState(pane_us)
        state.take(*reading)
        return state, state

    class ListStep(operators.StatefulBatchLogic):  # type: ignore[name-defined, misc]
        def __init__(self, resumed: LoopState | None) -> None:
            self.state = resumed or LoopState(pane_us)

        def on_batch(self, values: list[tuple[int, float]]) -> tuple[list[LoopState], bool]:
            for reading in values:
                self.state.take(*reading)
            return [self.state], False

        def snapshot(self) -> None:
            return None

    stream_in = operators.input("in", flow, testing.TestingSource(stream, batch_size=source_batch))
    stateful = operators.stateful_batch if by_batch else operators.stateful_map
    states = Latest()
    kept = stateful("step", stream_in, ListStep if by_batch else step)
    operators.output("out", kept, testing.TestingSink(states))
    testing.run_main(flow)
    return {device: state.totals() for device, state in states.items()}
