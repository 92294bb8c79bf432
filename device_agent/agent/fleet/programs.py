"""Devices that run another program or release than this one: they may never agree with it.

A device's program and release are in its retained presence, so they are known while it is away. So
are the units in which it measures. A unit is no part of what may be merged (the numbers of °F join
those of °C), for what is stored must stay as it is: so an alarm names the device and both units.
Nor is the bound of a set: a mean of the last 100 here and of the last 50 there is neither, and an
alarm names both.

>>> mixed_units({"temperature": "°C", "power": "W"}, {"temperature": "°F", "power": "W"})
['temperature in °F, here in °C']
"""

from collections.abc import Mapping
from typing import Any, Final

from crdts import BoundedLWWSet
from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes, Facts
from device_agent.agent.fleet.commands import OperatorCommands
from device_agent.agent.parts import Handler, Part
from lasp_edge.language.meaning import kept_in_words
from lasp_edge.language.plan import Plan
from lasp_edge.language.summary import ProgramSummary
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import MOST_STREAMS, MOST_UNITS, UNIT_BYTES, PresenceFrame
from lasp_edge.protocol.limits import MEMBERS
from lasp_edge.release import RELEASE

NAMED: Final = 3
"""Devices that an alarm names, at most: it counts the rest."""


class Programs(Part):
    """The programs of the other devices.

    Args:
        agent: what all parts share.
        commands: know which devices do not count.
    """

    name = "programs"

    def __init__(self, agent: Agent, commands: OperatorCommands) -> None:
        self._agent = agent
        self._commands = commands
        self._runs = agent.plan.digest, RELEASE
        before = agent.facts.other_programs or {}
        self._others = {device: runs for device, runs in before.items() if runs != self._runs}
        self._states: dict[str, tuple[Mapping[str, str], Mapping[str, str]]] = {}
        self._own_units, self._own_bounds = units_of(agent.plan), bounds_of(agent.plan)
        self._noted = dict(before), agent.facts.mixed or []
        self._summary = ProgramSummary.of(agent.plan).text
        self.is_changed = agent.facts.summary != self._summary

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {PresenceFrame: self._hear}

    def _hear(self, frame: PresenceFrame, _now_us: int) -> None:
        device, runs = frame.about, (frame.program, frame.release)
        if device == self._agent.replica.device or not frame.program or runs == self._runs:
            self._others.pop(device, None)
            self._states.pop(device, None)
        elif device in self._others or len(self._others) < MEMBERS:
            self._others[device], self._states[device] = runs, (frame.units, frame.bounds)

    @property
    def others(self) -> dict[str, tuple[str, str]]:
        """Devices that run something else and count -> (digest of the program, release)."""
        retired = self._commands.retired
        return {name: runs for name, runs in sorted(self._others.items()) if name not in retired}

    @property
    def alarms(self) -> list[str]:
        """Whose numbers mix with those of other units or bounds, a line for each way."""
        found: dict[tuple[str, str], list[str]] = {}
        for device in self.others:
            units, bounds = self._states.get(device, ({}, {}))
            measures, keeps = (
                ", ".join(mixed_units(self._own_units, units)),
                ", ".join(mixed_bounds(self._own_bounds, bounds)),
            )
            if measures or keeps:
                found.setdefault((measures, keeps), []).append(device)
        return [_alarm(devices, *mixed) for mixed, devices in found.items()]

    def take_changes(self) -> Changes | None:
        """Return whose store it is, once."""
        self.is_changed = False
        return Changes(facts=Facts(program=self._agent.plan.name, summary=self._summary))

    def take_notes(self) -> Changes | None:
        self.has_notes = False
        others, mixed = self.others, self.alarms
        if (others, mixed) == self._noted:
            return None
        self._noted = others, mixed
        return Changes(facts=Facts(other_programs=others, mixed=mixed))

    def report(self) -> dict[str, Any]:
        return {"other_programs": other_programs(self.others, self._runs)}


def _alarm(devices: list[str], measures: str, keeps: str) -> str:
    """Return that devices measure or keep something else, for people.

    >>> _alarm(["attic"], "", "the last 5, here the last 9")[:39]
    'attic keeps the last 5, here the last 9'
    >>> _alarm(["a", "b", "c", "d", "e"], "temp in °F, here in °C", "")[:49]
    'a, b, c and 2 more measure temp in °F, here in °C'
    """
    shown, more, one = ", ".join(devices[:NAMED]), len(devices) - NAMED, len(devices) == 1
    names = f"{shown} and {more} more" if more > 0 else shown
    mixed = [f"{verb}{'s' * one} {what}" for verb, what in (("measure", measures), ("keep", keeps))]
    differing = " and ".join(each for each in mixed if not each.endswith(" "))
    return (
        f"{names} {differing}: their values are mixed up; give all devices one program, or retire "
        f"{'that one' if one else 'those'}"
    )


def other_programs(others: Mapping[str, tuple[str, str]], own: tuple[str, str]) -> dict[str, str]:
    """Return device -> program and release in words, of devices whose program is not `own`."""
    return {
        device: f"{'the same' if program == own[0] else 'another'} program "
        f"({program or 'unknown'}), release {release or 'unknown'}"
        for device, (program, release) in others.items()
        if (program, release) != own
    }


def units_of(plan: Plan) -> dict[str, str]:
    """Return event -> unit, of the events that have one, as a presence states them."""
    found = [(name, event.unit) for name, event in sorted(plan.events.items()) if event.unit]
    short = [(name, unit) for name, unit in found if len(unit.encode()) <= UNIT_BYTES]
    return dict(short[:MOST_UNITS])


def bounds_of(plan: Plan) -> dict[str, str]:
    """Return variable -> which samples it keeps, of those whose folds the fleet combines.

    >>> from lasp_edge.examples.greenhouse import program
    >>> bounds_of(program.plan())
    {'samples': 'the last 100'}
    """
    read = {fold.source.source.name for fold in plan.dynamic_folds.values()}
    found = [(name, variable.bottom) for name, variable in sorted(plan.variables.items())]
    kept = [
        (name, kept_in_words(bottom))
        for name, bottom in found
        if name in read and isinstance(bottom, BoundedLWWSet) and not plan.variables[name].bound
    ]
    return dict(kept[:MOST_UNITS])


def streams_of(plan: Plan) -> tuple[int, ...]:
    """Return the streams that a program sends, as a presence states them."""
    found = sorted(each.stream for each in plan.sent_streams)
    return tuple(found) if len(found) <= MOST_STREAMS else ()


def mixed_bounds(own: Mapping[str, str], others: Mapping[str, str]) -> list[str]:
    """Return of which variables a device keeps other samples than this one."""
    return [
        f"{kept} of {name}, here {own[name]}"
        for name, kept in others.items()
        if own.get(name, kept) != kept
    ]


def mixed_units(own: Mapping[str, str], others: Mapping[str, str]) -> list[str]:
    """Return which events a device measures in another unit than this one."""
    return [
        f"{name} in {unit}, here in {own[name]}"
        for name, unit in others.items()
        if own.get(name, unit) != unit
    ]
