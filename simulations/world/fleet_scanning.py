"""What must hold where a program has streams over the fleet: each sink has the oracle's rows.

- what a sink holds of items is what devices' meters wrote: nothing lost, nothing that came back
- its rows are what the oracle says of the items of all devices, and their status is that of F
- with X = 0 rows are there at once; with `never` none is there before it is final
- what is final changes only where an item came late, or was taken back, at its place or before it;
  and F never goes back
- a device promises nothing that a sink lacks the items of
- what streams read of a sink's store, as they do after a restart, is all that has landed
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import inf
from typing import NamedTuple

from lasp_edge.event import Event, tags_text
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import FLEET, graph_of, rounded
from lasp_edge.ordered.cells import PRESENT, RETRACTED, Cell, Item
from lasp_edge.ordered.deltas import Content
from lasp_edge.ordered.oracle import outputs_of
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import encoded
from lasp_edge.ordered.results import ResultRow
from lasp_edge.ordered.sent_outputs import OutputCell
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.units import SECOND_US
from simulations.world.asked_checks import AskedWatch
from simulations.world.device import OUTCOMES, VirtualDevice
from simulations.world.fleet_items import (
    ItemsByDevice,
    content_of_items,
    joined,
    landed_items,
    misread_items,
)
from simulations.world.fleet_names import FleetNames, named_in_vain, unnamed_in_rows
from simulations.world.fleet_outputs import (
    check_outputs,
    content_of_outputs,
    landed_outputs,
    oldest_of_new_outputs,
    wrong_outputs,
)
from simulations.world.fleet_streamed import NEVER_S, RESULT, SYNCED, TIMED, FleetOrder, order_of
from simulations.world.marked_checks import MarkedWatch
from simulations.world.meters import MeterFile
from simulations.world.newest_checks import wrong_newest
from simulations.world.sinks import AnySink
from simulations.world.streamed import METERED
from simulations.world.truth import LONG_S, came_later
from simulations.world.world import World

SPARE_S = 20
"""Seconds by which what is older than a short retention may be missing earlier."""


class _Look(NamedTuple):
    """What a sink held of a program's order when it was looked at last.

    Attributes:
        mark: what differs where something was done since.
        settled_us: before which rows are final.
        stored: the rows of its result.
        rows: place -> the row there, encoded, and its status.
        items: event -> device -> items.
        outputs: stream of each device -> device -> its outputs.
        counting: the devices that it waits for.
    """

    mark: tuple[object, ...]
    plan: Plan
    frontier_us: int | None
    settled_us: int | None
    stored: Mapping[Place, ResultRow]
    rows: Mapping[Place, tuple[bytes, str]]
    items: Mapping[str, ItemsByDevice]
    outputs: Mapping[str, Mapping[str, OutputCell]]
    counting: frozenset[str]


class FleetOrderChecks:
    """Looks at what sinks hold of the order over the fleet."""

    def __init__(self) -> None:
        self._looks: dict[str, _Look] = {}
        self._sure_from_us: dict[str, float] = {}
        self._names = FleetNames()
        self._asked = AskedWatch()
        self._marked: dict[str, MarkedWatch] = {}

    def stepped(self, world: World) -> None:
        """Look at each running sink: what was final may change for few reasons."""
        has_shares = world.scenario.synced and order_of(world.scenario).scan == "passed_on"
        devices = world.running() if has_shares else []
        if devices:
            device = devices[world.step_number % len(devices)]
            world.trouble += self._asked.unanswered(device)
        for sink in world.sinks:
            streams = sink.lander.core.streams
            if streams is not None and world.scenario.synced:
                marked = self._marked.setdefault(sink.lander.file, MarkedWatch())
                world.trouble += marked.unnamed(streams.parted)
            before = self._looks.get(sink.lander.file)
            look = _looked(sink, before)
            if look is None or look is before or not sink.lander.is_of_plan:
                continue
            self._looks[sink.lander.file] = look
            order = order_of(world.scenario)
            world.trouble += _wrong_statuses(sink, look, order)
            if streams is not None:
                world.trouble += wrong_newest(streams.newest(), look.stored)
            # The program before counts otherwise where releases do: its rows have no epochs.
            if not (order.restates and sink.running is world.former_plan):
                world.trouble += _torn(sink, look, order)
            world.trouble += self._names.wrong(sink, look.stored, at_once=not order.wait_s)
            certain_us = self._certain_from_us(world, sink, before, look)
            if before is not None and before.plan is look.plan:
                world.trouble += _changed(sink, before, look, certain_us)

    def _certain_from_us(
        self, world: World, sink: AnySink, before: _Look | None, after: _Look
    ) -> float:
        """Return from when on rows that were final may not change, as no reading is late.

        What was settled while a device was not waited for, or unknown, may lack what it has.
        """
        known_us = self._sure_from_us.get(sink.lander.file, -inf)
        if set(world.scenario.names) <= after.counting:
            is_known = before is not None and before.counting == after.counting
            return known_us if is_known and world.scenario.punctual else inf
        self._sure_from_us[sink.lander.file] = max(known_us, after.settled_us or -inf)
        return inf

    def at_the_end(self, world: World) -> None:
        """Hold what all sinks have against the truth."""
        order = order_of(world.scenario)
        for sink in world.sinks:
            look = _looked(sink, None)
            if look is None:
                world.trouble.append(f"{sink.sink} has no streams over the fleet")
                continue
            world.trouble += _wrong_rows(world, sink, look, order)
            world.trouble += misread_items(sink.lander, look.plan, look.items)
            world.trouble += [*unnamed_in_rows(sink), *named_in_vain(sink)]
            for device in world.devices.values():
                if order.of_outputs:
                    world.trouble += wrong_outputs(world, sink, device)
                else:
                    world.trouble += _wrong_items(world, sink, device, look, order)


def check_items(world: World, device: VirtualDevice, sink: AnySink, low_us: int) -> Iterator[str]:
    """Hold a low watermark against the items that have landed in the store it is promised to."""
    if device.clock.wrong or device.name in world.operator.commands.membership.entries:
        return
    meter, order = device.meter, order_of(world.scenario)
    assert meter is not None, "there are meters where there is an order"
    if order.of_outputs:
        yield from check_outputs(world, device, sink, low_us)
        return
    landed = landed_items(sink.lander, sink.running)[METERED].get(device.name, {})
    due = {
        item: state
        for item, state in _sure(world, device, sink, meter, order).items()
        if item.time_us < low_us
    }
    if world.scenario.retain_s < LONG_S:
        for former in sink.former:
            landed = joined(
                landed, landed_items(former, sink.running)[METERED].get(device.name, {})
            )
    lacking = [item for item, state in due.items() if landed.get(item, 0) < state]
    if len(lacking) > device.counted(*OUTCOMES):
        yield f"{device.name} promises {low_us}, and {sink.sink} lacks the item {min(lacking)}"


def _looked(sink: AnySink, before: _Look | None) -> _Look | None:
    """Return what a running sink holds now; the same where nothing was done since."""
    if not sink.is_running:
        return None
    plan, lander = sink.running, sink.lander
    lander.commit(None)
    streams = lander.core.streams
    if streams is None:
        return None
    settled_us = streams.settled_us(RESULT)
    mark = (streams.frontier_us, settled_us, streams.written, lander.taken)
    if before is not None and before.mark == mark and before.plan is plan:
        return before
    stored = dict(streams.stored(RESULT))
    rows = {
        place: (b"" if row.event is None else _encoded(row.event), row.status)
        for place, row in stored.items()
    }
    held = landed_items(lander, plan), landed_outputs(lander, plan)
    _, expected, excluded = lander.core.coverage
    counting = frozenset(expected).difference(excluded)
    return _Look(mark, plan, streams.frontier_us, settled_us, stored, rows, *held, counting)


def _encoded(event: Event) -> bytes:
    return encoded((event.value, event.key, event.device))


def _wrong_statuses(sink: AnySink, look: _Look, order: FleetOrder) -> Iterator[str]:
    """Yield rows whose status is not that of F."""
    frontier_us, is_synced = look.settled_us, order.scan in SYNCED
    for place, (_, status) in look.rows.items():
        is_final = frontier_us is not None and place[0] < frontier_us
        if is_synced and not is_final:
            continue  # it may have been final: what comes late opens places again
        if is_final == (status == TENTATIVE):
            yield f"{sink.sink}: the row at {place} is {status} at {frontier_us}"
        elif status == TENTATIVE and order.wait_s == NEVER_S:
            yield f"{sink.sink}: the row at {place} is tentative, and X is never"


def _torn(sink: AnySink, look: _Look, order: FleetOrder) -> Iterator[str]:
    """Yield a row that was made of two shares; it need not be final."""
    if order.scan != "passed_on":
        return
    for place, row in look.stored.items():
        epoch, count, epochs = (0, 0, 0) if row.event is None else row.event.value
        if count > 0 and epochs != epoch * count:
            yield f"{sink.sink}: the row at {place} is torn: {row.event}"
            return


def _changed(sink: AnySink, before: _Look, after: _Look, certain_us: float = inf) -> Iterator[str]:
    """Yield rows that were final and have changed though nothing came late before them.

    Args:
        sink: that holds them.
        before: the look before.
        after: the look now.
        certain_us: what came excuses no change from then on.
    """
    if _ran_ahead(sink, before.frontier_us, after.frontier_us):
        yield f"{sink.sink}: its rows are final before {after.frontier_us}, and F is not there"
    if before.frontier_us is None:
        return
    if after.frontier_us is None or after.frontier_us < before.frontier_us:
        yield f"{sink.sink}: its rows went back from {before.frontier_us} to {after.frontier_us}"
    came_us = _oldest_of_new(before.items, after.items)
    came_us = min(came_us, oldest_of_new_outputs(before.outputs, after.outputs))
    for place in sorted(before.rows.keys() | after.rows.keys()):
        known, now = before.rows.get(place, (b"", ""))[0], after.rows.get(place, (b"", ""))[0]
        is_excused = certain_us > place[0] >= came_us
        if known != now and place[0] < (before.settled_us or 0) and not is_excused:
            yield (
                f"{sink.sink}: what was final for the fleet changed, and nothing came late: "
                f"{place} from {known!r} to {now!r}"
            )
            return


def _ran_ahead(sink: AnySink, before_us: int | None, after_us: int | None) -> bool:
    """Return whether rows became final past F, though a device may report more."""
    core = sink.lander.core
    frontier_us, expected, excluded = core.coverage
    if after_us is None or after_us <= max(before_us or 0, frontier_us or 0):
        return False
    return any(not core.promises[name].done for name in expected if name not in excluded)


def _oldest_of_new(
    before: Mapping[str, ItemsByDevice], after: Mapping[str, ItemsByDevice]
) -> float:
    """Return the oldest time of the items that came since, or were taken back since."""
    return min(
        (
            item.time_us
            for event, devices in after.items()
            for device, cell in devices.items()
            for item, state in cell.items()
            if before.get(event, {}).get(device, {}).get(item, 0) < state
        ),
        default=inf,
    )


def _wrong_rows(world: World, sink: AnySink, look: _Look, order: FleetOrder) -> Iterator[str]:
    """Yield the first row that is not what the oracle says of all that has landed."""
    waiting, frontier_us = sink.lander.core.waiting, look.frontier_us
    coverage_us = sink.lander.core.coverage.frontier
    if coverage_us is not None and (frontier_us is None or frontier_us < coverage_us):
        yield f"{sink.sink}: rows are final before {frontier_us}, and F is {coverage_us}"
    due_us = inf if not order.wait_s else waiting.due_us(order.wait_s * SECOND_US)
    assert sink.lander.core.streams is not None, "it was looked at"
    # A process that has just begun does not know yet what was due: what was taken stays taken.
    due_us = sink.lander.core.streams.taken_us if due_us is None else due_us
    until_us = due_us if frontier_us is None else max(due_us, frontier_us)
    content = content_of_items(look.plan, look.items, until_us)
    content |= content_of_outputs(look.outputs, until_us)
    if order.scan in SYNCED:
        if any(map(is_unsure_of_parts, world.devices.values())):
            return
        content[TIMED] = _local(world, look.plan)
    truth = outputs_of(graph_of(look.plan, FLEET).nodes, content, frontier_us)[RESULT]
    result = look.plan.fleet_results[RESULT]
    expected = {
        place: _encoded(event._replace(value=rounded(result, event.value)))
        for place, event in truth.items()
    }
    found = {place: row for place, (row, _) in look.rows.items() if row}
    if found != expected:
        at = min(p for p in found.keys() | expected.keys() if found.get(p) != expected.get(p))
        yield (
            f"{sink.sink}: the fleet's row at {at} is {found.get(at)!r}, "
            f"and the oracle's {expected.get(at)!r}"
        )


def is_unsure_of_parts(device: VirtualDevice) -> bool:
    """Return whether nobody can tell which readings of a device are in its parts."""
    return device.forgot or device.uncertain or device.is_copy or device.counted(*OUTCOMES) > 0


def _local(world: World, plan: Plan) -> Content:
    """Return the readings of all devices that stay with them."""
    event = plan.events[TIMED]
    found: Content = {}
    for device in world.devices.values():
        for line in device.recording:
            item = Item(line.time_us, line.value, tags_text({"room": line.room}))
            found[item.place(TIMED, device.name)] = item.event(TIMED, device.name, event.resolution)
    return found


def _wrong_items(
    world: World, sink: AnySink, device: VirtualDevice, look: _Look, order: FleetOrder
) -> Iterator[str]:
    """Yield what a sink has of a device's items that was not read, or lacks."""
    meter, landed = device.meter, look.items[METERED].get(device.name, {})
    assert meter is not None, "there are meters where there is an order"
    written = meter.items()
    least = order.least(release=1)
    strange = [
        item
        for item, state in landed.items()
        if state > written.get(item, 0) or _value(item) < least
    ]
    if strange and not device.uncertain:
        yield f"{sink.sink} holds the item {min(strange)} of {device.name}, not its meter's"
    if device.name in world.operator.commands.membership.entries:
        return
    sure = _sure(world, device, sink, meter, order)
    lost = [item for item, state in sure.items() if landed.get(item, 0) < state]
    if len(lost) > device.counted(*OUTCOMES):
        yield f"{sink.sink} lacks {len(lost)} items of {device.name}, such as {min(lost)}"
    yield from _wrong_lines(device, look)


