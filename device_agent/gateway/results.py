"""A gateway's results for people: the newest row of each window and key, as retained JSON.

What stands on a topic is the newest window that is final (or was revised); under `tentative` in it
stands the newest one that is not, if it starts later. Before the first one is final the tentative
one stands there itself. So who reads `parts` has a number that will hardly change, and who wants to
know earlier has that, too.

    {"parts": {"mean": 21.43}, "count": 60, "total_q": 128580, "start": "2026-11-22T15:02:00Z",
     "end": "2026-11-22T15:03:00Z", "status": "final", "revision": 0, "devices": 10,
     "expected": 10, "except": [], "tentative": {..}}

`devices` have readings of the row's key; `expected` are those of the whole fleet that count.
A tentative one says `waiting_for`, too: the devices that have not sent all that belongs to it,
while others have.

The gateway's own topic has `final_up_to`: all before that time is final. Once all devices have read
their last reading, rows in one order over the fleet are final behind it, too: nothing else comes.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from device_agent.gateway.alerts import FleetAlerts
from device_agent.gateway.failures import count_failure
from device_agent.gateway.shown import GatewayTopics
from device_agent.outputs.announced import Announced, Components, Config
from device_agent.outputs.discovery import BIRTH, SPREAD_US, Discovery
from device_agent.outputs.retained import Content, Retained
from lasp_edge.evaluation.rows import Newest
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.lowered import lowered
from lasp_edge.language.declarations import Window
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.frontier import Coverage
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.topics import OF_GATEWAY, Topics
from lasp_edge.protocol.window_rows import FleetRow
from lasp_edge.release import RELEASE
from lasp_edge.timers import Timer, is_time
from lasp_edge.tool.times import shown_time

MOST_NAMES: Final = 20
"""Devices that are named as missing, and reasons of failures, at most; what is more is in the
table, and in the lines that the gateway prints."""
NONE_FAILED: Final[Mapping[str, int]] = MappingProxyType({})
"""Nothing has failed."""
MOST_TOPICS: Final = 20_000
"""Keys of all windows that are published, at most: some 10 MB here, and as much at the broker."""


FoldAt = Callable[[Window, int], Fold]
"""Gives the fold of a window that starts at a time."""


def _declared(window: Window, _start_us: int) -> Fold:
    return window.fold


class GatewayDiscovery(Discovery):
    """The entities of one gateway; the arguments are those of `Discovery`."""

    kind, model, encoding = OF_GATEWAY, "gateway", ""  # all that a gateway tells is text

    def _availability(self) -> Config:
        return {
            "topic": self._topics.gateway(self._device),
            "value_template": "{{ 'online' if value_json.online else 'offline' }}",
        }

    def windows(self, window: Window, keys: list[str]) -> Components:
        """Return the entities of a window's newest results, of its keys if it has keys."""
        found: Components = {}
        for key in keys if window.keyed else [None]:
            found |= self.value(window, key)
        return found


class Published(NamedTuple):
    """Under which name a gateway publishes results, how often, and for whom.

    Attributes:
        gateway: its name.
        every_us: how often a result is published at most; 0 for never.
        home: the first topic level of Home Assistant; "" for none.
        dashboard_url: of a dashboard of the fleet; "" for none.
    """

    gateway: str
    every_us: int
    home: str = ""
    dashboard_url: str = ""


