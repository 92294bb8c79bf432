"""Readings that are made up for a program: of two devices, of today's times, at borders, and late.

Values and tags are drawn, and those that the program's own functions name are among them: what is
asked for `event.value > 60` or for `event.tags["status"] == "200"` is met, and is missed.

    >>> from lasp_edge.examples.greenhouse import program
    >>> readings = made_up(program.plan(), {"temperature": {"room"}})
    >>> readings[0].device, readings[0].event, sorted(readings[0].tags)
    ('made-up-1', 'temperature', ['room'])
"""

import ast
import inspect
import re
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from decimal import Decimal
from functools import partial
from itertools import cycle
from random import Random
from typing import Any, NamedTuple

from crdts import ControlLog
from lasp_edge.checking.determinism import (
    closed_values,
    functions_of,
    inner_codes,
    inner_functions,
)
from lasp_edge.checking.texts import node_of
from lasp_edge.folds.numbers import LIMIT, Refused
from lasp_edge.language.declarations import EventType, Parameter
from lasp_edge.language.plan import Plan
from lasp_edge.units import SECOND_US

FIRST_US = 1_764_028_800 * SECOND_US
"""When they begin: at midnight UTC, so at a border of most windows, in the time of this release."""
EACH_SECOND = 60
"""Readings of each event and device, one a second; some more lie at borders and behind gaps."""
GAPS_S = (900, 1_800, 3_600, 7_200, 14_400, 90_000)
"""Seconds after the first reading at which a few more follow: sessions end, a day has passed."""
LONE_S = 43_200
"""Seconds after the first reading at which one comes alone, and no other for hours."""
RARE_S = (
    *range(2 * 86_400, 10 * 86_400, 5 * 3_600),  # each hour of a day, on all days of a week
    *range(15 * 86_400, 390 * 86_400, 17 * 86_400 + 7 * 3_600),  # each month of a year
)
"""Seconds after the first reading at which one comes where no other one gave something a row."""
RUN = 8
"""Readings of a second each that are equal, that rise and that fall, where those are rare, too."""
VALUES = (21.5, 0, 1, -1, -40, 1_000)
"""Values that are tried of every event which can have them."""
WORDS = (
    *("open", "a dog", "a", "closed", "", "dog a dog"),
    *("one two three four five six seven", "seven of nine open doors are not closed"),
)
"""Texts that are tried of every event of texts: of several words, too, whose order may matter."""
DEVICES = ("made-up-1", "made-up-2")
MADE_UP_TAG = "1"
"""The value of a tag that a function asks for, where it names no table."""
NUMBERED = (MADE_UP_TAG, "2")
"""What each tag may be: a key may make a number of it."""
LATE, AGAIN = 4, 3
"""How many readings come late, and how many come twice."""
_NAME = re.compile(r"\w[\w.-]{0,39}", re.ASCII)
"""What a device may be called, and is in most fleets."""
_MOST = 24
"""Constants of a program that are used, at most."""
_NUMBERING = frozenset({"int", "float", "Decimal", "Fraction"})
_LONGEST = 40
"""Characters of a text that may be the value of a tag, at most."""


class AnyTags(dict[str, str]):
    """Tags of which each is there, and is one text."""

    def __init__(self, text: str = MADE_UP_TAG) -> None:
        super().__init__()
        self._text = text

    def __missing__(self, name: str) -> str:
        return self._text


class MadeUpReading(NamedTuple):
    """A reading that nobody has read."""

    device: str
    event: str
    value: Any
    time_us: int
    tags: Mapping[str, str]


