"""The graph of a plan's streams, as a device runs it and the oracle explains it.

>>> from lasp_edge import Program, scans
>>> program = Program("water")
>>> litres = program.event("litres", resolution="1")
>>> much = program.filter(litres, lambda event: event.value > 50, "much")
>>> used = program.scan("used", source=much, scan=scans.differences(), per_device=True)
>>> [node.name for node in graph_of(program.plan(), "pi-1").nodes]
['much', 'used']
"""

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

from crdts import ControlLog
from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.declarations import TEXT, Stream, StreamResult
from lasp_edge.language.halves import (
    HALVES,
    half_of,
    is_ours,
    marks_of,
    parted_scans,
    shares_of,
    sources_of,
    stepper_of,
)
from lasp_edge.language.item_stream import ItemStream
from lasp_edge.language.parameter_scan import NO_ENTRIES, ParameterScan, entries_in
from lasp_edge.language.plan import Plan, fleet_sources
from lasp_edge.language.row_limits import (
    PART_LIMIT,
    TEXT_BYTES,
    exact_step,
    in_unit,
    nearest_whole,
    quick_rounding,
    surely_fits,
)
from lasp_edge.ordered.cells import Item, unpacked
from lasp_edge.ordered.deltas import Delta
from lasp_edge.ordered.engine import StreamPlan
from lasp_edge.ordered.graph import StreamGraph, StreamNode
from lasp_edge.ordered.inputs import InputCell
from lasp_edge.ordered.parted import RowsStage
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.scan import InSteps
from lasp_edge.ordered.sent_outputs import outputs_in
from lasp_edge.ordered.sent_rows import Version
from lasp_edge.ordered.stages import (
    FilterStage,
    FlatMapStage,
    MapStage,
    ScanStage,
    StreamStage,
    UnionStage,
)
from lasp_edge.protocol.streams import stream_id
from lasp_edge.protocol.window_rows import MOST_NAMES

FLEET = ""
"""In place of a device: the order is over all of them."""


def streams_of(plan: Plan, device: str) -> Mapping[str, Stream]:
    """Return the streams that a device evaluates, or those of the order over the fleet."""
    return plan.device_streams if device else plan.fleet_streams


def graph_of(plan: Plan, device: str, log: ControlLog = NO_ENTRIES) -> StreamGraph:
    """Return what the streams of a plan mean, those of one device or those of the fleet.

    A scan with local events means one over all its events.

    Args:
        plan: the program.
        device: its name; `FLEET` for the fleet's.
        log: the operators' entries.
    """
    return StreamGraph(_meant(plan, streams_of(plan, device).values(), device, log))


def whole_graph(plan: Plan, device: str) -> StreamGraph:
    """Return all streams of a plan, wherever they run, over the readings of one device."""
    return StreamGraph(_meant(plan, plan.streams.values(), device))


def evaluated_graph(plan: Plan, device: str, log: ControlLog = NO_ENTRIES) -> StreamGraph:
    """Return the streams of a plan as one device runs them, or an evaluator those of the fleet."""
    return StreamGraph(_nodes(plan, streams_of(plan, device).values(), device, log))


def _meant(
    plan: Plan, streams: Iterable[Stream], device: str, log: ControlLog = NO_ENTRIES
) -> list[StreamNode]:
    nodes: list[StreamNode] = []
    for stream in streams:
        if stream.local:
            sources = f"{stream.name}: sources"
            scan = ScanStage(
                stepper_of(plan, stream), stream.name, plan.functions.keys.get(stream.name), device
            )
            nodes.append(StreamNode(sources, UnionStage(), stream.events))
            nodes.append(StreamNode(stream.name, scan, (sources,)))
        elif stream.operator not in HALVES:
            nodes += _nodes(plan, [stream], device, log)
    return nodes


def _nodes(
    plan: Plan, streams: Iterable[Stream], device: str, log: ControlLog = NO_ENTRIES
) -> list[StreamNode]:
    return [
        StreamNode(stream.name, _stage(plan, stream, device, log), sources_of(stream))
        for stream in streams
    ]


def events_of(plan: Plan, device: str) -> frozenset[str]:
    """Return the events that a device keeps items of for its streams, or a sink for the fleet's."""
    if device:
        return plan.evaluated_events
    sources = {source for each in plan.fleet_streams.values() for source in each.sources}
    return frozenset(sources & plan.events.keys())


