"""Times as analysts write them: microseconds since the epoch, or a datetime that knows its zone.

>>> from datetime import UTC, datetime
>>> microseconds(datetime(2025, 1, 1, tzinfo=UTC)), microseconds(5)
(1735689600000000, 5)
>>> read_time("2025-01-01 00:00:00"), read_time("2025-01-01T01:00:00+01:00"), read_time("7")
(1735689600000000, 1735689600000000, 7)
>>> read_time("2025-01-01 00:00:00 UTC")
1735689600000000
>>> shown_time(1735689600000000)
'2025-01-01 00:00:00'
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_YEAR: Final = re.compile(r"[12]\d{3}", re.ASCII)
_MICROSECOND: Final = timedelta(microseconds=1)

Time = int | datetime
"""Microseconds since the epoch, or an aware datetime."""


def microseconds(time: Time) -> int:
    """Return a time in microseconds since the epoch.

    Raises:
        ValueError: it is a datetime that does not say its time zone, or something else.
    """
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise ValueError(f"a datetime with a time zone is needed (tzinfo=UTC), not {time!r}")
        return (time - _EPOCH) // _MICROSECOND
    if isinstance(time, bool) or not isinstance(time, int):
        raise ValueError(f"microseconds since the epoch or a datetime are needed, not {time!r}")
    return time


def read_time(text: str) -> int:
    """Return the time that a person typed, in microseconds since the epoch.

    Args:
        text: ISO 8601, in UTC unless it says otherwise, or microseconds since the epoch.

    Raises:
        ValueError: it is neither.
    """
    if text.lstrip("-").isdecimal():
        return int(text)
    read = datetime.fromisoformat(text.removesuffix(" UTC"))
    return microseconds(read if read.tzinfo else read.replace(tzinfo=UTC))


def typed_time(text: str) -> int:
    """Return the time of an option, in microseconds since the epoch: `read_time`, or a year alone.

    >>> typed_time("2025") == read_time("2025-01-01"), typed_time("1735689600000000")
    (True, 1735689600000000)

    Raises:
        ValueError: it is no time.
    """
    return read_time(f"{text}-01-01" if _YEAR.fullmatch(text) else text)


def shown_time(time_us: int) -> str:
    """Return a time for people, in UTC."""
    shown = _EPOCH + timedelta(microseconds=time_us)
    return shown.isoformat(sep=" ").removesuffix("+00:00")
