r"""A program's streams, run on made-up readings: are their functions functions, and at what cost?

Each function is called twice on what reaches it, scans also from a state that was stored and read
again (`lasp_edge.checking.scans`). Then one reading of a thousand comes late: how many steps that
takes, and how many results it changes, tells what late readings will cost. What rows of a scan over
the fleet cost that do not wait for all devices is its replay ratio (`replays`).

    >>> from lasp_edge import Program, scans
    >>> program = Program("water")
    >>> litres = program.event("litres", resolution="1")
    >>> used = program.scan("used", source=litres, scan=scans.differences(), per_device=True)
    >>> total = program.scan("total", source=litres, per_device=True,
    ...                      scan=scans.running(lambda state, event: state + event.value))
    >>> found = tried_streams(program.plan())
    >>> found.wrong, found.doubts
    ([], [])
    >>> print("\n".join(found.costs))
    scan used: a late reading amid 1,000 takes 2 steps and changes 2 results
    scan total: a late reading amid 1,000 takes 500 steps and changes 500 results: all behind it
"""

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout, suppress
from random import Random
from typing import Any

from lasp_edge.checking.outputs import odd_outputs
from lasp_edge.checking.rates import too_steep
from lasp_edge.checking.readings import (
    MADE_UP_TAG,
    AnyTags,
    constants,
    devices_of,
    made_up_tag,
    plausible,
    values_of,
)
from lasp_edge.checking.replays import replay_ratios
from lasp_edge.checking.scans import AGAIN, ENDLESS, SHAPE, flaws, placed, remedy
from lasp_edge.checking.synchronised import broken_laws
from lasp_edge.checking.trial import Findings
from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event
from lasp_edge.folds.fields import FieldsFold
from lasp_edge.folds.numbers import LIMIT
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import whole_graph
from lasp_edge.ordered.deltas import Content, Delta
from lasp_edge.ordered.graph import StreamNode
from lasp_edge.ordered.places import Place, reading_place
from lasp_edge.ordered.plain import encoded
from lasp_edge.ordered.stages import ScanStage, StatelessStage, UnionStage
from lasp_edge.ordered.synchronised import Synchronised

READINGS = 1_000
"""Made-up readings of all events together, a second apart."""
NAMED = 10
"""Of this many readings one has a value that is always tried, or that the program names."""
DEVICES = 20
"""That read these, where rows are of a fleet, once a second."""
TRIED = 100
"""Events for which each function is called twice."""
SPELT = "Attic"
"""A tag of small and of capital letters."""
MUCH = 4
"""A scan that steps more than this part of the readings for one that is late goes to the end."""
_FIRST_US, _SECOND_US = 1_700_000_000_000_000, 1_000_000
_AFTER_US = _FIRST_US + 10 * READINGS * _SECOND_US
_STEPS = 40


def tried_streams(
    plan: Plan, tags: Mapping[str, str] | None = None, found: Findings | None = None
) -> Findings:
    """Return the findings of running a program's streams; their output is not shown.

    Args:
        plan: of the program.
        tags: of the made-up readings; None: whatever functions ask for.
        found: earlier findings about the program, to which these are added.
    """
    found = found or Findings()
    with redirect_stdout(io.StringIO()):
        asked = _AskedTags(plan, tags)
        ends = _run(plan, asked, found)
        asked.user = ""  # who asks was noted
        if ends:
            _price(plan, asked, found)
            _price_of_order(plan, asked, found)
    for event in sorted(plan.streamed_events):
        of_event = {title(plan, n) for n, each in plan.streams.items() if event in each.events}
        of_event |= {
            f"window {window.name}"
            for window in plan.windows.values()
            if window.source.name in plan.streams
            and event in plan.streams[window.source.name].events
        }
        of_tags = found.tags.setdefault(event, {})
        for tag, users in sorted(asked.users.items()):
            if users & of_event:
                of_tags[tag] = [*of_tags.get(tag, ()), *sorted(users & of_event)]
    return found


