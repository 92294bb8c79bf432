r"""Change a parameter of a running program from a time on, on all devices or on one.

Each reading counts with the parameters at its own time, each window has those at its start; so it
does not matter when a device receives it. The time may lie in the future, or in the past: then the
windows that it touches are rebuilt. NAME=default removes the entry of one time.

Devices rebuild windows from the readings that they keep, for a week as a rule (--retain-days of the
agent). A time before that is refused: older readings would no longer count. --force sets it all the
same; so it does for a device that sent nothing yet.

  lasp-edge set greenhouse:program alarm_above=30 --from 2026-11-23T06:00Z --broker mqtt://broker
  lasp-edge set greenhouse:program offset=-0.30 --device cellar --from 2026-11-16T00:00Z \
      --until 2026-11-20T12:00Z --broker mqtt://broker
"""

import argparse
import getpass
import json
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import datetime
from statistics import median_low
from typing import Final, NamedTuple

from device_agent.agent.sources.nearest import hint
from device_agent.console.command.line import named
from device_agent.console.command.schedule import ask_all, knowledge, known_on
from device_agent.console.command.session import (
    FleetSession,
    add_listening_arguments,
    check_device,
    now_us,
    parameter_view,
)
from device_agent.console.parameters.change import ParameterChange, schedule_lines
from device_agent.console.parameters.effect import ControlEffect, is_of_devices, misfits
from device_agent.console.view.devices import KnownDevices
from device_agent.console.view.fleet_view import FleetView
from device_agent.gateway.line import clocks_apart
from lasp_edge.errors import CommandError, Exit, NotFound, UsageError
from lasp_edge.language.declarations import Parameter
from lasp_edge.language.parameters import DEFAULT, need_value, shown
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.commands import MOST_PLACES, CommandFrame, CommandLog
from lasp_edge.protocol.frontier import CLOCKS_DIFFER_US
from lasp_edge.protocol.kinds import Subscriber
from lasp_edge.protocol.limits import EARLIEST_PANE_US, LATEST_PANE_US
from lasp_edge.protocol.topics import subscriptions
from lasp_edge.tool.times import shown_time, typed_time
from lasp_edge.units import SECOND_US

