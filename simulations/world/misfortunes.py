"""How each kind of structural fault befalls a world, and how all of it is healed.

A fault that finds nothing to befall (a device that is off cannot be cut off) does not count.
"""

from collections.abc import Callable

from crdts import Replica
from lasp_edge.protocol.fencing import HelloFrame
from lasp_edge.protocol.topics import topic_of
from simulations.world.device import VirtualDevice
from simulations.world.faults import BEHIND, Fault
from simulations.world.fleet_streamed import order_of
from simulations.world.hostile import hostile_messages
from simulations.world.links import TO_BROKER, LegMessage
from simulations.world.scenario import reconnects
from simulations.world.sink_misfortunes import OF_SINKS
from simulations.world.world import KEEPALIVE_STEPS, World

LATE_STEPS = 4
"""Steps after the start of a life by which its peers have answered; it waits for landers longer."""
Befall = Callable[[World, VirtualDevice, int], bool]

PARTED_STEPS = 45
"""Steps in which the ten minutes pass that devices wait, after a gateway's twin, before they
deliver to the one that is left: in steps of a second they were most of such a run."""
ASKED_STEPS = 12
"""Steps in which a life that starts has asked, was answered twice, and reads again."""


def befall(world: World, fault: Fault) -> None:
    """Let a fault happen; count it if it did."""
    device = world.devices.get(fault.device or next(iter(world.devices)))
    assert device is not None
    if _BEFALL[fault.kind](world, device, fault.amount):
        world.seen[fault.kind] += 1


def _kill(world: World, device: VirtualDevice, steps: int) -> bool:
    if device.durable is None and device.starts:
        return False
    world.end(device.name, device, steps)
    if steps % 2:  # its machine was switched off
        device.clock.reboot(world.now_us)
    return True


def _cut(world: World, device: VirtualDevice, steps: int) -> bool:
    was = device.connected
    world.disconnect(device, steps, notice=min(steps, KEEPALIVE_STEPS))
    return was


def _deaf(world: World, device: VirtualDevice, steps: int) -> bool:
    device.deaf_until = world.step_number + steps
    return device.connected


def _mute(world: World, device: VirtualDevice, steps: int) -> bool:
    device.mute_until = world.step_number + steps
    return True  # one that is away may be back meanwhile


def _link_full(world: World, device: VirtualDevice, steps: int) -> bool:
    device.full_until = world.step_number + steps
    return device.connected


def _partition(world: World, device: VirtualDevice, steps: int) -> bool:
    del device
    group = [one for one in world.devices.values() if world.random.random() < 0.5]  # noqa: PLR2004
    for one in group:
        world.disconnect(one, steps, notice=KEEPALIVE_STEPS)
    return bool(group)


def _takeover(world: World, device: VirtualDevice, amount: int) -> bool:
    was = device.connected
    world.disconnect(device, amount)
    return was


def _broker(world: World, *, back: bool) -> bool:
    world.broker.crash(back=back)
    for device in world.devices.values():
        world.disconnect(device, world.random.randint(1, 5))
    for sink in world.sinks:
        sink.disconnect()
    world.links.drop()
    return True


def _broker_forgets(world: World, _device: VirtualDevice, _amount: int) -> bool:
    return _broker(world, back=False)


def _broker_old(world: World, _device: VirtualDevice, _amount: int) -> bool:
    return _broker(world, back=True)


def _broker_queue_lost(world: World, _device: VirtualDevice, _amount: int) -> bool:
    return world.broker.drop_queues() > 0


def _torn_commit(world: World, device: VirtualDevice, operations: int) -> bool:
    if device.disk_until:
        return False
    if operations % BEHIND == 0:
        return _disk_fails(world, device, after=0, commits=1, steps=1)
    return _disk_fails(world, device, after=operations, steps=1)


def _disk_full(world: World, device: VirtualDevice, steps: int) -> bool:
    return _disk_fails(world, device, after=40, steps=steps)


def _disk_read_only(world: World, device: VirtualDevice, steps: int) -> bool:
    return _disk_fails(world, device, after=0, steps=steps)


def _disk_fails(
    world: World, device: VirtualDevice, *, after: int, steps: int, commits: int = 0
) -> bool:
    """Let a running device's disk fail after some commits and operations, for this many steps."""
    if device.durable is None:
        return False
    device.disk.fail(after, commits)
    device.disk_until = world.step_number + 1 + steps
    return True


def _go_back(world: World, device: VirtualDevice, image: bytes, steps: int) -> None:
    """End the process, and let it start on another content of the disk.

    Every second time landers hear nothing until a little after it has started: peers answer first.
    """
    world.end(device.name, device, steps)
    device.clock.reboot(world.now_us)
    device.disk.restore(image)
    device.forget()
    if steps % 2:
        for sink in world.sinks:
            sink.cut_until = max(sink.cut_until, world.step_number + steps + LATE_STEPS)


def _unsynced_lost(world: World, device: VirtualDevice, steps: int) -> bool:
    if not device.disk.recent:
        return False
    _go_back(world, device, device.disk.recent[0], steps)
    return True


def _store_lost(world: World, device: VirtualDevice, steps: int) -> bool:
    _go_back(world, device, b"", steps)
    return True


def _older_image(world: World, device: VirtualDevice, steps: int) -> bool:
    if not device.disk.images:
        return False
    _go_back(world, device, device.disk.images[0], steps)
    return True


def _bit_flip(world: World, device: VirtualDevice, bits: int) -> bool:
    if not world.scenario.files:
        return False
    world.end(device.name, device, 1)
    device.disk.flip(world.random, bits)
    device.forget()
    return True


