"""What streams say of readings, each device's by themselves, by the oracle beside the engine."""

from collections.abc import Iterable, Iterator

from lasp_edge.event import tags_text
from lasp_edge.folds.numbers import Refused
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import graph_of
from lasp_edge.ordered.deltas import Content
from lasp_edge.ordered.oracle import sayings_of
from lasp_edge.ordered.places import reading_place
from simulations.oracle.readings import AcceptedReading, Reading, accepted

AT_THE_END_US = 2**62
"""Everything is over: all timers have rung."""


def said(
    plan: Plan, stream: str, readings: Iterable[Reading], frontier_us: int = AT_THE_END_US
) -> Iterator[AcceptedReading]:
    """Yield what a stream says of the readings of all devices, as if it were read.

    Left out is what is no number with a step.
    """
    by_device: dict[str, dict[str, Content]] = {}
    for sample in accepted(plan, readings):
        name, _, time_us, device, tags, _ = sample.event
        place = reading_place(name, tags_text(tags), sample.quantised, time_us, device)
        by_device.setdefault(device, {}).setdefault(name, {})[place] = sample.event
    resolution = plan.streams[stream].resolution
    assert resolution is not None
    for device, contents in sorted(by_device.items()):
        nodes = graph_of(plan, device).nodes
        for _, event in sorted(sayings_of(nodes, contents, frontier_us)[stream].items()):
            try:
                steps = resolution.quantise(event.value)
            except Refused:
                continue
            yield AcceptedReading(steps, event._replace(device=device))
