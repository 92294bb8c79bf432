r"""Watch a fleet: the values of each device, and how far it is behind the others.

In a terminal the table stays up to date; elsewhere it is printed every few seconds. Values are seen
if the program is named, or if agents publish results (--results, --home-assistant).

  lasp-edge watch greenhouse:program --broker mqtt://192.168.1.10
  lasp-edge watch --fleet greenhouse --broker mqtt://192.168.1.10 --once
"""

import argparse
import json
import sys
from typing import Any, NamedTuple

from device_agent.console.command.line import named
from device_agent.console.command.session import (
    NEEDS_PROGRAM,
    FleetSession,
    add_fleet_arguments,
    now_s,
    watching,
)
from device_agent.console.view.fleet_view import DeviceView, FleetView
from device_agent.console.view.published import Plain, gateway_lines
from lasp_edge.errors import Exit, UsageError
from lasp_edge.folds.numbers import decimals
from lasp_edge.language.device_classes import measured
from lasp_edge.language.plan import Plan
from lasp_edge.tool.screen import UNKNOWN, Screen, ago, aligned, in_words, lag, number

SECTION = "a fleet"
REFRESH_S = 0.5
EVERY_S = 10.0
LONGEST_ALARM = 60
"""Characters of an alarm in the table; --json has all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_fleet_arguments(parser, NEEDS_PROGRAM)
    add = parser.add_argument
    add("--value", default="", metavar="NAME", help="which of the fleet's values (default: first)")
    every = "without a terminal: seconds between two tables (default: %(default)g)"
    add("--every", type=float, default=EVERY_S, metavar="S", help=every)
    add("--once", action="store_true", help="print one table, and end")
    add("--wait", type=float, default=5.0, metavar="S", help="--once: wait for devices this long"
        " (default: %(default)g)")  # fmt: skip
    add("--json", action="store_true", help="print JSON objects, one a line")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    for option, most in (("every", 86_400.0), ("wait", 86_400.0)):
        if not 0 < getattr(arguments, option) <= most:
            raise UsageError(f"--{option}: seconds above 0, not {getattr(arguments, option)}")
    with watching(arguments, connects=arguments.once) as session:
        if not arguments.once:
            _go_on(session, arguments)
        values, awaited = session.view.values, session.view.devices
        session.listen(lambda: not values.devices or bool(awaited.awaited), arguments.wait)
        table = FleetTable.of(session, arguments.value)
        print(table.as_json() if arguments.json else "\n".join(table.lines()))  # noqa: T201
        return Exit.FINE if table.devices else Exit.DIFFERS


def _go_on(session: FleetSession, arguments: argparse.Namespace) -> None:
    """Show the fleet until somebody stops it."""
    screen = Screen(sys.stdout)
    live = screen.is_terminal and not arguments.json
    next_s = now_s() + min(2.0, arguments.every)  # by then retained messages have arrived
    while True:
        session.poll(REFRESH_S)
        table = FleetTable.of(session, arguments.value)
        if live:
            screen.show(table.lines())
        elif now_s() >= next_s:
            next_s = now_s() + arguments.every
            screen.say(*([table.as_json()] if arguments.json else [*table.lines(), ""]))


class FleetTable(NamedTuple):
    """A fleet as a table for people.

    Attributes:
        fleet: its name.
        own: the name of the devices' own value; None in a program without one.
        shared: the name of the fleet's value; None in a program without one.
        value: the fleet's value.
        devices: one row each.
        unit: of the values.
        places: decimals that are shown.
        trouble: the reason why messages do not pass.
        connected: whether there is a connection.
        gateways: for what each of them waits.
    """

    fleet: str
    own: str | None
    shared: str | None
    value: Plain | None
    devices: list[DeviceView]
    unit: str
    places: int
    trouble: str | None
    connected: bool
    gateways: dict[str, list[str]]

    @classmethod
    def of(cls, session: FleetSession, wanted: str) -> "FleetTable":
        """Return the table of this moment; `wanted` names the fleet's value, "" the first one."""
        view, at_s = session.view, now_s()
        own, shared = _names(view, wanted)
        unit, places = measure_of(view.plan, shared)
        if view.plan is not None and shared is not None:
            own = view.plan.dynamic_folds[shared].source.name
        devices = [view.device(name, own, shared, at_s) for name in view.values.devices]
        value = None if shared is None else view.values.whole(shared)
        shown = (view.topics.fleet, own, shared, value, devices, unit, places)
        return cls(*shown, session.trouble, session.connected, dict(view.values.gateways))

    def lines(self) -> list[str]:
        """Return the table, and the lines above it."""
        head = f"fleet {self.fleet}: "
        here = sum(each.connected for each in self.devices)
        head += f"{len(self.devices)} devices, {here} connected"
        if self.shared and self.value:
            over = self.value.get("devices")
            head += f"; {self.shared}: {self.text(self.value)}"
            head += f" over {over}" if over is not None else ""
        lines = [head]
        if self.trouble:
            lines.append(self.trouble if self.connected else f"NO CONNECTION: {self.trouble}")
        if not self.devices:
            return [*lines, "no device was heard in this fleet; is its name right? (--fleet)"]
        titles = ("device", "readings", self._title(self.own), f"{self._title(self.shared)}, here")
        table = [(*titles, "agreed", "heard", "alarms"), *map(self._row, self.devices)]
        lines += aligned(table, left=(0, 4, 5, 6))
        lines += gateway_lines(self.gateways)
        if self.shared is None:
            lines.append(
                "No values: name the program (lasp-edge watch MODULE:PROGRAM ...), or start agents"
                " with --results 60"
            )
        return lines

    def _title(self, name: str | None) -> str:
        return "value" if name is None else name

    def _row(self, each: DeviceView) -> tuple[str, ...]:
        readings = UNKNOWN if each.readings is None else f"{each.readings:,}"
        heard = UNKNOWN if each.silent_s is None else f"{ago(each.silent_s)} ago"
        values = (self.text(each.own), self.text(each.fleet))
        alarms = named([" ".join(alarm.split())[:LONGEST_ALARM] for alarm in each.alarms])
        return (each.device, readings, *values, self.agreed(each), heard, alarms)

    def agreed(self, each: DeviceView) -> str:
        """Return in words whether a device holds the same state as the others."""
        if not each.connected:
            return "away"
        alone = sum(other.connected for other in self.devices) == 1
        newest = "alone" if alone else "yes" if self._all_agree() else "newest"
        return lag(each.behind_s, newest)

    def _all_agree(self) -> bool:
        return all(each.behind_s == 0 for each in self.devices if each.connected)

    def text(self, value: Plain | None) -> str:
        """Return a value for people."""
        return in_text(value, self.unit, self.places)

    def as_json(self) -> str:
        """Return the whole table on one line."""
        plain = self._asdict() | {"devices": [each._asdict() for each in self.devices]}
        del plain["places"]
        return json.dumps(plain, ensure_ascii=False)


