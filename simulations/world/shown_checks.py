"""What must hold of what devices show people, once all is at rest: what is retained stands.

- the topic of each value holds it: its parts and columns as its samples, or the entries of all
  devices, come to; who is in it, and that the fleet agrees; no value is shown that nobody has
- an agent's own topic has its counts and alarms, and its presence how many alarms these are, and
  that it is there, whatever its earlier lives have left as their wills
- the device whose name is first shows the fleet's values and state for all, and no other does
- what is announced to Home Assistant reads its states from topics that are there, and lacks none
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from lasp_edge.protocol.frames import PresenceFrame
from lasp_edge.protocol.kinds import FRAME_KINDS
from simulations.world.decoding import decoded
from simulations.world.device import VirtualDevice
from simulations.world.faults import FAST_US
from simulations.world.scenario import reconnects
from simulations.world.value_checks import LOCAL, OF_FLEET, combined, folded, partials_of_fleet
from simulations.world.world import World

SHOWN_STEPS: Final = 12
"""Steps in which all that is new is shown: two rounds of results, and the wait of who speaks.
Before them devices learn which topics of their former processes are wanted no more."""
_SHOWN: Final = LOCAL.keys() - {"held_here"} | OF_FLEET.keys()
"""The values that are looked at: what `held_here` is goes by its samples' ages, too."""
_COLUMNS: Final = {"mean": ("count", "total_q"), "max": ("max_q",)}
_LOSES: Final = frozenset({"loss", "mute"})
"""What keeps from the broker what a device has published, where it does not connect again."""
_STRANGE: Final = frozenset({"hostile", "clone", "forged_hello"})


def check_shown(world: World) -> None:
    """Let all be shown, and compare it with what devices hold."""
    scenario = world.scenario
    is_late = bool(scenario.faults.delayed or world.seen["held_up"])
    is_late = is_late or (not reconnects(scenario) and bool(_LOSES & world.seen.keys()))
    if not scenario.shown or is_late or _STRANGE & world.seen.keys():
        return
    grace_us = max([each.core.agent.settings.grace_us for each in world.running()], default=0)
    world.fast_until = world.step_number + grace_us // FAST_US + 1
    while world.step_number < world.fast_until + SHOWN_STEPS:
        world.step()
    for device in world.running() if not world.trouble else ():
        world.trouble += _own(world, device)
    if not world.trouble:
        world.trouble += _of_fleet(world)


def _retained(world: World, topic: str) -> Any:
    return json.loads(world.broker.retained.get(topic) or b"{}")


def held_values(device: VirtualDevice) -> dict[tuple[str, str | None], dict[str, Any]]:
    """Return fold and key -> what is to be shown of it, made from what the device holds."""
    plan, found = device.core.agent.plan, dict[tuple[str, str | None], dict[str, Any]]()
    sets = device.core.samples.sets.held
    for name, fold in plan.local_folds.items():
        if name not in _SHOWN:
            continue
        for key, state in sets[fold.source.name].items():
            partial = folded(LOCAL[name], [value for _, value, _ in state.samples()])
            found[name, key if fold.keyed else None] = _plain(LOCAL[name], partial)
    for name, made in plan.dynamic_folds.items():
        if (kind := OF_FLEET.get(name)) is None:
            continue
        found[name, None] = {}  # beside its keys it says how far the fleet agrees
        for key, partials in partials_of_fleet(device, made).items():
            devices = sum(each != combined(kind, []) for each in partials)
            shown = _plain(kind, combined(kind, partials)) | {"devices": devices}
            found[name, key if made.keyed else None] = shown
    return found


def _plain(kind: str, partial: Any) -> dict[str, Any]:
    part = partial[0]
    if kind == "mean":
        part = partial[1] / partial[0] if partial[0] else None
    return {**dict(zip(_COLUMNS[kind], partial, strict=True)), "parts": {kind: part}}


def _own(world: World, device: VirtualDevice) -> Iterator[str]:
    """Yield what a device shows, and what does not stand."""
    topics, name = world.topics, device.name
    values = held_values(device)
    for (fold, key), expected in values.items():
        shown = _retained(world, topics.result(fold, name, key))
        if key is None and fold in OF_FLEET:
            expected |= {"settled": True, "except": []}
        if not expected.items() <= shown.items():
            yield f"{name} shows {shown} of {fold} {key!r}, and has {expected}"
    for name_key in _shown(world, name) if not device.forgot else ():
        if name_key not in values:
            yield f"{name} shows {name_key}, and has no such value"
    yield from _agent(world, device)


def _agent(world: World, device: VirtualDevice) -> Iterator[str]:
    """Yield what an agent says of itself that is not so."""
    core, shown = device.core, _retained(world, world.topics.agent(device.name))
    totals = core.counters.totals
    if shown.get("program") != core.agent.plan.digest or shown.get("clock") != "trusted":
        yield f"{device.name} says {shown} of itself"
    if not 0 <= shown.get("readings", -1) <= totals.get("accepted", 0):
        yield f"{device.name} shows {shown} readings of {totals.get('accepted', 0)}"
    alarms = [text for text in core.agent.notices.alarms if text not in shown.get("alarms", [])]
    if alarms:
        yield f"{device.name} does not show {alarms}"
    topic = world.topics.of(FRAME_KINDS[PresenceFrame.kind].topic, device.name)
    frame = decoded(world.broker.retained[topic])
    if not isinstance(frame, PresenceFrame) or frame.alarms != len(shown.get("alarms", [])):
        yield f"{device.name} has {shown.get('alarms')}, and is present with {frame}"
    elif not frame.online:
        yield f"{device.name} is connected, and is taken for away"


def _shown(world: World, device: str | None) -> Iterator[tuple[str, str | None]]:
    """Yield value and key of what a device shows, or of what is shown for the fleet."""
    for topic in world.broker.retained:
        try:
            address = world.topics.result_address(topic)
        except ValueError:
            continue
        if address.device == device and address.name in _SHOWN:
            yield address.name, address.key


def _of_fleet(world: World) -> Iterator[str]:
    """Yield what is shown for the fleet, and what does not stand."""
    retired = world.operator.commands.membership.retired
    counting = sorted((d for d in world.running() if d.name not in retired), key=_name)
    if not counting:
        return
    values, topics = held_values(counting[0]), world.topics
    for (fold, key), expected in values.items():
        shown = _retained(world, topics.fleet_result(fold, key)) if fold in OF_FLEET else expected
        if not expected.items() <= shown.items():
            yield f"the fleet shows {shown} of {fold} {key!r}, and has {expected}"
    alarming = [d.name for d in counting if _retained(world, topics.agent(d.name)).get("alarms")]
    state = _retained(world, topics.fleet_state())
    expected = {"devices": len(counting), "away": [], "alarms": alarming}
    if state != expected:
        yield f"the fleet shows {state}, and is {expected}"
    speaking = [device.name for device in world.running() if device.core.voice.speaks]
    if speaking != [counting[0].name]:
        yield f"{speaking} speak for the fleet, and {counting[0].name} is its first"


def _name(device: VirtualDevice) -> str:
    return device.name
