"""What is in the bounded sets, and what local and dynamic folds make of them, by key."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from crdts import BoundedLWWSet
from lasp_edge.folds.columns import Partial
from lasp_edge.language.plan import Plan
from lasp_edge.language.updates import Update
from lasp_edge.variables import Variable
from simulations.oracle.partials import combined, folded
from simulations.oracle.readings import AcceptedReading, Reading, accepted, quantised


class Added(NamedTuple):
    """A sample of a bounded set."""

    quantised: int
    time_us: int
    accepted_us: int | None


class _Adding(Update):
    """Handlers run plainly: this keeps what they, or a collection, add to one variable, by key."""

    __slots__ = ("functions", "keys", "resolution", "sample", "variable")

    def __init__(self, plan: Plan, variable: Variable) -> None:
        super().__init__(plan)
        self.functions = plan.functions
        self.variable = variable
        self.resolution = plan.resolutions[variable.name]
        self.sample: AcceptedReading | None = None
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


def added(plan: Plan, variable: Variable, readings: Iterable[Reading]) -> dict[str, list[Added]]:
    """Return all that was ever added to a variable, by key, in order: collected, or by handlers."""
    adding = _Adding(plan, variable)
    for sample in accepted(plan, readings):
        adding.sample = sample
        if variable in plan.collections.get(sample.event.name, ()):
            adding.add(sample.quantised, sample.event.time_us)
        for handler in plan.functions.handlers.get(sample.event.name, ()):
            handler(sample.event, adding)
    return dict(adding.keys)


def local_partials(
    plan: Plan, name: str, readings: Iterable[Reading], now_us: int | None = None
) -> dict[str, Partial]:
    """Return a local fold's partials on one device, by key; without keys the key is "".

    `readings` are those of the device, in the order of their acceptance; repeats are left out.
    `now_us` is needed where the set is bounded by age; readings say when they were accepted.

    Raises:
        KeyError: the program has no such fold.
        ValueError: the set is bounded by age, and `now_us` or an `accepted_us` is missing.
    """
    fold = plan.local_folds[name]
    bottom = fold.source.bottom
    assert isinstance(bottom, BoundedLWWSet), "a local fold reads a bounded set"
    keys = added(plan, fold.source, readings)
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


def left_out(plan: Plan, name: str, silent_us: Mapping[str, int]) -> set[str]:
    """Return the devices that a dynamic fold leaves out for their silence, by its `stale_after`.

    Raises:
        KeyError: the program has no such dynamic fold.
    """
    fold = plan.dynamic_folds[name]
    if fold.absence is None:
        return set()
    return {device for device, span_us in silent_us.items() if span_us > fold.stale_us}


def dynamic_partials(
    plan: Plan,
    name: str,
    readings: Mapping[str, Iterable[Reading]],
    retired: Collection[str] = (),
    now_us: int | None = None,
    silent_us: Mapping[str, int] | None = None,
) -> dict[str, Partial]:
    """Return a dynamic fold's partials by key: the combination of all devices' local partials.

    `readings` are by device, and else as for `local_partials`; `retired` devices do not count, nor
    do those that are silent for longer than the fold allows (`silent_us`, by device).

    Raises:
        KeyError: the program has no such dynamic fold.
        ValueError: as for `local_partials`.
    """
    source = plan.dynamic_folds[name].source
    gone = {*retired, *left_out(plan, name, silent_us or {})}
    said: dict[str, list[Partial]] = {} if source.keyed else {"": []}
    for device in sorted(readings):
        if device not in gone:
            here = local_partials(plan, source.name, readings[device], now_us)
            for key, partial in here.items():
                said.setdefault(key, []).append(partial)
    return {key: combined(source.fold, said[key]) for key in sorted(said)}
