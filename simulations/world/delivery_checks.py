"""What must hold of how a device delivers, whatever its link and its sinks do.

- who connects again takes no sink for silent: a connection that ended left nothing unanswered
- nor anybody for connected whom it has not heard since
- what did not leave is as if it never had: it is due at once, and has not been tried
- what is over leaves in the next tick, where the link takes it and each sink has room
- what was acknowledged to a source is durable: it is there after a crash
- a sink that owes no answer may be sent a frame, and how far it has answered never goes back
- at rest the broker tells that each device is connected, however late it learnt that one was not,
  unless the message by which it says so was lost on a connection that lasts
"""

from collections.abc import Container, Iterator
from typing import Final

from crdts import Replica
from device_agent.agent.panes.sink import Sink
from device_agent.agent.stored_rows import PaneId
from lasp_edge.protocol.frames import PaneFrame, PresenceFrame
from lasp_edge.protocol.kinds import FRAME_KINDS
from lasp_edge.protocol.publication import Publication
from simulations.world.decoding import decoded
from simulations.world.device import VirtualDevice
from simulations.world.scenario import reconnects
from simulations.world.world import World

_LIARS: Final = frozenset({"hostile", "clone"})
"""Who publishes in the name of a device."""
LOOK_STEPS = 3
"""Steps between two looks at what has not left: what is over waits for many, if it waits."""


def check_connection(world: World, device: VirtualDevice) -> None:
    """Look at a device that has just connected."""
    for sink in device.core.panes.sinks:
        if sink.flights.count:
            world.trouble.append(f"{device.name} waits for an answer over a connection that ended")
        if sink.flights.is_away:
            world.trouble.append(
                f"{device.name} takes {sink.name} for silent over a connection that ended"
            )
    if others := device.core.agreements.others():
        world.trouble.append(f"{device.name} has just connected, and takes {others} for connected")
    if device.unkept:
        world.trouble.append(f"{device.name} acknowledged {device.unkept} lines, and has lost them")


def check_sinks(
    world: World, device: VirtualDevice, answered: dict[Sink, tuple[int, int, int]]
) -> None:
    """Look at what a device knows of its sinks; `answered`: how far each had answered before."""
    for sink in device.core.panes.sinks:
        if sink.flights.full and not sink.flights.count:
            world.trouble.append(f"{device.name} sends {sink.name} nothing, and awaits nothing")
        if sink.answered < answered.get(sink, sink.answered):
            world.trouble.append(f"{device.name} forgets how far {sink.name} has answered")
        answered[sink] = sink.answered


def absent(world: World) -> Iterator[str]:
    """Yield the devices that are connected, and of which the broker tells something else."""
    is_lost = world.seen["loss"] and not reconnects(world.scenario)
    if is_lost or _LIARS & world.seen.keys():
        return
    topic = FRAME_KINDS[PresenceFrame.kind].topic
    for device in world.running():
        kept = world.broker.retained.get(world.topics.of(topic, device.name))
        frame = None if kept is None else decoded(kept)
        if device.connected and not (isinstance(frame, PresenceFrame) and frame.online):
            yield f"{device.name} is connected, and the broker tells {frame}"


def check_delivery(
    world: World, device: VirtualDevice, unsent: Publication | None, left: Container[object]
) -> None:
    """Look at a device after its tick.

    Args:
        world: its world.
        device: the device.
        unsent: what its link did not take.
        left: the entries that have ever left.
    """
    if unsent is not None:
        world.trouble += _tried(device, unsent, left)
    elif world.step_number % LOOK_STEPS == 0 and device.connected and not device.core.fence.closed:
        world.trouble += _left_over(device)


def _tried(device: VirtualDevice, unsent: Publication, left: Container[object]) -> Iterator[str]:
    """Yield the entries that the link did not take, and that count as sent."""
    if not unsent.pane_frame:
        return
    frame = decoded(unsent.payload)
    assert isinstance(frame, PaneFrame), "a frame of panes"
    entries = device.core.panes.memory.entries
    for block in frame.blocks:
        replica = Replica(block.incarnation, block.nonce, device.name)
        for at in zip(block.keys, block.panes_us, block.seqs, strict=True):
            key, pane_us, seq = at
            if (block.stream, key, pane_us, replica, seq) in left:
                continue
            pane = PaneId(pane_us, block.stream, key, block.incarnation, block.nonce)
            entry = entries.get(pane)
            if entry is not None and entry.tries and entry.seq == seq:
                yield f"{device.name} takes {pane} for sent, which the link did not take"


def _left_over(device: VirtualDevice) -> Iterator[str]:
    """Yield the entries that are over, and that have not left though all sinks have room."""
    panes = device.core.panes
    memory, high_us, patient = panes.memory, panes.memory.high_us, panes.memory.planned.patient
    if not memory.dirty or any(sink.flights.full for sink in panes.sinks):
        return
    for pane in memory.dirty:
        entry = memory.entries[pane]
        if entry.end_us <= high_us and not entry.tries and pane.stream not in patient:
            yield f"{device.name} has not sent {pane}, which is over"
