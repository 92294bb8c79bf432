"""What must hold where a program acts on its values, and where a device that is silent leaves one.

- a handler is never called twice in a row for one `inputs`, not even by the next process; the world
  looks at that itself, for only it knows which device runs a handler
- an alert that is on goes off only where its value is at the lower level, or where it has no value
- at the end the broker holds what each alert says, and that is what its value says
- a device that is heard counts, however long it measures nothing new
- a device that is silent for longer than `stale_after_s`, and none before, does not count, to
  anybody who is connected, for as long as it is silent; it counts again when it is heard
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from device_agent.agent.settings import Settings
from simulations.world.called_out import CalledOut
from simulations.world.device import VirtualDevice
from simulations.world.faults import STEP_US
from simulations.world.keyed_acts import unpublished
from simulations.world.programs import ALERT_ABOVE, ALERT_BELOW, HEARD, STALE_S
from simulations.world.scenario import reconnects, waits_for_silence
from simulations.world.value_checks import hasty_acts
from simulations.world.world import World

BEAT_STEPS = Settings().keep_alive_us // STEP_US
"""Steps between two beats of an idle device."""
HEARD_STEPS = STALE_S - BEAT_STEPS - 1
"""Steps for which a device that is silent still counts: its last beat came a beat before, at most,
and clocks differ."""
SILENT_STEPS = STALE_S + 30
"""Steps after which a silent device is left out: its time, and some beats that are on their way."""
WATCHED_STEPS = 20
"""Steps for which it is watched that it stays left out."""
CALLED_STEPS = 3
"""Steps in which a handler is called for a value that has moved: it is, once in a second."""
OUT_STEPS = 400
"""Steps in which all turns of alerts are called out: twenty slow calls, one after the other."""
BACK_STEPS = 40
"""Steps after which a device that is back counts again."""


class ActingChecks:
    """Looks at what devices do with their values."""

    def __init__(self) -> None:
        self._states: dict[tuple[str, int], str] = {}
        self._known: dict[tuple[str, int, str, str], str] = {}
        self._called = defaultdict[VirtualDevice, CalledOut](CalledOut)

    def ticked(self, world: World, device: VirtualDevice) -> None:
        """Let a device call out the turns of its alerts."""
        if device.core.agent.settings.calls_out:
            world.trouble += self._called[device].call(device, world.step_number)

    def uncalled(self, world: World) -> list[str]:
        """Return the alerts that say something else than was called out last."""
        calling = [each for each in world.running() if each.core.agent.settings.calls_out]
        return [text for each in calling for text in self._called[each].wrong(each)]

    def published(self, world: World, device: VirtualDevice, topic: str, payload: bytes) -> None:
        """Look at what an alert says."""
        if "/alert/" not in topic or not payload:
            return
        alert = json.loads(payload)
        process = (device.name, device.core.replica.nonce)
        at = (*process, alert["alert"], alert.get("key", ""))
        known, self._known[at] = self._known.get(at, alert["state"]), alert["state"]
        if known != alert["state"]:
            world.trouble += hasty_acts(device, [alert["fold"]], world.now_us)
        if alert["alert"] != "high":
            return
        before = self._states.get(process, alert["state"])
        self._states[process] = alert["state"]
        value = alert["value"]
        if (before, alert["state"]) == ("on", "off") and value is not None and value > ALERT_BELOW:
            world.trouble.append(f"{device.name}: an alert went off at {value}")
        if (before, alert["state"]) == ("off", "on") and value <= ALERT_ABOVE:
            world.trouble.append(f"{device.name}: an alert went on at {value}")


def check_acting(world: World, watched: ActingChecks) -> None:
    """Look at the calls of handlers in a settled world, and in some at who is silent."""
    _check_calls(world)
    for _ in range(OUT_STEPS):
        if world.trouble or not watched.uncalled(world):
            break
        world.step()
    world.trouble += watched.uncalled(world)
    if not world.trouble:
        _check_published(world)
    if waits_for_silence(world.scenario) and not world.trouble:
        check_absence(world)


def _check_calls(world: World) -> None:
    """Demand that each handler of a settled world was called for the value that its fold has."""
    world.fast_until = 0
    for _ in range(CALLED_STEPS):
        world.step()
    for device in world.running() if not world.trouble else ():
        values = device.core.acting.values
        for name, inputs in device.acted.items():
            if values.is_ready(name) and inputs != values.inputs(name, ""):
                world.trouble.append(f"{device.name} has not called a handler for what {name} is")


def _check_published(world: World) -> None:
    """Compare what the broker holds of alerts with the values that they watch.

    What was lost on its way is sent again over a new connection; what is late comes over it.
    """
    is_late = world.scenario.faults.delayed or world.seen["held_up"]
    if not reconnects(world.scenario) or is_late:
        return
    for device in world.running():
        world.trouble += unpublished(world, device)
        count, total = device.core.results.local()["here"][""].partial
        topic = world.topics.alert("high", device.name, None)
        payload = world.broker.retained.get(topic)
        if not payload:
            if count:
                world.trouble.append(f"{device.name}: nobody receives its alert")
            continue
        is_on = json.loads(payload)["state"] == "on"
        mean = total / count if count else 0
        if is_on != (mean > (ALERT_BELOW if is_on else ALERT_ABOVE)):
            world.trouble.append(f"{device.name}: its alert is on: {is_on}, at {mean}")


def check_absence(world: World) -> None:
    """Let one device of a settled world be silent, and demand that it leaves and comes back."""
    silent, *others = devices = list(world.devices.values())
    if not others or world.operator.commands.membership.entries:
        return
    with_all, without = _truth(devices), _truth(others)
    world.fast_until = 0  # a device is silent for seconds
    _demand(world, devices, (with_all,), "all are heard")
    if world.scenario.seed % 2:
        world.end(silent.name, silent, SILENT_STEPS + WATCHED_STEPS)
    else:
        world.disconnect(silent, SILENT_STEPS + WATCHED_STEPS)
    for step in range(1, SILENT_STEPS + WATCHED_STEPS):
        world.step()
        counting = (with_all,) if step <= HEARD_STEPS else (with_all, without)
        if step > SILENT_STEPS:
            counting = (without,)
        _demand(world, others, counting, f"{silent.name} alone is silent, for {step} s")
        if silent.durable is not None:  # it hears nobody, and so says nothing of them
            _demand(world, [silent], (with_all,), f"it has been cut off for {step} s")
    for _ in range(BACK_STEPS):
        world.step()
        if not _wrong(devices, (with_all,)):
            break
    _demand(world, devices, (with_all,), f"{silent.name} is back")


def _truth(heard: list[VirtualDevice]) -> Any:
    """Return what the samples of those that are heard add up to."""
    own: list[Any] = [device.core.results.local()["here"][""].partial for device in heard]
    return tuple(map(sum, zip(*own, strict=True)))


def _demand(world: World, heard: list[VirtualDevice], truths: Sequence[Any], what: str) -> None:
    """Demand that those that are heard hold what some devices' samples add up to."""
    wrong = "" if world.trouble else _wrong(heard, truths)
    if wrong:
        world.trouble.append(f"{wrong}, though {what}")


def _wrong(heard: list[VirtualDevice], truths: Sequence[Any]) -> str:
    """Return which device holds another value than one of these; "" if each is one of them."""
    for device in heard:
        if device.durable is None:
            return f"{device.name} is off"
        found = device.results(HEARD).get("")
        if found is None or found.partial not in truths:
            return f"{device.name} holds {found}, not {' or '.join(map(str, truths))}"
    return ""
