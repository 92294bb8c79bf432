"""Alerts on a window, judged once more by the rows that a gateway has made durable.

A gateway may end between any two calls, and its next run finds what its file holds: then each alert
is on where all final rows, as they were committed one turn after the other, have it so.
"""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.window_rows import FleetRow
from lasp_edge.units import SECOND_US
from simulations.world.programs import (
    LONG_ABOVE,
    LONG_HIGH,
    LONG_S,
    TIMED,
    WINDOW_ABOVE,
    WINDOW_BELOW,
    WINDOW_HIGH,
)

ALERTS: Final = (WINDOW_HIGH, LONG_HIGH)


class JudgedWindows:
    """The alerts on one window, by key.

    Attributes:
        on: (alert, key) -> whether it is on, of each key with a final row.
    """

    def __init__(self) -> None:
        self.on: dict[tuple[str, str], bool] = {}
        self._last_us: dict[str, int] = {}
        self._since_us: dict[str, int] = {}

    def copy(self) -> "JudgedWindows":
        """Return another one that knows the same."""
        after = JudgedWindows()
        after.on, after._last_us = dict(self.on), dict(self._last_us)
        after._since_us = dict(self._since_us)
        return after

    def take(self, rows: Iterable[FleetRow]) -> None:
        """Take the rows of a commit."""
        for row in sorted(rows, key=lambda each: each.end_us):
            key, end_us = row.at.key, row.end_us
            if row.at.window != TIMED or row.status == TENTATIVE:
                continue
            if end_us < self._last_us.get(key, end_us):
                continue  # an older one, that is revised
            self._last_us[key] = end_us
            count, total = row.partial
            mean = Fraction(total, count) if row.devices_in and count else Fraction(0)
            was_on = self.on.get((WINDOW_HIGH, key), False)
            self.on[WINDOW_HIGH, key] = mean > (WINDOW_BELOW if was_on else WINDOW_ABOVE)
            if mean <= LONG_ABOVE:
                self._since_us.pop(key, None)
            since_us = self._since_us.setdefault(key, end_us) if mean > LONG_ABOVE else end_us
            self.on[LONG_HIGH, key] = end_us - since_us >= LONG_S * SECOND_US

    def misjudged(self, statuses: Mapping[tuple[str, str], Mapping[str, Any]]) -> Iterator[str]:
        """Yield the alerts of a run that are not as its durable rows have them."""
        for at, status in statuses.items():
            if at[0] in ALERTS and (status["state"] == "on") != self.on.get(at, False):
                yield f"alert {at} is {status['state']}, where its rows have it {self.on.get(at)}"
        for at, is_on in self.on.items():
            if is_on and at not in statuses:
                yield f"alert {at} is on, and is not known"
