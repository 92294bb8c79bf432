"""What grows with every reading: states of scans, parts of slices, shared sets, and keys.

What a device keeps is bounded, and a program that runs for a month meets each bound. So functions
see many readings, hours apart and of few values, and what they keep after half of them is compared
with what they keep after all. A state that forgets after some time, or counts by value, is no
longer growing by then.

    >>> from lasp_edge import Program, scans
    >>> program = Program("medians")
    >>> x = program.event("x", resolution="1")
    >>> kept = scans.running(lambda state, event: (*state, event.value), ())
    >>> _ = program.scan("all", source=x, scan=kept, per_device=True)
    >>> print(growing(program.plan())[0].partition(";")[0])
    scan all: its state grows with every reading: 1,353 bytes after 150, 2,703 after 300
"""

import io
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from crdts import Replica
from crdts.wire import encode
from lasp_edge.checking.readings import AnyTags, constants, plausible, values_of
from lasp_edge.checking.scans import MOST_RINGS
from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event
from lasp_edge.language.declarations import EventType
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import whole_graph
from lasp_edge.language.updates import Update
from lasp_edge.ordered.deltas import Delta
from lasp_edge.ordered.places import reading_place
from lasp_edge.ordered.plain import PART_BYTES, PLAIN_BYTES, encoded
from lasp_edge.ordered.scan import Scan
from lasp_edge.ordered.stages import ScanStage
from lasp_edge.ordered.synchronised import Synchronised
from lasp_edge.units import SECOND_US

HALF = 150
"""Readings after which a size is taken; and again after twice as many."""
_FIRST_US, _APART_US = 1_764_028_800_000_000, 3_601 * 1_000_000
_LAST_US = _FIRST_US + 4 * HALF * _APART_US
_VALUES = 20
"""Values that a reading has: what is kept by value is complete long before `HALF`."""
_LEAST_BYTES = HALF // 2
"""Bytes by which something grows with half of the readings, at least: a number gets longer, too."""
_DEVICE = "made-up"


class _Sizes(NamedTuple):
    """Bytes, or keys, after half of the readings and after all."""

    half: int
    whole: int

    @property
    def grows(self) -> bool:
        """Whether the second half brought nearly as much as the first."""
        more = self.whole - self.half
        return more >= _LEAST_BYTES and 3 * more >= 2 * self.half

    @property
    def text(self) -> str:
        """Both, for people."""
        return f"{self.half:,} bytes after {HALF}, {self.whole:,} after {2 * HALF}"

    def full_after(self, limit: int) -> str:
        """Return after how many readings a limit is reached, about."""
        return f"{limit * HALF // (self.whole - self.half):,}"


def growing(plan: Plan) -> list[str]:
    """Return a line for each thing that grows with every reading; nothing is shown of what runs."""
    with redirect_stdout(io.StringIO()):
        return [*_streams(plan), *_keys(plan), *_sets(plan)]


def kept_by_value(plan: Plan) -> list[str]:
    """Return a line for each scan whose state grows with each other value within its time."""
    with redirect_stdout(io.StringIO()):
        return list(_streams(plan, varied=True))


def _varied(event: EventType) -> Iterator[Event]:
    """Yield readings of an event, a second apart, each with another value as far as there are."""
    first = 0 if event.text else plausible(event, 0)
    one = -1 if first < 0 else 1
    for n in range(2 * HALF):
        value: Any = f"value {n}"
        if not event.text:
            value = event.resolution.real(plausible(event, first + one * n))
        time_us = _FIRST_US + n * SECOND_US
        yield Event(event.name, value, time_us, _DEVICE, AnyTags())


def _events(event: EventType, values: list[Any]) -> Iterator[Event]:
    """Yield readings of an event, hours apart."""
    few = list(islice(iter(values), _VALUES))
    for n in range(2 * HALF):
        yield Event(event.name, few[n % len(few)], _FIRST_US + n * _APART_US, _DEVICE, AnyTags())


def _streams(plan: Plan, *, varied: bool = False) -> Iterator[str]:
    """Yield a line for each scan whose state grows: with each reading, or with each other value."""
    deltas: dict[str, Delta] = {}
    for name in sorted(plan.streamed_events):
        event = plan.events[name]
        few = () if varied else values_of(event, *constants(plan))
        for each in _varied(event) if varied else _events(event, list(few)):
            steps = 0 if event.text else event.resolution.quantise(each.value)
            place = reading_place(name, str(each.value) * event.text, steps, each.time_us, _DEVICE)
            deltas.setdefault(name, {})[place] = (None, each)
    for name, stage, sources in whole_graph(plan, _DEVICE).nodes if plan.streams else ():
        given = [deltas.get(source, {}) for source in sources]
        deltas[name] = stage.push(given, _LAST_US) | stage.advance(_LAST_US)
        if isinstance(stage, ScanStage):
            items = sorted((place, new) for each in given for place, (_, new) in each.items())
            events = [new for _, new in items if new is not None]
            yield from _of_scan(f"scan {name}", stage.scan, events, varied=varied)


