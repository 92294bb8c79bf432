"""The demands on a scan, tried: its functions depend on their arguments alone, all is plain.

Each event is stepped several times, the first ones again after all others, and from a state that
was stored and read again, as a device does after a restart. Its timers are rung in the same way.

    >>> from lasp_edge import scans
    >>> class Forgetful(scans.Scan):
    ...     name, zero = "forgetful", 0
    ...     calls = 0
    ...
    ...     def step(self, state, event):
    ...         self.calls += 1
    ...         return state, [self.calls]
    >>> flaws(Forgetful(), [Event("x", 1, 0, "pi-1", {})])
    ['step from 0 at 1 gives (0, (1,)), and then (0, (2,))']
"""

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any, Final, NamedTuple

from lasp_edge.checking.determinism import methods_of
from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event
from lasp_edge.ordered.plain import check_plain, decoded, encoded
from lasp_edge.ordered.scan import Scan
from lasp_edge.reasons import is_users, reason_of, shown_place

MOST_RINGS = 100
"""Timers that are rung after each event, at most."""
YEAR_1980_US = 315_532_800_000_000
"""A test may begin its times at 0, and there a timer can be early."""
MANY_TIMES = 100
"""A timer that is less than this part of its event's time is in seconds or milliseconds."""
ENDLESS = "and so its timer: it rings without end; let due give None, or a later time, after it"
"""What a timer does that sets itself again."""
ENOUGH_RINGS = 1_000
"""Timers after the last event, at most, that a scan may have."""
AGAIN = "after the last event, and so on without end; let due give None after some of them"
"""What a timer does that is set again, each time for later."""
FIRSTS = 3
"""Steps that are taken again once all others were."""
_OURS = "lasp_edge."
_PLACE: Final = re.compile(r" \(\S+\.py:\d+\)$")
"""The place at the end of a reason: one of ours, where a function has returned what it must not."""
SHAPE = "must give a state and a list of outputs, such as return state, [output]"
"""What a step does that gives something else."""


def flaws(scan: Scan, events: Iterable[Event]) -> list[str]:
    """Return the flaws of a scan over these events, in order; the first of each kind."""
    found: dict[str, str] = {}
    state = scan.zero
    try:
        check_plain(state)
    except ValueError as error:
        return [f"step from {state!r} fails: {error}"]
    firsts: list[_FirstStep] = []
    for event in events:
        before, state = state, _tried(found, "step", f"at {event.value!r}", scan.step, state, event)
        if len(firsts) < FIRSTS:
            firsts.append(_FirstStep(before, event, _gave(scan, before, event)))
        _note_unit(found, scan, state, event.time_us)
        for _ in range(MOST_RINGS):
            due_us = _due_us(found, scan, state)
            if due_us is None or due_us > event.time_us:
                break
            state = _rung(found, scan, state, due_us)
    _note_memory(found, scan, firsts)
    is_own = not type(scan).__module__.startswith(_OURS)
    for _ in range(ENOUGH_RINGS):
        due_us = _due_us(found, scan, state)
        if due_us is None or found or not is_own:  # a scan of ours ends where its hold_s is over
            return list(found.values())
        state = _rung(found, scan, state, due_us)
    found["ring"] = f"ring sets a timer {ENOUGH_RINGS:,} times {AGAIN}"
    return list(found.values())


class _FirstStep(NamedTuple):
    """A step before others were taken; `gave` is None where it failed."""

    state: Any
    event: Event
    gave: tuple[Any, tuple[Any, ...]] | None


def _gave(scan: Scan, state: Any, event: Event) -> tuple[Any, tuple[Any, ...]] | None:
    """Return what a step gives, all plain; None where it fails."""
    try:
        after, values = scan.step(decoded(encoded(state)), event)
        return decoded(encoded((after, tuple(values))))  # type: ignore[no-any-return]
    except BaseException as error:  # noqa: BLE001 - it is noted where it is tried
        pass_interrupt(error)
        return None


def _note_memory(found: dict[str, str], scan: Scan, firsts: Iterable[_FirstStep]) -> None:
    """Note a step that gives something else once others were taken."""
    for state, event, gave in firsts:
        again = _gave(scan, state, event)
        if gave is not None and again is not None and encoded(gave) != encoded(again):
            found.setdefault(
                "step",
                f"step from {state!r} at {event.value!r} gives {gave!r} first, and {again!r} once "
                "it has seen other readings; let the state alone tell it of these",
            )


