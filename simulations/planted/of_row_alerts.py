"""Bugs of alerts on windows and results: they break the law of `simulations.alerted`."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from device_agent.gateway.alerts import FleetAlerts
from lasp_edge.language.acting import Watched
from lasp_edge.protocol.status import REVISED
from lasp_edge.protocol.window_rows import FleetRow
from simulations.planted.bug import planted, replaced

LAW: Final = "row alerts"
"""What these bugs need: a seed of that proof, and no scenario."""
_planted = partial(planted, needs=LAW)


@_planted
def an_alert_on_a_window_is_judged_by_the_row_that_came_last() -> Iterator[None]:
    """An hour of yesterday is revised, and an alert goes on that was over long ago."""

    def watching(self: FleetAlerts, variable: str, _key: str, _at_us: int) -> Iterator[Watched]:
        yield from self._of.get(variable, ())

    with replaced(FleetAlerts, "_watching", watching):
        yield


@_planted
def a_row_that_is_revised_is_not_judged_again() -> Iterator[None]:
    """A late reading takes a window below the level, and its alert stays on for ever."""
    right = FleetAlerts.take

    def take(self: FleetAlerts, rows: Iterable[FleetRow], fold_at: Callable[..., Any]) -> None:
        right(self, [row for row in rows if row.status != REVISED], fold_at)

    with replaced(FleetAlerts, "take", take):
        yield
