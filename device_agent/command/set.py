r"""Change a parameter of a running program, from a time on, on all devices or on one.

Each reading counts with the parameters at its own time, each window has those at its start; so it
does not matter when a device hears of it. The time may lie in the future, or in the past: then the
windows that it touches are made anew. NAME=default takes back what was said for a time.

  lasp-edge set greenhouse:program alarm_above=30 --from 2026-11-23T06:00Z --broker mqtt://broker
  lasp-edge set greenhouse:program offset=-0.30 --device cellar --from 2026-11-16T00:00Z \
      --until 2026-11-20T12:00Z --broker mqtt://broker
"""

import argparse
import getpass
from contextlib import suppress

from device_agent.command.fleet import (
    BrokerSession,
    add_fleet_arguments,
    check_device,
    now_us,
    roster_of,
)
from device_agent.command.schedule import known_on
from device_agent.controlled.saying import said, schedule_lines
from device_agent.fleet.roster import Roster
from lasp_edge.errors import Exit, UsageError
from lasp_edge.language.declarations import Parameter
from lasp_edge.language.parameters import DEFAULT, need_value
from lasp_edge.protocol.control import MOST_PLACES, ControlFrame
from lasp_edge.protocol.kinds import Subscriber, subscriptions
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.times import read_time


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_fleet_arguments(parser)
    add = parser.add_argument
    add("setting", metavar="NAME=VALUE", help="the parameter and its value; `default` takes back")
    add("--device", default="", help="on this device alone")
    add("--from", dest="since", metavar="TIME", help="from this time on; UTC (default: now)")
    add("--until", metavar="TIME", help="until this time; then it is as it was")
    add("--author", default="", help="who says it (default: the user's name)")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if not arguments.program:
        raise UsageError("the program is needed: MODULE:PROGRAM; it says what its parameters are")
    parameter, value = _setting(arguments)
    scope = check_device(arguments.device) if arguments.device else ""
    from_us = now_us() if arguments.since is None else _time("--from", arguments.since)
    until_us = None if arguments.until is None else _time("--until", arguments.until)
    if until_us is not None and (until_us <= from_us or value is None):
        raise UsageError(
            "--until: a time after --from is needed, and a value that holds until then"
        )
    author = arguments.author or _user()
    roster = roster_of(arguments)
    filters = subscriptions(roster.topics, Subscriber.OPERATOR)
    with BrokerSession(arguments, roster, filters) as session:
        session.listen(lambda: False)

        def command() -> ControlFrame:
            delta = said(roster.control, parameter, scope, value, from_us, until_us, author)
            roster.control |= delta
            if len(roster.control.of(parameter.name, scope).entries) > MOST_PLACES:
                raise UsageError(f"{parameter.name}: at most {MOST_PLACES} places can be told")
            return roster.saying(parameter.name, scope)

        session.publish(command)
        for device in roster.devices:
            session.ask(device)
        session.listen(lambda: bool(_missing(roster)))
    for line in schedule_lines(parameter, roster.control):
        print(line)  # noqa: T201
    print(known_on(roster))  # noqa: T201
    return Exit.FINE


def _missing(roster: Roster) -> list[str]:
    return [device for device in roster.devices if not roster.knows(device)]


def _setting(arguments: argparse.Namespace) -> tuple[Parameter, str | None]:
    """Return the parameter, and its value; None where a place is taken back.

    Raises:
        UsageError: the program has no such parameter, or it cannot have that value.
    """
    name, separator, value = arguments.setting.partition("=")
    parameters = load_plan(arguments.program).parameters
    if not separator or name not in parameters:
        known = ", ".join(sorted(parameters)) or "none at all"
        raise UsageError(f"NAME=VALUE is needed, of a parameter of the program: {known}")
    if value == DEFAULT:
        return parameters[name], None
    try:
        return parameters[name], need_value(parameters[name], value)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _time(option: str, text: str) -> int:
    try:
        return read_time(text)
    except ValueError:
        raise UsageError(
            f"{option}: a time such as 2026-11-23T06:00Z is needed, not {text!r}"
        ) from None


def _user() -> str:
    with suppress(Exception):  # in a container there may be no user of that number
        return getpass.getuser()
    return "operator"
