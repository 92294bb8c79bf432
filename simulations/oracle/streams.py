"""What streams emit of readings, each device's by themselves or all in one order, by the oracle."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from crdts import ControlLog
from lasp_edge.event import Event, tags_text, text_of_stream
from lasp_edge.folds.numbers import Refused, Resolution
from lasp_edge.language.halves import HALVES
from lasp_edge.language.parameter_scan import NO_ENTRIES, ParameterScan
from lasp_edge.language.parameters import ParameterValues
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import FLEET, graph_of, plain_parts
from lasp_edge.ordered.deltas import Content
from lasp_edge.ordered.oracle import outputs_of
from lasp_edge.ordered.places import Place, reading_place
from lasp_edge.ordered.scan import InSteps, Scan, Stepped
from lasp_edge.ordered.sent_rows import SentRow
from simulations.oracle.definitions import TrueValues
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
    log: ControlLog = NO_ENTRIES,
) -> Iterator[AcceptedReading]:
    """Yield the items of a stream over the readings of all devices, as if they were read.

    Left out is what is no number with a step.
    """
    resolution = plan.streams[stream].resolution
    for device, content in _items(plan, stream, readings, frontiers_us, log):
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
    log: ControlLog = NO_ENTRIES,
) -> dict[tuple[str, Place], SentRow]:
    """Return (device, place) -> the row of a result; left out is what has not its parts."""
    found: dict[tuple[str, Place], SentRow] = {}
    for device, content in _items(plan, result, readings, frontiers_us, log):
        for place, event in content.items():
            try:
                parts = plain_parts(plan.stream_results[result], event.value)
            except ValueError:
                continue
            found[device, place] = SentRow(place, event.key, parts)
    return found


def nodes_of(plan: Plan, device: str, log: ControlLog = NO_ENTRIES) -> list[Any]:
    """Return the streams of a device, or of the fleet: a scan with parameters by its definition."""
    nodes = graph_of(plan, device).nodes
    for node in nodes:
        stage: Any = node.stage
        if isinstance(plan.functions.streams.get(node.name), ParameterScan):
            stage.scan = TrueScan(plan, node.name, device, log)
    return list(nodes)


class TrueScan(Scan):
    """A scan with parameters: made for each event, by the values of its time on its device.

    A timer is due, and rings, by the values that hold then, or by new ones at once.
    """

    def __init__(self, plan: Plan, name: str, device: str, log: ControlLog) -> None:
        stream, made = plan.streams[name], plan.functions.streams[name]
        self.name, self._device, self._uses = name, device, stream.uses
        self._function, self._step = made.function, plan.streams[name].resolution
        self._values, self._made_at = TrueValues(log), dict[int | None, Scan | None]()
        self._marks_us = sorted({at.from_us for at in log.entries})
        self._source_step = _source_step(plan, stream.sources[0])
        declared = self._made(None)
        assert declared is not None, "the defaults were tried when it was declared"
        self._declared, self.zero = declared, (-(2**62), declared.zero)

    def _made(self, time_us: int | None) -> Scan | None:
        if time_us not in self._made_at:
            self._made_at[time_us] = self._make(time_us)
        return self._made_at[time_us]

    def _make(self, time_us: int | None) -> Scan | None:
        at = ParameterValues(
            {
                each.name: self._values.default(each)
                if time_us is None
                else self._values.value(each, self._device, time_us)
                for each in self._uses
            }
        )
        try:
            given = self._function(at)
            scan: Scan = (given() if isinstance(given, type) else given).at(self._source_step)
        except ValueError:
            return None
        return scan

    def _at(self, time_us: int) -> Scan:
        for mark_us in reversed([each for each in self._marks_us if each <= time_us]):
            found = self._made(mark_us)
            if found is not None:
                return self._rounded(found)
        return self._rounded(self._declared)

    def _rounded(self, scan: Scan) -> Scan:
        return scan if self._step is None else InSteps(scan, self._step)

    def step(self, state: Any, event: Event) -> Stepped:
        after, values = self._at(event.time_us).step(state[1], event)
        return (event.time_us, after), values

    def due(self, state: Any) -> int | None:
        later_us = [each for each in self._marks_us if each > state[0]]
        for since_us, until_us in zip([state[0], *later_us], [*later_us, 2**62], strict=True):
            due_us: int | None = self._at(since_us).due(state[1])
            if due_us is not None and due_us < until_us:
                return int(max(due_us, since_us))
        return None

    def ring(self, state: Any, at_us: int) -> Stepped:
        after, values = self._at(at_us).ring(state[1], at_us)
        return (at_us, after), values


def _source_step(plan: Plan, source: str) -> Resolution | None:
    event = plan.events.get(source)
    if event is None:
        return plan.streams[source].resolution
    return None if event.text else event.resolution


def _items(
    plan: Plan,
    stream: str,
    readings: Iterable[Reading],
    frontiers_us: Mapping[str, int],
    log: ControlLog,
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
        halves = {n for n, each in plan.streams.items() if each.operator in HALVES}
        for name in plan.item_streams.keys() - plan.events.keys() - halves:
            contents[name] = dict(_of_devices(plan, name, readings, frontiers_us, log))
        by_device[FLEET] = contents
    for device, contents in sorted(by_device.items()):
        frontier_us = frontiers_us.get(device, AT_THE_END_US)
        yield (
            device,
            outputs_of(nodes_of(plan, device, log), contents, frontier_us, device)[stream],
        )


def _of_devices(
    plan: Plan,
    stream: str,
    readings: Iterable[Reading],
    frontiers_us: Mapping[str, int],
    log: ControlLog,
) -> Iterator[tuple[Place, Event]]:
    """Yield the outputs of a stream of all devices, each at its place in the fleet's order."""
    for device, content in _items(plan, stream, readings, frontiers_us, log):
        for (time_us, _, tie, path), event in content.items():
            yield (time_us, device, tie, path), event
