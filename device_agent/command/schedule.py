r"""Print what operators said of a program's parameters, who said it, and who knows it.

lasp-edge schedule greenhouse:program --broker mqtt://192.168.1.10
"""

import argparse
import json
from typing import Any

from device_agent.command.fleet import BrokerSession, add_fleet_arguments, roster_of
from device_agent.controlled.saying import schedule_lines
from device_agent.fleet.roster import Roster
from lasp_edge.errors import Exit, UsageError
from lasp_edge.protocol.kinds import Subscriber, subscriptions
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.times import shown_time


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_fleet_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if not arguments.program:
        raise UsageError("the program is needed: MODULE:PROGRAM; it says what its parameters are")
    parameters = load_plan(arguments.program).parameters
    roster = roster_of(arguments)
    filters = subscriptions(roster.topics, Subscriber.OPERATOR)
    with BrokerSession(arguments, roster, filters) as session:
        session.listen(lambda: False)
        for device in roster.devices:
            session.ask(device)
        session.listen(lambda: any(not roster.knows(device) for device in roster.devices))
    if arguments.json:
        print(json.dumps({"places": _places(roster), "known": _knowing(roster)}))  # noqa: T201
        return Exit.FINE
    for name in sorted(parameters):
        for line in schedule_lines(parameters[name], roster.control):
            print(line)  # noqa: T201
        for place in _places(roster):
            if place["parameter"] == name:
                print(f"  {_plainly(place)}")  # noqa: T201
    print(known_on(roster))  # noqa: T201
    return Exit.FINE


def known_on(roster: Roster) -> str:
    """Return which devices know all that was said, in words."""
    knowing, devices = _knowing(roster), roster.devices
    if not devices:
        return "No device was heard: they hear of it when they connect."
    missing = [device for device in devices if device not in knowing]
    known = f"Known on {len(knowing)} of {len(devices)} devices"
    return f"{known}; not yet: {', '.join(missing)}." if missing else f"{known}."


def _knowing(roster: Roster) -> list[str]:
    return [device for device in roster.devices if roster.knows(device)]


def _places(roster: Roster) -> list[dict[str, Any]]:
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
    return f"{place['from']}{whose}: {words} ({place['author']})"
