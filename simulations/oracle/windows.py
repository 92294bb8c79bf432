"""What each window holds: the fold of the readings whose own time lies in it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from crdts import ControlLog
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.language.declarations import Window
from lasp_edge.language.plan import Plan
from simulations.oracle.controlled import ControlledTruth
from simulations.oracle.partials import folded
from simulations.oracle.readings import AcceptedReading, Reading, accepted
from simulations.oracle.streams import said


class WindowTruth(NamedTuple):
    """What a window holds: the fold's integers, and how many devices have a reading in it."""

    partial: Partial
    devices_in: int


NOTHING_SAID = ControlLog()


def windows(
    plan: Plan, name: str, readings: Iterable[Reading], log: ControlLog = NOTHING_SAID
) -> dict[tuple[str, int], WindowTruth]:
    """Return every window that holds a reading, by (key, start), sorted.

    `readings` are those of all devices, in any order; repeats and foreign events are left out.
    `log` is what operators said of parameters: each reading counts with those at its own time, in
    each window that has it.

    Raises:
        KeyError: the program has no such window.
    """
    window = plan.windows[name]
    if window.controls.counts or not window.is_fixed:
        return _controlled(plan, window, readings, log)
    held: dict[tuple[str, int], list[AcceptedReading]] = defaultdict(list)
    for sample in _samples(plan, window, readings):
        key = plan.functions.key(name, sample.event)
        time_us = sample.event.time_us
        start_us = time_us // window.slide_us * window.slide_us  # the last start not after it
        while start_us + window.size_us > time_us:
            held[key, start_us].append(sample)
            start_us -= window.slide_us
    return {at: _window_truth(window.fold, held[at]) for at in sorted(held)}


def _controlled(
    plan: Plan, window: Window, readings: Iterable[Reading], log: ControlLog
) -> dict[tuple[str, int], WindowTruth]:
    held: dict[tuple[str, int], list[AcceptedReading]] = defaultdict(list)
    truth = ControlledTruth(plan, window, log)
    for sample in _samples(plan, window, readings):
        quantised = truth.counts_as(sample)
        if quantised is not None:
            key = plan.functions.key(window.name, sample.event)
            for start_us in truth.starts(sample.event.time_us):
                held[key, start_us].append(sample._replace(quantised=quantised))
    return {at: _window_truth(truth.shape(at[1]).fold, held[at]) for at in sorted(held)}


def _samples(plan: Plan, window: Window, readings: Iterable[Reading]) -> Iterator[AcceptedReading]:
    """Yield what a window is made of: readings of its event, or what its stream says of them."""
    if window.source.name in plan.streams:
        yield from said(plan, window.source.name, readings)
        return
    for sample in accepted(plan, readings):
        if sample.event.name == window.source.name:
            yield sample


def _window_truth(fold: Fold, samples: list[AcceptedReading]) -> WindowTruth:
    partial = folded(fold, [(sample.quantised, sample.event.time_us) for sample in samples])
    return WindowTruth(partial, len({sample.event.device for sample in samples}))
