"""A whole program on real cores, a gateway's core and the oracle, with made-up readings.

`lasp-edge check` finds this by an entry point: what users declare knows no agent and no simulation.

    >>> from lasp_edge.examples.greenhouse import program
    >>> found = whole(program.plan(), {"temperature": {"room"}})
    >>> found.wrong, found.doubts
    ([], [])
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any

from crdts import BoundedLWWSet, GSet, LWWRegister
from lasp_edge.checking.rates import too_steep
from lasp_edge.checking.readings import goes_by_time, made_up, made_up_entries
from lasp_edge.checking.trial import Findings
from lasp_edge.folds.fields import FieldsFold
from lasp_edge.language.plan import Plan
from lasp_edge.language.updates import run_handlers
from lasp_edge.language.writes import variables_named
from simulations.elsewhere import differences
from simulations.oracle import Reading, accepted
from simulations.replay import DAY_US, ReplayedFleet, replaying
from simulations.whole_values import LEAST_TIME_US, idle

_NUMBER = re.compile(r"-?\d[\d.]*(e[+-]?\d+)?")
_STORED = re.compile('^failed: window (.+?): MissingTagError: no tag "([^"]+)"', re.MULTILINE)
RARE = "a function that few readings reach"
"""Who asks for a tag that the trial of each function by itself did not find."""

EVER_US = 40_000 * DAY_US
"""For how long readings are taken in: their times are made up, whatever the program's windows."""
_LACKS_ONE_OF = 3
"""Of this many readings one lacks the tags that functions can do without."""
ROUNDS = 8
"""Times that the program is run, at most, while its functions ask for tags that readings lack."""


def whole(
    plan: Plan,
    tags: Mapping[str, Set[str]],
    given: Mapping[str, str] | None = None,
    program: str = "",
) -> Findings:
    """Return the findings of running a whole program.

    Args:
        plan: of the program.
        tags: event -> the tags that its readings must have.
        given: all tags of all readings; None: those that they must have.
        program: `MODULE:program`, for another process to load; "": it is not run elsewhere.
    """
    found, readings = Findings(), list[Reading]()
    asked = {event: set(each) for event, each in tags.items()}
    optional: dict[str, set[str]] = {}
    rare = goes_by_time(plan)
    for left in reversed(range(ROUNDS)):
        readings = list(_readings(plan, asked, optional, given, rare=rare))
        if not readings:
            return found
        with replaying(plan, readings, entries=made_up_entries(plan), retain_us=EVER_US) as replay:
            may_ask = left > 0 and given is None
            needed = _needed(plan, replay.failures, readings) if may_ask else {}
            if not needed and not (may_ask and _has_more(optional, readings)):
                empty = [*_without_rows(replay), *_without_value(replay)]
                if empty and left and not rare:
                    rare = True  # opening hours, a month, or a row of equal values gives one
                    continue
                _note(found, plan, replay, readings)
                found.doubts += empty
                break
        for event, lacking in needed.items():
            asked.setdefault(event, set()).update(lacking)
            found.tags.setdefault(event, {}).update({tag: [RARE] for tag in sorted(lacking)})
    found.spare_tags = optional
    if program:
        found.wrong += differences(program, plan, readings)
    return found


def _note(found: Findings, plan: Plan, replay: ReplayedFleet, readings: list[Reading]) -> None:
    """Add what a run of the whole shows to the findings."""
    steep, failed = _too_steep(plan, replay.failures)
    failures = map(_with_remedy, _of_each_kind(failed))
    found.wrong += [*failures, *replay.compared.wrong()]
    found.reached |= _reached(replay)
    found.doubts += [*steep, *_empty_sets(replay)]
    found.doubts += [*_without_updates(plan, readings), *_odd_updates(plan, readings)]
    found.doubts += idle(plan, replay, readings)


