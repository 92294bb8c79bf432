r"""Alerts and handlers that can never go off, or never on: their levels are beyond all values.

What a built-in fold can give follows from the range of its event, the bound of its set, and from
what it computes; of a parameter the range of its values counts. Of folds of the user's, and of
values that functions make, nothing is known.

    >>> from lasp_edge import Program, folds
    >>> program = Program("cellars")
    >>> warm = program.event("warm", resolution="0.1", least=-20, most=50)
    >>> tops = program.window("tops", source=warm, fold=folds.max(), size_s=60)
    >>> program.alert("fire", tops, above=60)
    >>> print(unreachable(program.plan())[0].partition(";")[0].replace(", ", ",\n"))
    alert fire never goes on: it waits for max of tops above 60,
    and 50 is the greatest there can be (warm has most=50)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import NamedTuple

from lasp_edge.checking.programs import collected_event, nested_folds
from lasp_edge.folds.bounds import NewestBound
from lasp_edge.folds.extremes import First, Last, Maximum, Minimum, Top
from lasp_edge.folds.fields import Correlation, FieldsFold
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.histogram import Histogram
from lasp_edge.folds.numbers import LIMIT
from lasp_edge.folds.quantile import Quantile
from lasp_edge.folds.structs import Struct
from lasp_edge.folds.sums import Count, Mean, Stddev, Sum, Variance
from lasp_edge.folds.truth import All
from lasp_edge.folds.truth import Any as AnyOf
from lasp_edge.language.acting import Watched
from lasp_edge.language.declarations import EventType, Parameter, Stream
from lasp_edge.language.device_classes import device_class
from lasp_edge.language.plan import Plan
from lasp_edge.scans.hysteresis import TwoLevels

_OF_READINGS = (Mean, Minimum, Maximum, First, Last, Top, Quantile)
"""Folds that give what a reading may be."""
_WHOLES = frozenset({"humidity", "moisture", "battery"})
"""Device classes of percent of which nobody waits for less than one."""
_EMPTY = (
    "a window without a reading has no row; to notice silence, fold a set whose samples have an "
    "age, such as BoundedLWWSet(bound=100, max_age_s=60), with folds.count()"
)


class ValueRange(NamedTuple):
    """The least and the greatest that a number can be; None where nothing bounds it."""

    low: Fraction | None = None
    high: Fraction | None = None


@dataclass(frozen=True, slots=True)
class _Samples:
    """What is folded.

    Attributes:
        event: whose readings, as they are; None where the samples are anything.
        least, most: how many there are; None where nothing bounds it.
    """

    event: EventType | None
    least: int
    most: int | None

    @property
    def span(self) -> ValueRange:
        """The range of the samples."""
        if self.event is None or self.event.text:
            return ValueRange()
        known, step = self.event.plausible, self.event.resolution.exact
        low, high = (end if known is None else known.nearest(end) for end in (1 - LIMIT, LIMIT - 1))
        return ValueRange(low * step, high * step)


def unreachable(plan: Plan) -> list[str]:
    """Return a line for each alert, and each handler of a value, whose level is beyond reach."""
    watched = [(f"alert {name}", each) for name, each in plan.alerts.items()]
    watched += [(f"on_value of {each.variable}", each) for each in plan.reactions]
    return [line for what, each in watched for line in _lines(plan, what, each)]


def between_levels(plan: Plan) -> list[str]:
    r"""Return a line for each alert that goes on above one level, and off at a lower one.

    Who writes `below=2, above=3` may mean the other direction, and no error tells.

    >>> from lasp_edge import Program, folds
    >>> program = Program("cellars")
    >>> warm = program.event("warm", resolution="0.1", least=-20, most=50)
    >>> lows = program.window("lows", source=warm, fold=folds.min(), size_s=60)
    >>> program.alert("frost", lows, below=2, above=3)
    >>> print(between_levels(program.plan())[0].replace("; ", ";\n"))
    frost goes on where min of lows is above 3, and off at 2 or below;
    the other way round it is below=2, hysteresis=1
    """
    return [
        f"{name} goes on where {each.part} of {each.variable} is above {_text(trigger.level)}, and "
        f"off at {_text(trigger.rearm)} or below; the other way round it is "
        f"below={_text(trigger.rearm)}, hysteresis={_text(trigger.level - trigger.rearm)}"
        for name, each in plan.alerts.items()
        for trigger in filter(None, [each.trigger])
        if trigger.rises and trigger.rearm < trigger.level
    ]


def unreached_levels(plan: Plan) -> list[str]:
    """Return a line for each scan with two levels, one of which no reading passes.

    >>> from lasp_edge import Program, scans
    >>> program = Program("cellars")
    >>> warm = program.event("warm", resolution="0.1", least=-20, most=50)
    >>> two = scans.hysteresis(above=65, below=61)
    >>> _ = program.scan("hot", source=warm, scan=two, per_device=True)
    >>> print(unreached_levels(program.plan())[0].partition(";")[0])
    scan hot never gives 1: no reading is above 65 (warm is -20 to 50)
    """
    found = []
    for name, made in plan.functions.streams.items():
        sources = plan.streams[name].events
        event = plan.events.get(sources[0]) if len(sources) == 1 else None
        if not isinstance(made, TwoLevels) or event is None or event.plausible is None:
            continue
        if not _is_as_read(plan, plan.streams[name]):
            continue
        (above, below), (low, high) = made.levels, _Samples(event, 1, None).span
        for number, word, level, is_never in (
            (1, "above", above, high is not None and high <= above),
            (0, "below", below, low is not None and low >= below),
        ):
            if is_never:
                found.append(
                    f"scan {name} never gives {number}: no reading is {word} {_text(level)} "
                    f"({event.name} is {event.plausible.span}); write another {word}=, or a wider "
                    f"range of {event.name}"
                )
    return found


def small_shares(plan: Plan) -> list[str]:
    """Return a line for each level below 1 of what is in percent, of which 100 are the whole.

    Of others a level below one percent can be right: few packets may be lost, or little gas leak.

    >>> from lasp_edge import Program, folds
    >>> program = Program("cellars")
    >>> moist = program.event("humidity", resolution="1", unit="%", least=0, most=100)
    >>> tops = program.window("tops", source=moist, fold=folds.max(), size_s=60)
    >>> program.alert("wet", tops, above=0.8)
    >>> print(small_shares(program.plan())[0].partition("; ")[2])
    for 80 %, write 80
    """
    watched = [(f"alert {name}", each) for name, each in plan.alerts.items()]
    watched += [(f"on_value of {each.variable}", each) for each in plan.reactions]
    levels = [
        (what, event, each.trigger.level)
        for what, each in watched
        for found in filter(None, [_folded(plan, each.variable)])
        for event in filter(None, [found[1].event])
        if each.trigger is not None and not each.levels
        if isinstance(_inner(found, each.part), _OF_READINGS)
    ]
    levels += [
        (f"scan {name}", plan.events[plan.streams[name].sources[0]], made.levels[0])
        for name, made in plan.functions.streams.items()
        if isinstance(made, TwoLevels) and plan.streams[name].sources[0] in plan.events
    ]
    return [
        f"{what}: its level is {_text(level)}, and {event.name} is in %; for {_text(100 * level)} "
        f"%, write {_text(100 * level)}"
        for what, event, level in levels
        if event.unit == "%" and device_class(event) in _WHOLES and 0 < level < 1
    ]


def _is_as_read(plan: Plan, stream: Stream) -> bool:
    """Return whether a stream gets readings as they are."""
    behind = [plan.streams[name] for name in stream.sources if name in plan.streams]
    return all(each.operator == "filter" and _is_as_read(plan, each) for each in behind)


def empty_bins(plan: Plan) -> list[str]:
    r"""Return a line for each histogram of which all samples lie in one bin, or none in another.

    >>> from lasp_edge import Program, folds
    >>> program = Program("cellars")
    >>> warm = program.event("warm", resolution="0.1", least=-20, most=50)
    >>> by = folds.histogram([250, 300])
    >>> spread = program.window("spread", source=warm, fold=by, size_s=60)
    >>> print(*empty_bins(program.plan())[0].split("; "), sep="\n")
    window spread: all readings are in bin_0, below 250, as warm is -20 to 50
    write edges in its unit, between these
    """
    folds = [(f"window {name}", name) for name in plan.windows]
    folds += [(f"fold {name}", name) for name in plan.local_folds]
    return [
        f"{where}: {line}"
        for what, name in folds
        for found in [_folded(plan, name)]
        if found is not None and found[1].event is not None and not found[1].event.text
        for where, fold in nested_folds(what, found[0])
        if isinstance(fold, Histogram)
        for line in _of_bins(fold, found[1].event)
    ]


def _of_bins(fold: Histogram, event: EventType) -> Iterator[str]:
    """Yield which bins of a histogram of an event's readings stay empty."""
    edges, known = list(map(Fraction, fold.description()["arguments"]["edges"])), event.plausible
    bounds = [ceil(edge / event.resolution.exact) for edge in edges]
    if known is not None and known.nearest(LIMIT) < bounds[0]:
        yield f"all readings are in bin_0, below {_text(edges[0])}, {_beside(event)}"
    elif known is not None and known.nearest(-LIMIT) >= bounds[-1]:
        yield f"all readings are in {fold.parts[-1]}, from {_text(edges[-1])} on, {_beside(event)}"
    for n, (low, high) in enumerate(pairwise(bounds), 1):
        if low == high:
            yield (
                f"bin_{n} stays empty: no reading of {event.name} lies from {_text(edges[n - 1])} "
                f"to {_text(edges[n])}, in steps of {event.resolution.text}; write edges that lie "
                "a step apart"
            )
        elif known is not None and bounds[0] <= known.nearest(LIMIT) < low:
            yield (
                f"bin_{n} stays empty: no reading is {_text(edges[n - 1])} or more, as "
                f"{event.name} is {known.span}; leave such edges out, or give it another most="
            )
            return


