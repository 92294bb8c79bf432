"""What must hold where a program acts on its values, and where a device that is silent leaves one.

- a handler is never called twice in a row for one `inputs`, not even by the next process; the world
  looks at that itself, for only it knows which device runs a handler
- an alert that is on goes off only where its value is at the lower level, or where it has no value
- a device that is silent for longer than `stale_after_s` does not count, to anybody who is
  connected, for as long as it is silent; it counts again when it is heard
"""

import json
from typing import Any

from simulations.world.device import VirtualDevice
from simulations.world.programs import ALERT_ABOVE, ALERT_BELOW, HEARD, STALE_S
from simulations.world.world import World

SILENT_STEPS = STALE_S + 30
"""Steps after which a silent device is left out: its time, and some beats that are on their way."""
WATCHED_STEPS = 20
"""Steps for which it is watched that it stays left out."""
BACK_STEPS = 40
"""Steps after which a device that is back counts again."""


class ActingChecks:
    """Looks at what devices do with their values."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, int], str] = {}

    def published(self, world: World, device: VirtualDevice, topic: str, payload: bytes) -> None:
        """Look at what an alert says."""
        if "/alert/" not in topic or not payload:
            return
        said = json.loads(payload)
        process = (device.name, device.core.replica.nonce)
        before = self._said.get(process, said["state"])
        self._said[process] = said["state"]
        value = said["value"]
        if (before, said["state"]) == ("on", "off") and value is not None and value > ALERT_BELOW:
            world.trouble.append(f"{device.name}: an alert went off at {value}")
        if (before, said["state"]) == ("off", "on") and value <= ALERT_ABOVE:
            world.trouble.append(f"{device.name}: an alert went on at {value}")


def check_absence(world: World) -> None:
    """Let one device of a settled world be silent, and demand that it leaves and comes back."""
    silent, *others = list(world.devices.values())
    if not others or world.operator.membership.entries:
        return
    _demand(world, list(world.devices.values()), "all are heard")
    if world.scenario.seed % 2:
        world.end(silent.name, silent, SILENT_STEPS + WATCHED_STEPS)
    else:
        world.disconnect(silent, SILENT_STEPS + WATCHED_STEPS)
    _pass(world, SILENT_STEPS)
    for _ in range(WATCHED_STEPS - 1):
        world.step()
        _demand(world, others, f"{silent.name} is silent")
    devices = list(world.devices.values())
    for _ in range(BACK_STEPS):
        world.step()
        if not _wrong(devices):
            break
    _demand(world, devices, f"{silent.name} is back")


def _pass(world: World, steps: int) -> None:
    for _ in range(steps):
        world.step()


def _demand(world: World, heard: list[VirtualDevice], what: str) -> None:
    """Demand that those that are heard hold what their own samples add up to."""
    wrong = "" if world.trouble else _wrong(heard)
    if wrong:
        world.trouble.append(f"{wrong}, though {what}")


def _wrong(heard: list[VirtualDevice]) -> str:
    """Return which device holds another value than the samples add up to; "" if none does."""
    if any(device.durable is None for device in heard):
        return "a device is off"
    own: list[Any] = [device.core.results.local()["here"][""].partial for device in heard]
    truth = tuple(map(sum, zip(*own, strict=True)))
    for device in heard:
        found = device.results(HEARD).get("")
        if found is None or found.partial != truth:
            return f"{device.name} holds {found}, not {truth}"
    return ""