class _LackingTags(dict[str, str]):
    """The tags of a reading; notes which it was asked for and lacks.

    Attributes:
        lacking: those that a function cannot do without.
        missed: those that a function can do without: by `tags.get(..)`, or `.. in tags`.
    """

    def __init__(self, tags: Mapping[str, str]) -> None:
        super().__init__(sorted(tags.items()))
        self.lacking: set[str] = set()
        self.missed: set[str] = set()

    def __missing__(self, name: str) -> str:
        self.lacking.add(name)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        is_there = super().__contains__(name)
        if not is_there and isinstance(name, str):
            self.missed.add(name)
        return is_there

    def get(self, name: str, default: Any = None) -> Any:
        """Return a tag, or what stands for one that is not there."""
        if name not in self:
            return default
        return self[name]


def _readings(
    plan: Plan,
    asked: Mapping[str, Set[str]],
    optional: Mapping[str, Set[str]],
    given: Mapping[str, str] | None,
    *,
    rare: bool,
) -> Iterator[Reading]:
    """Yield made-up readings; some of them lack what functions can do without."""
    tags = {event: {*asked.get(event, ()), *optional.get(event, ())} for event in plan.events}
    known: dict[Any, Set[str]] = {}
    for n, made in enumerate(made_up(plan, tags, given, rare=rare)):
        lacks = optional.get(made.event, set()) if n % _LACKS_ONE_OF == 0 else set()
        lacks = known.setdefault(made[:4], lacks)  # one that comes again is the same
        has = {tag: text for tag, text in made.tags.items() if tag not in lacks}
        yield Reading(*made)._replace(tags=_LackingTags(has))


def _has_more(optional: dict[str, set[str]], readings: Iterable[Reading]) -> bool:
    """Add the tags that functions can do without; return whether some were not known."""
    is_more = False
    for reading in readings:
        tags = reading.tags
        missed = tags.missed | tags.lacking if isinstance(tags, _LackingTags) else set()
        known = optional.setdefault(reading.event, set())
        is_more = is_more or not missed <= known
        known |= missed
    return is_more


def _needed(plan: Plan, failures: list[str], readings: Iterable[Reading]) -> dict[str, set[str]]:
    """Return event -> the tags whose lack made a function fail.

    Functions of a window that parameters change see the tags that their device has stored.
    """
    found: dict[str, set[str]] = {}
    for window, tag in _STORED.findall("\n".join(failures)):
        source = plan.windows[window].source.name
        for event in plan.streams[source].events if source in plan.streams else (source,):
            found.setdefault(event, set()).add(tag)
    for reading in readings:
        for tag in reading.tags.lacking if isinstance(reading.tags, _LackingTags) else ():
            if any(f"KeyError: {tag!r}" in failure for failure in failures):
                found.setdefault(reading.event, set()).add(tag)
    return found


def _reached(replay: ReplayedFleet) -> set[str]:
    """Return the windows and results that have rows."""
    return {what.partition(" ")[2] for what, count in replay.compared.known.items() if count}


def _too_steep(plan: Plan, failures: list[str]) -> tuple[list[str], list[str]]:
    """Return a line for each rate that made-up readings are too steep for; and other failures."""
    steep, others = dict[str, None](), list[str]()
    for failure in failures:
        name, _, why = failure.removeprefix("failed: ").partition(": ")
        line = too_steep(plan, name, why)
        others += [] if line else [failure]
        steep |= dict.fromkeys([line] if line else [])
    return list(steep), others


def _without_rows(replay: ReplayedFleet) -> list[str]:
    """Return a line for each window and result of which nothing came."""
    return [
        f"{what}: no made-up reading counts in it; is what its functions ask for possible?"
        for what, count in replay.compared.known.items()
        if not count and what.startswith(("window ", "result "))
    ]


def _without_value(replay: ReplayedFleet) -> list[str]:
    """Return a line for each part of a fold of several fields that is None in all rows."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    plan = replay.fleet.plan
    for at, (*_, row) in replay.fleet.lander.revisions.items():
        window = plan.windows[at.window]
        if isinstance(window.fold, FieldsFold) and row.devices_in:
            lowered = window.fold.lower(row.partial, window.resolution)
            rows.setdefault(at.window, []).append(lowered)
    found = []
    for name, several in sorted(rows.items()):
        parts = [
            each for each in plan.windows[name].fold.parts if not any(map(_has(each), several))
        ]
        if parts:
            found.append(
                f"window {name}: no made-up reading gives it a {' or '.join(parts)}; do its fields "
                "vary, and are steps= fine enough for them?"
            )
    return found


def _has(part: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return a function that tells whether a part is there."""
    return lambda parts: parts[part] is not None


