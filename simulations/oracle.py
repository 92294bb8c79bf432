"""The truth, by sequential recomputation from raw readings: slow, and obviously right.

Everything the fleet computes has a definition that needs no lattice, pane or message: a window's
partial is the fold of the readings that lie in it; a local fold's is the fold of the last `bound`
values that the handlers added; a dynamic fold's combines those of all devices. This module is those
definitions, over fractions and lists, and shares no code with the way that a device or Spark takes.

    >>> from lasp_edge import Program, folds
    >>> program = Program("greenhouse")
    >>> temperature = program.event("temperature", resolution="0.01")
    >>> minute = program.window(
    ...     "minute", source=temperature, fold=folds.mean(), size_s=60, slide_s=30)
    >>> readings = [Reading("pi-1", "temperature", 21.5, 40_000_000),
    ...             Reading("pi-2", "temperature", 22.5, 59_000_000),
    ...             Reading("pi-2", "temperature", 22.5, 59_000_000)]  # once more: counts once
    >>> for (key, start_us), truth in windows(program, "minute", readings).items():
    ...     print(start_us, truth.partial, truth.devices_in)
    0 (2, 4400) 2
    30000000 (2, 4400) 2
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from crdts import BoundedLWWSet
from lasp_edge.declarations import Event, Variable
from lasp_edge.fold import Fold, Op, Partial
from lasp_edge.numbers import LIMIT, Resolution
from lasp_edge.program import Program, Update

NO_TAGS: Mapping[str, str] = {}


class Reading(NamedTuple):
    """One reading as a source gave it.

    Attributes:
        device: the device that read it.
        event: the event's name.
        value: as it was read, before it is quantised.
        time_us: its own time, or its acceptance where it has none.
        tags: its labels.
        stamped: its time is that of its acceptance; such readings are never taken for repeats.
    """

    device: str
    event: str
    value: Any
    time_us: int
    tags: Mapping[str, str] = NO_TAGS
    stamped: bool = False


class Sample(NamedTuple):
    """An accepted reading: its value in steps of the resolution, and what handlers and keys see."""

    quantised: int
    event: Event


class WindowTruth(NamedTuple):
    """What a window holds: the fold's integers, and how many devices have a reading in it."""

    partial: Partial
    devices_in: int