class FleetResults:
    """A gateway's results for people.

    Args:
        plan: the program.
        topics: of the fleet.
        published: the name, and the options.
        fold_at: gives the fold of a window that starts at a time.
        newest: gives result, key and newest rows of streams over the fleet.
        alerts: on windows and results; None for a program without any.
        shown: the topics that are stored; None where nothing is.

    Attributes:
        failed: how often a fold of the user's own gave no value, by reason.
    """

    def __init__(
        self,
        plan: Plan,
        topics: Topics,
        published: Published,
        fold_at: FoldAt = _declared,
        newest: Callable[[], Iterable[tuple[str, str, Newest]]] = tuple,
        alerts: FleetAlerts | None = None,
        shown: GatewayTopics | None = None,
    ) -> None:
        self._fold_at, self._newest, self._alerts = fold_at, newest, alerts
        self.failed: Counter[str] = Counter()
        self._plan, self._topics, self._gateway = plan, topics, published.gateway
        self._timer = Timer(published.every_us) if published.every_us else None
        self._rows: dict[tuple[str, str], dict[bool, FleetRow]] = {}
        self._shown = shown
        self._retained = Retained(shown.notes, shown.gone) if shown else Retained()
        self._coverage = Coverage(None, (), ())
        self._core_failed: Mapping[str, int] = NONE_FAILED
        self._waiting: Sequence[str] = ()
        gateway, _, home, url = published
        self._birth_topic = f"{home}/status" if home else ""
        self._discovery = GatewayDiscovery(plan, topics, gateway, home, url=url)
        self._announced = Announced(self._discovery.topic(gateway), self._discovery.message)
        self._asked_us: int | None = None

    @property
    def will(self) -> Publication:
        """The message that the broker publishes for a gateway that vanishes."""
        text = json.dumps({"online": False}).encode()
        return Publication(self._topics.gateway(self._gateway), text, retain=True)

    @property
    def subscriptions(self) -> list[str]:
        """The topics on which others tell it something."""
        return [self._birth_topic, self._announced.topic] if self._birth_topic else []

    def hear(self, topic: str, payload: bytes, now_us: int) -> bool:
        """Take a message; return whether it was for the results."""
        if topic not in self.subscriptions:
            return False
        if topic == self._announced.topic:
            self._announced.hear(payload)
        elif payload == BIRTH:
            self._asked_us = now_us
        return True

    def take(
        self,
        rows: Iterable[FleetRow],
        coverage: Coverage,
        core_failed: Mapping[str, int] = NONE_FAILED,
        waiting: Sequence[str] = (),
    ) -> None:
        """Note rows that are durable, how far results are final, what failed, and who is awaited.

        Where a window is no more, an older one is published: the caller gives it again.
        """
        self._coverage, self._core_failed, self._waiting = coverage, core_failed, waiting
        for row in rows:
            window = self._plan.windows.get(row.at.window)
            if window is None or (row.at.key and not window.keyed):
                continue  # of an earlier program
            at = (row.at.window, row.at.key)
            if at not in self._rows and len(self._rows) >= MOST_TOPICS:
                continue
            if not row.devices_in:
                self._leave(row)
                continue
            known = self._rows.setdefault(at, {})
            is_open = row.status == TENTATIVE
            if is_open not in known or known[is_open].at.start_us <= row.at.start_us:
                known[is_open] = row

    def _leave(self, row: FleetRow) -> None:
        """Tell no longer of a window that is no more, or that nobody's readings are in.

        What an earlier run had left on its topic is cleared, too.
        """
        known = self._rows.setdefault((row.at.window, row.at.key), {})
        for is_open in [each for each, shown in known.items() if shown.at == row.at]:
            del known[is_open]

    def connected(self) -> None:
        """Tell everything again on a new connection."""
        self._retained.again()
        if self._timer is not None:
            self._timer.restart()

    def publications(self, now_us: int) -> Iterator[Publication]:
        """Yield the publications that are due; those that are not sent come again."""
        if self._asked_us is not None and is_time(now_us, self._asked_us + SPREAD_US, SPREAD_US):
            self._asked_us = None
            self.connected()
        if self._timer is not None and self._timer.is_due(now_us):
            wanted = list(self._wanted())
            if self._shown is not None:
                self._shown.store(each.topic for each in wanted)
            yield from self._retained.publications(wanted)

    def unsent(self) -> None:
        """Publish what was left over in the next round."""
        if self._timer is not None:
            self._timer.restart()

    def _wanted(self) -> Iterator[Content]:
        text = json.dumps(self._standing(), sort_keys=True)
        yield Content(self._topics.gateway(self._gateway), text, text.encode)
        for (name, key), rows in self._rows.items():
            window = self._plan.windows[name]
            topic = self._topics.result(name, self._gateway, key if window.keyed else None)
            made = (window, rows, self._fold_at, self.failed)
            mark = [(each.at.start_us, each.revision) for each in rows.values()]
            yield Content(topic, tuple(mark), partial(_as_json, *made) if rows else bytes)
        for name, key, newest in self._newest():
            topic = self._topics.result(name, self._gateway, key or None)
            yield Content(topic, newest.mark, newest.as_json)
        if self._alerts is not None:
            yield from self._alerts.contents(self._topics)
        if self._birth_topic:
            yield self._entities()

    @property
    def all_failed(self) -> Counter[str]:
        """How often anything of the program failed in this gateway, by reason."""
        alerts = Counter[str]() if self._alerts is None else self._alerts.failed
        return Counter(self._core_failed) + self.failed + alerts

    def _standing(self) -> dict[str, Any]:
        frontier_us, expected, excluded = self._coverage
        return {
            "online": True,
            "final_up_to": None if frontier_us is None else _moment(frontier_us),
            "devices": len(expected),
            "except": list(excluded[:MOST_NAMES]),
            "waiting": list(self._waiting),
            "failed": dict(self.all_failed.most_common(MOST_NAMES)),
            "program": self._plan.digest,
            "release": RELEASE,
        }

    def _entities(self) -> Content:
        """Return what announces all entities."""
        found = tuple(sorted(at for at, rows in self._rows.items() if rows))
        alerts = () if self._alerts is None else tuple(self._alerts.entities())
        return self._announced.content((found, alerts), partial(self._made, found, alerts))

    def _made(
        self,
        found: Iterable[tuple[str, str]],
        alerts: Iterable[tuple[str, str | None]],
        most_keys: int,
    ) -> Components:
        made, count = Components(), Counter[str]()
        for name, key in alerts:
            count[name] += 1
            if count[name] <= most_keys:
                made |= self._discovery.alert(name, key, of_fleet=False)
        for name, window in self._plan.windows.items():
            keys = [key for of, key in found if of == name]
            made |= self._discovery.windows(window, keys[:most_keys])
        return made


