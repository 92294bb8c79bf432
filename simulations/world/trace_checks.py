"""What must hold of the traces of shared variables: what devices leave at the broker for others.

- what is retained of a variable joins to what each device holds that has nothing more to publish:
  one that it never meets learns all of it
- what a process has left there is in its store: the next one does not take it back
- at rest a device keeps nothing for others that they leave there themselves
"""

from collections.abc import Iterable, Iterator
from typing import Final

from crdts.wire import decode
from device_agent.agent.core import Core
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.sharing import SharedFrame
from simulations.world.decoding import decoded
from simulations.world.device import VirtualDevice
from simulations.world.disk import MemoryStore, in_memory
from simulations.world.scenario import reconnects
from simulations.world.world import World

LOOK_STEPS = 8
"""Steps between two looks at what is retained."""
_LOSES: Final = frozenset(
    {"loss", "mute", "held_up", "broker_forgets", "broker_old", "hostile", "clone", "bit_flip"}
)
"""What keeps from the broker what a device has published, or takes it from there."""


def check_traces(world: World) -> None:
    """Look at what is retained while nothing of it can be lost."""
    is_sure = not (world.scenario.faults.delayed or _LOSES & world.seen.keys())
    if is_sure and world.step_number % LOOK_STEPS == 0:
        world.trouble += lacking_traces(world)


def lacking_traces(world: World) -> Iterator[str]:
    """Yield what the broker lacks of what devices hold that have nothing more to publish."""
    devices = [each for each in world.running() if each.connected]
    return unshared(world, [each for each in devices if _has_published(each)])


def _has_published(device: VirtualDevice) -> bool:
    """Return whether a device has nothing more to publish of its shared variables."""
    return device.core.sharing.all_sent and not device.core.fence.closed


def unshared(world: World, devices: Iterable[VirtualDevice]) -> Iterator[str]:
    """Yield the shared variables of which the broker has less than a device."""
    states = world.plans[0].shared_variables
    left = {
        name: variable.bottom.bottom()
        for name, variable in states.items()
        if variable.bottom is not None
    }
    for frame in _retained_parts(world) if left else ():
        if frame.variable in left and frame.state:
            left[frame.variable] |= decode(frame.state)
    for device in devices:
        for name, state in device.core.variables.shared_states.items():
            if not state.whole <= left[name]:
                yield f"{device.name} holds {state.whole} of {name}, and the broker {left[name]}"


def _retained_parts(world: World) -> Iterator[SharedFrame]:
    for payload in world.broker.retained.values():
        try:
            frame = decoded(payload)
        except FrameError:
            continue  # it is for people
        if isinstance(frame, SharedFrame):
            yield frame


def unstored(world: World, device: VirtualDevice) -> Iterator[str]:
    """Yield what a process that ends has left of shared variables, and its store lacks."""
    core, store = device.core, device.disk.store
    if device.disk_until or not isinstance(store, MemoryStore):
        return
    left = [frame for frame in _retained_parts(world) if frame.sender == core.replica]
    if not any(frame.state for frame in left):
        return
    restored = MemoryStore(in_memory(device.disk.image())).restored()
    after = Core(core.agent.plan, device.name, 1, restored, core.agent.settings)
    for frame in left:
        state = after.variables.shared_states.get(frame.variable)
        if frame.state and state is not None and not decode(frame.state) <= state.whole:
            yield f"{device.name} has left more of {frame.variable} than it has stored"


def kept_for_others(world: World) -> Iterator[str]:
    """Yield what devices at rest still keep of others' writes, who leave them themselves."""
    is_late = world.scenario.faults.delayed or _LOSES & world.seen.keys()
    if is_late or not reconnects(world.scenario):
        return
    for device in world.running():
        for name, state in device.core.variables.shared_states.items():
            kept = state._pending  # noqa: SLF001 - no one else has it
            others = [each.core.variables.shared_states[name] for each in world.running()]
            written = [each.whole.restricted(each._agent.replica.device) for each in others]  # noqa: SLF001
            for own in written:
                kept = kept - own
            if kept != state._pending:  # noqa: SLF001
                yield f"{device.name} keeps {state._pending} of {name}, which others have left"  # noqa: SLF001