def made_up(
    plan: Plan,
    tags: Mapping[str, Set[str]],
    given: Mapping[str, str] | None = None,
    seed: int = 0,
    *,
    rare: bool = False,
) -> list[MadeUpReading]:
    """Return readings of all events, in the order in which they arrive.

    Args:
        plan: of the program.
        tags: event -> the tags that its readings must have.
        given: all tags of all readings; None: those that they must have, with drawn values.
        seed: of what is drawn.
        rare: others come last, over a year: at all hours, and in runs of equal, rising and falling
            values.
    """
    random, (texts, numbers) = Random(seed), constants(plan)
    choices = tag_choices(plan, {tag for asked in tags.values() for tag in asked})

    def drawn_tags(event: EventType) -> dict[str, str]:
        asked = sorted(tags.get(event.name, ()))
        drawn = {tag: random.choice(choices[tag]) for tag in asked}
        return drawn if given is None else dict(given)

    found: list[MadeUpReading] = []
    last: list[MadeUpReading] = []
    for event in plan.events.values():
        values = values_of(event, texts, numbers)
        for device in devices_of(plan):
            for n, time_us in enumerate(_times_us(plan, event)):
                value = values[n] if n < len(values) else _drawn(event, values, random)
                found.append(MadeUpReading(device, event.name, value, time_us, drawn_tags(event)))
            for time_us, several in _rare(event, values) if rare else ():
                own = drawn_tags(event)  # of one sensor
                for n, value in enumerate(several):
                    at_us = time_us + n * SECOND_US
                    last.append(MadeUpReading(device, event.name, value, at_us, own))
    found.sort(key=lambda each: each.time_us)
    late = [found.pop(len(found) // 2) for _ in range(LATE)]
    return [*found, *late, *found[:AGAIN], *sorted(last, key=lambda each: each.time_us)]


def _rare(event: EventType, values: list[Any]) -> Iterator[tuple[int, list[Any]]]:
    """Yield times, and the values that come from then on."""
    ways = (0,) if event.text else (0, 1, -1)
    runs = [_run(event, value, way) for value in values for way in ways]
    alone = [[value] for value in values]
    # Of the hours of a week some have a run; one that a value's bounds cut short is one the less.
    for n, at_s in enumerate(RARE_S):
        several = runs[n // 2 % len(runs)] if n % 2 else alone[n // 2 % len(alone)]
        yield FIRST_US + at_s * SECOND_US, several


def _run(event: EventType, value: Any, way: int) -> list[Any]:
    """Return equal values, or some that rise or fall by a step, as far as they are plausible."""
    if not way:
        return [value] * RUN
    first = event.resolution.quantise(value)
    steps = dict.fromkeys(plausible(event, first + way * n) for n in range(RUN))
    return list(map(event.resolution.real, steps))


def goes_by_time(plan: Plan) -> bool:
    """Return whether a function of a window asks for the time of a reading."""
    return any(
        "time_us" in code.co_names
        for what, function in functions_of(plan)
        if " of window " in what
        for _, code in inner_codes(function)
    )


def devices_of(plan: Plan) -> tuple[str, str]:
    """Return two devices, by the names that functions ask for."""
    first, second, *_ = dict.fromkeys((*named_devices(plan), *DEVICES))
    return first, second


def named_devices(plan: Plan) -> tuple[str, ...]:
    """Return the names of devices that functions ask for: keys of tables, then constants."""
    keys: dict[str, None] = {}
    texts: dict[str, None] = {}
    for _, function in functions_of(plan):
        if any("device" in code.co_names for _, code in inner_codes(function)):
            for each in constants_of(function):
                named = keys if isinstance(each, Mapping) else texts
                several = each if isinstance(each, Mapping) else [each]
                named.update({name: None for name in several if _is_device_name(name)})
    return tuple(dict.fromkeys((*keys, *texts)))


def _is_device_name(name: Any) -> bool:
    return isinstance(name, str) and bool(_NAME.fullmatch(name))


def made_up_entries(plan: Plan) -> ControlLog:
    """Return the log of an operator who tries other values of all parameters, and the defaults.

    A number without `least=` and `most=` in its declaration may be 0, and a step more or less.
    """
    log = ControlLog()
    for parameter in plan.parameters.values():
        values = (*_others(parameter), parameter.default)
        early_s = [EACH_SECOND * (n + 1) // (len(values) + 1) for n in range(len(values))]
        late_s = [gap_s + 1 for gap_s in GAPS_S[:2]]
        for at_s, value in zip([*early_s, *late_s], cycle(values), strict=False):
            at_us = FIRST_US + at_s * SECOND_US
            log |= log.set(parameter.name, "", at_us, value, DEVICES[0])
    return log


def _others(parameter: Parameter) -> Iterator[str]:
    """Yield values of a parameter beside its default, as texts."""
    step = parameter.resolution
    if step is None:
        yield from (each for each in parameter.choices if each != parameter.default)
        return
    default, known = step.quantise(Decimal(parameter.default)), parameter.plausible
    for steps in dict.fromkeys((0, default + 1, default - 1)):
        value = steps if known is None else known.nearest(steps)
        yield f"{value * step.exact.numerator / Decimal(step.exact.denominator):f}"


def tag_choices(plan: Plan, tags: Set[str]) -> dict[str, tuple[str, ...]]:
    """Return what each tag may be: a number, or a text that a function names which asks for it."""
    named: dict[str, dict[str, None]] = {tag: {} for tag in tags}
    for _, function in functions_of(plan):
        texts = {each: None for each in constants_of(function) if _is_short_text(each)}
        for tag in tags & texts.keys():
            named[tag].update({each: None for each in texts if each not in tags})
    numbers = [each for each in constants(plan)[0] if each.isdecimal()]
    for tag in tags_of_numbers(plan, tags):
        named[tag] = {text: None for text in named[tag] if text.isdecimal()}
    return {
        tag: table_keys(plan, tag)
        or tuple(dict.fromkeys((*list(texts)[:_MOST], *numbers, *NUMBERED)))
        for tag, texts in named.items()
    }


def tags_of_numbers(plan: Plan, tags: Set[str]) -> set[str]:
    """Return the tags that a function makes a number of, as `int(event.tags["size"])` does."""
    found: set[str] = set()
    for _, function in functions_of(plan):
        for each in inner_functions(function):
            node = node_of(each)
            for call in ast.walk(node) if node is not None else ():
                if isinstance(call, ast.Call) and ast.unparse(call.func) in _NUMBERING:
                    inside = (part for given in call.args for part in ast.walk(given))
                    named = {part.value for part in inside if isinstance(part, ast.Constant)}
                    found |= {tag for tag in tags if tag in named}
    return found


def table_keys(plan: Plan, tag: str) -> tuple[str, ...]:
    """Return the keys of the tables that functions look into which ask for a tag."""
    found: dict[str, None] = {}
    for _, function in functions_of(plan):
        known = list(constants_of(function))
        if any(isinstance(each, str) and each == tag for each in known):
            tables = (each for each in known if isinstance(each, Mapping))
            found.update({key: None for table in tables for key in table if _is_short_text(key)})
    return tuple(found)[:_MOST]


def made_up_tag(plan: Plan, tag: str) -> str:
    """Return what a made-up reading has for a tag, which is a text that can be a number, too."""
    return next(iter(table_keys(plan, tag)), MADE_UP_TAG)


def constants(plan: Plan) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return the texts and the numbers that the functions of a program name."""
    texts: dict[str, None] = {}
    numbers: dict[float, None] = {}
    for _, function in functions_of(plan):
        for constant in constants_of(function):
            if _is_short_text(constant):
                texts[constant] = None
            elif isinstance(constant, int | float) and not isinstance(constant, bool):
                numbers[constant] = None
    return tuple(texts)[:_MOST], tuple(numbers)[:_MOST]


def _is_short_text(constant: Any) -> bool:
    return isinstance(constant, str) and 0 < len(constant) <= _LONGEST


def constants_of(function: Any) -> Iterator[Any]:
    """Yield the constants of a function, those that it names, and those that were given to it."""
    found = list(_given_to(function))
    for each, code in inner_codes(function):
        found += code.co_consts
        found += [each.__globals__.get(name) for name in code.co_names]
    for constant in found:
        if isinstance(constant, tuple | frozenset | set | list):
            yield from sorted(constant, key=repr)
        else:
            yield constant


def _given_to(function: Any) -> Iterator[Any]:
    """Yield what a function closes over, its defaults, and arguments of `functools.partial`."""
    function = inspect.unwrap(function)
    while isinstance(function, partial):
        yield from (*function.args, *function.keywords.values())
        function = function.func
    for each in inner_functions(function):
        yield from (*(each.__defaults__ or ()), *(each.__kwdefaults__ or {}).values())
        yield from (value for _, value in closed_values(each))


def values_of(event: EventType, texts: tuple[str, ...], numbers: tuple[float, ...]) -> list[Any]:
    """Return values that an event can have, those at constants of the program among them."""
    if event.text:
        return list(texts_of(event, texts))
    step = float(event.resolution.exact)
    near = [value for number in numbers for value in (number, number + step, number - step)]
    found: dict[int, None] = {}
    for value in (*VALUES, *near):
        with suppress(ValueError, Refused, OverflowError):
            found[plausible(event, event.resolution.quantise(value))] = None
    return list(map(event.resolution.real, found))


def texts_of(event: EventType, named: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the texts that an event is tried with: those that come, or made-up and named ones."""
    return event.examples or (*WORDS, *named)


def plausible(event: EventType, steps: int) -> int:
    """Return the steps of a plausible reading of an event that is nearest to some steps."""
    return steps if event.plausible is None else event.plausible.nearest(steps)


def _drawn(event: EventType, values: list[Any], random: Random) -> Any:
    """Return any value of an event: one that is tried, one near the first, or one of its range."""
    chosen, kind = random.choice(values), random.randrange(3)
    if event.text or not kind:
        return chosen
    low, high = plausible(event, 1 - LIMIT), plausible(event, LIMIT - 1)
    if kind == 1 and high - low < LIMIT:
        return event.resolution.real(random.randint(low, high))
    steps = event.resolution.quantise(values[0]) + random.randint(-200, 200)
    return event.resolution.real(plausible(event, steps))


def _times_us(plan: Plan, event: EventType) -> list[int]:
    """Return the times of the readings of an event, in no order.

    Two that are a microsecond apart, at the border of a window, are for windows alone: a rate of
    change between them is more than anything measures.
    """
    streamed = any(event.name in each.events for each in plan.streams.values())
    apart_us = SECOND_US if streamed else 1
    times_us = [FIRST_US + n * SECOND_US for n in range(EACH_SECOND)]
    for gap_s in GAPS_S:
        times_us += [FIRST_US + (gap_s + n) * SECOND_US for n in range(3)]
    times_us.append(FIRST_US + LONE_S * SECOND_US)
    for window in plan.windows.values():
        for span_us in (window.size_us, window.slide_us):
            if span_us <= GAPS_S[-1] * SECOND_US:
                times_us += [FIRST_US + span_us - apart_us, FIRST_US + span_us]
    return list(dict.fromkeys(times_us))
