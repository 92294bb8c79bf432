"""What is in the bounded sets, and what local and dynamic folds make of them, by key."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from crdts import BoundedLWWSet, ControlLog
from crdts.control_log import ControlEntry
from lasp_edge.folds.bounds import of_samples
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.derived import FoldOfFolds
from lasp_edge.language.declarations import LocalFold, Parameter
from lasp_edge.language.plan import Plan
from lasp_edge.language.updates import Update
from lasp_edge.variables import Variable, in_order
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

    def __call__(self, variable: Variable, mutator: Any, *arguments: Any, **named: Any) -> None:
        if isinstance(mutator, tuple):
            mutator, *rest = mutator
            arguments = (*rest, *arguments)
        if variable is not self.variable:
            return
        assert mutator in {"add", BoundedLWWSet.add}, "a bounded set has one mutator for handlers"
        value, time_us, *_ = in_order(variable, "add", arguments, named)
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
    plan: Plan,
    name: str,
    readings: Iterable[Reading],
    now_us: int | None = None,
    log: ControlLog | None = None,
) -> dict[str, Partial]:
    """Return a local fold's partials on one device, by key; without keys the key is "".

    `readings` are those of the device, in the order of their acceptance; repeats are left out.
    `now_us` is needed where the set is bounded by age; readings say when they were accepted. `log`
    has the entries of operators, where a parameter is the bound.

    Raises:
        KeyError: the program has no such fold.
        ValueError: the set is bounded by age, and `now_us` or an `accepted_us` is missing.
    """
    fold = plan.local_folds[name]
    if fold.made_of:
        given = list(readings)
        return _of_others(plan, fold, [(plan, e.name, given, now_us, log) for e in fold.made_of])
    bottom = fold.source.bottom
    assert isinstance(bottom, BoundedLWWSet), "a local fold reads a bounded set"
    keys = added(plan, fold.source, readings)
    if not fold.keyed:
        keys.setdefault("", [])
    held = {}
    for key, samples in sorted(keys.items()):
        if fold.source.bound is not None:
            held[key] = _under_bounds(plan, fold, samples, log or ControlLog())
            continue
        kept = samples if bottom.bound is None else samples[-bottom.bound :]
        if bottom.max_age_s is not None:
            oldest_us = _oldest_us(fold.source.name, bottom.max_age_s, now_us, kept)
            kept = [sample for sample in kept if (sample.accepted_us or 0) >= oldest_us]
        if kept or not fold.keyed:
            held[key] = folded(fold.fold, [(each.quantised, each.time_us) for each in kept])
    return held


def _of_others(plan: Plan, fold: LocalFold, of: list[tuple[Any, ...]]) -> dict[str, Partial]:
    """Return the partials of a fold that is made of others, by key."""
    held = [local_partials(*arguments) for arguments in of]
    zeros = [plan.local_folds[each.name].fold.zero for each in fold.made_of]
    made = fold.fold
    assert isinstance(made, FoldOfFolds), "it is made of other folds"
    return {
        key: made.of_partials(
            *[each.get(key, zero) for each, zero in zip(held, zeros, strict=True)]
        )
        for key in sorted({key for each in held for key in each})
    }


def _under_bounds(plan: Plan, fold: LocalFold, samples: list[Added], log: ControlLog) -> Partial:
    """Return what a device says of a key, whose bound is that at the greatest time so far."""
    parameter = plan.parameters[fold.source.bound or ""]
    places = sorted(
        (at.from_us, entry)
        for at, entry in log.entries.items()
        if (at.parameter, at.scope) == (parameter.name, "")
    )
    kept: list[Added] = []
    before, reached_us = _bound_then(parameter, places, None), None
    for sample in samples:
        reached_us = sample.time_us if reached_us is None else max(reached_us, sample.time_us)
        before = _bound_then(parameter, places, reached_us)
        kept = [*kept, sample][-before[2] :]
    # An entry that is heard later makes the set smaller at once, and larger from then on.
    inner = folded(of_samples(fold.fold), [(each.quantised, each.time_us) for each in kept])
    return (*before, 1, *inner)


def _bound_then(
    parameter: Parameter, places: list[tuple[int, ControlEntry]], time_us: int | None
) -> tuple[int, int, int]:
    """Return the greatest number and the last place by a time, and how many samples are kept."""
    past = [place for place in places if time_us is not None and place[0] <= time_us]
    samples = parameter.default
    for _, entry in past:
        if entry.value == "":
            samples = parameter.default
        elif entry.value is not None and entry.value.isdigit() and int(entry.value) > 0:
            samples = entry.value
    number = max([entry.number for _, entry in past], default=0)
    return number, past[-1][0] if past else 0, int(samples)


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
    log: ControlLog | None = None,
) -> dict[str, Partial]:
    """Return a dynamic fold's partials by key: the combination of all devices' local partials.

    `readings` are by device, and else as for `local_partials`; `retired` devices do not count, nor
    do those that are silent for longer than the fold allows (`silent_us`, by device). `log` is what
    entries of operators, where a parameter is the bound.

    Raises:
        KeyError: the program has no such dynamic fold.
        ValueError: as for `local_partials`.
    """
    source = plan.dynamic_folds[name].source
    gone = {*retired, *left_out(plan, name, silent_us or {})}
    partials: dict[str, list[Partial]] = {} if source.keyed else {"": []}
    for device in sorted(readings):
        if device not in gone:
            here = local_partials(plan, source.name, readings[device], now_us, log)
            for key, partial in here.items():
                partials.setdefault(key, []).append(partial)
    if source.source.bound is not None:  # of several bounds the newest one's devices count
        for key, rows in partials.items():
            newest = max((row[:3] for row in rows), default=())
            partials[key] = [row for row in rows if row[:3] == newest]
    return {key: combined(source.fold, partials[key]) for key in sorted(partials)}