def _beside(event: EventType) -> str:
    span = "" if event.plausible is None else event.plausible.span
    return f"as {event.name} is {span}; write edges in its unit, between these"


def _lines(plan: Plan, what: str, watched: Watched) -> Iterator[str]:
    trigger, found = watched.trigger, _folded(plan, watched.variable)
    if trigger is None or found is None:
        return
    fold, samples = found
    span = _span_of(fold, watched.part, samples)
    value = f"{watched.part} of {watched.variable}"
    if watched.levels:
        yield from _of_parameter(what, watched, span, value)
        return
    end, word, more = (
        (span.high, "greatest", "lower") if trigger.rises else (span.low, "least", "higher")
    )
    is_beyond = end is not None and (
        end <= trigger.level if trigger.rises else end >= trigger.level
    )
    if end is not None and is_beyond:
        side = "above" if trigger.rises else "below"
        beside, remedy = _reason(plan, watched, samples, more)
        yield (
            f"{what} never goes on: it waits for {value} {side} {_text(trigger.level)}, and "
            f"{_text(end)} is the {word} there can be{beside}; {remedy}"
        )
        return
    back = span.low if trigger.rises else span.high
    if back is not None and (trigger.rearm < back if trigger.rises else trigger.rearm > back):
        side, word = ("below", "least") if trigger.rises else ("above", "greatest")
        by = "below= or hysteresis=" if trigger.rises else "hysteresis="
        yield (
            f"{what} never goes off again while there is a value: it would at {value} "
            f"{_text(trigger.rearm)} or {side}, and {_text(back)} is the {word} there can be; "
            f"write another level of return, by {by}"
        )


