r"""How many readings a partial has room for: a column that adds up whole numbers has a limit.

A sum of squares is full soon where readings are many steps: 1,500,000,000 bytes at a step of 1 fill
it with four. From then on a device refuses readings for that window, so a fold is tried with the
greatest values of its event, before one is read.

    >>> from lasp_edge import Program, folds
    >>> program = Program("memory")
    >>> used = program.event("used", resolution="1", least=0, most=2_000_000_000)
    >>> _ = program.window("w", source=used, fold=folds.stddev(), size_s=60)
    >>> print(*room_of(program.plan()).doubts[0].split("; "), sep="\n")
    window w: one pane of a device has room for 2 readings of 2000000000 steps (column squares_q)
    write a coarser resolution, such as event('used', resolution="100"), or a smaller most=
"""

from collections.abc import Iterator
from fractions import Fraction
from math import gcd
from typing import Any, NamedTuple

from lasp_edge.checking.programs import collected_event, nested_folds
from lasp_edge.errors import pass_interrupt
from lasp_edge.folds.bounds import NewestBound
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fields import FieldsFold
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import LIMIT
from lasp_edge.folds.packed import MAX_BINARY_BYTES
from lasp_edge.folds.signed import ENTRY_BYTES
from lasp_edge.folds.structs import Struct
from lasp_edge.language.declarations import EventType
from lasp_edge.language.plan import Plan
from lasp_edge.units import SECOND_US

LEAST_READINGS = 1_000
"""Readings that a partial has room for, at least: one each second, of a short window more."""
MOST_VALUES = MAX_BINARY_BYTES // ENTRY_BYTES
"""Different values that a pane of a fold that keeps them has room for."""
_POWERS = range(1, 20)


class Room(NamedTuple):
    """Which folds are full too soon.

    Attributes:
        wrong: those that not one reading fits into, which its event allows.
        doubts: those that few readings fit into.
        notes: of events without a range: up to which value enough of them fit.
    """

    wrong: list[str]
    doubts: list[str]
    notes: list[str]


class _Filled(NamedTuple):
    """A fold, and what fills it.

    Attributes:
        where: of messages.
        what: what has room.
        event: whose readings are folded as they are; None where values are others.
        needed: readings that there have to be room for.
    """

    where: str
    what: str
    fold: Fold
    event: EventType | None
    needed: int


def room_of(plan: Plan) -> Room:
    """Return which folds of a program are full too soon."""
    found = Room([], [], [])
    for filled in _filled(plan):
        for where, fold in nested_folds(filled.where, filled.fold):
            if not isinstance(fold, Struct | FieldsFold):  # whose fields can be anything
                _look(found, filled._replace(where=where, fold=fold))
    found.notes.extend(_of_kept_values(plan))
    return found


def _of_kept_values(plan: Plan) -> Iterator[str]:
    """Yield a line for each window whose panes keep values, and may have too many of them."""
    for name, window in plan.windows.items():
        pane_s = gcd(window.size_us, window.slide_us) // SECOND_US
        if pane_s > MOST_VALUES and any(c.op is Op.VALUES for c in window.fold.columns):
            yield (
                f"window {name}: one pane of a device, {pane_s:,} s, has room for "
                f"{MOST_VALUES:,} different values, since outputs may be taken back; more are left "
                "out: write a smaller slide_s, or a coarser resolution, if there may be more"
            )


def _filled(plan: Plan) -> Iterator[_Filled]:
    for window in plan.windows.values():
        event = None if window.controls.value else plan.events.get(window.source.name)
        pane_s = gcd(window.size_us, window.slide_us) // SECOND_US
        what = "one pane of a device has room"
        yield _Filled(
            f"window {window.name}", what, window.fold, event, max(LEAST_READINGS, pane_s)
        )
    for made in plan.local_folds.values():
        if not made.made_of:
            fold = made.fold.inner if isinstance(made.fold, NewestBound) else made.fold
            event = collected_event(plan, made.source.name)
            bound = getattr(made.source.bottom, "bound", None) or LEAST_READINGS
            yield _Filled(f"fold {made.name}", "a device's value has room", fold, event, bound)


def _look(found: Room, filled: _Filled) -> None:
    """Add what there is to report of a fold."""
    event = filled.event
    known = None if event is None else event.plausible
    if event is None or known is None:
        fits = [10**power for power in _POWERS if 10**power < LIMIT]
        fits = [steps for steps in fits if _room(filled.fold, steps)[0] >= filled.needed]
        if fits and _room(filled.fold, LIMIT - 1)[0] < filled.needed:
            found.notes.append(
                f"{filled.where}: {filled.what} for {filled.needed:,} readings within "
                f"{fits[-1]:,} steps{_in_units(event, fits[-1])}, and for fewer greater ones"
            )
        return
    ends = {known.nearest(1 - LIMIT), known.nearest(LIMIT - 1)}
    count, column, steps = min((*_room(filled.fold, steps), steps) for steps in ends)
    if count >= filled.needed:
        return
    readings = f"{count:,} reading{'s' * (count != 1)}"
    line = f"{filled.where}: {filled.what} for {readings} of {steps} steps (column {column}); "
    (found.doubts if count else found.wrong).append(line + _remedy(filled, event, steps))


def _remedy(filled: _Filled, event: EventType, steps: int) -> str:
    for power in _POWERS:
        if _room(filled.fold, steps // 10**power)[0] >= filled.needed:
            step = _decimal(event.resolution.exact * 10**power)
            side = "most" if steps > 0 else "least"
            return (
                f'write a coarser resolution, such as event({event.name!r}, resolution="{step}"), '
                f"or a smaller {side}="
            )
    return "give it smaller numbers"


def _room(fold: Fold, steps: int) -> tuple[int, str]:
    """Return how many readings of a value fit into a partial, and the column that is full first."""
    try:
        partial = fold.lift(steps, 0)
    except BaseException as error:  # noqa: BLE001 - what is wrong with a fold the laws show
        pass_interrupt(error)
        return LIMIT, ""
    pairs = zip(fold.columns, partial, strict=False)
    return min((_times(column, part), column.name) for column, part in pairs)


def _times(column: Column, part: Any) -> int:
    """Return how often a part of a partial fits into its column."""
    if type(part) is not int or not part:
        return LIMIT
    if column.op is Op.SUM:
        return (column.limit - 1) // abs(part)
    return LIMIT if abs(part) < column.limit else 0


def _in_units(event: EventType | None, steps: int) -> str:
    """Return what a number of steps is in the units of an event, in brackets."""
    if event is None or event.text:
        return ""
    return f" ({event.name} up to {_decimal(event.resolution.exact * steps)})"


def _decimal(number: Fraction) -> str:
    return f"{float(number):.10g}"
