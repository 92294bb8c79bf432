"""The alerts of a gateway: on windows, and on results of the order over the fleet.

Final rows of each key are looked at one after the other. They come in the order of their times, and
those times are what a condition with `for_s` is judged by: so the same rows give the same alerts,
whenever they come. An older row that is revised changes nothing; the newest one is judged again.

What is remembered is text: of each key whose condition holds whether it has fired, since when, and
by which row. A key that is not in it is off.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any, Final, NamedTuple

from crdts import ControlLog
from crdts.control_log import FLEET
from device_agent.gateway.failures import count_failure
from device_agent.outputs.retained import Content
from lasp_edge.evaluation.conditions import TriggerState
from lasp_edge.evaluation.history import exact_row_part
from lasp_edge.evaluation.rows import Newest
from lasp_edge.folds.exactly import exact_part
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.lowered import lowered
from lasp_edge.language.acting import Watched
from lasp_edge.language.declarations import Window
from lasp_edge.language.levels import trigger_at
from lasp_edge.language.plan import Plan
from lasp_edge.language.raising import fleet_alerts, has_keys
from lasp_edge.language.streaming import StreamRow
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.topics import Topics
from lasp_edge.protocol.window_rows import FleetRow
from lasp_edge.tool.times import shown_time

MOST_KEYS: Final = 20_000
"""Alerts and keys that are watched, at most: as many as windows and keys are published."""
AlertStatus = dict[str, Any]
"""What an alert says, as JSON."""
_AlertKey = tuple[str, str]
"""(alert, key)."""


class _Part(NamedTuple):
    """The part of a final row that an alert watches.

    Attributes:
        at_us: a window's end, or the time of a row of a result.
        exact: its value; None without a reading.
        shown: the same for people.
        devices: how many devices are in it.
    """

    at_us: int
    exact: Fraction | None
    shown: Any
    devices: int


class FleetAlerts:
    """The alerts of one gateway.

    Args:
        plan: of the program.
        gateway: its name.
        control: gives the operators' entries of parameters.
        stored: what is remembered; empty text for nothing.

    Attributes:
        statuses: (alert, key) -> what it says since it turned, of each key that has a final row.
        failed: how often a fold of the user's own gave no value, by reason.
    """

    def __init__(
        self, plan: Plan, gateway: str, control: Callable[[], ControlLog], stored: str = ""
    ) -> None:
        self._plan, self._gateway, self._control = plan, gateway, control
        self._of: dict[str, list[Watched]] = {}
        alerts = fleet_alerts(plan)
        for watched in alerts.values():
            self._of.setdefault(watched.variable, []).append(watched)
        self._states: dict[_AlertKey, TriggerState] = {}
        self._last_us: dict[_AlertKey, int] = {}
        self._holding: set[_AlertKey] = set()
        self.statuses: dict[_AlertKey, AlertStatus] = {}
        self.failed: Counter[str] = Counter()
        remembered = json.loads(stored) if stored else {}
        for name, watched in alerts.items():
            for key, (fired, since_us, last_us) in remembered.get(watched.identity, {}).items():
                self._states[name, key] = TriggerState(fired=fired, since_us=since_us)
                self._last_us[name, key] = last_us
                self._holding.add((name, key))

    def remembered(self) -> str:
        """Return what has to be stored, as text; equal texts where nothing differs."""
        found: dict[str, dict[str, Any]] = {}
        for name, key in sorted(self._holding):
            state = self._states[name, key]
            of_alert = found.setdefault(self._plan.alerts[name].identity, {})
            of_alert[key] = [state.fired, state.since_us, self._last_us[name, key]]
        return json.dumps(found, sort_keys=True) if found else ""

    def take(self, rows: Iterable[FleetRow], fold_at: Callable[[Window, int], Fold]) -> None:
        """Look at rows of windows, new ones and revised ones.

        Args:
            rows: those of a turn.
            fold_at: gives the fold of a window that starts at a time.
        """
        for row in sorted(rows, key=lambda each: each.end_us):
            if row.status == TENTATIVE or row.at.window not in self._plan.windows:
                continue
            window = self._plan.windows[row.at.window]
            for watched in self._watching(window.name, row.at.key, row.end_us):
                with count_failure(self.failed, f"alert {watched.name}"):
                    given = (fold_at(window, row.at.start_us), row.partial, window.resolution)
                    exact = exact_part(*given, watched.part) if row.devices_in else None
                    shown = lowered(*given).get(watched.part)
                    self._judge(
                        watched, row.at.key, _Part(row.end_us, exact, shown, row.devices_in)
                    )

    def take_results(
        self, final: Iterable[StreamRow], newest: Iterable[tuple[str, str, Newest]]
    ) -> None:
        """Look at rows of results over the fleet.

        Args:
            final: those that became final in a turn, in their order.
            newest: the newest of each key, which a restarted process looks at first.
        """
        last = [each.shown_final for name, _, each in newest if name in self._of]
        for row in [*final, *filter(None, last)]:
            result = self._plan.stream_results[row.name]
            for watched in self._watching(row.name, row.key, row.time_us):
                exact = exact_row_part(result, row, watched.part)
                part = _Part(row.time_us, exact, row.parts[watched.part], 0)
                self._judge(watched, row.key, part)

    def _watching(self, variable: str, key: str, at_us: int) -> Iterator[Watched]:
        """Yield the alerts that watch a key, and that have not seen a later row of it.

        Rows with keys of an earlier program do not count where there are no keys any more.
        """
        if key and not self.is_keyed(variable):
            return
        for watched in self._of.get(variable, ()):
            at = (watched.name, key)
            is_room = at in self._states or len(self._states) < MOST_KEYS
            if is_room and at_us >= self._last_us.get(at, at_us):
                yield watched

    def _judge(self, watched: Watched, key: str, part: _Part) -> None:
        at = (watched.name, key)
        state = self._states.setdefault(at, TriggerState())
        trigger = trigger_at(watched, self._control(), FLEET, part.at_us)
        assert trigger is not None, "an alert has a condition"
        turned = state.step(trigger, part.exact, part.at_us)
        self._last_us[at] = part.at_us
        if state.fired or state.since_us is not None:
            self._holding.add(at)
        else:
            self._holding.discard(at)
        if at in self.statuses and not turned:
            return
        since_us = state.since_us if state.fired else part.at_us if turned else None
        self.statuses[at] = {
            "alert": watched.name,
            "device": self._gateway,
            **({"key": key} if self.is_keyed(watched.variable) else {}),
            "state": "on" if state.fired else "off",
            "fold": watched.variable,
            "part": watched.part,
            "value": part.shown,
            **trigger.levels,
            "since": None if since_us is None else _moment(since_us),
            "settled": True,
            "devices": part.devices,
        }

    def is_keyed(self, variable: str) -> bool:
        """Return whether rows of a window or result have keys."""
        window = self._plan.windows.get(variable)
        return window.keyed if window is not None else has_keys(self._plan, variable)

    def entities(self) -> Iterator[tuple[str, str | None]]:
        """Yield alert and key of each status; None where there are no keys."""
        for name, key in sorted(self.statuses):
            yield name, key if self.is_keyed(self._plan.alerts[name].variable) else None

    def contents(self, topics: Topics) -> Iterator[Content]:
        """Yield what the topics of alerts are to hold."""
        for name, key in self.entities():
            text = json.dumps(self.statuses[name, key or ""], sort_keys=True)
            yield Content(topics.alert(name, self._gateway, key), text, text.encode)

    def words(self) -> list[str]:
        """Return the alerts that are on, each in words."""
        return [
            f"ALERT: {name}{f' ({key})' if key else ''}, {status['part']} was {status['value']:.6g}"
            for (name, key), status in sorted(self.statuses.items())
            if status["state"] == "on" and status["value"] is not None
        ]


def _moment(time_us: int) -> str:
    return shown_time(time_us).replace(" ", "T") + "Z"