SECTION = "a fleet"
RISES_US: Final = 3_600 * SECOND_US
"""Microseconds by which a time has to be after the floor of each device: floors rise, and the
command may take a while to arrive."""
_MINUTE_US: Final = 60 * SECOND_US


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_listening_arguments(parser)
    add = parser.add_argument
    text = "the parameter and its value; `default` removes"
    add("setting", nargs="+", metavar="NAME=VALUE", help=text)
    add("--device", default="", help="on this device alone")
    add("--from", dest="since", metavar="TIME", help="from this time on (default: now)")
    add("--until", metavar="TIME", help="until this time; then it is as it was")
    add("--author", default="", help="who changes it (default: the user's name)")
    add(
        "--force",
        action="store_true",
        help="even where devices lack the readings to rebuild windows",
    )
    add("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    arguments.setting = _typed(arguments.program, arguments.setting)
    view, plan = parameter_view(arguments)
    devices = view.devices
    began_us = now_us()  # a value from then on rebuilds nothing
    change = _change(arguments, plan)
    filters = subscriptions(view.topics, Subscriber.OPERATOR)
    with FleetSession(arguments, view, filters) as session:
        lead_us = _hear(session, devices, is_dated=arguments.since is not None)
        began_us += lead_us
        before = devices.commands.control.copy()
        concerned = [change.scope] if change.scope else devices.counting
        floors_us = {d: at for d, at in devices.floors_us.items() if d in concerned}
        if not change.changes(before):
            print(f"{_so_far(change)}; nothing was changed")  # noqa: T201
            return Exit.FINE
        # What holds from now on rebuilds nothing, so no older reading is needed for it.
        is_sure = arguments.force or change.from_us >= began_us
        _check(change, devices, plan, floors_us, is_forced=arguments.force, is_sure=is_sure)
        session.publish(lambda: _command(change, view))
        ask_all(session, devices)
        session.listen(lambda: any(map(devices.is_online, devices.lacking_entries)))
    effect = ControlEffect.of(plan, before, devices.commands.control, floors_us, now_us() + lead_us)
    outcome = _Outcome(change, devices, effect, floors_us)
    plain = arguments.json
    print(json.dumps(outcome.plain()) if plain else "\n".join(outcome.lines(began_us)))  # noqa: T201
    return Exit.FINE if knowledge(devices)["known"] else Exit.NOT_CONFIRMED


def _hear(session: FleetSession, devices: KnownDevices, *, is_dated: bool) -> int:
    """Wait for beats; return how far the fleet's clock is ahead of this machine's, or 0.

    Args:
        session: hears them.
        devices: of the fleet.
        is_dated: it was typed from when on the value holds.

    Raises:
        CommandError: the value is to hold from now on, and the fleet has another time.
    """
    session.listen(lambda: not devices.counting)
    ask_all(session, devices)
    session.listen(lambda: bool(devices.awaited))
    ahead_us = devices.ahead_us(now_us())
    lead_us = median_low(ahead_us.values() or [0])
    if abs(lead_us) <= CLOCKS_DIFFER_US:
        return 0
    if not is_dated:
        words = clocks_apart(ahead_us)
        raise CommandError(f"{words}; or say from when it holds: --from TIME")
    return lead_us


def _typed(program: str | None, words: list[str]) -> str:
    """Return the setting as NAME=VALUE.

    Raises:
        UsageError: it was typed in another way.
    """
    if program and "=" in program:
        raise UsageError(f"the order is MODULE:PROGRAM NAME=VALUE: {words[0]} {program}")
    is_apart = bool(program) and ":" not in str(program) and "=" not in words[0]
    if len(words) > 1 or is_apart:
        name, *values = [str(program), *words] if is_apart else words
        value = " ".join(values).strip("= ") or "VALUE"
        raise UsageError(f"NAME=VALUE is needed, in one word: {name.rstrip('=')}={value}")
    return words[0]


def _command(change: ParameterChange, view: FleetView) -> CommandFrame:
    """Return the frame that makes a change, whatever else is known by now."""
    delta = change.delta(view.devices.commands.control, now_us() // SECOND_US)
    view.devices.commands |= CommandLog(control=delta)
    return view.commands.about((change.parameter.name, change.scope))


def _change(arguments: argparse.Namespace, plan: Plan) -> ParameterChange:
    """Return the change that was typed.

    Raises:
        UsageError: this program cannot be changed so.
    """
    parameter, value = _setting(arguments.setting, plan)
    scope = check_device(arguments.device) if arguments.device else ""
    if scope and not is_of_devices(plan, parameter):
        raise UsageError(
            f"{parameter.name} is one for the whole fleet, as a size, slide, fold, bound or level "
            "of an alert on a window is; leave out --device"
        )
    until_us = None if arguments.until is None else _time("--until", arguments.until)
    if arguments.since is not None:
        from_us = _time("--from", arguments.since)
    elif value is None:
        raise UsageError(
            f"{parameter.name}={DEFAULT} removes the entry of one time: add --from and that time, "
            "which `lasp-edge schedule` prints"
        )
    else:
        from_us = -(-now_us() // SECOND_US) * SECOND_US
    if until_us is not None and value is None:
        raise UsageError(f"--until: a value is needed that holds until then, not {DEFAULT}")
    if until_us is not None and until_us <= from_us:
        raise UsageError(
            f"--until: a time after {shown_time(from_us)} UTC is needed, not {arguments.until}"
        )
    return ParameterChange(parameter, scope, value, from_us, until_us, arguments.author or _user())


def _setting(text: str, plan: Plan) -> tuple[Parameter, str | None]:
    """Return the parameter, and its value; None where a place is taken back.

    Raises:
        UsageError: the program has no such parameter, or it cannot have that value.
    """
    name, separator, value = text.partition("=")
    parameters = plan.parameters
    if not parameters:
        raise UsageError(f"the program {plan.name!r} has no parameters that can be set")
    if name not in parameters:
        raise UsageError(
            f"the program {plan.name!r} has no parameter {name!r}; {hint(name, sorted(parameters))}"
        )
    parameter = parameters[name]
    if not separator:
        raise UsageError(f"a value is needed, as in {name}={parameter.default}")
    if value == DEFAULT:
        return parameter, None
    try:
        return parameter, need_value(parameter, value)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _time(option: str, text: str) -> int:
    """Return the time that was typed.

    Raises:
        UsageError: it is no time, or does not say its zone.
    """
    try:
        time_us = typed_time(text)
    except ValueError:
        raise UsageError(
            f"{option}: a time such as 2026-11-23T06:00Z is needed, not {text!r}"
        ) from None
    if not EARLIEST_PANE_US <= time_us < LATEST_PANE_US:
        raise UsageError(f"{option}: a time from 1900 to 9999 is needed, not {text!r}")
    with suppress(ValueError):  # microseconds since the epoch have no zone
        local = datetime.fromisoformat(text)
        if not text.isdecimal() and local.tzinfo is None:
            text = local.isoformat()
            zones = f"type {text}Z for UTC, or {text}+01:00 for an hour east of it"
            raise UsageError(f"{option}: a time with its zone is needed; {zones}")
    return time_us


def _check(
    change: ParameterChange,
    devices: KnownDevices,
    plan: Plan,
    floors_us: dict[str, int],
    *,
    is_forced: bool,
    is_sure: bool,
) -> None:
    """Refuse what would surprise; `is_sure`: devices may lack readings of before.

    Raises:
        NotFound: the device sent nothing.
        UsageError: there is nothing to take back, or a window cannot have this value.
        CommandError: devices lack the readings for it.
    """
    log, name = devices.commands.control, change.parameter.name
    if change.scope and change.scope not in devices.names and not is_forced:
        raise NotFound(
            f"{change.scope!r} sent nothing in this fleet; add --force to set it all the same; "
            f"{hint(change.scope, devices.names)}"
        )
    after = log | change.delta(log)
    if len(after.of(name, change.scope).entries) > MOST_PLACES:
        raise UsageError(f"{name}: at most {MOST_PLACES} places fit")
    misfit = next(misfits(plan, log, after), None)
    if misfit is not None:
        raise UsageError(f"{misfit}; nothing was changed")
    lacking = {d: at for d, at in floors_us.items() if change.from_us < at + RISES_US}
    if lacking and not is_sure:
        raise CommandError(_too_early(change, lacking))
    if not floors_us and change.from_us < now_us() - _MINUTE_US and not is_sure:
        raise CommandError(
            f"no device answers, so nobody knows whether the readings since "
            f"{shown_time(change.from_us)} UTC are still there; start an agent, or add --force"
        )


def _too_early(change: ParameterChange, lacking: dict[str, int]) -> str:
    floor_us = max(lacking.values())
    first_us = -(-(floor_us + RISES_US) // _MINUTE_US) * _MINUTE_US
    who = named(sorted(lacking, key=lambda device: (-lacking[device], device)))
    typed = shown_time(first_us).replace(" ", "T").removesuffix(":00")
    near = "is before that" if change.from_us < floor_us else "is less than an hour after that"
    return (
        f"{who} {_verb('have', lacking)} all readings only since "
        f"{shown_time(floor_us).partition('.')[0]} UTC, and {shown_time(change.from_us)} UTC "
        f"{near}; type --from {typed}Z or later, or --force: then older readings no longer count"
    )


def _so_far(change: ParameterChange) -> str:
    whose = f" of {change.scope}" if change.scope else ""
    since = f"from {shown_time(change.from_us)} UTC on"
    if change.value is None:
        return f"{change.parameter.name}{whose}: there is no entry {since}"
    return (
        f"{change.parameter.name}{whose}: {shown(change.parameter, change.value)} {since} already"
    )


def _verb(plural: str, devices: Collection[str]) -> str:
    singular = {"have": "has"}.get(plural, f"{plural}s")
    return singular if len(devices) == 1 else plural


class _Outcome(NamedTuple):
    """A change that was published, and what follows from it."""

    change: ParameterChange
    devices: KnownDevices
    effect: ControlEffect
    floors_us: dict[str, int]

    @property
    def lacking(self) -> dict[str, int]:
        """Device -> floor, of devices that cannot rebuild all that is touched."""
        return {
            device: floor_us
            for device, floor_us in sorted(self.floors_us.items())
            if device in self.effect.panes and self.change.from_us < floor_us
        }

    @property
    def unheard(self) -> list[str]:
        """The devices that are touched, and whose floor is not known."""
        touched = [self.change.scope] if self.change.scope else self.devices.counting
        return [device for device in touched if device not in self.floors_us]

    @property
    def schedule(self) -> list[str]:
        """The parameter's values over time, for people."""
        return list(schedule_lines(self.change.parameter, self.devices.commands.control))

    def lines(self, began_us: int) -> Iterator[str]:
        """Yield the schedule, the effect, and who has received the change, for people."""
        yield from self.schedule
        effect, unheard = self.effect, self.unheard
        if effect.panes:
            whose = named(sorted(effect.panes))
            panes, windows = sum(effect.panes.values()), sum(effect.windows.values())
            revised = f"; up to {windows:,} windows will be revised" if windows else ""
            yield f"{whose} {_verb('rebuild', effect.panes)} up to {panes:,} panes{revised}."
        for device, floor_us in self.lacking.items():
            since = shown_time(floor_us).partition(".")[0]
            yield f"{device}: its readings before {since} UTC no longer count in these windows."
        if unheard and self.change.from_us < began_us:
            unknown = "No beat arrived, so since when they keep readings is not known"
            yield f"{unknown}: {named(unheard)}."
        yield known_on(self.devices)

    def plain(self) -> dict[str, object]:
        """Return all of it as JSON has it."""
        change = self.change
        return {
            "parameter": change.parameter.name,
            "device": change.scope or None,
            "value": change.value,
            "from": shown_time(change.from_us),
            "until": None if change.until_us is None else shown_time(change.until_us),
            "schedule": self.schedule,
            "panes": self.effect.panes,
            "windows": self.effect.windows,
            "readings_only_since": {d: shown_time(at) for d, at in self.lacking.items()},
            "not_heard": self.unheard,
            **knowledge(self.devices),
        }


def _user() -> str:
    with suppress(Exception):  # in a container there may be no user of that number
        return getpass.getuser()
    return "operator"