def written(made: Any) -> str:
    """Return the file and line of a user's fold, scan or function; "" of all others."""
    several = [inspect.unwrap(made)] if callable(made) else [*methods_of(made)]
    codes = (each.__code__ for each in several if isinstance(each, FunctionType))
    code = next((each for each in codes if is_users(each.co_filename)), None)
    return "" if code is None else shown_place(code.co_filename, code.co_firstlineno)


def placed(made: Any, why: str) -> str:
    """Return why a user's scan or function fails, with its own file and line."""
    place = written(made)
    if not place or f"{Path(place).name.partition(':')[0]}:" in why:
        return why
    return f"{_PLACE.sub('', why)} ({place})"


def remedy(made: Any, event: Event | None, why: str) -> str:
    """Return what to write where a scan or function fails; empty text where it is not known."""
    if isinstance(made, Scan):
        own = [vars(kind) for kind in type(made).__mro__ if not kind.__module__.startswith(_OURS)]
        has_zero = any("zero" in names for names in own) or "zero" in vars(made)
        is_lost = own and not has_zero and why.startswith("TypeError: ") and "tuple" in why
        return "; its class has no zero: write zero = 0, or what else is so at first" * bool(
            is_lost
        )
    if event is None or not callable(made) or not why.startswith("Refused: not a number"):
        return ""
    value = made(event)
    also = ", and a condition is for program.filter" if isinstance(value, bool) else ""
    return f"; it gives {value!r}, and a number is needed{also}"


def _note_unit(found: dict[str, str], scan: Scan, state: Any, time_us: int) -> None:
    """Note a timer that is decades before the event that has set it: it is in another unit."""
    due_us = _due_us(found, scan, state)
    if due_us is not None and due_us * MANY_TIMES < time_us > YEAR_1980_US:
        found.setdefault(
            "due",
            f"due gives {due_us}, and the event that has set it is at {time_us}: a time in "
            "microseconds since 1970 is needed, such as event.time_us + 60 * 1_000_000, or None",
        )


def _due_us(found: dict[str, str], scan: Scan, state: Any) -> int | None:
    """Return when a timer rings; note what `due` raises, or gives in place of a time."""
    try:
        due_us = scan.due(state)
    except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
        pass_interrupt(error)
        found.setdefault("due", f"due for the state {state!r} fails: {reason_of(error)}")
        return None
    if due_us is None or isinstance(due_us, int):
        return due_us
    needed = f"whole microseconds are needed, or None, not {due_us!r}"
    found.setdefault("due", f"due for the state {state!r} fails: {needed}")
    return None


def _rung(found: dict[str, str], scan: Scan, state: Any, due_us: int) -> Any:
    """Return the state after a timer, and note a flaw of it; one that sets itself again is one."""
    after = _tried(found, "ring", f"at {due_us}", scan.ring, state, due_us)
    if encoded(after) == encoded(state) and _due_us(found, scan, after) == due_us:
        found.setdefault("ring", f"ring at {due_us} leaves the state {state!r} as it is, {ENDLESS}")
    return after


def _tried(
    found: dict[str, str],
    what: str,
    where: str,
    function: Callable[[Any, Any], Any],
    state: Any,
    given: Any,
) -> Any:
    """Return the next state, and note a flaw of the step to it."""
    before = encoded(state)
    shown = f"{what} from {state!r} {where}"
    try:
        gave = function(state, given)
        if not _is_step(gave):
            found.setdefault(what, f"{what} {SHAPE}; {shown} gives {gave!r}")
            return state
        after, values = gave
        first = (after, tuple(values))
        check_plain(after)
        check_plain(first[1])
        again, more = function(decoded(before), given)
        second = (again, tuple(more))
    except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
        pass_interrupt(error)
        found.setdefault(what, f"{shown} fails: {reason_of(error)}")
        return state
    if len(first[1]) > 1 and values is after:
        found.setdefault(
            what,
            f"{shown} gives its state as the list of outputs, so each of {values!r} is an output "
            "of its own; for one output, return state, [state]",
        )
    if encoded(first) != encoded(second):
        found.setdefault(what, f"{shown} gives {first!r}, and then {second!r}")
    return after


def _is_step(gave: Any) -> bool:
    """Return whether a function gave a state and some outputs."""
    if not isinstance(gave, tuple | list) or len(gave) != 2:  # noqa: PLR2004
        return False
    return isinstance(gave[1], Sequence) and not isinstance(gave[1], str | bytes)
