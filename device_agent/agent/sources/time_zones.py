"""Times without an offset, in the time zone of whoever wrote them down.

A clock that is set back shows an hour twice. Of the two moments the earlier one is taken, always,
and the log says so once. A clock that is set forward skips an hour: a time within it is refused.

    >>> zone = Zone("Europe/Berlin")
    >>> zone.placed(datetime(2026, 7, 1, 12)).isoformat()
    '2026-07-01T12:00:00+02:00'
    >>> zone.placed(datetime(2026, 3, 29, 2, 30))
    Traceback (most recent call last):
    lasp_edge.folds.numbers.Refused: time that the clocks of Europe/Berlin skip
"""

import logging
from datetime import UTC, datetime, tzinfo

from lasp_edge.folds.numbers import Refused

log = logging.getLogger(__name__)


class Zone:
    """A time zone by its name in the IANA's list, such as Europe/Berlin; UTC is one of them.

    Raises:
        ValueError: there is no such zone on this machine.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._zone = _zone(name)
        self._has_warned = False

    def __repr__(self) -> str:
        return f"Zone({self.name!r})"

    def placed(self, moment: datetime) -> datetime:
        """Return a moment without an offset as one with it.

        Raises:
            Refused: no clock ever showed this time.
        """
        first, second = (moment.replace(tzinfo=self._zone, fold=fold) for fold in (0, 1))
        before, after = first.utcoffset(), second.utcoffset()
        if before == after or before is None or after is None:
            return first
        if before < after:
            raise Refused(f"time that the clocks of {self.name} skip")
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "%s comes twice, as the clocks of %s are set back: the earlier one is taken",
                *(moment.isoformat(" "), self.name),
            )
        return first


def _zone(name: str) -> tzinfo:
    if name.upper() in {"UTC", "Z"}:
        return UTC
    from zoneinfo import ZoneInfo, available_timezones  # noqa: PLC0415 - few agents need it

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        known = available_timezones()
    if not known:
        raise ValueError("--time-zone: this machine has no list of time zones; apt install tzdata")
    from difflib import get_close_matches  # noqa: PLC0415 - only after a mistake

    # EST and the like are hours, not places: none has a summer.
    places = [zone for zone in sorted(known, reverse=True) if "/" in zone]
    cities = {zone.rpartition("/")[2].lower(): zone for zone in places}
    near = get_close_matches(name.rpartition("/")[2].lower(), cities, n=1, cutoff=0.8)
    such = "a place is needed, such as Europe/Berlin (timedatectl list-timezones)"
    which = f'did you mean "{cities[near[0]]}"?' if near else such
    raise ValueError(f"--time-zone: there is no zone {name!r}; {which}")
