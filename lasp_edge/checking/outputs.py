"""Scans whose outputs over made-up readings are hardly what their author means.

A timer that rings less than a tenth of a second behind its event was meant in seconds; a running
state that is its first one after all events was given no other first one; a pattern takes no
reading of an event that it is given; and a sum of doubles is compared that is a little less than
its digits say.

    >>> 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1
    0.9999999999999999
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from lasp_edge.checking.determinism import inner_codes, methods_of
from lasp_edge.checking.readings import constants_of
from lasp_edge.checking.spans import in_seconds, spans_of, to_write
from lasp_edge.event import Event
from lasp_edge.language.plan import Plan
from lasp_edge.ordered.deltas import Delta
from lasp_edge.ordered.graph import StreamNode
from lasp_edge.ordered.scan import InSteps, Scan
from lasp_edge.ordered.stages import ScanStage
from lasp_edge.scans.pattern import Pattern
from lasp_edge.scans.running import RunningState

SOON_US: Final = 100_000
"""A timer that rings this soon has the seconds of a day, at most, in place of microseconds."""
ENOUGH: Final = 10
"""Outputs from which on one that never changes says something."""
NEAR: Final = 1e-6
"""Of a step: as near to a whole number of steps is a sum of rounded doubles."""


def odd_outputs(
    plan: Plan, node: StreamNode, events: Mapping[str, Sequence[Event]], outputs: Delta
) -> list[str]:
    """Return a line for each thing that is odd in what a scan gave for events, by key."""
    if not isinstance(node.stage, ScanStage):
        return []
    scan, what = node.stage.scan, f"scan {node.name}"
    values = [event.value for _, event in outputs.values() if event is not None]
    lines = [*_soon(scan, events.values()), *_still(scan, events.values(), values)]
    lines += _sums(plan, node.name, scan, values)
    lines += _passed_over(scan, [each for several in events.values() for each in several])
    return [f"{what}: {line}" for line in lines]


def _soon(scan: Scan, several: Any) -> Iterator[str]:
    """Yield a line where all timers ring at once."""
    behind = set[int]()
    for events in several if scan.timed else ():
        state = scan.zero
        with suppress(Exception):  # what it raises is found where it is tried
            for event in events:
                state, _ = scan.step(state, event)
                due_us = scan.due(state)
                behind |= set() if due_us is None else {due_us - event.time_us}
    if not behind or not all(0 < each < SOON_US for each in behind):
        return
    short = [each for each in spans_of(scan).items() if each[1] < SOON_US]
    if short:
        yield f"{in_seconds(*short[0])}, and as soon its timers ring; {to_write(*short[0])}"
    else:
        soon = min(behind)
        yield (
            f"due is {soon} microseconds after the event that has set it; for {soon} seconds, "
            f"write event.time_us + {soon} * 1_000_000"
        )


def _passed_over(scan: Scan, events: Sequence[Event]) -> Iterator[str]:
    """Yield a line for each event that no condition of a pattern takes, and none names.

    With `absent_s` such an event has its part: it ends what waits.
    """
    inner = scan.inner if isinstance(scan, InSteps) else scan
    conditions = [*methods_of(inner)] if isinstance(inner, Pattern) and not inner.timed else []
    named = {text for each in conditions for text in constants_of(each) if isinstance(text, str)}
    asks = [any("name" in code.co_names for _, code in inner_codes(each)) for each in conditions]
    for name in sorted({event.name for event in events} - named) if all(asks) else ():
        of_it = [event for event in events if event.name == name]
        if conditions and not any(_holds(each, event) for each in conditions for event in of_it):
            yield (
                f"no condition of its pattern takes a reading of {name}: each asks for another "
                f"name; write event.name == {name!r} in one, or leave {name} out of source="
            )


def _holds(condition: Callable[[Event], Any], event: Event) -> bool:
    with suppress(Exception):  # what it raises is found where it is tried
        return bool(condition(event))
    return True


def _still(scan: Scan, several: Any, values: list[Any]) -> Iterator[str]:
    """Yield a line where a running state stays as it was before the first event."""
    function = scan.inner if isinstance(scan, InSteps) else scan
    if not isinstance(function, RunningState) or len(values) < ENOUGH:
        return
    changes = len({event.value for events in several for event in events}) > 1
    if changes and all(value == function.zero for value in values):
        yield (
            f"its state is {function.zero!r} after every made-up reading, as before the first one; "
            "zero= is the state before the first: write zero=None, and give the first value for it"
        )


def _sums(plan: Plan, name: str, scan: Scan, values: list[Any]) -> Iterator[str]:
    """Yield a line where sums of doubles are compared that are no whole number of steps."""
    steps = [plan.events[each].resolution for each in sorted(plan.streams[name].events)]
    comparing = [*_comparing(plan, name)]
    if isinstance(scan, InSteps) or scan.resolution or len(steps) != 1 or not comparing:
        return
    step = float(steps[0].exact)
    numbers = [value for value in values if isinstance(value, float)]
    off = [(value, round(value / step)) for value in numbers]
    uneven = [(value, n) for value, n in off if value != float(n * steps[0].exact)]
    if uneven and all(abs(value / step - n) < NEAR for value, n in uneven):
        value, n = min(uneven, key=lambda each: abs(each[0]))
        yield (
            f"it adds up doubles, and gives {value!r} for {float(n * steps[0].exact)!r}, which "
            f"{comparing[0]} compares; let the state have whole steps, "
            f"round(event.value / {step:g}), or map its outputs with resolution= before"
        )


def _comparing(plan: Plan, name: str) -> Iterator[str]:
    """Yield what compares the outputs of a stream as they are."""
    for each in plan.streams.values():
        if name in each.sources and each.operator == "filter":
            yield f"filter {each.name}"
    for window in plan.windows.values():
        if window.source.name == name and window.controls.where:
            yield f"where of window {window.name}"