def _clone(world: World, device: VirtualDevice, steps: int) -> bool:
    key = f"{device.name}-copy"
    if key in world.devices or not device.disk.images:
        return False
    copy = world.add(key, device.name)
    copy.disk.restore(device.disk.images[-1])
    copy.plan, copy.is_copy = device.plan, True
    device.uncertain = True
    world.later(steps, lambda: _remove(world, key))
    return True


def _remove(world: World, key: str) -> None:
    """Take a clone out of the world; what it had not landed is gone, what it had sent is not."""
    copy = world.devices.pop(key)
    world.addresses.note({each: of.name for each, of in world.devices.items()})
    world.disconnect(copy, 0)
    copy.kill()
    copy.disk.remove()
    device = world.devices[copy.name]
    device.unsure += copy.live + copy.unsure
    device.reported_twice += copy.maybe_twice()


def _clock_jump(_world: World, device: VirtualDevice, seconds: int) -> bool:
    device.clock.jump(seconds)
    return True


def _clock_1970(world: World, device: VirtualDevice, steps: int) -> bool:
    if steps % 2:  # its machine was switched off, and has no battery for its clock
        world.end(device.name, device, 0)
        device.clock.reboot(world.now_us)
    device.clock.start_in_1970(world.now_us)
    world.later(steps, device.clock.heal)
    return True


def _clock_frozen(world: World, device: VirtualDevice, steps: int) -> bool:
    device.clock.freeze(world.now_us)
    world.later(steps, device.clock.heal)
    return True


def _clock_drift(world: World, device: VirtualDevice, parts: int) -> bool:
    device.clock.drift(parts, world.now_us)
    return True


def _other_release(world: World, device: VirtualDevice, steps: int) -> bool:
    device.plan = world.plans[device.plan is world.plans[0]]
    world.end(device.name, device, steps)
    return True


def _hostile(world: World, _device: VirtualDevice, amount: int) -> bool:
    messages = hostile_messages(world.random, world.topics, world.recordings.devices, amount)
    for topic, payload, retain in messages:
        world.send(LegMessage(TO_BROKER, topic, payload, retain))
    return bool(messages)


def _retire(world: World, device: VirtualDevice, steps: int) -> bool:
    if device.name in world.operator.commands.membership.retired:
        return False
    world.operator.retire(device.name)
    world.later(steps, lambda: world.operator.admit(device.name))
    return True


def _held_up(world: World, device: VirtualDevice, steps: int) -> bool:
    if not device.connected or device.held_until or device.held:
        return False
    device.held_until = world.step_number + steps
    world.later(steps, lambda: _lose_while_held(world, device))
    return True


def _lose_while_held(world: World, device: VirtualDevice) -> None:
    """Replace the card of a device, and let what it had sent come when its next life has asked."""
    device.held_until = 0
    _go_back(world, device, b"", 0)
    world.later(ASKED_STEPS, lambda: _let_go(world, device))


def _let_go(world: World, device: VirtualDevice) -> None:
    """Let what was held up come."""
    held, device.held = device.held, []
    for message in held:
        world.send(message)


def _forged_hello(world: World, device: VirtualDevice, incarnations: int) -> bool:
    """Let a stranger say hello as a later life of a device, and nothing else."""
    if device.durable is None:
        return False
    incarnation, _, name = device.core.replica
    life = Replica(incarnation + incarnations, world.random.getrandbits(32), name)
    hello = HelloFrame(life, 1, name, 1 + world.random.getrandbits(40), 1)
    world.send(LegMessage(TO_BROKER, topic_of(hello, world.topics), hello.encode()))
    return True


_BEFALL: dict[str, Befall] = {
    "kill": _kill,
    "cut": _cut,
    "deaf": _deaf,
    "mute": _mute,
    "link_full": _link_full,
    "partition": _partition,
    "takeover": _takeover,
    "broker_forgets": _broker_forgets,
    "broker_old": _broker_old,
    "broker_queue_lost": _broker_queue_lost,
    "torn_commit": _torn_commit,
    "disk_full": _disk_full,
    "disk_read_only": _disk_read_only,
    "unsynced_lost": _unsynced_lost,
    "store_lost": _store_lost,
    "older_image": _older_image,
    "bit_flip": _bit_flip,
    "clone": _clone,
    "clock_jump": _clock_jump,
    "clock_1970": _clock_1970,
    "clock_frozen": _clock_frozen,
    "clock_drift": _clock_drift,
    "other_release": _other_release,
    "hostile": _hostile,
    "retire": _retire,
    "held_up": _held_up,
    "forged_hello": _forged_hello,
    **OF_SINKS,
}


def heal(world: World) -> None:
    """End all faults: what is broken works, what is off starts, what is wrong is set right."""
    world.calm()
    waits = PARTED_STEPS * bool(world.seen["twin"])
    world.fast_until = world.step_number + waits
    for sink in world.sinks:
        sink.heal()
    if world.scenario.synced and not world.scenario.punctual:
        for sink in world.sinks:
            sink.disconnect()  # a gateway publishes all again that may have been lost
    if reconnects(world.scenario):
        for device in world.devices.values():
            world.disconnect(device, 0)
    for device in world.devices.values():
        device.clock.heal()
        device.disk.mend()
        device.start_step = device.connect_step = device.disk_until = 0
        device.deaf_until = device.mute_until = device.full_until = 0
        device.misses_entries_until = 0
        if world.scenario.ordered and order_of(world.scenario).differs:
            _run_last_release(world, device)


def _run_last_release(world: World, device: VirtualDevice) -> None:
    """Let a device run the program of the sinks: they refuse what a narrower filter has sent."""
    latest = world.plans[-1]
    if device.durable is None or device.core.agent.plan is not latest:
        device.plan = latest
        world.end(device.name, device, 0)
