"""The oracle: the streams' outputs of a content, by definition, from scratch.

It shares the user's functions and scans with the engine, and neither log, stages nor deltas. A
device, a worker, the simulator and Spark are right where they say what this says.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event
from lasp_edge.folds.numbers import Resolution
from lasp_edge.ordered.deltas import Content
from lasp_edge.ordered.outputs import NO_TAGS
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import check_plain, plain_of
from lasp_edge.ordered.scan import MOST_RINGS

Node = tuple[str, Any, tuple[str, ...]]
"""A stream's name, what its declaration holds (its `operator` and functions), and its sources."""


class _Timers(NamedTuple):
    """What time alone brings: all that is due before the frontier, as of a device."""

    frontier_us: int | None
    device: str


def outputs_of(
    nodes: Sequence[Node],
    content: dict[str, Content],
    frontier_us: int | None = None,
    device: str = "",
) -> dict[str, Content]:
    """Return the outputs of each stream by name, for the contents of events.

    Args:
        nodes: the streams, each after its sources.
        content: of the events, by name.
        frontier_us: all timers before it have rung; without it no timer has.
        device: of which the events are; "" where they are of a fleet, and what time brings is
            of no device.
    """
    found, timers = dict(content), _Timers(frontier_us, device)
    for name, stage, sources in nodes:
        found[name] = dict(_rows_of(stage, [found.get(each, {}) for each in sources], timers))
    return found


def _rows_of(
    stage: Any, sources: list[Content], timers: _Timers
) -> Iterator[tuple[Place, Event[Any]]]:
    if stage.operator == "union":
        for branch, content in enumerate(sources):
            for (time_us, device, tie, path), event in content.items():
                yield (time_us, device, tie, (*path, branch)), event
    elif stage.operator == "scan":
        yield from _scanned(stage, sources[0], timers)
    else:
        for place, event in sources[0].items():
            yield from _single(stage, place, event)


def _single(stage: Any, place: Place, event: Event[Any]) -> Iterator[tuple[Place, Event[Any]]]:
    time_us, device, tie, path = place
    try:
        if stage.operator == "filter":
            if stage.predicate(event):
                yield place, event
        elif stage.operator == "map":
            value = _rounded(plain_of(stage.function(event)), stage.resolution)
            yield place, event._replace(name=stage.name, value=value)
        elif stage.operator == "flat_map":
            given = list(stage.function(event))
            check_plain(tuple(given))
            values = [_rounded(value, stage.resolution) for value in given]
            for n, value in enumerate(values):
                made = event._replace(name=stage.name, value=value)
                yield (time_us, device, tie, (*path, n)), made
    except BaseException as error:  # noqa: BLE001 - what raises says nothing
        pass_interrupt(error)
        return


def _rounded(value: Any, step: Resolution | None) -> Any:
    """Return a value as the multiple of a step that is nearest to it, by the definition.

    Raises:
        ValueError: it is no number in range.
    """
    return value if step is None else step.real(step.quantise_exactly(value))


def _scanned(stage: Any, content: Content, timers: _Timers) -> Iterator[tuple[Place, Event[Any]]]:
    by_key: dict[str, list[Place]] = {}
    for place in sorted(content):
        try:
            key = "" if stage.key is None else stage.key(content[place])
        except BaseException as error:  # noqa: BLE001 - what raises says nothing
            pass_interrupt(error)
            continue
        by_key.setdefault(key, []).append(place)
    for key, places in by_key.items():
        state, last_us = stage.scan.zero, -(2**62)
        for place in places:
            event = content[place]
            state, rung = _rung(stage, key, state, last_us, place[0], timers.device)
            yield from rung
            state, values = _tried(stage.scan.step, state, event)
            for n, value in enumerate(values):
                made = Event(stage.name, value, event.time_us, event.device, event.tags, key)
                yield (*place[:3], (*place[3], n)), made
            last_us = place[0]
        if timers.frontier_us is not None:
            yield from _rung(stage, key, state, last_us, timers.frontier_us - 1, timers.device)[1]


def _rung(
    stage: Any, key: str, state: Any, last_us: int, until_us: int, device: str
) -> tuple[Any, list[tuple[Place, Event[Any]]]]:
    """Return the state after the timers up to a time, and their outputs."""
    outputs: list[tuple[Place, Event[Any]]] = []
    for _ in range(MOST_RINGS):
        try:
            due_us = stage.scan.due(state)
            if due_us is not None and type(due_us) is not int:
                break  # it raises
            if due_us is None or max(due_us, last_us + 1) > until_us:
                break
            last_us = max(due_us, last_us + 1)
            after, values = stage.scan.ring(state, last_us)
            check_plain(after)
            check_plain(tuple(values))
        except BaseException as error:  # noqa: BLE001 - what raises says nothing
            pass_interrupt(error)
            break
        state = after
        for n, value in enumerate(values):
            made = Event(stage.name, value, last_us, device, NO_TAGS, key)
            outputs.append(((last_us, "", (stage.name, key), (n,)), made))
    return state, outputs


def _tried(step: Any, state: Any, event: Event[Any]) -> tuple[Any, Sequence[Any]]:
    try:
        after, values = step(state, event)
        check_plain(after)
        check_plain(tuple(values))
    except BaseException as error:  # noqa: BLE001 - what raises says nothing
        pass_interrupt(error)
        return state, ()
    return after, tuple(values)
