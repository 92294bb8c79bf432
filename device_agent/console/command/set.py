r"""Change a parameter of a running program, from a time on, on all devices or on one.

Each reading counts with the parameters at its own time, each window has those at its start; so it
does not matter when a device hears of it. The time may lie in the future, or in the past: then the
windows that it touches are made anew. NAME=default takes back what was said for a time.

Devices make windows anew from the readings that they keep, for a week as a rule (--retain-days of
the agent). A time before that is refused: older readings would count no more. --force says it all
the same; so it does for a device that nobody has heard of yet.

  lasp-edge set greenhouse:program alarm_above=30 --from 2026-11-23T06:00Z --broker mqtt://broker
  lasp-edge set greenhouse:program offset=-0.30 --device cellar --from 2026-11-16T00:00Z \
      --until 2026-11-20T12:00Z --broker mqtt://broker
"""

import argparse
import getpass
import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Final

from device_agent.agent.sources.nearest import hint
from device_agent.console.command.fleet import (
    BrokerSession,
    add_fleet_arguments,
    check_device,
    now_us,
    parameter_roster_of,
)
from device_agent.console.command.line import named
from device_agent.console.command.schedule import ask_all, knowledge, known_on
from device_agent.console.parameters.effect import ControlEffect, is_seen_by_readings, misfits
from device_agent.console.parameters.roster import ParameterRoster
from device_agent.console.parameters.saying import Saying, schedule_lines
from lasp_edge.errors import CommandError, Exit, NotFound, UsageError
from lasp_edge.language.declarations import Parameter
from lasp_edge.language.parameters import DEFAULT, need_value, shown
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.commands import MOST_PLACES, CommandFrame, CommandLog
from lasp_edge.protocol.kinds import Subscriber
from lasp_edge.protocol.limits import EARLIEST_PANE_US, LATEST_PANE_US
from lasp_edge.protocol.topics import subscriptions
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.times import read_time, shown_time
from lasp_edge.units import SECOND_US

