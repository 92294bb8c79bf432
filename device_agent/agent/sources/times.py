"""From a record's time to microseconds since the epoch (UTC).

A float of seconds means `round(value * 10**6)` in double arithmetic, half to even: what every
language computes from that text, and what recorded data was labelled with. The exact product of
the double would differ by a microsecond for one reading in five of today's clocks, whose doubles
are a quarter of a microsecond apart. Integers stay exact.

    >>> time_us(1594598424.5023336), time_us(1594598424502), time_us("2020-07-13T00:00:24.5Z")
    (1594598424502334, 1594598424502000, 1594598424500000)
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from device_agent.agent.sources.fields import Field, Record
from device_agent.agent.sources.time_zones import Zone
from lasp_edge.folds.numbers import Refused

Unit = Literal["s", "ms", "us", "iso"]
UNITS: tuple[Unit, ...] = get_args(Unit)

END_US = 253_402_300_800_000_000
"""The first microsecond of the year 10000; times lie in [0, END_US)."""
FIRST_US = 315_532_800_000_000
"""1980 begins. A number that means an earlier time is an uptime, or counts another unit."""
_YEAR_US = 31_556_952_000_000
_PER_UNIT_US = {"s": 1_000_000, "ms": 1_000, "us": 1}
_LEAST_MS, _LEAST_US = 10**11, 10**14  # as seconds the year 5138; as milliseconds as well
_NUMBERS = frozenset((int, float))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"[+-]?(\d+|(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?)", re.ASCII)
# `fromisoformat` takes any character between date and time, and so any long row of digits.
_ISO = re.compile(r"\d{4}-?[\dW]\d-?\d{1,2}([Tt ]\d\d.*)?", re.ASCII)
_LONG_FRACTION = re.compile(r"[.,](\d{6})(\d+)", re.ASCII)
_LONGEST = 64
NO_ZONE = "time without a zone: add --time-zone, such as Europe/Berlin or UTC"
"""Why a local time is refused: nobody knows whose it is."""
NOT_UNDERSTOOD = "time not understood: 2026-11-22T18:00:00+01:00 or 1795366800 is needed"
"""Why a time is refused that is neither ISO 8601 nor a number."""


def number(text: str) -> int | float | None:
    """Return the number that a text is, or None: no `nan`, no `1_000`, no digits of other scripts.

    >>> number("21"), number(" 21.50 "), number("1e3"), number("nan"), number("")
    (21, 21.5, 1000.0, None, None)
    """
    text = text.strip()
    found = _NUMBER.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        return None
    return int(text) if found[2] is None else float(text)


def time_us(
    value: Any, unit: Unit | None = None, zone: Zone | None = None, first_us: int = 0
) -> int:
    """Return a time as microseconds since the epoch.

    Args:
        value: a number, the text of one, or ISO 8601.
        unit: what a number counts. None tells it by its size: seconds below 10**11, milliseconds
            below 10**14, else microseconds; such a text is ISO 8601 if it is no number.
        zone: where a text without an offset was written; None: such a text is refused.
        first_us: a number that means an earlier time is no date of a sensor.

    Raises:
        Refused: this is no time between 1970 and 9999, or nobody knows which.
    """
    if type(value) is str:
        read = None if unit == "iso" else number(value)
        if read is None:
            return _in_range(_iso_us(value, unit, zone), None)
        value = read
    if unit == "iso" or (type(value) is not float and type(value) is not int):
        raise Refused("no time" if value is None else NOT_UNDERSTOOD)
    counted = unit
    if unit is None:
        unit = _unit_of(value)
    # Above this bound `round` may raise, and NaN compares as False.
    found_us = round(value * _PER_UNIT_US[unit]) if -END_US < value < END_US else -1
    if 0 <= found_us < first_us:
        year = 1970 + found_us // _YEAR_US
        raise Refused(f"a time of {year}: is it an uptime, or is --time-unit missing or wrong?")
    return _in_range(found_us, counted)


def column_us(
    records: Sequence[Record | str], field: Field | None, unit: Unit | None, first_us: int
) -> list[int] | None:
    """Return the times of records if all have numbers there that count one unit; else None.

    It is `time_us` of each, without a call for any.

    >>> column_us([{"ts": 1}, {"ts": 2.5}], Field("ts"), None, 0)
    [1000000, 2500000]
    >>> column_us([{"ts": 1}, {"ts": 10**15}], Field("ts"), None, 0)
    """
    if field is None or not records or unit == "iso":
        return None
    name = field.text
    values: list[Any] = [None if isinstance(each, str) else each.get(name) for each in records]
    if not _NUMBERS.issuperset(map(type, values)):
        return None
    if unit is None:
        unit = _unit_of(min(values))
        if unit != _unit_of(max(values)):
            return None
    scale = _PER_UNIT_US[unit]
    try:
        found = [round(value * scale) for value in values]
    except (ValueError, OverflowError):  # not a number, or an infinite one
        return None
    return found if first_us <= min(found) and max(found) < END_US else None


def _unit_of(value: float) -> Unit:
    """Return what a number counts, by its size."""
    return "s" if value < _LEAST_MS else "ms" if value < _LEAST_US else "us"


def _in_range(microseconds: int, unit: Unit | None) -> int:
    if 0 <= microseconds < END_US:
        return microseconds
    raise Refused(f"time out of range{f': is --time-unit {unit} right?' if unit else ''}")


def _iso_us(text: str, unit: Unit | None, zone: Zone | None) -> int:
    text = text.strip()
    if unit not in (None, "iso") or len(text) > _LONGEST or _ISO.fullmatch(text) is None:
        raise Refused(NOT_UNDERSTOOD)
    # `fromisoformat` cuts what is finer than a microsecond; here it is rounded, half to even.
    extra = 0
    fraction = _LONG_FRACTION.search(text)
    if fraction is not None:
        text = text[: fraction.end(1)] + text[fraction.end(2) :]
        extra = round(int(fraction[1]) + float(f"0.{fraction[2]}")) - int(fraction[1])
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(NOT_UNDERSTOOD) from None
    if moment.tzinfo is None:
        if zone is None:
            raise Refused(NO_ZONE)
        moment = zone.placed(moment)
    return (moment - _EPOCH) // timedelta(microseconds=1) + extra