def _without_updates(plan: Plan, readings: list[Reading]) -> list[str]:
    """Return a line for each handler that names variables, and that updates none of them."""
    named = [
        (event, handler, [v.name for v in variables_named(handler) if v.name in plan.own_variables])
        for event in sorted(plan.functions.handlers.keys() - plan.reads.keys())
        for handler in plan.functions.handlers[event]
    ]
    updated = {
        change.variable
        for sample in (accepted(plan, readings) if named else ())
        if sample.event.name not in plan.reads
        for change in run_handlers(plan, sample.event)
    }
    return [
        f"handler {getattr(handler, '__name__', type(handler).__name__)} of event {event}: no "
        f"made-up reading makes it update {' or '.join(names)}; is what it asks for possible?"
        for event, handler, names in named
        if names and updated.isdisjoint(names)
    ]


def _odd_updates(plan: Plan, readings: list[Reading]) -> list[str]:
    """Return a line for each set or register whose samples have no plausible value or time."""
    values: dict[str, list[tuple[int, int]]] = {}
    for sample in accepted(plan, readings) if plan.functions.handlers else ():
        if sample.event.name in plan.reads:
            continue
        for change in run_handlers(plan, sample.event):
            bottom = plan.variables[change.variable].bottom
            if isinstance(bottom, BoundedLWWSet | LWWRegister) and len(change.arguments) > 1:
                values.setdefault(change.variable, []).append(change.arguments[:2])
    return [line for name in sorted(values) for line in _odd_samples(plan, name, values[name])]


def _odd_samples(plan: Plan, name: str, several: list[tuple[int, int]]) -> Iterator[str]:
    """Yield what is odd in the values and times that are written to a set or register."""
    measured = plan.events.get(plan.variables[name].measures or "")
    known = measured.plausible if measured is not None else None
    if all(0 <= time_us < LEAST_TIME_US for _, time_us in several):
        yield (
            f"handlers write {name} at times such as {several[0][1]}, and a time is in "
            "microseconds since 1970, as event.time_us is; does the value come first?"
        )
    elif measured and known is not None and not any(known.has(value) for value, _ in several):
        yield (
            f"handlers add to {name}, which measures {measured.name}, nothing that is "
            f"{known.span}, but such as {known.real(several[0][0]):g}"
        )


def _empty_sets(replay: ReplayedFleet) -> list[str]:
    """Return a line for each set that is derived from sets which only grow, and that is empty."""
    plan, values = replay.fleet.plan, replay.variables
    return [
        f"{made.operator} {name}: no made-up element is in it, though there are some in "
        f"{' and '.join(made.sources)}; is what it asks for possible?"
        for name, made in plan.derivations.items()
        if values.get(name) == frozenset()
        and all(values.get(each) for each in made.sources)
        and all(isinstance(plan.variables[each].bottom, GSet) for each in made.sources)
    ]


def _of_each_kind(failures: Iterable[str]) -> list[str]:
    """Return the first of the failures that differ in their numbers alone, and how many do.

    >>> _of_each_kind(["f: got 0.25", "f: got -1e-05", "g"])
    ['f: got 0.25 (and 1 more with other numbers)', 'g']
    """
    kinds: dict[str, list[str]] = {}
    for failure in failures:
        kinds.setdefault(_NUMBER.sub("#", failure), []).append(failure)
    return [
        first + (f" (and {len(others)} more with other numbers)" if others else "")
        for first, *others in kinds.values()
    ]


def _with_remedy(failure: str) -> str:
    """Return a failure with what to write, where that is known.

    >>> _with_remedy("failed: window w: Refused: out of range").rpartition("; ")[2]
    'of a checksum take value % 2**31'
    """
    if "the partial is out of range" in failure:
        return (
            f"{failure}: its columns stay below 2**62; fold smaller numbers, or say what readings "
            "are plausible, by event(..., least=, most=)"
        )
    if "Refused: out of range" in failure:
        return f"{failure}: it has 2**31 steps or more; of a checksum take value % 2**31"
    return failure
