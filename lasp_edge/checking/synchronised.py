r"""The laws of a synchronised scan, tried on states that sequences of events reach.

A state that devices share is one after an event in order, or the first one. Other devices have made
parts of its share, which are joined. Cases are drawn by a seed, and what breaks a law is made
smaller while it breaks it: events are left out, and their values moved towards zero.

    >>> class Total(Synchronised):
    ...     name, zero, depends = "total", 0, (("end", "made"), ("end", "end"))
    ...     def step(self, state, event):
    ...         return (state, [state]) if event.name == "end" else (state + event.value, [])
    ...     def share(self, state):
    ...         return state
    ...     def join(self, state, part):
    ...         return state + part
    >>> events = [Event(name, value, 0, "pi-1", {}) for name in ("made", "end") for value in (0, 1)]
    >>> print("\n".join(broken_laws(Total(), [events]).wrong))
    C2: an untouched share adds nothing
            with end in order:
            s after made 1 of pi-1, end 0 of pi-1 = 1
            share(s) = 1
            join(s, share(s)) = 2
            so let the share have 0, or nothing, where join adds
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain, groupby, islice
from math import isclose
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

from lasp_edge.checking.pools import (
    DEVICES,
    LONGEST,
    MOST_BEFORE,
    MOST_OF_PART,
    EventPool,
    numbers_of,
)
from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event
from lasp_edge.language.declarations import EventType
from lasp_edge.ordered.covers import covers
from lasp_edge.ordered.plain import check_plain, encoded, same
from lasp_edge.ordered.synchronised import Synchronised
from lasp_edge.reasons import reason_of

CASES = 300
"""Cases that are drawn for each law and choice of events in order."""
LONG_CASES = 24
"""Cases that are drawn with many events."""
MOST_SMALLER = 1_000
"""Cases that are tried to make one smaller that breaks a law."""
_MOST = (MOST_BEFORE, MOST_OF_PART)
_MOST_LONG = ((MOST_BEFORE, LONGEST + 1), (LONGEST + 1, MOST_OF_PART))
"""Events before, and of a part, at most; beyond `LONGEST`: as many as `EventPool.lengths`."""
_SECOND_US = 1_000_000

Sides = Iterator[tuple[str, Any]]


class _Raised(str):
    """Why a function raised, in place of the value that it would have given."""

    __slots__ = ()
    __repr__ = str.__str__


class LawCase(NamedTuple):
    """What happened before a law is asked.

    Attributes:
        before: all events up to the state s, in order.
        other: what another device has read since.
        part: what this device has read since.
        next: the events of which the law speaks: e, and f.
    """

    before: tuple[Event, ...]
    other: tuple[Event, ...] = ()
    part: tuple[Event, ...] = ()
    next: tuple[Event, ...] = ()


@dataclass
class BrokenLaws:
    """The laws that a scan breaks, each a text of several lines.

    Attributes:
        order: what shows that a pair of events is missing in `depends`.
        choices: events in order -> what breaks the laws of shares if those are in order.
    """

    order: list[str]
    choices: dict[tuple[str, ...], list[str]] = field(default_factory=dict)

    @property
    def wrong(self) -> list[str]:
        """What must be mended: a missing order, and laws that each choice breaks; each law once."""
        broken = chain(*self.choices.values()) if all(self.choices.values()) else ()
        return list({text.partition("\n")[0]: text for text in [*broken, *self.order]}.values())


def broken_laws(
    scan: Synchronised,
    keys: Sequence[Sequence[Event]],
    events: Mapping[str, EventType] = MappingProxyType({}),
    seed: int = 0,
) -> BrokenLaws:
    """Return the laws that a scan breaks.

    Args:
        scan: the scan.
        keys: for each key, events of it; their times and devices are drawn again.
        events: those that are readings, of which other values in their steps are drawn, too.
        seed: of what is drawn.
    """
    numbers = numbers_of(scan)
    pools = [pool for pool in (EventPool(each, events, numbers) for each in keys) if pool.names]
    found = BrokenLaws(_commuting(scan, pools, Random(seed)))
    for ordered in covers(scan.depends):
        if {name for pool in pools for name in pool.names} - set(ordered):  # else nothing is shared
            found.choices[ordered] = list(_shared(scan, pools, ordered, Random(seed)))
    return found


def stepped(scan: Synchronised, state: Any, event: Event) -> tuple[Any, tuple[Any, ...]]:
    """Return what a step gives; one that raises gives nothing, and leaves the state."""
    try:
        after, values = scan.step(state, event)
        check_plain((after, tuple(values)))
    except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
        pass_interrupt(error)
        return state, ()
    return after, tuple(values)


def _run(scan: Synchronised, state: Any, events: Sequence[Event]) -> Any:
    return reduce(lambda now, event: stepped(scan, now, event)[0], events, state)


def _joined(scan: Synchronised, case: LawCase) -> tuple[Any, Any]:
    """Return the state with the part of another device, and the share of which it was made."""
    state = _run(scan, scan.zero, case.before)
    share = scan.share(state)
    check_plain(share)
    return (scan.join(state, _run(scan, share, case.other)) if case.other else state), share


def step_and_join_commute(scan: Synchronised, case: LawCase) -> Sides:
    """C1: a step of a device's part and a step of the state joined with it give the same."""
    state, share = _joined(scan, case)
    part, (event,) = _run(scan, share, case.part), case.next
    yield f"p = share(s){_after(case.part)}", part
    after, values = stepped(scan, part, event)
    yield f"join(s, step(p, {_shown(event)})), outputs", (scan.join(state, after), values)
    yield f"step(join(s, p), {_shown(event)})", stepped(scan, scan.join(state, part), event)