def _of_parameter(what: str, watched: Watched, span: ValueRange, value: str) -> Iterator[str]:
    """Yield a line for a level that no value reaches, whatever operators say."""
    rises = watched.trigger is not None and watched.trigger.rises
    side, end = ("above", span.high) if rises else ("below", span.low)
    level = dict(watched.levels).get(side)
    if not isinstance(level, Parameter) or level.plausible is None or end is None:
        return
    nearest = level.plausible.nearest(-LIMIT if rises else LIMIT) * level.plausible.exact
    if end <= nearest if rises else end >= nearest:
        word, bound = ("greatest", "least") if rises else ("least", "most")
        yield (
            f"{what} never goes on, whatever {level.name} is: it waits for {value} {side} "
            f"{_text(nearest)} ({bound}= of {level.name}), and {_text(end)} is the {word} there "
            f"can be; give {level.name} another {bound}="
        )


def _reason(plan: Plan, watched: Watched, samples: _Samples, more: str) -> tuple[str, str]:
    """Return why there is no value beyond, in brackets, and what to write."""
    fold = _inner(_folded(plan, watched.variable), watched.part)
    rises = watched.trigger is not None and watched.trigger.rises
    if isinstance(fold, Count | Sum) and rises and samples.most is not None:
        write = f"write a {more} level, or a greater bound"
        return f" (its set keeps {samples.most:,} samples)", write
    if isinstance(fold, Count) and samples.least:
        return "", _EMPTY
    event = samples.event
    if isinstance(fold, Count | AnyOf | All | Correlation) or event is None:
        return "", f"write a {more} level"
    name = "most" if rises else "least"
    end = samples.span.high if rises else samples.span.low
    known = f"{event.name} has {name}={_text(end)}" if event.plausible else "by its resolution"
    return f" ({known})", f"write a {more} level, or a wider range of {event.name}"


