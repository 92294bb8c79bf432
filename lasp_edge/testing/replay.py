"""Readings or a recording through a fleet of real cores on virtual time, in the user's units."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from lasp_edge.checking.whole import fleet_entry
from lasp_edge.errors import EnvironmentLacks
from lasp_edge.event import key_text
from lasp_edge.folds.numbers import Refused
from lasp_edge.language.acting import FoldValue
from lasp_edge.language.plan import Plan
from lasp_edge.language.program import Program
from lasp_edge.testing.parameters import GivenParameters, days_us, given_time_us, settings_of

GivenReading = Sequence[Any]
"""Device, event, value and time, and the tags if it has any."""

CheckedReading = tuple[str, str, Any, int, Mapping[str, str]]
"""The same, with its time in microseconds."""


class ReplayedRows(list[dict[str, Any]]):
    """Rows with their columns by name: times are datetimes in UTC, numbers in their units.

    >>> rows = ReplayedRows([{"key": "attic", "mean": 21.5}, {"key": "cellar", "mean": 12.0}])
    >>> [row["key"] for row in rows if row["mean"] > 20]
    ['attic']
    >>> rows.to_pandas().set_index("key")["mean"].max()  # doctest: +SKIP
    21.5
    """

    def to_pandas(self) -> Any:
        """Return them as a DataFrame of pandas.

        Raises:
            EnvironmentLacks: pandas is not installed.
        """
        try:
            import pandas as pd  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415
        except ImportError:
            raise EnvironmentLacks("pandas is not installed", "pip install pandas") from None
        return pd.DataFrame(self)


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """What a fleet made of readings, once it was at rest and time had passed.

    >>> from crdts import Counter
    >>> from lasp_edge import Program, folds
    >>> from lasp_edge.testing import replay
    >>> program = Program("doors")
    >>> door = program.event("door", resolution="1")
    >>> opened = program.declare(Counter(), "opened")
    >>> @program.on_event(door)
    ... def counted(event, update):
    ...     update(opened, Counter.increment)
    >>> hour = program.window("hour", source=door, fold=folds.count(), size_s=3_600)
    >>> given = [("hall", "door", 1, 1_764_028_800), ("attic", "door", 1, 1_764_028_801)]
    >>> found = replay(program, given)
    >>> found.variable("opened"), found.window("hour")[0]["count"], found.failures
    (2, 2, [])

    Attributes:
        windows: name -> its rows, by key and start.
        results: name -> its rows, by device and time.
        values: fold over all devices -> key -> its value; without keys the one key is "".
        alerts: a row for each alert that a device has published, with the value of its last turn.
        variables: shared variable, or set that is derived from some -> its value in the end.
        failures: what functions of the program raised, and why readings were refused, and how many;
            and how many retractions take back a reading that never came.
        compared: how much of it was compared with a plain recomputation, and what was not.
    """

    windows: Mapping[str, ReplayedRows]
    results: Mapping[str, ReplayedRows]
    values: Mapping[str, Mapping[str, FoldValue]]
    alerts: ReplayedRows
    variables: Mapping[str, Any]
    failures: list[str]
    compared: list[str]

    def window(self, name: str) -> ReplayedRows:
        """Return the rows of a window over the whole fleet."""
        return _named(self.windows, "window", name)

    def result(self, name: str) -> ReplayedRows:
        """Return the rows of a result.

        >>> from lasp_edge import Program, scans
        >>> from lasp_edge.testing import replay
        >>> program = Program("water")
        >>> litres = program.event("litres", resolution="1")
        >>> used = program.scan("used", source=litres, scan=scans.differences(), per_device=True)
        >>> rows = program.result(used)
        >>> given = [("pi-1", "litres", value, at) for at, value in enumerate([100, 130, 180])]
        >>> [row["difference"] for row in replay(program, given).result("used")]
        [30, 50]
        """
        return _named(self.results, "result", name)

    def value(self, name: str, key: str | tuple[str | int, ...] = "") -> FoldValue:
        """Return the value of a key of a fold over all devices.

        >>> from lasp_edge.examples.greenhouse import program
        >>> from lasp_edge.testing import replay
        >>> given = [("pi-1", "temperature", 21.5, 1_764_028_800, {"room": "attic"})]
        >>> replay(program, given).value("global_average").number
        21.5
        """
        key = key_text(key) if isinstance(key, tuple) else key
        return _named(_named(self.values, "value", name), f"key of {name}", key)

    def variable(self, name: str) -> Any:
        """Return the value of a shared variable in the end, on which all devices agree.

        It is what `value` of its CRDT gives: a frozenset for a set, a number for a counter.
        """
        return _named(self.variables, "variable", name)


Named = TypeVar("Named")


def _named(several: Mapping[str, Named], what: str, name: str) -> Named:
    if name not in several:
        raise KeyError(f"there is no {what} {name!r}; there are {', '.join(several) or 'none'}")
    return several[name]


def replay(
    program: Program,
    readings: Iterable[GivenReading] | str | Path,
    *,
    faults: str | Iterable[str] = (),
    seed: int = 0,
    parameters: GivenParameters = MappingProxyType({}),
    retain_days: float = 7,
    **options: Any,
) -> ReplayOutcome:
    """Run readings through a fleet, and return what it made of them.

    The fleet has the devices that the readings name. Each takes its readings in the order in which
    they are given, while faults befall. Then the faults end, and time passes until nothing is left
    that it alone brings, such as the end of a session.

    >>> from lasp_edge.examples.greenhouse import program
    >>> found = replay(program, [
    ...     ("kitchen", "temperature", 21.0, 1_764_028_800, {"room": "kitchen"}),
    ...     ("attic", "temperature", 23.0, 1_764_028_801, {"room": "attic"}),
    ... ], faults="rough")
    >>> found.value("global_average").number
    22.0
    >>> row = found.window("temperature_by_room")[0]
    >>> row["key"], row["mean"], row["devices_in"], row["status"]
    ('attic', 23.0, 1, 'final')

    Args:
        program: the program.
        readings: each a device, an event, a value, a time (a datetime with its zone, or seconds
            since the epoch) and, where it has any, tags as a mapping of texts; or the name of a
            file of JSON lines or CSV. The devices' clocks are a second after the newest reading, so
            none is refused as ahead of the clock; an agent's clock is today's, and it refuses what
            is ahead of that. Times of 1970 are readings as all others, but in a file: a number
            there that means a time before 1980 is refused, as agents do.
        faults: none; "rough"; or rates as of `lasp-edge simulate`, as in `["kill=60"]`.
        seed: of everything that is drawn.
        parameters: name -> its value in place of the default, as `{"alarm_above": 30}`; or
            name -> time -> the value from then on; for one device the name is
            `("offset", "cellar")`.
        retain_days: a device refuses a reading that is older by more days than one that it has
            read before, as `lasp-edge agent --retain-days` does; `failures` has how many.
        options: how a file is read: those of `lasp-edge agent`, with _ for - in their names, as
            `time="ts"`, `device_field="device"`, `event={"litres": "l"}`, `retract="wrong"`.

    Raises:
        ValueError: there is no reading, or an argument is not what is needed; or no such event or
            parameter, or the parameter cannot have that value.
        AssertionError: a result is not what a plain recomputation gives.
    """
    run, plan = fleet_entry("replay").load(), program.plan()
    if isinstance(readings, str | Path):
        given: Any = Path(readings)
    else:
        given = [_checked(plan, number, each) for number, each in enumerate(readings)]
        if options:
            raise ValueError(f"{', '.join(options)}: options are for a file of readings")
    settings = list(settings_of(parameters))
    retain_us = days_us(retain_days)
    found: ReplayOutcome = run(plan, given, faults, seed, options, settings, retain_us)
    refused = {} if isinstance(given, Path) else _refused(plan, given)
    return replace(found, failures=[_with_value(each, refused) for each in found.failures])


def _refused(plan: Plan, given: Iterable[CheckedReading]) -> dict[str, str]:
    """Return why readings are refused for their value, as agents count it, with the first value."""
    found = dict[str, str]()
    for number, (_, name, value, *_) in enumerate(given):
        event, reason = plan.events[name], ""
        if event.text:
            reason = "" if isinstance(value, str) else "not a text"
        else:
            try:
                event.scale.quantise(value)
            except Refused as error:
                reason = str(error)
            except Exception:  # noqa: BLE001, S112 - what is broken the agent's own line says
                continue
        if reason:
            found.setdefault(f"refused: {name}: {reason}", f"{value!r} of reading {number}")
    return found


def _with_value(failure: str, refused: Mapping[str, str]) -> str:
    """Return a failure with a value that was refused, if it is about one."""
    what, bracket, count = failure.partition(" (readings: ")
    first = refused.get(what)
    return f"{what}, such as {first}{bracket}{count}" if first else failure


def _checked(plan: Plan, number: int, reading: GivenReading) -> CheckedReading:
    """Return a reading with its time in microseconds and its tags."""
    try:
        device, event, value, time, *tags = reading
        named = dict(tags[0]) if tags else {}
    except (TypeError, ValueError):
        raise ValueError(
            f"reading {number}: a device, an event, a value, a time and perhaps tags are needed, "
            f"such as ('kitchen', 'temperature', 21.5, 1764028800, {{'room': 'attic'}}), "
            f"not {reading!r}"
        ) from None
    if event not in list(plan.events):
        known = ", ".join(plan.events)
        raise ValueError(f"reading {number}: there is no event {event!r}; there are {known}")
    if not all(type(each) is str for tag in named.items() for each in tag):
        texts = {str(name): str(text) for name, text in named.items()}
        raise ValueError(f"reading {number}: tags are texts, such as {texts!r}, not {named!r}")
    try:
        return device, event, value, given_time_us(time), named
    except ValueError as error:
        raise ValueError(f"reading {number}: {error}") from None
