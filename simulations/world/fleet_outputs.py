"""What must hold where an order over the fleet is made of what a scan of each device emits.

- a sink holds of each device what the oracle emits of its readings, and the newest version of it
- a device promises nothing that a sink lacks the outputs of
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import inf

from lasp_edge.event import Event
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import graph_of
from lasp_edge.ordered.cells import PRESENT
from lasp_edge.ordered.deltas import Content
from lasp_edge.ordered.oracle import outputs_of
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.sent_outputs import OutputCell, event_of, sent_outputs
from simulations.world.device import OUTCOMES, VirtualDevice
from simulations.world.landed import LandedState
from simulations.world.sinks import AnySink
from simulations.world.streamed import METERED
from simulations.world.truth import LONG_S
from simulations.world.world import World

_NONE: Mapping[str, OutputCell] = {}
_outputs = lru_cache(maxsize=8_192)(sent_outputs)
OutputsByDevice = Mapping[str, Mapping[str, OutputCell]]


def landed_outputs(lander: LandedState, plan: Plan) -> dict[str, dict[str, OutputCell]]:
    """Return stream -> device -> what has landed of it: of each place the newest version."""
    streams = {each.stream: name for name, each in plan.item_streams.items() if each.outputs}
    found: dict[str, dict[str, OutputCell]] = {name: {} for name in streams.values()}
    for (stream, _, _, device, incarnation, nonce), (seq, partial) in lander.panes.items():
        if stream not in streams:
            continue
        cell = found[streams[stream]].setdefault(device, {})
        assert isinstance(partial[0], bytes), "a cell of outputs"
        for at, content in _outputs(partial[0]).items():
            version = (incarnation, nonce, seq)
            if at not in cell or cell[at][0] < version:
                cell[at] = (version, content)
    return found


def oldest_of_new_outputs(before: OutputsByDevice, after: OutputsByDevice) -> float:
    """Return the oldest time of the outputs that came since, or were replaced."""
    return min(
        (
            at.time_us
            for name, devices in after.items()
            for device, cell in devices.items()
            for at, state in cell.items()
            if before.get(name, {}).get(device, {}).get(at) != state
        ),
        default=inf,
    )


def content_of_outputs(outputs: OutputsByDevice, until_us: float) -> dict[str, Content]:
    """Return what is there before a time, of all devices, as the oracle takes it."""
    found: dict[str, Content] = {}
    for name, devices in outputs.items():
        content = found.setdefault(name, {})
        for device, cell in devices.items():
            for at, (_, given) in cell.items():
                event = event_of(at, device, given)
                if event is not None and at.time_us < until_us:
                    content[at.place(device)] = event
    return found


def check_outputs(world: World, device: VirtualDevice, sink: AnySink, low_us: int) -> Iterator[str]:
    """Hold a low watermark against the outputs that have landed in the store it is promised to."""
    landed = (
        landed_outputs(sink.lander, sink.running)
        .get(_sent(sink.running), _NONE)
        .get(device.name, {})
    )
    places = {at.place(device.name) for at in landed}
    due = sorted(at for at in _emitted(world, device, sink.running, low_us) if at[0] < low_us)
    lacking = [at for at in due if at not in places]
    if lacking:
        yield f"{device.name} promises {low_us}, and {sink.sink} lacks the output at {lacking[0]}"


def wrong_outputs(world: World, sink: AnySink, device: VirtualDevice) -> Iterator[str]:
    """Yield where a sink has another output of a device than its readings give."""
    if device.meter is None or device.meter.acknowledged < len(device.meter.lines):
        return
    held = device.streams_held()
    if held is None:
        return
    emitted = _emitted(world, device, sink.running, held.frontier_us)
    landed = content_of_outputs(landed_outputs(sink.lander, sink.running), inf).get(
        _sent(sink.running), {}
    )
    found = {at: event.value for at, event in landed.items() if at[1] == device.name}
    truth = {at: event.value for at, event in emitted.items()}
    for at in sorted(found.keys() | truth.keys()) if emitted else ():
        if found.get(at) != truth.get(at):
            yield (
                f"{sink.sink} has the output {found.get(at)} of {device.name} at {at}, "
                f"and its readings give {truth.get(at)}"
            )
            return


def _sent(plan: Plan) -> str:
    """Return the name of the stream whose outputs leave: a scan, or what is made of it."""
    return next((name for name, each in plan.item_streams.items() if each.outputs), "")


def _emitted(
    world: World, device: VirtualDevice, plan: Plan, until_us: int | None
) -> dict[Place, Event]:
    """Return what a device emits of its readings, at the places of the fleet's order.

    All timers before a time have rung: who promises that much has seen to it.
    Nothing where it is not sure what it has of them: a store was lost, or some were refused.
    """
    meter = device.meter
    assert meter is not None, "there are meters where there is an order"
    is_unsure = device.uncertain or device.counted(*OUTCOMES) or meter.sure_from
    if is_unsure or world.scenario.retain_s < LONG_S:
        return {}
    if device.name in world.operator.commands.membership.entries:
        return {}
    resolution = plan.events[METERED].resolution
    content = {
        item.place(METERED, device.name): item.event(METERED, device.name, resolution)
        for item, state in meter.items(until=meter.acknowledged).items()
        if state == PRESENT
    }
    nodes = graph_of(plan, device.name).nodes
    emitted = outputs_of(nodes, {METERED: content}, until_us, device.name)[_sent(plan)]
    return {(at[0], device.name, *at[2:]): event for at, event in emitted.items()}