def _folded(plan: Plan, name: str) -> tuple[Fold, _Samples] | None:
    """Return the fold of a window or a value, and what it folds; None where that is unknown."""
    window = plan.windows.get(name)
    if window is not None:
        event = None if window.controls.value else plan.events.get(window.source.name)
        return None if window.controls.fold else (window.fold, _Samples(event, 1, None))
    dynamic = plan.dynamic_folds.get(name)
    local = plan.local_folds.get(name) if dynamic is None else dynamic.source
    if local is None or local.made_of:
        return None
    if isinstance(local.fold, NewestBound):
        return local.fold.inner, _Samples(collected_event(plan, local.source.name), 0, None)
    most = getattr(local.source.bottom, "bound", None) if dynamic is None else None
    return local.fold, _Samples(collected_event(plan, local.source.name), 0, most)


def _inner(found: tuple[Fold, _Samples] | None, part: str) -> Fold | None:
    """Return the fold that gives a part."""
    fold = None if found is None else found[0]
    return fold.givers[part] if isinstance(fold, Struct) else fold


def _span_of(fold: Fold, part: str, samples: _Samples) -> ValueRange:
    """Return what a part of a fold can be."""
    inner = _inner((fold, samples), part)
    if inner is None or not inner.is_built_in:
        return ValueRange()
    if isinstance(inner, FieldsFold):
        return (
            ValueRange(Fraction(-1), Fraction(1))
            if isinstance(inner, Correlation)
            else ValueRange()
        )
    if isinstance(inner, Count):
        return ValueRange(Fraction(samples.least), _product(samples.most, Fraction(1)))
    if isinstance(inner, AnyOf | All):
        return ValueRange(Fraction(0), Fraction(1))
    return _of_values(inner, samples)


def _of_values(fold: Fold, samples: _Samples) -> ValueRange:
    """Return what a fold of the values themselves can give."""
    low, high = samples.span
    if low is None or high is None:
        return ValueRange(Fraction(0)) if isinstance(fold, Variance) else ValueRange()
    if isinstance(fold, Mean | Minimum | Maximum | First | Last | Top):
        return ValueRange(low, high)
    if isinstance(fold, Quantile):
        off = 1 + Fraction(fold.description()["arguments"]["relative_error"])
        return ValueRange(min(low * off, low / off), max(high * off, high / off))
    if isinstance(fold, Sum):
        least = low * samples.least if low >= 0 else _product(samples.most, low)
        return ValueRange(least, _product(samples.most, high) if high > 0 else high * samples.least)
    if isinstance(fold, Variance):  # two samples at both ends spread most
        spread = high - low
        return ValueRange(Fraction(0), spread if isinstance(fold, Stddev) else spread * spread)
    return ValueRange()


def _product(count: int | None, number: Fraction) -> Fraction | None:
    return None if count is None else count * number


def _text(number: Fraction | None) -> str:
    """Return a number for people."""
    return "" if number is None else f"{float(number):.10g}"