def stream_plan(plan: Plan, device: str, log: ControlLog = NO_ENTRIES) -> StreamPlan:
    """Return the streams of a plan, as one device evaluates them, or a sink those of the fleet.

    Args:
        plan: the program.
        device: its name; `FLEET` for the fleet's.
        log: the operators' entries of the parameters that streams, and windows over them, use.
    """
    events: dict[str, Resolution | None] = {
        name: plan.events[name].resolution for name in events_of(plan, device)
    }
    if not device:
        events |= dict.fromkeys(plan.item_streams.keys() - plan.events.keys())
    beside = shares_of if device else marks_of
    events |= dict.fromkeys(beside(f"{name}: ") for name in parted_scans(plan))
    graph = partial(evaluated_graph, plan, device, log)
    return StreamPlan(graph, events, meanings_of(plan, device), entries_in(log))


def cell_in(sent: ItemStream, packed: bytes, version: Version) -> InputCell:
    """Return the cell that a pane entry of a version holds."""
    return outputs_in(packed, version) if sent.outputs else unpacked(packed)


class Leaving:
    """Which readings of an event leave: those of which a stream over the fleet makes something.

    Args:
        plan: the program.
        event: the event's name.
    """

    def __init__(self, plan: Plan, event: str) -> None:
        heads = fleet_sources(plan)
        chains = [
            each
            for each in plan.fleet_streams.values()
            if each.stateless and not each.fleet and event in each.events
        ]
        known = {each.name for each in chains}
        self._heads = () if event in heads else tuple(each for each in heads if each in known)
        self._event, self._resolution = event, plan.events[event].resolution
        self._graph = StreamGraph(_nodes(plan, chains, FLEET))

    def leaving(self, items: Collection[Item], device: str) -> set[Item]:
        """Return which readings of a device leave: all are taken together."""
        if not self._heads:
            return set(items)
        name, resolution = self._event, self._resolution
        read = {item.place(name, device)[:3]: item for item in items}
        delta: Delta = {
            (*at, ()): (None, item.event(name, device, resolution)) for at, item in read.items()
        }
        found = self._graph.update({name: delta})
        return {read[at[:3]] for head in self._heads for at in found.get(head, ())}


def _stage(plan: Plan, stream: Stream, device: str, log: ControlLog) -> StreamStage:
    functions = plan.functions
    if stream.operator == "union":
        return UnionStage()
    if stream.operator in HALVES:
        return half_of(plan, stream, device)
    if stream.local:
        return RowsStage(stream.name)
    if stream.operator == "scan":
        function = functions.streams[stream.name]
        if isinstance(function, ParameterScan):
            function = function.under(log, device)
        if stream.resolution is not None and not is_ours(type(function).__module__):
            function = InSteps(function, stream.resolution)
        return ScanStage(function, stream.name, functions.keys.get(stream.name), device)
    function = functions.streams[stream.name]
    if stream.operator == "filter":
        return FilterStage(function)
    kind = MapStage if stream.operator == "map" else FlatMapStage
    return kind(function, stream.name, stream.resolution)


def items_stream(plan: Plan, event: str) -> int:
    """Return the id under which the items of an event are stored."""
    found = plan.events[event]
    return stream_id(plan.name, "items", event, found.resolution.canonical, found.text)


def standing_stream(plan: Plan) -> int:
    """Return the id under which it is stored how far streams have come, those of any release."""
    return stream_id(plan.name, "standing")


def states_stream(plan: Plan, era: int) -> int:
    """Return the id under which the states of all scans are stored; an era has one program."""
    return stream_id(plan.name, "states", era)


def meanings_of(plan: Plan, device: str) -> tuple[tuple[str, str], ...]:
    """Return the name of each stream that a device, or the fleet, has, and its fingerprint."""
    return tuple(
        (each.name, sha256(each.fingerprint.encode()).hexdigest()[:16])
        for each in streams_of(plan, device).values()
    )


def parts_of(result: StreamResult, value: Any) -> dict[str, int | str]:
    """Return what a row of a result holds: numbers in steps, rounded once, half to even; texts.

    >>> result = StreamResult("counts", (("word", "text"), ("share", "0.01")), 0)
    >>> parts_of(result, ("dog", 0.125))
    {'word': 'dog', 'share_q': 12}

    Raises:
        ValueError: the value does not have these parts.
    """
    values = value if isinstance(value, tuple) else (value,)
    if len(values) != len(result.parts):
        names = ", ".join(name for name, _ in result.parts)
        short = "; scans.last(.., partial=False) waits for all of them"
        hint = short if 0 < len(values) < len(result.parts) and isinstance(value, tuple) else ""
        raise ValueError(f"result {result.name}: {values!r} is not of the parts {names}{hint}")
    found: dict[str, int | str] = {}
    for (name, step), part in zip(result.parts, values, strict=True):
        if step == TEXT:
            if not isinstance(part, str):
                raise ValueError(f"result {result.name}: part {name} is not text: {part!r}")
            if len(part.encode()) > TEXT_BYTES:
                raise ValueError(f"result {result.name}: part {name} has over {TEXT_BYTES} bytes")
            found[name] = part
        else:
            found[f"{name}_q"] = _steps(result, name, step, part)
    return found


