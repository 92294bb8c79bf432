r"""Print one value of a fleet, as the broker knows it.

The fleet's value, or with --device a device's own value or its view of the fleet's. It is there if
agents publish results (--results, --home-assistant), or if the program is named: then it is made
from the entries that the devices exchange. A value with several parts or keys has a line for each,
as fine as the event's step; --json has it in full.

  lasp-edge get global_average greenhouse:program --broker mqtt://192.168.1.10
  lasp-edge get local_average --device kitchen --fleet greenhouse --broker mqtt://192.168.1.10

Ends with 0 if the value is known, with 1 if not.
"""

import argparse
import json
import shlex
from difflib import get_close_matches
from typing import Any, Final

from device_agent.console.command.line import named
from device_agent.console.command.session import (
    NEEDS_PROGRAM,
    FleetSession,
    add_fleet_arguments,
    check_order,
    watching,
)
from device_agent.console.view.published import Plain
from device_agent.console.view.values import FleetValues
from lasp_edge.errors import CommandError, Exit, UsageError
from lasp_edge.folds.numbers import decimals
from lasp_edge.language.plan import Plan

SECTION = "a fleet"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("name", metavar="NAME", help="the value's name in the program")
    add_fleet_arguments(parser, NEEDS_PROGRAM)
    add = parser.add_argument
    add("--of", metavar="KEY", help="of a value with keys: only this one")
    add("--device", metavar="D", help="as this device holds it (default: the fleet's value)")
    add("--wait", type=float, default=5.0, metavar="S", help="for the value (default: %(default)g)")
    add("--json", action="store_true", help="print all that is known of it, as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if not 0 <= arguments.wait <= 86_400:  # noqa: PLR2004 - a day
        raise UsageError(f"--wait: seconds from 0, not {arguments.wait}")
    check_order(arguments.program, arguments.name, "NAME MODULE:PROGRAM")
    with watching(arguments) as session:
        values = session.view.values
        session.listen(lambda: not _found(values, arguments), arguments.wait)
        found = _found(values, arguments)
        if not found:
            raise CommandError(_why_not(session, arguments))
    if arguments.json:
        whole = found.get(None) or {"keys": found}
        print(json.dumps(whole if arguments.of is None else found[arguments.of]))  # noqa: T201
    else:
        print("\n".join(_lines(found, _places(session.view.plan, arguments.name))))  # noqa: T201
    return Exit.FINE


def _found(values: FleetValues, arguments: argparse.Namespace) -> dict[str | None, Plain]:
    """Return key -> value, of the keys that are asked for and have one."""
    name, device = arguments.name, arguments.device
    keys = _keys(values, name, device) if arguments.of is None else [arguments.of]
    found = {key: values.value(name, device, key) for key in keys}
    return {key: value for key, value in found.items() if value and _is_known(value)}


def _is_known(value: Plain) -> bool:
    """Return whether there is anything in a value: that of no reading has no parts but None."""
    return any(part is not None for part in value["parts"].values())


def _keys(values: FleetValues, name: str, device: str | None) -> list[str | None]:
    """Return the keys of a value; [None] for a value without keys."""
    keys = values.keys(name, device)
    return [None] if keys in ([], [""]) else list(keys)


def _places(plan: Plan | None, name: str) -> int | None:
    """Return how many decimals show the step of a value; None where that is not known."""
    fold = plan and (plan.dynamic_folds.get(name) or plan.local_folds.get(name))
    return decimals(fold.resolution) if fold else None


def _lines(found: dict[str | None, Plain], places: int | None) -> list[str]:
    lines = []
    for key, value in sorted(found.items(), key=str):
        parts = value["parts"]
        for part, each in parts.items():
            words = [] if key is None else [key]
            words += [part] if len(parts) > 1 else []
            lines.append("\t".join([*words, _shown(each, places)]))
    return lines


def _shown(part: Any, places: int | None) -> str:
    """Return a part as finely as the event's step; what is finer is made by dividing."""
    if type(part) is not float:
        return "-" if part is None else str(part)
    return str(float(f"{part:.10g}")) if places is None else f"{part:.{places}f}"


_NOT_YET: Final = "has no value yet; wait longer: --wait 120"


def _why_not(session: FleetSession, arguments: argparse.Namespace) -> str:
    """Return why there is no value, and what to type."""
    values, name, device = session.view.values, arguments.name, arguments.device
    at = f"in fleet {session.view.topics.fleet!r}"
    if session.trouble:
        return f"{name} did not come from {session.broker}: {session.trouble}"
    if not values.devices:
        return f"no device was heard {at} at {session.broker}; is --fleet right?"
    if device is not None and device not in values.devices:
        return f"no device {device!r} {at}{_instead(device, values.devices)}"
    if not values.names and session.view.plan is None:
        return (
            "no device publishes results; name the program (lasp-edge get NAME MODULE:PROGRAM"
            " ...), or start an agent with --results 60"
        )
    if name not in values.names:
        return _why_unknown(session, name, at)
    return _why_not_yet(values, arguments)


def _why_unknown(session: FleetSession, name: str, at: str) -> str:
    """Return why there is no value of a name that no device publishes."""
    plan, names = session.view.plan, session.view.values.names
    variable = plan.own_variables.get(name) if plan else None
    if variable is not None and not variable.dynamic:
        return (
            f"{name!r} is a shared variable, and no command reads one off devices; a lake has its "
            f"value: lasp-edge lake shared {shlex.quote(name)} --lake DIR"
        )
    shown = shlex.quote(name)
    windows = f"lasp-edge windows {shown} --gateway DIR"
    if plan is None:
        return (
            f"no value {name!r} is published {at}{_instead(name, names)}; for one that is not "
            f"published, name the program: lasp-edge get {shown} MODULE:PROGRAM ...; "
            f"of a window: {windows}"
        )
    if name in {**plan.local_folds, **plan.dynamic_folds}:
        return f"{name} {_NOT_YET}"
    if name in plan.windows:
        return f"{name!r} is a window: {windows}"
    if name in plan.stream_results:
        place = "--gateway DIR" if name in plan.fleet_results else "--lake DIR"
        return f"{name!r} is a result: lasp-edge results {shown} {place}"
    return f"no value {name!r} {at}{_instead(name, names)}"


def _why_not_yet(values: FleetValues, arguments: argparse.Namespace) -> str:
    """Return why there is no value of a name that is known."""
    name, device = arguments.name, arguments.device
    if device is None and not values.is_of_fleet(name):
        return f"each device has its own {name}; name one: --device {values.devices[0]}"
    keys = [key for key in _keys(values, name, device) if key is not None]
    if arguments.of is not None and keys:
        return f"{name} has no key {arguments.of!r}{_instead(arguments.of, keys)}"
    return f"{name} {_NOT_YET}"


def _instead(given: str, there: list[str]) -> str:
    """Return the nearest name, and the names that there are."""
    if not there:
        return "; nothing is known yet"
    close = get_close_matches(given, there, n=1)
    near = f"; did you mean {close[0]!r}?" if close else ""
    return f"{near or ';'} there are: {named(there)}"