def untouched_share_adds_nothing(scan: Synchronised, case: LawCase) -> Sides:
    """C2: an untouched share adds nothing."""
    state, share = _joined(scan, case)
    yield "share(s)", share
    yield "s", state
    yield "join(s, share(s))", scan.join(state, share)


def independent_events_commute(scan: Synchronised, case: LawCase) -> Sides:
    """C3: events of two devices that do not depend on each other commute."""
    state, (one, two) = _run(scan, scan.zero, case.before), case.next
    yield "s", state
    for first, then in ((one, two), (two, one)):
        after, values = stepped(scan, state, first)
        last, more = stepped(scan, after, then)
        outputs = (values, more) if first is one else (more, values)
        yield f"{_shown(first)}, then {_shown(then)}: state, outputs", (last, *outputs)


Law = Callable[[Synchronised, LawCase], Sides]
EXACT = "C4: join is exact"
_WRITE = {
    "C1": "so let step of {0} use what the share gives alone, and join add all that it changes",
    "C3": "so write depends = (..., ({0!r}, {1!r}))",
    "C4": "so let the state have whole numbers, such as round(event.value / step): doubles are "
    "rounded in another way when they are added up in another order",
}


_MENDED = "so let share and join take each state that step gives"


def _shared(
    scan: Synchronised, pools: list[EventPool], ordered: tuple[str, ...], random: Random
) -> Iterator[str]:
    """Yield what breaks the laws of shares, if these events are in order."""

    def drawn(pool: EventPool, most: tuple[int, int]) -> LawCase | None:
        local = [name for name in pool.names if name not in ordered]
        marks = [name for name in pool.names if name in ordered]
        before = pool.drawn(random, pool.names, most[0])
        before = (*before, pool.one(random, random.choice(marks))) if before and marks else ()
        if not local:
            return None
        other, this = random.sample(DEVICES, 2)
        theirs, part = [pool.drawn(random, local, most[1], each) for each in (other, this)]
        return _timed(
            LawCase(before, theirs, part, (pool.one(random, random.choice(local), this),))
        )

    def is_case(case: LawCase) -> bool:
        return not case.before or case.before[-1].name in ordered

    title = f"with {' and '.join(ordered)} in order:"
    for law in (untouched_share_adds_nothing, step_and_join_commute):
        yield from _broken(scan, law, pools, drawn, is_case, title)


