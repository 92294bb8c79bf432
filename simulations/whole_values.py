r"""What values, alerts and handlers of rows never do in a whole run of made-up readings.

A value that is never there, an alert far beyond all values that came, a handler of rows that never
updates anything: each may be a slip in what a function computes, or asks for.

    >>> from lasp_edge import folds
    >>> from lasp_edge.language.program import Program
    >>> from simulations.whole import whole
    >>> program = Program("aquarium")
    >>> ph = program.event("ph", resolution="0.01", least=0, most=14)
    >>> high = {"value": lambda event: int(event.value > 8)}
    >>> share = program.window("share", source=ph, fold=folds.mean(), size_s=60, **high)
    >>> program.alert("mostly high", share, above=50)
    >>> print(*whole(program.plan(), {}).doubts[0].split(", and "), sep="\n")
    alert mostly high never goes on: it waits for mean of share above 50
    of all made-up readings it is 0 to 0.666667; is another number meant?
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, Final

from crdts import ControlLog
from lasp_edge.checking.alerts import unreachable
from lasp_edge.folds.bounds import of_samples
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.derived import CombinedFold, OfResults
from lasp_edge.folds.exactly import exact_part
from lasp_edge.folds.extremes import First, Last, Maximum, Minimum, Top
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution
from lasp_edge.folds.quantile import Quantile
from lasp_edge.folds.structs import Struct
from lasp_edge.folds.sums import Mean
from lasp_edge.language.acting import Watched
from lasp_edge.language.declarations import LocalFold, Window
from lasp_edge.language.plan import Plan
from lasp_edge.language.writes import variables_named
from lasp_edge.variables import Variable
from simulations.comparison import why_not_compared
from simulations.oracle import Reading, dynamic_partials, local_partials
from simulations.replay import ReplayedFleet

_OF_SAMPLES: Final = (Mean, Minimum, Maximum, First, Last, Top, Quantile)
_FAR: Final = 10
"""Times the greatest number without its sign, from which on a level is far beyond all that came."""
LEAST_TIME_US: Final = 10**14
"""A time of 1973: whatever is less was meant as another thing, or counts seconds."""
_FINER: Final = 10_000
_MOMENTS: Final = 8
"""Times at which values are looked at, after equally many readings each."""


def idle(plan: Plan, replay: ReplayedFleet, readings: Sequence[Reading]) -> list[str]:
    """Return a line for each value that is never there, and each alert and handler without use."""
    log = replay.fleet.world.operator.commands.control
    return [
        *_without_number(plan, readings, log),
        *_far_alerts(plan, replay, readings, log),
        *_idle_handlers(plan, replay),
        *_odd_times(plan, replay),
    ]


def _without_number(plan: Plan, readings: Sequence[Reading], log: ControlLog) -> Iterator[str]:
    """Yield a line for each value that has none of its parts, whatever is in it."""
    of_others = {each.name for fold in plan.local_folds.values() for each in fold.made_of}
    under = {fold.source.name for fold in plan.dynamic_folds.values()}
    for name in [*plan.local_folds.keys() - of_others - under, *plan.dynamic_folds]:
        made = _fold_of(plan, name)
        given = [each for each in _partials(plan, name, readings, log) if each != made.fold.zero]
        yield from _rounded_away(name, made, given)
        if given and not any(_numbers(made, part, given) for part in made.fold.parts):
            yield (
                f"value {name}: no made-up reading gives it one; can it be computed? a "
                "division by zero, or too few samples, give none"
            )


def _rounded_away(name: str, made: LocalFold, partials: Sequence[Partial]) -> Iterator[str]:
    """Yield a line for a combined value of which a step leaves nothing."""
    fold = made.fold
    if not isinstance(fold, CombinedFold) or any(_numbers(made, fold.parts[0], partials)):
        return
    finer = made.resolution.exact / _FINER
    with suppress(Exception):  # what is wrong with a fold the laws show
        step = Resolution(f"{float(finer):.30f}".rstrip("0"))
        several = [fold.lower(each, step)[fold.parts[0]] or 0 for each in partials]
        most = max(several, key=abs)
        if most:
            yield (
                f"combine {name}: each of its numbers is rounded to 0, such as {most:g}, by the "
                f"step {made.resolution.text}; write a finer resolution="
            )


def _far_alerts(
    plan: Plan, replay: ReplayedFleet, readings: Sequence[Reading], log: ControlLog
) -> Iterator[str]:
    """Yield a line for each alert whose level is far beyond all that it watched."""
    known = " ".join(unreachable(plan))
    for name, watched in sorted(plan.alerts.items()):
        trigger = watched.trigger
        if trigger is None or watched.levels or f"alert {name} never goes on" in known:
            continue
        seen = [*_watched_numbers(plan, replay, watched, readings, log)]
        if not seen:
            continue
        low, high = min(seen), max(seen)
        far = _FAR * max(abs(low), abs(high))
        is_met = any(trigger.holds(each, fired=False) for each in seen)
        if not is_met and (low == high or abs(trigger.level) > far):
            side = "above" if trigger.rises else "below"
            numbers = f"{float(low):g}" + f" to {float(high):g}" * (low != high)
            yield (
                f"alert {name} never goes on: it waits for {watched.part} of {watched.variable} "
                f"{side} {float(trigger.level):g}, and of all made-up readings it is {numbers}; is "
                "another number meant?"
            )


def _watched_numbers(
    plan: Plan,
    replay: ReplayedFleet,
    watched: Watched,
    readings: Sequence[Reading],
    log: ControlLog,
) -> Iterable[Fraction]:
    """Return the numbers of a value or window, where single readings bound them.

    A count, a sum and what scans give may go further in a longer run, and made-up texts are few.
    """
    name, part = watched.variable, watched.part
    if name in plan.stream_results:
        return ()
    window = plan.windows.get(name)
    made = window or _fold_of(plan, name)
    if not _is_of_samples(made.fold, part) or _has_texts_or_scans(plan, made):
        return ()
    if window is not None:
        revisions = replay.fleet.lander.revisions.items()
        rows = [row for at, (*_, row) in revisions if at.window == name and row.devices_in]
        return _numbers(window, part, [row.partial for row in rows])
    ends = (len(readings) * moment // _MOMENTS for moment in range(1, _MOMENTS + 1))
    partials = [each for end in ends for each in _partials(plan, name, readings[:end], log)]
    return _numbers(made, part, partials)


def _is_of_samples(fold: Fold, part: str) -> bool:
    """Return whether single samples bound a part: a mean lies between the least and greatest."""
    fold = of_samples(fold.outer or fold)
    if isinstance(fold, Struct):
        fold = fold.givers[part]
    if isinstance(fold, CombinedFold):
        return all(
            _is_of_samples(each.fold, inner) for each in fold.of for inner in each.fold.parts
        )
    if isinstance(fold, OfResults):
        return _is_of_samples(fold.outer, part) and _is_of_samples(fold.inner, fold.part)
    return isinstance(fold, _OF_SAMPLES)


def _has_texts_or_scans(plan: Plan, made: Window | LocalFold) -> bool:
    """Return whether texts, or what scans give, are folded."""
    if isinstance(made, Window):
        stream = plan.streams.get(made.source.name)
        events = set(stream.events) if stream else {made.source.name}
        if stream and not stream.stateless:
            return True
    else:
        events = {event for source in made.sources for event in plan.meanings[source].events}
    return any(event not in plan.events or plan.events[event].text for event in events)


def _fold_of(plan: Plan, name: str) -> LocalFold:
    """Return a local fold, or that under a dynamic one."""
    dynamic = plan.dynamic_folds.get(name)
    return dynamic.source if dynamic is not None else plan.local_folds[name]


def _partials(
    plan: Plan, name: str, readings: Sequence[Reading], log: ControlLog
) -> Iterator[Partial]:
    """Yield the partials of a value, of all keys and devices, where they are known."""
    by_device: dict[str, list[Reading]] = {}
    for each in readings:
        by_device.setdefault(each.device, []).append(each)
    dynamic = plan.dynamic_folds.get(name)
    if why_not_compared(plan, dynamic or plan.local_folds[name]):
        return
    if dynamic is not None:
        yield from dynamic_partials(plan, name, by_device, log=log).values()
        return
    for several in by_device.values():
        yield from local_partials(plan, name, several, log=log).values()


def _numbers(made: Window | LocalFold, part: str, partials: Iterable[Partial]) -> list[Fraction]:
    """Return what a part is in partials, where it is a number."""
    found = []
    for partial in partials:
        with suppress(Exception):  # what is wrong with a fold the laws show
            found.append(exact_part(made.fold, partial, made.resolution, part))
    return [each for each in found if each is not None]


def _idle_handlers(plan: Plan, replay: ReplayedFleet) -> Iterator[str]:
    """Yield a line for each handler of rows that came, and whose variables are all empty."""
    for name, handlers in sorted(plan.functions.results.items()):
        if not replay.compared.known.get(f"result {name}"):
            continue
        for handler in handlers:
            named = [each for each in variables_named(handler) if each.name in plan.own_variables]
            if named and all(_is_empty(each, replay.variables) for each in named):
                names = " or ".join(each.name for each in named)
                yield (
                    f"handler {getattr(handler, '__name__', type(handler).__name__)} of result "
                    f"{name}: no made-up row makes it update {names}; is what it asks for possible?"
                )


def _is_empty(variable: Variable, values: Mapping[str, Any]) -> bool:
    """Return whether a shared variable is as it was declared."""
    bottom = variable.bottom
    return variable.name in values and bottom is not None and values[variable.name] == bottom.value


def _odd_times(plan: Plan, replay: ReplayedFleet) -> Iterator[str]:
    """Yield a line for each part that is a time, where no row has one of this century."""
    for name, result in sorted(plan.stream_results.items()):
        rows = replay.fleet.lander.rows(plan, name).values()
        for at, (part, _) in enumerate(result.parts):
            times = [row.parts[at] for row in rows if row.parts] if part in result.times else []
            numbers = [each for each in times if isinstance(each, int)]
            if numbers and all(0 <= each < LEAST_TIME_US for each in numbers):
                yield (
                    f"result {name}: its part {part} is a time, and {numbers[0]} is one of 1970: a "
                    "time is in microseconds since then, as event.time_us is"
                )