RISES_US: Final = 3_600 * SECOND_US
"""Microseconds by which a time has to be after the floor of each device: floors rise, and the
command may take a while to be heard."""
_MINUTE_US: Final = 60 * SECOND_US


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_fleet_arguments(parser)
    add = parser.add_argument
    add("setting", metavar="NAME=VALUE", help="the parameter and its value; `default` takes back")
    add("--device", default="", help="on this device alone")
    add("--from", dest="since", metavar="TIME", help="from this time on (default: now)")
    add("--until", metavar="TIME", help="until this time; then it is as it was")
    add("--author", default="", help="who says it (default: the user's name)")
    add("--force", action="store_true", help="even where devices lack the readings to make it anew")
    add("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    roster = parameter_roster_of(arguments)
    plan = load_plan(arguments.program)
    began_us = now_us()  # what holds from then on is made anew nowhere
    saying = _saying(arguments, plan)
    filters = subscriptions(roster.topics, Subscriber.OPERATOR)
    with BrokerSession(arguments, roster, filters) as session:
        session.listen(lambda: not roster.counting)
        ask_all(session, roster)
        session.listen(lambda: bool(roster.awaited))
        before = roster.control.copy()
        floors_us = {
            device: floor_us
            for device, floor_us in roster.floors_us.items()
            if saying.scope in ("", device)
        }
        if not saying.changes(before):
            print(f"{_so_far(saying)}; nothing was changed")  # noqa: T201
            return Exit.FINE
        _check(saying, roster, plan, floors_us, is_forced=arguments.force)

        def command() -> CommandFrame:
            roster.commands |= CommandLog(control=saying.delta(roster.control))
            return roster.command((saying.parameter.name, saying.scope))

        session.publish(command)
        ask_all(session, roster)
        session.listen(lambda: any(map(roster.is_online, roster.missing)))
    effect = ControlEffect.of(plan, before, roster.control, floors_us, now_us())
    if arguments.json:
        print(json.dumps(_as_json(saying, roster, effect, floors_us)))  # noqa: T201
        return Exit.FINE
    for line in schedule_lines(saying.parameter, roster.control):
        print(line)  # noqa: T201
    for line in _in_words(saying, roster, effect, floors_us, began_us):
        print(line)  # noqa: T201
    return Exit.FINE


def _saying(arguments: argparse.Namespace, plan: Plan) -> Saying:
    """Return what is to be said.

    Raises:
        UsageError: it cannot be said of this program.
    """
    parameter, value = _setting(arguments.setting, plan)
    scope = check_device(arguments.device) if arguments.device else ""
    if scope and not is_seen_by_readings(plan, parameter):
        raise UsageError(
            f"{parameter.name} is one for the whole fleet, as a size, slide, fold or bound is; "
            "leave out --device"
        )
    until_us = None if arguments.until is None else _time("--until", arguments.until)
    if arguments.since is not None:
        from_us = _time("--from", arguments.since)
    elif value is None:
        raise UsageError(
            f"{parameter.name}={DEFAULT} takes back what was said for a time: add --from and that "
            "time, which `lasp-edge schedule` prints"
        )
    else:
        from_us = -(-now_us() // SECOND_US) * SECOND_US
    if until_us is not None and value is None:
        raise UsageError(f"--until: a value is needed that holds until then, not {DEFAULT}")
    if until_us is not None and until_us <= from_us:
        raise UsageError(
            f"--until: a time after {shown_time(from_us)} UTC is needed, not {arguments.until}"
        )
    return Saying(parameter, scope, value, from_us, until_us, arguments.author or _user())


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
        time_us = read_time(text)
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
    saying: Saying,
    roster: ParameterRoster,
    plan: Plan,
    floors_us: dict[str, int],
    *,
    is_forced: bool,
) -> None:
    """Refuse what would surprise.

    Raises:
        NotFound: the device was never heard.
        UsageError: there is nothing to take back, or a window cannot have this value.
        CommandError: devices lack the readings for it.
    """
    log, name = roster.control, saying.parameter.name
    if saying.scope and saying.scope not in roster.devices and not is_forced:
        raise NotFound(
            f"{saying.scope!r} sent nothing in this fleet; add --force to say it all the same; "
            f"{hint(saying.scope, roster.devices)}"
        )
    after = log | saying.delta(log)
    if len(after.of(name, saying.scope).entries) > MOST_PLACES:
        raise UsageError(f"{name}: at most {MOST_PLACES} places can be told")
    misfit = next(misfits(plan, log, after), None)
    if misfit is not None:
        raise UsageError(f"{misfit}; nothing was changed")
    lacking = {d: at for d, at in floors_us.items() if saying.from_us < at + RISES_US}
    if lacking and not is_forced:
        raise CommandError(_too_early(saying, lacking))


def _too_early(saying: Saying, lacking: dict[str, int]) -> str:
    floor_us = max(lacking.values())
    first_us = -(-(floor_us + RISES_US) // _MINUTE_US) * _MINUTE_US
    who = named(sorted(lacking, key=lambda device: (-lacking[device], device)))
    typed = shown_time(first_us).replace(" ", "T").removesuffix(":00")
    near = "is before that" if saying.from_us < floor_us else "is less than an hour after that"
    return (
        f"{who} can make nothing anew from before {shown_time(floor_us).partition('.')[0]} UTC, "
        f"and {shown_time(saying.from_us)} UTC {near}; type --from {typed}Z or later, or --force, "
        "so that older readings count no more"
    )


def _so_far(saying: Saying) -> str:
    whose = f" of {saying.scope}" if saying.scope else ""
    since = f"from {shown_time(saying.from_us)} UTC on"
    if saying.value is None:
        return f"{saying.parameter.name}{whose}: nothing was said {since}"
    return (
        f"{saying.parameter.name}{whose}: {shown(saying.parameter, saying.value)} {since} already"
    )


def _in_words(
    saying: Saying,
    roster: ParameterRoster,
    effect: ControlEffect,
    floors_us: dict[str, int],
    began_us: int,
) -> Iterator[str]:
    """Yield what follows from it, and who knows it."""
    if effect.panes:
        whose = named(sorted(effect.panes))
        makes = "makes" if len(effect.panes) == 1 else "make"
        panes, windows = sum(effect.panes.values()), sum(effect.windows.values())
        revised = f"; up to {windows:,} windows will be revised" if windows else ""
        yield f"{whose} {makes} up to {panes:,} panes anew{revised}."
    for device, floor_us in _lacking(saying, effect, floors_us).items():
        since = shown_time(floor_us).partition(".")[0]
        yield f"{device}: what it read before {since} UTC counts no more in the windows touched."
    unheard = _unheard(saying, roster, floors_us)
    if unheard and saying.from_us < began_us:
        yield f"Not heard, so how far back they have their readings is not known: {named(unheard)}."
    yield known_on(roster)


def _lacking(saying: Saying, effect: ControlEffect, floors_us: dict[str, int]) -> dict[str, int]:
    """Return device -> floor, of those that cannot make anew all that is touched."""
    return {
        device: floor_us
        for device, floor_us in sorted(floors_us.items())
        if device in effect.panes and saying.from_us < floor_us
    }


def _unheard(saying: Saying, roster: ParameterRoster, floors_us: dict[str, int]) -> list[str]:
    concerned = [saying.scope] if saying.scope else roster.counting
    return [device for device in concerned if device not in floors_us]


def _as_json(
    saying: Saying,
    roster: ParameterRoster,
    effect: ControlEffect,
    floors_us: dict[str, int],
) -> dict[str, object]:
    lacking = _lacking(saying, effect, floors_us)
    return {
        "parameter": saying.parameter.name,
        "device": saying.scope or None,
        "value": saying.value,
        "from": shown_time(saying.from_us),
        "until": None if saying.until_us is None else shown_time(saying.until_us),
        "schedule": list(schedule_lines(saying.parameter, roster.control)),
        "panes": effect.panes,
        "windows": effect.windows,
        "readings_only_since": {device: shown_time(at) for device, at in lacking.items()},
        "not_heard": _unheard(saying, roster, floors_us),
        **knowledge(roster),
    }


def _user() -> str:
    with suppress(Exception):  # in a container there may be no user of that number
        return getpass.getuser()
    return "operator"