def measure_of(plan: Plan | None, shared: str | None) -> tuple[str, int]:
    """Return the unit of a fleet's value, and how many decimals are shown."""
    if plan is None or shared is None:
        return "", 2
    fold = plan.dynamic_folds.get(shared)
    if fold is None:  # a device of another program has it
        return "", 2
    return measured(plan, fold).unit, decimals(fold.resolution)


def in_text(value: Plain | None, unit: str, places: int) -> str:
    """Return a value for people.

    >>> in_text({"parts": {"min": 3.5, "max": 4.0}}, "°C", 1)
    'minimum 3.5 °C, maximum 4.0 °C'
    """
    if value is None:
        return UNKNOWN
    if "keys" in value:
        return f"{len(value['keys'])} keys"
    parts: dict[str, Any] = value["parts"]
    texts = [number(part, places) for part in parts.values()]
    texts = [text if text == UNKNOWN else f"{text} {unit}".strip() for text in texts]
    if len(parts) == 1:
        return texts[0]
    return ", ".join(f"{in_words(part)} {text}" for part, text in zip(parts, texts, strict=True))


def _names(view: FleetView, wanted: str) -> tuple[str | None, str | None]:
    """Return the names of the devices' own value and of the fleet's that are shown.

    Raises:
        UsageError: there is no such value.
    """
    values, plan = view.values, view.plan
    of_fleet = [name for name in values.names if values.is_of_fleet(name)]
    own = next((name for name in values.names if name not in of_fleet), None)
    if wanted:
        if plan is not None and wanted not in plan.dynamic_folds:
            raise UsageError(f"--value: there are {named(sorted(plan.dynamic_folds))}")
        return own, wanted
    if plan is not None and plan.dynamic_folds:
        return own, next(iter(plan.dynamic_folds))
    return own, next(iter(of_fleet), None)