class _AskedTags(dict[str, str]):
    """The tags of all made-up readings: each that is asked for is there, and its user is noted.

    Attributes:
        user: the function that runs; "" where no user is noted.
        users: tag -> the functions that asked for it.
    """

    def __init__(self, plan: Plan, given: Mapping[str, str] | None) -> None:
        super().__init__(given or {})
        self._plan, self._open, self._made_up = plan, given is None, dict[str, str]()
        self.user = ""
        self.users: dict[str, set[str]] = {}

    def __getitem__(self, name: str) -> str:
        if self._open:
            if self.user:
                self.users.setdefault(name, set()).add(self.user)
            if name not in self._made_up:
                self._made_up[name] = made_up_tag(self._plan, name)
            return self._made_up[name]
        return super().__getitem__(name)


def title(plan: Plan, name: str) -> str:
    """Return a stream's name behind what makes it, for people."""
    # The sources of a scan with local events are united only where all of it runs in one place.
    operator = plan.streams[name].operator if name in plan.streams else UnionStage.operator
    return f"{operator} {name}"


def made_up_readings(plan: Plan) -> dict[str, Delta]:
    """Return made-up readings of the events that streams are made from, as streams take them."""
    return _readings(plan, _AskedTags(plan, None))


def _readings(plan: Plan, tags: Mapping[str, str]) -> dict[str, Delta]:
    """Return made-up readings of the events that streams are made from."""
    rng, found, (device, _) = Random(0), dict[str, Delta](), devices_of(plan)
    events = [plan.events[name] for name in sorted(plan.streamed_events)]
    steps, named = _STEPS // 2, {each.name: values_of(each, *constants(plan)) for each in events}
    for n in range(READINGS):
        event, time_us = events[n % len(events)], _FIRST_US + n * _SECOND_US
        quantised: Any
        value: Any
        if event.text:
            quantised = value = rng.choice(named[event.name])
        else:
            steps = rng.choice((abs(steps + 3), abs(steps - 3), abs(steps - 1), steps + 1, 0, 1))
            one = max(1, event.resolution.denominator // event.resolution.numerator)
            first = plausible(event, 0)  # that nearest to 0: the others lie behind it
            behind = steps * one if first >= 0 else -steps * one
            quantised = plausible(event, min(first + behind, LIMIT - 1))
            if n // len(events) % NAMED == 0:  # of each event, however many there are
                quantised = event.resolution.quantise(rng.choice(named[event.name]))
            value = event.resolution.real(quantised)
        place = reading_place(event.name, "", quantised, time_us, device)
        made = Event(event.name, value, time_us, device, tags)
        found.setdefault(event.name, {})[place] = (None, made)
    return found


def _run(plan: Plan, asked: _AskedTags, found: Findings) -> bool:
    """Run all streams, one after the other, and try each function on what reaches it.

    Returns False where a timer rings without end: then the rest is not run.
    """
    deltas = _readings(plan, asked)
    for node in whole_graph(plan, devices_of(plan)[0]).nodes:
        name, stage, sources = node
        asked.user = title(plan, name)
        given = [deltas.get(source, {}) for source in sources]
        seen = _flaws(node, given)
        if any(each in flaw for flaw in seen for each in (AGAIN, ENDLESS, SHAPE)):
            found.wrong += [f"{asked.user}: {flaw}" for flaw in seen]
            return False
        deltas[name] = stage.push(given, _AFTER_US) | stage.advance(_AFTER_US)
        _show_windows(plan, name, deltas[name], asked)
        count, failed = sum(map(len, given)), stage.failures.total
        found.unreached += [] if count else [name]
        found.doubts += [*_apart(asked.user, node, given), *_mixed_values(plan, name, given)]
        found.doubts += odd_outputs(plan, node, _by_key(node, given), deltas[name])
        if failed:
            always = failed >= count and not deltas[name]
            line = _failure(plan, node, given, always=always)
            (found.wrong if always else found.doubts).append(line)
        found.wrong += [
            # What fails is named where no failure was found, as a state that is a list.
            f"{asked.user}: {placed(plan.functions.streams.get(name), flaw)}"
            for flaw in seen
            if not failed or " fails: " not in flaw
        ]
        scan = plan.functions.streams.get(name)
        if isinstance(scan, Synchronised) and not failed:
            broken = broken_laws(scan, list(_by_key(node, given).values()), plan.events)
            found.wrong += [f"{asked.user}: {law}" for law in broken.wrong]
    return True


def _failure(plan: Plan, node: StreamNode, given: list[Delta], *, always: bool) -> str:
    """Return how often a stream's functions fail, and the first failure."""
    name, stage, _ = node
    count, failed = sum(map(len, given)), stage.failures.total
    place, why = min(stage.failures.places.items())
    steep = "" if always else too_steep(plan, name, why)
    often = "each time" if failed >= count else f"{failed:,} of {count:,} times"
    event = next((delta[place][1] for delta in given if place in delta), None)
    made = plan.functions.streams.get(name)
    why = placed(made, why) + remedy(made, event, why)
    shown = f"the event {event.name} {event.value!r}" if event else "a timer"
    return steep or f"{title(plan, name)} fails {often}: {why}, for {shown}"


def _mixed_values(plan: Plan, name: str, given: list[Delta]) -> Iterator[str]:
    """Yield a line for a flat_map that gives a tuple of texts and numbers: is it one pair?"""
    if name not in plan.streams or plan.streams[name].operator != "flat_map":
        return
    for _, event in _tried_items(given):
        with suppress(Exception):  # what it raises the run shows
            values = plan.functions.streams[name](event)
            kinds = {isinstance(each, str) for each in values}
            if isinstance(values, tuple) and len(kinds) > 1:
                yield (
                    f"{title(plan, name)} gives {values!r}, and each of these is a value of its "
                    f"own; for one pair, write [{values!r}]"
                )
                return


def _apart(user: str, node: StreamNode, given: list[Delta]) -> Iterator[str]:
    """Yield a line for a scan of several events no key of which has all of them."""
    scan = node.stage.scan if isinstance(node.stage, ScanStage) else None
    if scan is None or not (scan.tells_apart or isinstance(scan, Synchronised)):
        return
    names = [{event.name for event in events} for events in _by_key(node, given).values()]
    every = set[str]().union(*names)
    if len(every) > 1 and all(len(several) == 1 for several in names):
        together = " and ".join(sorted(every))
        yield (
            f"{user}: no key has both {together} among made-up readings, so nothing of one meets "
            "the other; does key= give the same text for both?"
        )
    elif isinstance(node.stage, ScanStage) and node.stage.key is not None:
        yield from _spelt(user, node.stage.key, given)


def _spelt(user: str, key: Callable[[Event], str], given: list[Delta]) -> Iterator[str]:
    """Yield a line for a key that changes the letters of a tag of one event, not of another."""
    ones = {event.name: event for _, event in _tried_items(given)}
    if any(event.key for event in ones.values()):  # of made-up tags, by a scan before
        return
    plain, spelt = (
        {name: _tried(key, event._replace(tags=AnyTags(text))) for name, event in ones.items()}
        for text in (MADE_UP_TAG, SPELT)
    )
    if len({*plain.values()}) == 1 < len({*spelt.values()}) and all(spelt.values()):
        both = " and ".join(f"{text!r} of {name}" for name, text in sorted(spelt.items()))
        yield (
            f"{user}: its key is {both} where tags are {SPELT!r}, so nothing of one meets the "
            "other; let key= spell them alike"
        )


def _show_windows(plan: Plan, stream: str, outputs: Delta, asked: _AskedTags) -> None:
    """Have the windows over a stream see its outputs: it becomes known which tags they ask for.

    What they raise is found by the run of the whole.
    """
    user = asked.user
    for window in plan.windows.values():
        if window.source.name != stream:
            continue
        asked.user = f"window {window.name}"
        for _, event in _tried_items([outputs]):
            with suppress(Exception):
                plan.functions.key(window.name, event)
            if isinstance(window.fold, FieldsFold):
                with suppress(Exception):
                    window.fold.lift_event(event)
    asked.user = user


def _flaws(node: StreamNode, given: list[Delta]) -> list[str]:
    """Return where a stream's functions give something else when they are called again."""
    stage = node.stage
    if isinstance(stage, StatelessStage):
        return [*_twice("its function", stage.outputs, _tried_items(given))]
    if not isinstance(stage, ScanStage):
        return []
    key, found = stage.key, list[str]()
    if key is not None:
        found += _twice("its key", lambda _place, event: key(event), _tried_items(given))
    several = (flaws(stage.scan, events) for events in _by_key(node, given).values())
    return found + next(filter(None, several), [])


def _tried_items(given: list[Delta]) -> list[tuple[Place, Event]]:
    """Return the items that are tried: the first of each source."""
    return [
        (place, new)
        for delta in given
        for place, (_, new) in sorted(delta.items())[:TRIED]
        if new is not None
    ]


def _by_key(node: StreamNode, given: list[Delta]) -> dict[str, list[Event]]:
    """Return the events that are tried, by the key that a scan gives them."""
    key = node.stage.key if isinstance(node.stage, ScanStage) else None
    found: dict[str, list[Event]] = {}
    for _, event in _tried_items(given):
        found.setdefault("" if key is None else _tried(key, event), []).append(event)
    return found


def _tried(key: Callable[[Event], str], event: Event) -> str:
    try:
        return key(event)
    except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
        pass_interrupt(error)
        return ""


def _twice(
    what: str, function: Callable[[Place, Event], Any], items: list[tuple[Place, Event]]
) -> Iterator[str]:
    """Yield one case in which a function gives something else the second time."""
    for place, event in items:
        try:
            first, second = _bytes(function(place, event)), _bytes(function(place, event))
        except BaseException as error:  # noqa: BLE001 - the run of the streams finds what fails
            pass_interrupt(error)
            continue
        if first != second:
            yield f"{what} gives something else the second time, for {event.name} {event.value!r}"
            return


def _bytes(given: Any) -> bytes:
    if isinstance(given, str):
        return given.encode()
    return b"".join(encoded((place, event.value)) for place, event in given)


def _price(plan: Plan, asked: _AskedTags, found: Findings) -> None:
    """Let one reading of each event come late, and count what that takes."""
    readings = _readings(plan, asked)
    graph = whole_graph(plan, devices_of(plan)[0])
    late = {name: sorted(delta)[len(delta) // 2] for name, delta in readings.items()}
    early = {
        name: {place: change for place, change in delta.items() if place != late[name]}
        for name, delta in readings.items()
    }
    graph.update(early, _AFTER_US)
    scans = [node for node in graph.nodes if isinstance(node.stage, ScanStage)]
    before = {name: _steps(stage) for name, stage, _ in scans}
    changed = graph.update({name: {place: readings[name][place]} for name, place in late.items()})
    for name, stage, _ in scans:
        steps = _steps(stage) - before[name]
        line = (
            f"{title(plan, name)}: a late reading amid {READINGS:,} takes {_many(steps, 'step')} "
            f"and changes {_many(len(changed.get(name, ())), 'result')}"
        )
        found.costs.append(line + (": all behind it" if steps * MUCH > READINGS else ""))


def _price_of_order(plan: Plan, asked: _AskedTags, found: Findings) -> None:
    """Count what it takes that rows of scans over the fleet do not wait for all devices."""
    if not plan.fleet_streams:
        return
    readings: dict[str, Content] = {}
    for name, delta in _readings(plan, asked).items():
        for place, (_, event) in delta.items():
            number = (place[0] - _FIRST_US) // _SECOND_US
            time_us, device = _FIRST_US + number * _SECOND_US // DEVICES, f"d{number % DEVICES}"
            moved = event._replace(time_us=time_us, device=device)
            readings.setdefault(name, {})[time_us, device, *place[2:]] = moved
    for name, ratio in replay_ratios(plan, readings).items():
        found.costs.append(
            f"{title(plan, name)}: replay ratio {ratio:.2f}, the steps of an item where {DEVICES} "
            "devices, all of one key, read once a second and rows wait for none of them"
        )


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _steps(stage: Any) -> int:
    return int(stage.steps)
