r"""Print the entries about a program's parameters, their authors, and who has them.

lasp-edge schedule greenhouse:program --broker mqtt://192.168.1.10
"""

import argparse
import json
from typing import Any, Final

from device_agent.console.command.line import named
from device_agent.console.command.session import (
    FleetSession,
    add_listening_arguments,
    parameter_view,
)
from device_agent.console.parameters.change import schedule_lines
from device_agent.console.view.devices import KnownDevices
from lasp_edge.errors import Exit
from lasp_edge.protocol.kinds import Subscriber
from lasp_edge.protocol.topics import subscriptions
from lasp_edge.tool.times import shown_time

SECTION = "a fleet"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_listening_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    view, plan = parameter_view(arguments)
    devices = view.devices
    filters = subscriptions(view.topics, Subscriber.OPERATOR)
    with FleetSession(arguments, view, filters) as session:
        session.listen(lambda: not devices.counting)
        ask_all(session, devices)
        session.listen(lambda: any(map(devices.is_online, devices.lacking_entries)))
    if arguments.json:
        print(json.dumps({"places": _places(devices), **knowledge(devices)}))  # noqa: T201
        return Exit.FINE
    if not plan.parameters:
        print(f"the program {plan.name!r} has no parameters")  # noqa: T201
    for name in sorted(plan.parameters):
        for line in schedule_lines(plan.parameters[name], devices.commands.control):
            print(line)  # noqa: T201
        for place in _places(devices):
            if place["parameter"] == name:
                print(f"  {_plainly(place)}")  # noqa: T201
    print(known_on(devices))  # noqa: T201
    return Exit.FINE


NOT_CONFIRMED: Final = (
    "not confirmed: the broker keeps it, and they receive it when they connect, unless one of them "
    "knows a later entry."
)


def ask_all(session: FleetSession, devices: KnownDevices) -> None:
    """Ask each device that is connected for a beat."""
    for device in filter(devices.is_online, devices.counting):
        session.ask(device)


def known_on(devices: KnownDevices) -> str:
    """Return in words which devices have received all entries."""
    counting, missing = devices.counting, devices.lacking_entries
    if not counting:
        return f"No device was heard: {NOT_CONFIRMED}"
    known = f"Known on {len(counting) - len(missing)} of {len(counting)} devices"
    if not missing:
        return f"{known}."
    away = [each if devices.is_online(each) else f"{each} (away)" for each in missing]
    return f"{known}; not yet: {named(away)}." + (
        f" That is {NOT_CONFIRMED}" if len(missing) == len(counting) else ""
    )


def knowledge(devices: KnownDevices) -> dict[str, list[str]]:
    """Return the devices that have received all entries, and those that have not."""
    missing = devices.lacking_entries
    known = [device for device in devices.counting if device not in missing]
    return {"known": known, "not_known": missing}


def _places(devices: KnownDevices) -> list[dict[str, Any]]:
    return [
        {
            "parameter": at.parameter,
            "device": at.scope or None,
            "from": shown_time(at.from_us),
            "value": entry.value,
            "number": entry.number,
            "author": entry.author,
        }
        for at, entry in sorted(devices.commands.control.entries.items())
    ]


def _plainly(place: dict[str, Any]) -> str:
    value = place["value"]
    words = "taken back" if value is None else value or "as before"
    whose = f" on {place['device']}" if place["device"] else ""
    return f"{place['from']} UTC{whose}: {words} ({place['author']})"