def _wrong_lines(device: VirtualDevice, look: _Look) -> Iterator[str]:
    """Yield what a sink has of a device's recording that does not stand there."""
    if TIMED not in look.items or device.uncertain:
        return
    written = {
        Item(line.time_us, line.value, tags_text({"room": line.room})) for line in device.recording
    }
    strange = look.items[TIMED].get(device.name, {}).keys() - written
    if strange:
        yield f"{device.name} never had {min(strange)}"


def _sure(
    world: World, device: VirtualDevice, sink: AnySink, meter: MeterFile, order: FleetOrder
) -> Cell:
    """Return the items of which nothing can be missing in a sink: those that a device has for good.

    What is older than a short retention may have left the device before it heard the sink.
    """
    stream = sink.running.item_streams[METERED].stream
    oldest_us = -inf
    if world.scenario.retain_s < LONG_S and (sink.former or came_later(device, sink)):
        newest_us = max([line.time_us for line in meter.lines], default=0)
        oldest_us = newest_us - (world.scenario.retain_s - SPARE_S) * SECOND_US
    lines = [(n, line, line.item) for n, line in enumerate(meter.lines[: meter.acknowledged])]
    # What a former release had read is a repeat to the next one.
    unsure = {item for number, _, item in lines if stream not in meter.taken[number]}
    found: Cell = defaultdict(int)
    for number, line, item in lines:
        is_known = number >= meter.sure_from and item not in unsure
        if is_known and line.value >= order.least(release=1) and line.time_us >= oldest_us:
            state = RETRACTED if line.retracted else PRESENT
            found[item] = max(state, found[item])
    return found


def _value(item: Item) -> int:
    assert isinstance(item.value, int), "a meter reads numbers"
    return item.value
