"""The truth, by sequential recomputation from raw readings: slow, and obviously right.

Everything the fleet computes has a definition that needs no lattice, pane or message: a window's
partial is the fold of the readings that lie in it; a local fold's is the fold of the last `bound`
values that were added and are not too old, for each key if it has keys; a dynamic fold's combines
those of all devices that are not retired; its `inputs` are a sum of hashes of what they said. This
module is those definitions, over fractions and lists, and shares no code with the way that a device
or Spark takes. (A sketch of distinct values is joined by `lasp_edge.folds.hll`, which is held
against the `datasketches` package elsewhere.)

    >>> from lasp_edge import Program, folds
    >>> program = Program("greenhouse")
    >>> temperature = program.event("temperature", resolution="0.01")
    >>> minute = program.window(
    ...     "minute", source=temperature, fold=folds.mean(), size_s=60, slide_s=30)
    >>> readings = [Reading("pi-1", "temperature", 21.5, 40_000_000),
    ...             Reading("pi-2", "temperature", 22.5, 59_000_000),
    ...             Reading("pi-2", "temperature", 22.5, 59_000_000)]  # once more: counts once
    >>> for (key, start_us), truth in windows(program.plan(), "minute", readings).items():
    ...     print(start_us, truth.partial, truth.devices_in)
    0 (2, 4400) 2
    30000000 (2, 4400) 2
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from hashlib import sha256
from typing import Any, NamedTuple

from crdts import BoundedLWWSet, Version
from lasp_edge.folds import hll
from lasp_edge.folds.columns import Column, Op, Part, Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import LIMIT, Resolution
from lasp_edge.language.declarations import Event, Variable
from lasp_edge.language.plan import Plan
from lasp_edge.language.updates import Update

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
        accepted_us: when the device accepted it, where that matters: for sets bounded by age.
    """

    device: str
    event: str
    value: Any
    time_us: int
    tags: Mapping[str, str] = NO_TAGS
    stamped: bool = False
    accepted_us: int | None = None


class Sample(NamedTuple):
    """An accepted reading: its value in steps of the resolution, and what handlers and keys see."""

    quantised: int
    event: Event
    accepted_us: int | None = None


class Added(NamedTuple):
    """A sample of a bounded set."""

    quantised: int
    time_us: int
    accepted_us: int | None


class Word(NamedTuple):
    """What a device last said of one key: the key's own version, and its partial."""

    version: Version
    partial: Partial


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


def accepted(program: Plan, readings: Iterable[Reading]) -> list[Sample]:
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
        samples.append(Sample(steps, seen, reading.accepted_us))
    return samples


def folded(fold: Fold, samples: Iterable[tuple[int, int]]) -> Partial:
    """Return the fold of (quantised value, time) samples, column by column."""
    return combined(fold, [fold.lift(value, time_us) for value, time_us in samples])


def combined(fold: Fold, partials: Iterable[Partial]) -> Partial:
    """Return the combination of partials, column by column."""
    rows = list(partials)
    names = fold.columns_named
    found: list[Part] = []
    for at, column in enumerate(fold.columns):
        present = [part for row in rows if (part := row[at]) is not None]
        if column.by:
            by = names.index(column.by)
            beside = [(row[by], row[at]) for row in rows if row[by] is not None]
            found.append(_extreme(column.op, beside)[1] if beside else None)
        elif column.binary:
            found.append(_combined_bytes(column, present))
        elif column.op is Op.SUM:
            found.append(sum(present))
        else:
            found.append(_extreme(column.op, present) if present else None)
    return tuple(found)


def _extreme(op: Op, several: list[Any]) -> Any:
    return min(several) if op in {Op.MIN, Op.AT_MIN} else max(several)


def _combined_bytes(column: Column, parts: list[Any]) -> bytes:
    """Return the combination of binary parts, taken apart byte by byte."""
    if column.op is Op.HLL:
        return reduce(lambda a, b: hll.joined(a, b, column.size), parts, b"")
    if column.op is Op.TOP:
        values = [part[at : at + 4] for part in parts for at in range(0, len(part), 4)]
        return b"".join(sorted(values, reverse=True)[: column.size])
    counts: dict[bytes, int] = defaultdict(int)
    for part in parts:
        for at in range(0, len(part), 8):
            counts[part[at : at + 2]] += int.from_bytes(part[at + 2 : at + 8], "big")
    return b"".join(bucket + counts[bucket].to_bytes(6, "big") for bucket in sorted(counts))


