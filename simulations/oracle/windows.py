"""What each window holds: the fold of the readings whose own time lies in it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import NamedTuple

from crdts import ControlLog
from lasp_edge.errors import pass_interrupt
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fields import FieldsFold
from lasp_edge.folds.fold import Fold
from lasp_edge.language.declarations import Window
from lasp_edge.language.plan import Plan
from simulations.oracle.definitions import WindowDefinition
from simulations.oracle.partials import combined, folded
from simulations.oracle.readings import AcceptedReading, Reading, accepted
from simulations.oracle.streams import AT_THE_END, emitted


class WindowTruth(NamedTuple):
    """What a window holds: the fold's integers, and how many devices have a reading in it."""

    partial: Partial
    devices_in: int


EMPTY_LOG = ControlLog()
WindowAt = tuple[str, int]
"""Key and start of a row."""


def windows(
    plan: Plan,
    name: str,
    readings: Iterable[Reading],
    log: ControlLog = EMPTY_LOG,
    frontiers_us: Mapping[str, int] = AT_THE_END,
) -> dict[WindowAt, WindowTruth]:
    """Return every window that holds a reading, by (key, start), sorted.

    `readings` are those of all devices, in any order; repeats and foreign events are left out.
    `log` has the entries of operators: each reading counts with those at its own time, in
    each window that has it. `frontiers_us` has up to when the streams of each device are final.

    Raises:
        KeyError: the program has no such window.
    """
    window = plan.windows[name]
    definition = WindowDefinition(plan, window, log)
    held: dict[tuple[str, int], list[AcceptedReading]] = defaultdict(list)
    for sample in _samples(plan, window, readings, frontiers_us, log):
        quantised = definition.counts_as(sample)
        if quantised is not None:
            try:
                key = plan.functions.key(name, sample.event)
                if isinstance(window.fold, FieldsFold):
                    window.fold.lift_event(sample.event)
            except BaseException as error:  # noqa: BLE001 - what has no key is in no window
                pass_interrupt(error)
                continue
            for start_us in definition.starts(sample.event.time_us):
                held[key, start_us].append(sample._replace(quantised=quantised))
    return {at: _window_truth(definition.shape(at[1]).fold, held[at]) for at in sorted(held)}


def emptied(
    plan: Plan,
    name: str,
    rest: Set[WindowAt],
    readings: list[Reading],
    log: ControlLog = EMPTY_LOG,
    frontiers_us: Mapping[str, int] = AT_THE_END,
) -> dict[WindowAt, Partial]:
    """Return those of the rows of a window without a reading that stay, with nothing in them.

    A row stays where all of its readings were taken back. So does that of a stream's outputs, which
    a late reading takes back: only the devices know which there were.

    Args:
        plan: of the program.
        name: of the window.
        rest: where it has rows, and no reading.
        readings: see `windows`.
        log: see `windows`.
        frontiers_us: see `windows`.
    """
    window = plan.windows[name]
    if window.source.name in plan.streams:
        return dict.fromkeys(rest, window.fold.zero)
    if not rest or not any(each.retracted for each in readings):
        return {}
    unrevised = [each._replace(retracted=False) for each in readings]
    there = windows(plan, name, unrevised, log, frontiers_us)
    return dict.fromkeys(rest & there.keys(), window.fold.zero)


def _samples(
    plan: Plan,
    window: Window,
    readings: Iterable[Reading],
    frontiers_us: Mapping[str, int],
    log: ControlLog,
) -> Iterator[AcceptedReading]:
    """Yield what a window is made of: readings of its event, or the items of its stream."""
    if window.source.name in plan.streams:
        yield from emitted(plan, window.source.name, readings, frontiers_us, log)
        return
    for sample in accepted(plan, readings):
        if sample.event.name == window.source.name:
            yield sample


def _window_truth(fold: Fold, samples: list[AcceptedReading]) -> WindowTruth:
    if isinstance(fold, FieldsFold):
        partial = combined(fold, [fold.lift_event(sample.event) for sample in samples])
    else:
        partial = folded(fold, [(sample.quantised, sample.event.time_us) for sample in samples])
    return WindowTruth(partial, len({sample.event.device for sample in samples}))