def _commuting(scan: Synchronised, pools: list[EventPool], random: Random) -> list[str]:
    """Return what shows that an order is missing in `depends`; one for each pair of events."""
    known = {frozenset(pair) for pair in scan.depends}
    found: list[str] = []
    names = sorted({name for pool in pools for name in pool.names})
    for at, one in enumerate(names):
        for two in names[at:]:
            if frozenset((one, two)) in known:
                continue

            def drawn(
                pool: EventPool, most: tuple[int, int], one: str = one, two: str = two
            ) -> LawCase | None:
                if not {one, two} <= {*pool.names}:
                    return None
                before = pool.drawn(random, pool.names, most[0])
                first, second = random.sample(DEVICES, 2)
                pair = (pool.one(random, one, first), pool.one(random, two, second))
                return _timed(LawCase(before, next=pair))

            law = independent_events_commute
            found += _broken(scan, law, pools, drawn, lambda _case: True, "")
    return found


def _broken(
    scan: Synchronised,
    law: Law,
    pools: list[EventPool],
    drawn: Callable[[EventPool, tuple[int, int]], LawCase | None],
    is_case: Callable[[LawCase], bool],
    title: str,
) -> Iterator[str]:
    """Yield the smallest case that was found to break a law, in lines."""
    for n in range(CASES + LONG_CASES):
        pool = pools[n % len(pools)]
        case = drawn(pool, _MOST if n < CASES else _MOST_LONG[n % len(_MOST_LONG)])
        if case is None or not _breach(scan, law, case):
            continue
        left, is_smaller = MOST_SMALLER, True
        while is_smaller:
            is_smaller = False
            for smaller in islice(_simpler(pool, case), left):
                left -= 1
                if is_case(smaller) and _breach(scan, law, smaller):
                    case, is_smaller = smaller, True
                    break
        yield "\n        ".join(_lines(scan, law, case, title))
        return


def _breach(scan: Synchronised, law: Law, case: LawCase) -> list[tuple[str, Any]]:
    """Return the sides of a law that a case breaks, or the error; none where it holds."""
    sides: list[tuple[str, Any]] = []
    try:
        for what, value in law(scan, case):
            check_plain(value)
            sides.append((what, value))
    except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
        pass_interrupt(error)
        return [*sides, ("then", _Raised(f"it raises {reason_of(error)}"))]
    return [] if same(sides[-1][1], sides[-2][1]) else sides


def _timed(case: LawCase) -> LawCase:
    """Return a case whose events are a second apart, those that are independent at equal times."""
    at_us, found = 0, []
    for which, events in enumerate(case):
        apart_us = 0 if which == len(case) - 1 else _SECOND_US
        times_us = [at_us + n * apart_us for n in range(len(events))]
        found.append(tuple(e._replace(time_us=t) for e, t in zip(events, times_us, strict=True)))
        at_us += len(events) * _SECOND_US
    return LawCase(*found)


def _simpler(pool: EventPool, case: LawCase) -> Iterator[LawCase]:
    """Yield cases with fewer events, with simpler ones, or with one that is nearer to zero."""
    yield from _shorter(pool, case)
    for which, events in enumerate(case):
        for at, event in enumerate(events):
            rest = (*events[:at], *events[at + 1 :])
            if which < 3:  # noqa: PLR2004 - the law speaks of those of `next`
                yield case._replace(**{case._fields[which]: rest})
            if which == 0 and event.device != DEVICES[0]:
                moved = event._replace(device=DEVICES[0])
                yield case._replace(before=(*events[:at], moved, *events[at + 1 :]))
            for smaller in pool.smaller(event):
                changed = (*events[:at], smaller, *events[at + 1 :])
                yield case._replace(**{case._fields[which]: changed})