def windows(
    program: Plan, name: str, readings: Iterable[Reading]
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
        key = program.functions.key(name, sample.event)
        time_us = sample.event.time_us
        start_us = time_us // window.slide_us * window.slide_us  # the last start not after it
        while start_us + window.size_us > time_us:
            held[key, start_us].append(sample)
            start_us -= window.slide_us
    return {at: _window_truth(window.fold, held[at]) for at in sorted(held)}


def _window_truth(fold: Fold, samples: list[Sample]) -> WindowTruth:
    partial = folded(fold, [(sample.quantised, sample.event.time_us) for sample in samples])
    return WindowTruth(partial, len({sample.event.device for sample in samples}))


class _Adding(Update):
    """Handlers run plainly: this keeps what they, or a collection, add to one variable, by key."""

    __slots__ = ("functions", "keys", "resolution", "sample", "variable")

    def __init__(self, program: Plan, variable: Variable) -> None:
        super().__init__(program)
        self.functions = program.functions
        self.variable = variable
        self.resolution = program.resolutions[variable.name]
        self.sample: Sample | None = None
        self.keys: dict[str, list[Added]] = defaultdict(list)

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
        self.add(steps, time_us)

    def add(self, steps: int, time_us: int) -> None:
        """Keep what is added for the sample that is looked at."""
        assert self.sample is not None
        key = self.functions.key(self.variable.name, self.sample.event)
        self.keys[key].append(Added(steps, time_us, self.sample.accepted_us))


def added(program: Plan, variable: Variable, readings: Iterable[Reading]) -> dict[str, list[Added]]:
    """Return all that was ever added to a variable, by key, in order: collected, or by handlers."""
    adding = _Adding(program, variable)
    for sample in accepted(program, readings):
        adding.sample = sample
        if variable in program.collections.get(sample.event.name, ()):
            adding.add(sample.quantised, sample.event.time_us)
        for handler in program.functions.handlers.get(sample.event.name, ()):
            handler(sample.event, adding)
    return dict(adding.keys)


def local_partials(
    program: Plan, name: str, readings: Iterable[Reading], now_us: int | None = None
) -> dict[str, Partial]:
    """Return a local fold's partials on one device, by key; without keys the key is "".

    Args:
        program: the program.
        name: the target of a `fold`.
        readings: this device's readings in the order of their acceptance; repeats are left out.
        now_us: the time, where the set is bounded by age; readings say when they were accepted.

    Raises:
        KeyError: the program has no such fold.
        ValueError: the set is bounded by age, and `now_us` or an `accepted_us` is missing.
    """
    fold = program.local_folds[name]
    bottom = fold.source.bottom
    assert isinstance(bottom, BoundedLWWSet), "a local fold reads a bounded set"
    keys = added(program, fold.source, readings)
    if not fold.keyed:
        keys.setdefault("", [])
    held = {}
    for key, samples in sorted(keys.items()):
        kept = samples if bottom.bound is None else samples[-bottom.bound :]
        if bottom.max_age_s is not None:
            oldest_us = _oldest_us(fold.source.name, bottom.max_age_s, now_us, kept)
            kept = [sample for sample in kept if (sample.accepted_us or 0) >= oldest_us]
        if kept or not fold.keyed:
            held[key] = folded(fold.fold, [(each.quantised, each.time_us) for each in kept])
    return held


def _oldest_us(name: str, max_age_s: float, now_us: int | None, samples: list[Added]) -> int:
    if now_us is None or any(sample.accepted_us is None for sample in samples):
        raise ValueError(
            f"{name!r} is bounded by age: now_us= and each reading's accepted_us are needed"
        )
    return now_us - round(max_age_s * 1_000_000)


def local_partial(
    program: Plan, name: str, readings: Iterable[Reading], now_us: int | None = None
) -> Partial:
    """Return the partial of a local fold without keys; see `local_partials`."""
    return local_partials(program, name, readings, now_us)[""]


def dynamic_partials(
    program: Plan,
    name: str,
    readings: Mapping[str, Iterable[Reading]],
    retired: Collection[str] = (),
    now_us: int | None = None,
) -> dict[str, Partial]:
    """Return a dynamic fold's partials by key: the combination of all devices' local partials.

    Args:
        program: the program.
        name: the target of a `fold_dynamic`.
        readings: device -> its readings in the order of their acceptance.
        retired: devices that do not count.
        now_us: as for `local_partials`.

    Raises:
        KeyError: the program has no such dynamic fold.
        ValueError: as for `local_partials`.
    """
    source = program.dynamic_folds[name].source
    said: dict[str, list[Partial]] = {} if source.keyed else {"": []}
    for device in sorted(readings):
        if device not in retired:
            here = local_partials(program, source.name, readings[device], now_us)
            for key, partial in here.items():
                said.setdefault(key, []).append(partial)
    return {key: combined(source.fold, said[key]) for key in sorted(said)}


def dynamic_partial(
    program: Plan,
    name: str,
    readings: Mapping[str, Iterable[Reading]],
    retired: Collection[str] = (),
    now_us: int | None = None,
) -> Partial:
    """Return the partial of a dynamic fold without keys; see `dynamic_partials`."""
    return dynamic_partials(program, name, readings, retired, now_us)[""]


def inputs(
    program: Plan,
    name: str,
    words: Mapping[tuple[str, str], Word],
    retired: Mapping[str, Version],
    key: str | None = None,
) -> str:
    """Return the `inputs` of a dynamic fold, by its definition.

    Args:
        program: the program.
        name: the target of a `fold_dynamic`.
        words: (key, device) -> what the device last said of the key.
        retired: device -> the version up to which it was retired.
        key: of this key alone; None of the whole.

    Raises:
        KeyError: the program has no such dynamic fold.
    """
    members = [f"{device}={'.'.join(map(str, at))}" for device, at in sorted(retired.items())]
    texts = [str(program.dynamic_folds[name].stream), "\x1f".join(members)]
    for (at, device), word in words.items():
        if device not in retired and key in {None, at}:
            fields = [at, device, *map(str, word.version), *map(_in_text, word.partial)]
            texts.append("\x1f".join(fields))
    hashes = [int(sha256(text.encode()).hexdigest()[:16], 16) for text in texts]
    return f"{sum(hashes) % 2**64:016x}"


def _in_text(part: Part) -> str:
    if isinstance(part, bytes):
        return part.hex()
    return "" if part is None else str(part)
