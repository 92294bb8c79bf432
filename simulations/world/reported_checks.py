"""What must hold of the report of an agent, which `status` and `doctor` read, once all is at rest.

- it can be printed as JSON, names no failure, and says that it is connected
- no more others are connected than there are (the late will of one may be on its way), and those
  are retired that operators have retired
- who knows that it is retired says so to people, and nobody else does, at any time
- nothing waits where all has landed, for no sink, and no pane is to be built
- each value is shown as what the device holds adds up to (`shown_checks`)
- no source is named as one that never gave anything which has
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from simulations.world.device import VirtualDevice
from simulations.world.programs import RECORDED
from simulations.world.shown_checks import held_values
from simulations.world.value_checks import OF_FLEET
from simulations.world.world import World

_EMPTY: Final = f"nothing ever came from {RECORDED}: "
_RETIRED: Final = "this device is retired: "
_STRANGE: Final = frozenset({"hostile", "clone", "forged_hello"})
"""Who speaks in the name of devices that are not there, or of those that are."""


def misreported(world: World, device: VirtualDevice) -> Iterator[str]:
    """Yield what a device at rest says of itself that is not so."""
    report = device.report()
    try:
        json.dumps(report)
    except (TypeError, ValueError) as error:
        yield f"{device.name}: its report cannot be printed: {error}"
    retired = world.operator.commands.membership.retired
    for name, expected in _expected(device, retired).items():
        if report.get(name, 0) != expected:
            yield f"{device.name} reports {report[name]} as {name}, not {expected}"
    is_strange = _STRANGE & world.seen.keys()
    if report["others"] >= len(world.running()) and not is_strange:
        yield f"{device.name} reports {report['others']} others, of {len(world.running())} devices"
    waiting = {name: each["waiting"] for name, each in report["sinks"].items()}
    if device.core.done and any(waiting.values()):
        yield f"{device.name} reports that {waiting} wait, and all has landed"
    yield from retired_unsaid(device)
    yield from _of_sources(device, report["notices"])
    yield from _of_values(device, report["values"])


def retired_unsaid(device: VirtualDevice) -> Iterator[str]:
    """Yield that a device says to people that it is retired, and does not know so, or the other."""
    notices, retired = device.core.agent.notices.texts, device.commands().membership.retired
    if any(text.startswith(_RETIRED) for text in notices) != (device.name in retired):
        yield f"{device.name} says {notices} to people, and {sorted(retired)} are retired"


def _expected(device: VirtualDevice, retired: Iterable[str]) -> dict[str, Any]:
    """Return what a device at rest reports, as far as it can be known from outside."""
    found: dict[str, Any] = {"device": device.name, "connected": True, "failures": []}
    found |= {"retired": list(retired), "panes_to_build": 0}
    return found | ({"dirty": 0, "done": True} if device.core.done else {})


def _of_sources(device: VirtualDevice, notices: list[str]) -> Iterator[str]:
    """Yield that a source is named as one that gave nothing, and has."""
    if device.acknowledged and any(text.startswith(_EMPTY) for text in notices):
        yield f"{device.name} says that nothing came, and took in {device.acknowledged} lines"


def _of_values(device: VirtualDevice, shown: dict[str, Any]) -> Iterator[str]:
    """Yield the values that are not what the device holds."""
    for (name, key), value in held_values(device).items():
        whole = shown.get(name, {})
        found = whole if key is None else whole.get("keys", {}).get(key, {})
        expected = value | (
            {"settled": True, "except": []} if key is None and name in OF_FLEET else {}
        )
        if not expected.items() <= found.items():
            yield f"{device.name} reports {found} of {name} {key!r}, and has {expected}"
