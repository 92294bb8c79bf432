r"""Print what operators said of a program's parameters, who said it, and who knows it.

lasp-edge schedule greenhouse:program --broker mqtt://192.168.1.10
"""

import argparse
import json
from typing import Any

from device_agent.console.command.fleet import (
    BrokerSession,
    add_fleet_arguments,
    parameter_roster_of,
)
from device_agent.console.command.line import named
from device_agent.console.parameters.roster import ParameterRoster
from device_agent.console.parameters.saying import schedule_lines
from lasp_edge.errors import Exit
from lasp_edge.protocol.kinds import Subscriber
from lasp_edge.protocol.topics import subscriptions
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.times import shown_time


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_fleet_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    roster = parameter_roster_of(arguments)
    plan = load_plan(arguments.program)
    parameters = plan.parameters
    filters = subscriptions(roster.topics, Subscriber.OPERATOR)
    with BrokerSession(arguments, roster, filters) as session:
        session.listen(lambda: not roster.counting)
        ask_all(session, roster)
        session.listen(lambda: any(map(roster.is_online, roster.missing)))
    if arguments.json:
        print(json.dumps({"places": _places(roster), **knowledge(roster)}))  # noqa: T201
        return Exit.FINE
    if not parameters:
        print(f"the program {plan.name!r} has no parameters")  # noqa: T201
    for name in sorted(parameters):
        for line in schedule_lines(parameters[name], roster.control):
            print(line)  # noqa: T201
        for place in _places(roster):
            if place["parameter"] == name:
                print(f"  {_plainly(place)}")  # noqa: T201
    print(known_on(roster))  # noqa: T201
    return Exit.FINE


def ask_all(session: BrokerSession, roster: ParameterRoster) -> None:
    """Ask each device that is connected for a beat."""
    for device in filter(roster.is_online, roster.counting):
        session.ask(device)


def known_on(roster: ParameterRoster) -> str:
    """Return which devices know all that was said, in words."""
    devices, missing = roster.counting, roster.missing
    if not devices:
        return "No device was heard: they hear of it when they connect."
    known = f"Known on {len(devices) - len(missing)} of {len(devices)} devices"
    if not missing:
        return f"{known}."
    away = [each if roster.is_online(each) else f"{each} (away)" for each in missing]
    return f"{known}; not yet: {named(away)}."


def knowledge(roster: ParameterRoster) -> dict[str, list[str]]:
    """Return which devices know all that was said, and which do not."""
    missing = roster.missing
    known = [device for device in roster.counting if device not in missing]
    return {"known": known, "not_known": missing}


def _places(roster: ParameterRoster) -> list[dict[str, Any]]:
    return [
        {
            "parameter": at.parameter,
            "device": at.scope or None,
            "from": shown_time(at.from_us),
            "value": entry.value,
            "number": entry.number,
            "author": entry.author,
        }
        for at, entry in sorted(roster.control.entries.items())
    ]


def _plainly(place: dict[str, Any]) -> str:
    value = place["value"]
    words = "taken back" if value is None else value or "as before"
    whose = f" on {place['device']}" if place["device"] else ""
    return f"{place['from']} UTC{whose}: {words} ({place['author']})"