def _shorter(pool: EventPool, case: LawCase) -> Iterator[LawCase]:
    """Yield cases with half of many events, or with the simplest values of all of them."""
    for name, events in zip(case._fields[:3], case, strict=False):
        if len(events) > MOST_BEFORE:
            for part in (events[: len(events) // 2], events[len(events) // 2 :]):
                yield case._replace(**{name: part})
            least = tuple(next(pool.smaller(event), event) for event in events)
            if least != events:
                yield case._replace(**{name: least})


def _lines(scan: Synchronised, law: Law, case: LawCase, title: str) -> Iterator[str]:
    sides = _breach(scan, law, case)
    statement = str(law.__doc__).rstrip(".")
    if len(sides) > 1 and _differ_by_rounding(sides[-1][1], sides[-2][1]):
        statement = EXACT
    yield statement
    if title:
        yield title
    yield f"s{_after(case.before)} = {_run(scan, scan.zero, case.before)!r}"
    if case.other:
        yield f"s is joined with what another device made{_after(case.other)}"
    yield from (f"{what} = {value!r}" for what, value in sides if what != "s" or case.other)
    names = [event.name for event in case.next] or [""]
    has_raised = isinstance(sides[-1][1], _Raised)
    if statement.startswith("C2") and not has_raised:
        yield _of_share(scan, *(value for _, value in sides))
    else:
        yield _MENDED if has_raised else _WRITE[statement[:2]].format(*names)
    if not has_raised and statement.startswith("C3") and _are_reordered(sides[-1][1], sides[-2][1]):
        yield "or let step and join keep the state sorted: both have the same in another order"


def _of_share(scan: Synchronised, share: Any, state: Any, joined: Any) -> str:
    """Return what to write where a state that is joined with its untouched share is another one."""
    sides = (share, state, joined, scan.zero)
    is_one = not all(isinstance(side, tuple) for side in sides)
    parts = list(zip(*((side,) if is_one else side for side in sides), strict=False))
    differ = [not same(was, after) for _, was, after, _ in parts]
    better = tuple(
        first if other else had for (had, _, _, first), other in zip(parts, differ, strict=True)
    )
    if any(had for (had, *_), other in zip(parts, differ, strict=True) if other):
        return "so let the share have 0, or nothing, where join adds"
    with suppress(Exception):  # what join raises another case shows
        given = better[0] if is_one else better
        if same(scan.join(state, given), state):
            return f"so let the share have what join leaves alone, here {given!r}"
    if same(joined, share):
        return "so let join keep what s has: it gives what the part has alone"
    return "so let join give s as it is where the part is an untouched share"


def _are_reordered(one: Any, two: Any) -> bool:
    """Return whether the states of two runs are tuples with the same elements."""
    states = [each[0] for each in (one, two)]
    if not all(isinstance(state, tuple) for state in states):
        return False
    first, second = (sorted(map(encoded, state)) for state in states)
    return first == second


def _after(events: Sequence[Event]) -> str:
    each = (f"{_shown(event)} of {event.device}" for event in events)
    counted = ((text, len(list(equal))) for text, equal in groupby(each))
    shown = ", ".join(f"{count:,} times {text}" if count > 1 else text for text, count in counted)
    return f" after {shown}" if shown else ""


def _shown(event: Event) -> str:
    return f"{event.name} {event.value!r}"


def _differ_by_rounding(one: Any, two: Any) -> bool:
    """Return whether two values differ by the last digits of their doubles alone."""
    if isinstance(one, tuple) and isinstance(two, tuple):
        pairs = zip(one, two, strict=False)
        return len(one) == len(two) and all(_differ_by_rounding(*pair) for pair in pairs)
    if isinstance(one, float) and isinstance(two, float):
        return isclose(one, two, rel_tol=1e-9, abs_tol=1e-9)
    return type(one) is type(two) and bool(one == two)