def _of_scan(title: str, scan: Scan, events: list[Event], *, varied: bool) -> Iterator[str]:
    is_shared, start = isinstance(scan, Synchronised), scan.zero
    if isinstance(scan, Synchronised):
        ordered = {name for pair in scan.depends for name in pair if (name, name) in scan.depends}
        events, start = [e for e in events if e.name not in ordered], scan.share(scan.zero)
    events = events[: 2 * HALF]
    if len(events) < 2 * HALF:
        return
    sizes = _measured(partial(_stepped, scan), start, events)
    if sizes is None or not sizes.grows:
        return
    if varied:
        yield (
            f"{title}: its state grows with each other value within its time: some "
            f"{sizes.full_after(PLAIN_BYTES)} of them fit into {PLAIN_BYTES:,} bytes; it fails for "
            "those beyond"
        )
        return
    if is_shared:
        yield (
            f"{title}: a part of a slice grows with every reading: {sizes.text}; a device's part "
            f"of more than {PART_BYTES:,} bytes, about {sizes.full_after(PART_BYTES)} "
            "readings between two events in order, gives no row: keep counts or sums in its place"
        )
        return
    yield (
        f"{title}: its state grows with every reading: {sizes.text}; beyond {PLAIN_BYTES:,} bytes, "
        f"after about {sizes.full_after(PLAIN_BYTES)} readings, it fails for each: let it forget, "
        "or use a window"
    )


def _stepped(scan: Scan, state: Any, event: Event) -> Any:
    after, _ = scan.step(state, event)
    for _ in range(MOST_RINGS):
        due_us = scan.due(after)
        if due_us is None or due_us > event.time_us:
            break
        after, _ = scan.ring(after, due_us)
    return after


def _measured(
    function: Callable[[Any, Event], Any], state: Any, events: list[Event]
) -> _Sizes | None:
    """Return the greatest sizes of a state in both halves of the events; None where it fails."""
    found = [0, 0]
    for n, event in enumerate(events):
        try:
            state = function(state, event)
            found[n // HALF] = max(found[n // HALF], len(encoded(state)))
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            pass_interrupt(error)
            return None
    return _Sizes(*found)


def _keys(plan: Plan) -> Iterator[str]:
    """Yield the variables that have a new key for nearly each reading, and never forget one."""
    for event in plan.events.values():
        for variable in plan.collections.get(event.name, ()):
            bottom: Any = variable.bottom
            if not variable.keyed or (bottom is not None and bottom.limits.max_age_us):
                continue
            keys: set[str] = set()
            for each in _events(event, values_of(event, *constants(plan))):
                try:
                    keys.add(plan.functions.key(variable.name, each))
                except BaseException as error:  # noqa: BLE001 - as above
                    pass_interrupt(error)
            if len(keys) > HALF:
                yield (
                    f"key of variable {variable.name}: {2 * HALF} readings have {len(keys)} keys, "
                    "and each is kept for ever, on all devices: let a key be one of few, or give "
                    "the set an age, such as BoundedLWWSet(..., max_age_s=3600)"
                )


def _sets(plan: Plan) -> Iterator[str]:
    """Yield the shared variables that grow with every reading that handlers see."""
    for name, handlers in plan.functions.handlers.items():
        event = plan.events[name]
        sizes: dict[str, list[int]] = {}
        states: dict[str, Any] = {}
        for n, each in enumerate(_events(event, values_of(event, *constants(plan))), 1):
            for handler in handlers:
                _apply(plan, handler, each, states)
            if n in {HALF, 2 * HALF}:
                for variable, state in states.items():
                    sizes.setdefault(variable, []).append(len(encode(state)))
        for variable, found in sizes.items():
            if len(found) > 1 and _Sizes(*found).grows:
                yield (
                    f"handlers of event {name}: {variable} grows with every reading: "
                    f"{_Sizes(*found).text}, on all devices and for ever: keep samples in a "
                    "BoundedLWWSet, or count what is added"
                )


def _apply(plan: Plan, handler: Any, event: Event, states: dict[str, Any]) -> None:
    update = Update(plan, event)
    try:
        handler(event, update)
        for change in update.changes:
            bottom = plan.variables[change.variable].bottom
            if bottom is not None and not plan.variables[change.variable].dynamic:
                state = states.setdefault(change.variable, bottom.copy())
                state |= getattr(state, change.mutator)(Replica(1, 1, _DEVICE), *change.arguments)
                states[change.variable] = state
    except BaseException as error:  # noqa: BLE001 - as above
        pass_interrupt(error)
