r"""Print one value of a fleet, as the broker knows it.

The fleet's value, or with --device a device's own value or its view of the fleet's. It is there if
agents publish results (--results, --home-assistant), or if the program is named: then it is made
from what the devices tell each other. A value with several parts or keys has a line for each.

  lasp-edge get global_average greenhouse:program --broker mqtt://192.168.1.10
  lasp-edge get local_average --device kitchen --fleet greenhouse --broker mqtt://192.168.1.10

Ends with 0 if the value is known, with 1 if not.
"""

import argparse
import json
from difflib import get_close_matches

from device_agent.console.command.line import named
from device_agent.console.command.looking import (
    QUIET_S,
    Looking,
    add_looking_arguments,
    looking,
    now_s,
)
from device_agent.console.view.onlooker import fleet_keys
from device_agent.console.view.told import Plain
from lasp_edge.errors import CommandError, Exit, UsageError
from lasp_edge.link import Message


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("name", metavar="NAME", help="the value's name in the program")
    add_looking_arguments(parser)
    add = parser.add_argument
    add("--of", metavar="KEY", help="of a value with keys: only this one")
    add("--device", metavar="D", help="as this device holds it (default: the fleet's value)")
    add("--wait", type=float, default=5.0, metavar="S", help="for the value (default: %(default)g)")
    add("--json", action="store_true", help="print all that is known of it, as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if not 0 <= arguments.wait <= 86_400:  # noqa: PLR2004 - a day
        raise UsageError(f"--wait: seconds from 0, not {arguments.wait}")
    with looking(arguments) as fleet:
        fleet.await_connection()
        found = _wait(fleet, arguments)
        if not found:
            raise CommandError(_why_not(fleet, arguments))
    if arguments.json:
        whole = found.get(None) or {"keys": found}
        print(json.dumps(whole if arguments.of is None else found[arguments.of]))  # noqa: T201
    else:
        print("\n".join(_lines(found)))  # noqa: T201
    return Exit.FINE


def _wait(fleet: Looking, arguments: argparse.Namespace) -> dict[str | None, Plain]:
    """Return key -> value as soon as what is retained has come, or later, up to --wait."""
    ends_s, quiet_s = now_s() + arguments.wait, now_s() + QUIET_S
    found: dict[str | None, Plain] = {}
    while now_s() < quiet_s or (not found and now_s() < ends_s):
        if any(isinstance(event, Message) for event in fleet.poll(0.05)):
            quiet_s = min(now_s() + QUIET_S, max(ends_s, quiet_s))
        found = _found(fleet, arguments)
    return found


def _found(fleet: Looking, arguments: argparse.Namespace) -> dict[str | None, Plain]:
    name, device = arguments.name, arguments.device
    if arguments.of is not None:
        keys: list[str | None] = [arguments.of]
    else:
        keys = _keys(fleet, name, device)
    values = {key: fleet.onlooker.value(name, device, key) for key in keys}
    return {key: value for key, value in values.items() if value and _is_known(value)}


def _is_known(value: Plain) -> bool:
    """Return whether there is anything in a value: that of no reading has no parts but None."""
    return any(part is not None for part in value["parts"].values())


def _keys(fleet: Looking, name: str, device: str | None) -> list[str | None]:
    """Return the keys of a value; [None] for a value without keys."""
    onlooker = fleet.onlooker
    keys = fleet_keys(onlooker, name) if device is None else onlooker.keys(name, device)
    return [None] if keys in ([], [""]) else list(keys)


def _lines(found: dict[str | None, Plain]) -> list[str]:
    lines = []
    for key, value in sorted(found.items(), key=str):
        parts = value["parts"]
        for part, number in parts.items():
            words = [] if key is None else [key]
            words += [part] if len(parts) > 1 else []
            lines.append("\t".join([*words, "-" if number is None else str(number)]))
    return lines


def _why_not(fleet: Looking, arguments: argparse.Namespace) -> str:
    """Return why there is no value, and what to type."""
    onlooker, name, device = fleet.onlooker, arguments.name, arguments.device
    at = f"in fleet {fleet.fleet!r}"
    if fleet.trouble:
        return f"{name} did not come from {fleet.broker}: {fleet.trouble}"
    if not onlooker.devices:
        return f"no device was heard {at} at {fleet.broker}; is --fleet right?"
    if device is not None and device not in onlooker.devices:
        return f"no device {device!r} {at}{_instead(device, onlooker.devices)}"
    if not onlooker.names:
        return (
            "no device publishes results; name the program (lasp-edge get NAME MODULE:PROGRAM"
            " ...), or start an agent with --results 60"
        )
    if name not in onlooker.names:
        return f"no value {name!r} {at}{_instead(name, onlooker.names)}"
    return _why_not_yet(fleet, arguments)


def _why_not_yet(fleet: Looking, arguments: argparse.Namespace) -> str:
    """Return why there is no value of a name that is known."""
    onlooker, name, device = fleet.onlooker, arguments.name, arguments.device
    if device is None and not onlooker.is_of_fleet(name):
        return f"each device has its own {name}; name one: --device {onlooker.devices[0]}"
    keys = [key for key in _keys(fleet, name, device) if key is not None]
    if arguments.of is not None and keys:
        return f"{name} has no key {arguments.of!r}{_instead(arguments.of, keys)}"
    return f"{name} has no value yet; wait longer: --wait 120"


def _instead(given: str, there: list[str]) -> str:
    """Return what could have been meant."""
    if not there:
        return "; nobody has told of any"
    close = get_close_matches(given, there, n=1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    return f"{meant or ';'} there are: {named(there)}"