def quantised(value: Any, resolution: Resolution) -> int | None:
    """Return how many steps `value` is, by the definition; None where it must be refused."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
        return None
    try:
        steps = round(Fraction(value) / resolution.exact)  # half to even
    except (ValueError, OverflowError):  # NaN, infinity
        return None
    return steps if abs(steps) < LIMIT else None


def accepted(program: Program, readings: Iterable[Reading]) -> list[Sample]:
    """Return the readings that count, in order.

    Left out are unknown events, values that must be refused, and repeats: equal device, event,
    tags, own time and quantised value. Readings that a device left aside for another reason (too
    late, in the future, a key or handler that raised) must not be given.
    """
    samples = []
    known = set()
    for reading in readings:
        event = program.events.get(reading.event)
        steps = None if event is None else quantised(reading.value, event.resolution)
        if event is None or steps is None:
            continue
        tags = tuple(sorted(reading.tags.items()))
        identity = (reading.device, reading.event, tags, reading.time_us, steps)
        if identity in known and not reading.stamped:
            continue
        if not reading.stamped:
            known.add(identity)
        value = float(steps * event.resolution.exact)
        seen = Event(reading.event, value, reading.time_us, reading.device, reading.tags)
        samples.append(Sample(steps, seen))
    return samples


def folded(fold: Fold, samples: Iterable[tuple[int, int]]) -> Partial:
    """Return the fold of (quantised value, time) samples, column by column."""
    return combined(fold, [fold.lift(value, time_us) for value, time_us in samples])


def combined(fold: Fold, partials: Iterable[Partial]) -> Partial:
    """Return the combination of partials, column by column."""
    rows = list(partials)
    columns: list[int | None] = []
    for at, column in enumerate(fold.columns):
        present = [number for row in rows if (number := row[at]) is not None]
        if column.op is Op.SUM:
            columns.append(sum(present))
        else:
            extreme = min if column.op is Op.MIN else max
            columns.append(extreme(present) if present else None)
    return tuple(columns)


def windows(
    program: Program, name: str, readings: Iterable[Reading]
) -> dict[tuple[str, int], WindowTruth]:
    """Return every window that holds a reading, by (key, start), sorted.

    Args:
        program: the program.
        name: a window of it.
        readings: readings of all devices, in any order; repeats and foreign events are left out.

    Raises:
        KeyError: the program has no such window.
    """
    window = program.windows[name]
    held: dict[tuple[str, int], list[Sample]] = defaultdict(list)
    for sample in accepted(program, readings):
        if sample.event.name != window.source.name:
            continue
        key = window.key(sample.event) if window.key else ""
        time_us = sample.event.time_us
        start_us = time_us // window.slide_us * window.slide_us  # the last start not after it
        while start_us + window.size_us > time_us:
            held[key, start_us].append(sample)
            start_us -= window.slide_us
    return {at: _window_truth(window.fold, held[at]) for at in sorted(held)}


def _window_truth(fold: Fold, samples: list[Sample]) -> WindowTruth:
    partial = folded(fold, [(sample.quantised, sample.event.time_us) for sample in samples])
    return WindowTruth(partial, len({sample.event.device for sample in samples}))


class _Added(Update):
    """Handlers run plainly: this keeps what they add to one variable."""

    __slots__ = ("resolution", "samples", "variable")

    def __init__(self, program: Program, variable: Variable) -> None:
        super().__init__(program)
        self.variable = variable
        self.resolution = program.resolution_of(variable)
        self.samples: list[tuple[int, int]] = []

    def __call__(self, variable: Variable, mutator: Any, *arguments: Any) -> None:
        if isinstance(mutator, tuple):
            mutator, *rest = mutator
            arguments = (*rest, *arguments)
        if variable is not self.variable:
            return
        assert mutator in {"add", BoundedLWWSet.add}, "a bounded set has one mutator for handlers"
        value, time_us, *_ = arguments
        steps = quantised(value, self.resolution)
        assert steps is not None, "a handler that adds no number has its reading refused"
        self.samples.append((steps, time_us))


def added(
    program: Program, variable: Variable, readings: Iterable[Reading]
) -> list[tuple[int, int]]:
    """Return all that handlers ever added to a variable, as (quantised value, time), in order."""
    update = _Added(program, variable)
    for sample in accepted(program, readings):
        for handler in program.handlers(sample.event.name):
            handler(sample.event, update)
    return update.samples


def local_partial(program: Program, name: str, readings: Iterable[Reading]) -> Partial:
    """Return a local fold's partial on one device.

    Args:
        program: the program.
        name: the target of a `fold` over a set that is bounded by number alone.
        readings: this device's readings in the order of their acceptance; repeats are left out.

    Raises:
        KeyError: the program has no such fold.
        ValueError: the set is bounded by age too; raw readings do not say when they were accepted.
    """
    fold = program.local_folds[name]
    bottom = fold.source.bottom
    assert isinstance(bottom, BoundedLWWSet), "a local fold reads a bounded set"
    if bottom.bound is None or bottom.max_age_s is not None:
        raise ValueError(
            f"{fold.source.name!r}: a bound and no max_age_s is needed, not {bottom!r}"
        )
    return folded(fold.fold, added(program, fold.source, readings)[-bottom.bound :])


def dynamic_partial(
    program: Program, name: str, readings: Mapping[str, Iterable[Reading]]
) -> Partial:
    """Return a dynamic fold's partial: the combination of all devices' local partials.

    Args:
        program: the program.
        name: the target of a `fold_dynamic`.
        readings: device -> its readings in the order of their acceptance.

    Raises:
        KeyError: the program has no such dynamic fold.
        ValueError: as for `local_partial`.
    """
    source = program.dynamic_folds[name].source
    partials = [
        local_partial(program, source.name, readings[device]) for device in sorted(readings)
    ]
    return combined(source.fold, partials)
