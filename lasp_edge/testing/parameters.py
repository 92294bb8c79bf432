"""Parameters that a test sets, as `replay` is given them.

>>> given = {"limit": 30.5, ("offset", "cellar"): {1_764_028_800: "-0.3"}}
>>> [tuple(each) for each in settings_of(given)]
[('limit', '', None, '30.5'), ('offset', 'cellar', 1764028800000000, '-0.3')]
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from math import isfinite
from typing import Any, NamedTuple, TypeAlias

from lasp_edge.tool.times import microseconds
from lasp_edge.units import SECOND_US

GivenTime: TypeAlias = float | datetime
"""Seconds since the epoch, or a datetime with its time zone."""
GivenValue: TypeAlias = str | float | Decimal
"""A number or its text, or one of the choices."""
GivenParameters: TypeAlias = Mapping[Any, GivenValue | Mapping[Any, GivenValue]]
"""A name, or (name, device) -> a value, or time -> the value from then on."""
LATEST_S = 253_402_300_800
"""Seconds since the epoch, at most: to the year 9999. A time in milliseconds is more."""
MOST_DAYS = 1_000_000
EXAMPLE = '{"alarm_above": "30"}, or {"alarm_above": {1764028800: "30"}} from that time on'


class ParameterSetting(NamedTuple):
    """A value of a parameter.

    Attributes:
        device: whose; "" for the whole fleet.
        from_us: from when on, in microseconds since the epoch; None: from before all readings.
        value: as text.
    """

    name: str
    device: str
    from_us: int | None
    value: str


def settings_of(parameters: GivenParameters) -> Iterator[ParameterSetting]:
    """Yield each value that is set.

    Raises:
        ValueError: a name, time or value is of no type that is needed.
    """
    if not isinstance(parameters, Mapping):
        raise ValueError(f"parameters={EXAMPLE} is needed, not {parameters!r}")
    for of, given in parameters.items():
        name, device = of if isinstance(of, tuple) and len(of) == 2 else (of, "")  # noqa: PLR2004
        if not isinstance(name, str) or not isinstance(device, str):
            raise ValueError(f"parameters: a name, or (name, device), is needed, not {of!r}")
        if not isinstance(given, Mapping):
            yield ParameterSetting(name, device, None, _text(name, given))
            continue
        for time, value in given.items():
            try:
                from_us = given_time_us(time)
            except ValueError as error:
                raise ValueError(f"parameter {name!r}: {error}") from None
            yield ParameterSetting(name, device, from_us, _text(name, value))


def given_time_us(time: Any) -> int:
    """Return a time in microseconds since the epoch.

    Raises:
        ValueError: it is no time, or does not tell its time zone.
    """
    if isinstance(time, datetime):
        return microseconds(time)
    try:
        seconds = float("nan") if isinstance(time, bool | str) else float(time)
    except (TypeError, ValueError):
        seconds = float("nan")
    if not isfinite(seconds):
        raise ValueError(f"a datetime, or seconds since the epoch, is needed, not {time!r}")
    if abs(seconds) > LATEST_S:
        raise ValueError(
            f"a time in seconds since the epoch is needed, not {time!r}; is it in milliseconds or "
            "microseconds? write time / 1000, or time / 1_000_000"
        )
    time_us: int = round(time * SECOND_US)
    return time_us


def days_us(days: Any) -> int:
    """Return days in microseconds.

    Raises:
        ValueError: they are not a number above 0.
    """
    number = float("nan") if isinstance(days, bool | str) else float(days)
    if not 0 < number <= MOST_DAYS:
        raise ValueError(
            f"retain_days: a number above 0 is needed, {MOST_DAYS:,} at most, not {days!r}"
        )
    return round(number * 86_400 * SECOND_US)


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise ValueError(f"parameter {name!r}: a number or a text is needed, not {value!r}")
    return str(value)
