"""What streams emit of readings, each device's by themselves or all in one order, by the oracle."""

from collections.abc import Iterable, Iterator, Mapping

from lasp_edge.event import Event, tags_text, text_of_stream
from lasp_edge.folds.numbers import Refused
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import FLEET, graph_of, plain_parts
from lasp_edge.ordered.deltas import Content
from lasp_edge.ordered.oracle import outputs_of
from lasp_edge.ordered.places import Place, reading_place
from lasp_edge.ordered.sent_rows import SentRow
from simulations.oracle.readings import AcceptedReading, Reading, accepted

AT_THE_END_US = 2**62
"""Everything is over: all timers have rung."""
AT_THE_END: Mapping[str, int] = {}
"""Everything is over everywhere; else the time up to which each device's streams are final."""


def emitted(
    plan: Plan,
    stream: str,
    readings: Iterable[Reading],
    frontiers_us: Mapping[str, int] = AT_THE_END,
) -> Iterator[AcceptedReading]:
    """Yield the items of a stream over the readings of all devices, as if they were read.

    Left out is what is no number with a step.
    """
    resolution = plan.streams[stream].resolution
    for device, content in _items(plan, stream, readings, frontiers_us):
        for _, event in sorted(content.items()):
            try:
                steps = 0 if resolution is None else resolution.quantise(event.value)
            except Refused:
                continue
            yield AcceptedReading(steps, event._replace(device=device))


def rows(
    plan: Plan,
    result: str,
    readings: Iterable[Reading],
    frontiers_us: Mapping[str, int] = AT_THE_END,
) -> dict[tuple[str, Place], SentRow]:
    """Return (device, place) -> the row of a result; left out is what has not its parts."""
    found: dict[tuple[str, Place], SentRow] = {}
    for device, content in _items(plan, result, readings, frontiers_us):
        for place, event in content.items():
            try:
                parts = plain_parts(plan.stream_results[result], event.value)
            except ValueError:
                continue
            found[device, place] = SentRow(place, event.key, parts)
    return found


def _items(
    plan: Plan, stream: str, readings: Iterable[Reading], frontiers_us: Mapping[str, int]
) -> Iterator[tuple[str, Content]]:
    """Yield the items of a stream for each device; of one over the fleet once, for all of them."""
    by_device: dict[str, dict[str, Content]] = {}
    fleet = plan.streams[stream].fleet
    for sample in accepted(plan, readings):
        name, value, time_us, device, tags, _ = sample.event
        read = value if plan.events[name].text else sample.quantised
        text = text_of_stream(sample.place, tags_text(tags))
        place = reading_place(name, text, read, time_us, device)
        of = FLEET if fleet else device
        by_device.setdefault(of, {}).setdefault(name, {})[place] = sample.event
    if fleet:
        contents = by_device.pop(FLEET, {})
        for name in plan.item_streams.keys() - plan.events.keys():
            contents[name] = dict(_of_devices(plan, name, readings, frontiers_us))
        by_device[FLEET] = contents
    for device, contents in sorted(by_device.items()):
        frontier_us = frontiers_us.get(device, AT_THE_END_US)
        yield (
            device,
            outputs_of(graph_of(plan, device).nodes, contents, frontier_us, device)[stream],
        )


def _of_devices(
    plan: Plan, stream: str, readings: Iterable[Reading], frontiers_us: Mapping[str, int]
) -> Iterator[tuple[Place, Event]]:
    """Yield the outputs of a stream of all devices, each at its place in the fleet's order."""
    for device, content in _items(plan, stream, readings, frontiers_us):
        for (time_us, _, tie, path), event in content.items():
            yield (time_us, device, tie, path), event
