"""Levels that operators change: the condition of an alert or handler at a time on a device.

>>> from crdts import BoundedLWWSet, ControlLog
>>> from lasp_edge import Program, folds
>>> program = Program("cellars")
>>> warm = program.event("warm", resolution="0.1")
>>> samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples")
>>> limit = program.parameter("limit", "28", resolution="0.1")
>>> program.alert("too warm", program.fold(samples, folds.max(), "top"), above=limit, below=20)
>>> watched, log = program.plan().alerts["too warm"], ControlLog()
>>> log |= log.set("limit", "", 60_000_000, "30.5", "ann")
>>> print(trigger_at(watched, log, "pi-1", 0), "/", trigger_at(watched, log, "pi-1", 60_000_000))
above 28 below 20 / above 30.5 below 20
>>> [str(trigger) for _, trigger in triggers_of(watched, log, "pi-1")]
['above 28 below 20', 'above 30.5 below 20']
"""

from typing import Any

from crdts import ControlLog
from crdts.control_log import FLEET
from lasp_edge.language.acting import Watched
from lasp_edge.language.declarations import Parameter
from lasp_edge.language.draft import Draft
from lasp_edge.language.parameters import steps_of, value_at
from lasp_edge.language.triggers import Trigger


def declared_levels(
    draft: Draft, what: str, levels: dict[str, Any]
) -> tuple[Trigger, tuple[tuple[str, Any], ...]]:
    """Return the condition of levels with the parameters' defaults; and the levels, if one changes.

    Raises:
        ValueError: they do not fit each other, or one is no parameter of this program.
    """
    for name, level in levels.items():
        if not isinstance(level, Parameter):
            continue
        if name == "for_s" or level.resolution is None:
            raise ValueError(f"{what}: {name} cannot be the parameter {level.name!r}")
        if draft.parameters.get(level.name) != level:
            raise ValueError(f"{what}: {level.name!r} is a parameter of another program")
    given = tuple(levels.items()) if _changes(levels) else ()
    return _trigger(what, levels, lambda each: each.default), given


def trigger_at(watched: Watched, log: ControlLog, device: str, time_us: int) -> Trigger | None:
    """Return the condition of what is watched, as it is on a device at a time.

    Where the parameters do not fit each other it is that of their defaults.
    """
    if not watched.levels:
        return watched.trigger
    try:
        return _entered(watched, log, device, time_us)
    except ValueError:
        return watched.trigger


def triggers_of(watched: Watched, log: ControlLog, device: str) -> list[tuple[int, Trigger | None]]:
    """Return the condition of what is watched on a device, as a step function of time."""
    levels = [level for _, level in watched.levels if isinstance(level, Parameter)]
    marks = {from_us for level in levels for from_us, _ in steps_of(log, level, device)}
    return [(from_us, trigger_at(watched, log, device, from_us)) for from_us in sorted(marks)]


def unfit_levels(watched: Watched, log: ControlLog) -> frozenset[str]:
    """Return why levels do not fit each other, at some time, for the fleet or a device."""
    names = {level.name for _, level in watched.levels if isinstance(level, Parameter)}
    places = [at for at in log.value if at.parameter in names]
    found = set()
    for device in {FLEET, *(at.scope for at in places)}:
        for from_us in {at.from_us for at in places}:
            try:
                _entered(watched, log, device, from_us)
            except ValueError as error:
                found.add(str(error))
    return frozenset(found)


def _entered(watched: Watched, log: ControlLog, device: str, time_us: int) -> Trigger:
    """Return the condition of what is watched by the entries of a log.

    Raises:
        ValueError: its levels do not fit each other.
    """
    scopes = (device,) if device != FLEET else ()
    return _trigger(
        repr(watched.name),
        dict(watched.levels),
        lambda each: value_at(steps_of(log, each, *scopes), time_us),
    )


def _changes(levels: dict[str, Any]) -> bool:
    return any(isinstance(level, Parameter) for level in levels.values())


def _trigger(what: str, levels: dict[str, Any], value: Any) -> Trigger:
    found = {
        name: value(level) if isinstance(level, Parameter) else level
        for name, level in levels.items()
    }
    return Trigger.of(what, **found)