def plain_parts(result: StreamResult, value: Any) -> tuple[int | str, ...]:
    """Return the parts of a value alone, in their order: `parts_of` without the names."""
    return tuple(parts_of(result, value).values())


def shown_parts(result: StreamResult, parts: dict[str, int | str]) -> dict[str, Any]:
    """Return the parts of a row as people read them."""
    return {
        name: parts[name] if step == TEXT else in_unit(step, int(parts[f"{name}_q"]))
        for name, step in result.parts
    }


def rounded(result: StreamResult, value: Any) -> Any:
    """Return a value as the row of a result has it: each number as the nearest whole step.

    >>> rounded(StreamResult("counts", (("word", "text"), ("share", "0.01")), 0), ("dog", 0.126))
    ('dog', 0.13)

    Raises:
        ValueError: the value does not have these parts.
    """
    try:
        return quick_rounding(result)(value)
    except (TypeError, ValueError):  # it is found out why
        return value_in(result, parts_of(result, value).values())


def unchanged(result: StreamResult, value: Any) -> Any:
    """Return a value that has the parts of a result as it is.

    >>> unchanged(StreamResult("counts", (("word", "text"), ("share", "0.01")), 0), ("dog", 0.126))
    ('dog', 0.126)

    Raises:
        ValueError: it does not have these parts.
    """
    if not surely_fits(result, value):
        parts_of(result, value)
    return value


def value_in(result: StreamResult, parts: Iterable[int | str]) -> Any:
    """Return the value whose parts, in steps, a row of a result holds."""
    shown = tuple(shown_parts(result, dict(zip(result.columns, parts, strict=True))).values())
    return shown if len(shown) > 1 else shown[0]


def _steps(result: StreamResult, name: str, step: str, part: Any) -> int:
    if part is None:
        raise ValueError(
            f"result {result.name}: part {name} is None, and its row needs a number; a fold gives "
            "None where it has no value, such as stddev of one reading, and as_of where it says "
            "missing=None: map the stream to one that has a number there"
        )
    if isinstance(part, bool) or not isinstance(part, int | float):
        raise ValueError(f"result {result.name}: part {name} is not a number: {part!r}")
    above, below = part.as_integer_ratio()
    numerator, denominator = exact_step(step)
    steps = nearest_whole(above * denominator, below * numerator)
    if not -PART_LIMIT < steps < PART_LIMIT:
        raise ValueError(f"result {result.name}: part {name} needs a coarser step")
    return steps


class StreamRow(NamedTuple):
    """A row of a result, as handlers and people see it.

    >>> from lasp_edge import Program, StreamRow, scans
    >>> program = Program("water")
    >>> litres = program.event("litres", resolution="1", unit="l")
    >>> used = program.scan("used", source=litres, scan=scans.differences(), per_device=True)
    >>> rows = program.result(used)
    >>> @program.on_result(used)
    ... def large(row, update):
    ...     if row.parts["difference"] > 100:
    ...         print(f"{row.parts['difference']} l at {row.time_us}")
    >>> large(StreamRow("used", "", 60_000_000, {"difference": 120}, "final", 1, ()), None)
    120 l at 60000000

    Attributes:
        name: the result's.
        key: of the scan; "" where there are no keys.
        time_us: its time, by the events' own times.
        parts: its values by name; empty where it was taken back.
        status: "tentative", "final" or "revised".
        revision: 0 at first, one more with each change.
        place: where it stands in the order; it names the row.
        excluded: over a fleet, the devices that are missing in it; see `docs/order.md`.
    """

    name: str
    key: str
    time_us: int
    parts: Mapping[str, Any]
    status: str
    revision: int
    place: Place
    excluded: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """Return it for JSON."""
        found = {"time_us": self.time_us, "status": self.status, "revision": self.revision}
        missing = {"excluded": list(self.excluded[:MOST_NAMES])} if self.excluded else {}
        return {"key": self.key, **found, **missing, **self.parts}