def _as_json(
    window: Window, rows: dict[bool, FleetRow], fold_at: FoldAt, failed: Counter[str]
) -> bytes:
    final, tentative = rows.get(False), rows.get(True)
    if final is None:
        assert tentative is not None
        plain = _plain(window, tentative, fold_at, failed)
    else:
        plain = _plain(window, final, fold_at, failed)
        if tentative is not None and tentative.at.start_us > final.at.start_us:
            plain["tentative"] = _plain(window, tentative, fold_at, failed)
    return json.dumps(plain, sort_keys=True).encode()


def _plain(window: Window, row: FleetRow, fold_at: FoldAt, failed: Counter[str]) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    with count_failure(failed, window.name):
        parts = lowered(fold_at(window, row.at.start_us), row.partial, window.resolution)
    columns = zip(window.fold.columns_named, row.partial, strict=True)
    return {
        "parts": parts,
        **{name: part.hex() if isinstance(part, bytes) else part for name, part in columns},
        "start": _moment(row.at.start_us),
        "end": _moment(row.end_us),
        "status": row.status,
        "revision": row.revision,
        "devices": row.devices_in,
        "expected": row.devices_expected,
        **_missing(row),
    }


def _missing(row: FleetRow) -> dict[str, list[str]]:
    """Return the devices that a row is made without, or that a tentative one waits for."""
    names = list(row.excluded[:MOST_NAMES])
    return {"except": [], "waiting_for": names} if row.status == TENTATIVE else {"except": names}


def _moment(time_us: int) -> str:
    return shown_time(time_us).replace(" ", "T") + "Z"
