"""A fleet as an onlooker sees it at the broker: what each device holds, and how far it is behind.

Values come from the topics of results, where devices publish them, and else from the devices' own
entries, if the program is known. How far a device is behind is read off what devices report that
they hold: reports are numbered in the order in which they were first seen, and a device that still
reports an earlier one is behind since the next one was seen. The module is pure: messages and
times, in seconds of any clock, go in.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from crdts import OwnedMap
from device_agent.console.view.heard_alerts import HeardAlerts
from device_agent.console.view.heard_windows import HeardWindows
from device_agent.console.view.roster import Roster
from device_agent.console.view.told import Plain, result_told
from device_agent.console.view.told_results import ToldResults
from lasp_edge.aggregates.fleet import FleetFold, OutOfRangeError
from lasp_edge.errors import pass_interrupt
from lasp_edge.folds.lowered import lowered
from lasp_edge.language.declarations import DynamicFold, LocalFold
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.frames import BeatFrame, VariableFrame
from lasp_edge.protocol.inputs import inputs_digest
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.topics import ResultAddress, Topics
from lasp_edge.tool.lagging import Order


class DeviceView(NamedTuple):
    """A device, as the onlooker sees it.

    Attributes:
        device: its name.
        connected: as its presence says.
        readings: how many it accepted; None where it does not tell.
        own: its own value, by part; by key if it has keys.
        fleet: the fleet's value as it sees it.
        behind_s: seconds since another device held what this one did not; 0 for none; None where
            it told nothing yet.
        heard_s: seconds since it was last heard; None where the broker only kept what it said.
        alarms: what somebody should look at.
        refused: how many readings it refused; None where it does not tell.
        refused_because: those since its start, by reason.
        sent_bytes: what it sent since its start; None where it does not tell.
    """

    device: str
    connected: bool
    readings: int | None
    own: Plain | None
    fleet: Plain | None
    behind_s: float | None
    heard_s: float | None
    alarms: tuple[str, ...]
    refused: int | None
    refused_because: Mapping[str, int]
    sent_bytes: int | None


class Onlooker:
    """What is known of a fleet from its messages.

    Args:
        topics: of the fleet.
        nonce: 32 random bits of this command's process.
        plan: the fleet's program, where it is known.

    Attributes:
        roster: the devices.
        alerts: what their alerts say.
        windows: what gateways tell of the fleet's windows.
    """

    def __init__(self, topics: Topics, nonce: int, plan: Plan | None = None) -> None:
        self.roster = Roster(topics, nonce)
        self.alerts = HeardAlerts(topics)
        self.windows = HeardWindows()
        self._topics = topics
        self._plan = plan
        self._folds = {
            name: FleetFold(fold.fold, keyed=fold.keyed)
            for name, fold in (plan.published_folds.items() if plan else ())
        }
        self._results = ToldResults()
        self._made_since: dict[str, dict[str, Plain]] = {}  # since the last message
        self._heard_s: dict[str, float] = {}
        self._orders: dict[str, Order] = {}

    def hear(self, topic: str, payload: bytes, now_s: float, *, kept: bool = False) -> None:
        """Take a message; `kept`: the broker had retained it."""
        self._made_since.clear()
        with suppress(Exception):  # no message may end a command
            if self._topics.is_alert(topic):
                self.alerts.hear(topic, payload)
            elif topic.startswith((f"{self._topics.root}/out/", f"{self._topics.root}/fleet/")):
                self._hear_result(self._topics.result_address(topic), payload, now_s, kept=kept)
            else:
                self.roster.hear(topic, payload)
                self._hear_frame(topic, payload, now_s, kept=kept)

    def _hear_result(
        self, address: ResultAddress, payload: bytes, now_s: float, *, kept: bool
    ) -> None:
        if not payload:
            self._results.drop(address)
            return
        value = result_told(payload)
        if self.windows.is_one(value):
            self.windows.hear(address, payload)
            return
        if not self._results.put(address, value):
            return
        if address.device is None:
            return
        if not kept:
            self._heard_s[address.device] = now_s
        if address.name and address.key is None and "settled" in value:
            self._order(address.name).note(address.device, str(value["inputs"]), now_s)

    def _hear_frame(self, topic: str, payload: bytes, now_s: float, *, kept: bool) -> None:
        frame = decode(payload)
        if self._topics.address(topic).device != frame.about:
            return
        if not kept and frame.about == frame.sender.device:
            self._heard_s[frame.about] = now_s
        if isinstance(frame, BeatFrame):
            self._hear_beat(frame, now_s)
        elif isinstance(frame, VariableFrame) and frame.variable in self._folds:
            self._join(frame)

    def _hear_beat(self, frame: BeatFrame, now_s: float) -> None:
        device = frame.sender.device
        for report in frame.reports:
            for fold in self._dynamic(report.variable):
                state = inputs_digest(report.digest, fold.stream)
                self._order(fold.name).note(device, state, now_s)
            if self._plan is None:
                self._order("").note(device, str([each.digest for each in frame.reports]), now_s)

    def _dynamic(self, variable: str) -> Iterator[DynamicFold]:
        folds = self._plan.dynamic_folds.values() if self._plan else ()
        return (fold for fold in folds if fold.source.name == variable)

    def _join(self, frame: VariableFrame) -> None:
        assert self._plan is not None
        if frame.stream != self._plan.local_folds[frame.variable].stream:
            return
        entry = OwnedMap({frame.sender.device: frame.entry})
        with suppress(OutOfRangeError):
            self._folds[frame.variable].join(frame.shard, entry)

    def _order(self, name: str) -> Order:
        return self._orders.setdefault(name, Order())

    @property
    def names(self) -> list[str]:
        """The names of all values that are known, sorted."""
        told = self._results.names
        declared = {*self._plan.local_folds, *self._plan.dynamic_folds} if self._plan else set()
        return sorted(told | declared)

    @property
    def devices(self) -> list[str]:
        """The devices that are known and not retired, sorted."""
        told = self._results.devices
        return sorted(told.union(self.roster.devices) - self.roster.membership.retired.keys())

    def is_of_fleet(self, name: str) -> bool:
        """Return whether a value is the fleet's, and not each device's own."""
        if self._plan is not None and name in self._plan.dynamic_folds:
            return True
        told = self._results.all_of(name)
        return any(address.device is None or "inputs" in value for address, value in told)

    def keys(self, name: str, device: str | None) -> list[str]:
        """Return the keys of a value that are known, sorted; of no device, of the fleet's."""
        return self._results.keys(name, device) or sorted(self._made(name, device))

    def is_settled(self, name: str) -> bool | None:
        """Return whether all connected devices hold the fleet's value; None: nobody says."""
        made = bool(self._made(name, None))
        told = self._results.get(name, None)
        told = told or (None if made else self._most_held(name, None))
        if told is not None and "settled" in told:
            return bool(told["settled"])
        here = [each for each in self.devices if (seen := self.roster.seen(each)) and seen.online]
        held = self._orders[name].held(here) if name in self._orders else set()
        if not held:
            return None
        value = None if self._plan and self._plan.dynamic_folds[name].keyed else self.value(name)
        return len(held) == 1 and (value is None or held == {value.get("inputs")})

    def value(self, name: str, device: str | None = None, key: str | None = None) -> Plain | None:
        """Return a value as a device, or the fleet's voice, tells it, or else as its entries say.

        Args:
            name: of the value.
            device: whose value, or view of the fleet's; None: the fleet's.
            key: of a value with keys; None: of one without.

        Returns:
            the value as plain data; None where it is not known.
        """
        told = self._results.get(name, device, key)
        if told is not None and "parts" in told:
            return told
        made = self._made(name, device).get(key or "")
        if made is None and device is None:
            return self._most_held(name, key)
        return made

    def _most_held(self, name: str, key: str | None) -> Plain | None:
        """Return what most devices hold for the fleet's value, where nobody speaks for all."""
        told = self._results.all_of(name)
        of_key = [v for address, v in told if address.key == key and v.get("inputs")]
        views = [value for value in of_key if "parts" in value]  # what has keys has none itself
        counts = Counter(value["inputs"] for value in views)
        return max(views, key=lambda value: counts[value["inputs"]], default=None)

    def _made(self, name: str, device: str | None) -> dict[str, Plain]:
        """Return key -> value, computed from the devices' entries; empty without the program."""
        plan = self._plan
        if plan is None:
            return {}
        made = plan.dynamic_folds.get(name)
        source = plan.local_folds.get(name) if made is None else made.source
        held = self._folds.get(source.name) if source else None
        if source is None or held is None or (made is None) == (device is None):
            return {}
        if made is None:
            assert device is not None
            entries = (held.entry(device, shard) for shard in held.shards)
            rows = [row for entry in entries if entry is not None for row in entry.payload]
            return {key: _plain(source, partial) for key, _, partial in rows}
        if name in self._made_since:
            return self._made_since[name]
        held.set_membership(self.roster.membership)
        totals = {key: held.total(key) for key in held.keys}
        self._made_since[name] = {
            key: _plain(source, total.partial)
            | {"devices": total.devices, "inputs": inputs_digest(total.digest, made.stream)}
            for key, total in totals.items()
        }
        return self._made_since[name]

    def standing(self, device: str, own: str | None, fleet: str | None, now_s: float) -> DeviceView:
        """Return how a device stands.

        Args:
            device: its name.
            own: the name of the value that is shown as its own.
            fleet: the name of the value that is shown as the fleet's.
            now_s: what time it is.
        """
        seen, agent = self.roster.seen(device), self._results.get(None, device) or {}
        heard_s, order = self._heard_s.get(device), self._orders.get(fleet or "")
        return DeviceView(
            device,
            bool(seen and seen.online),
            agent.get("readings"),
            self._shown(own, device),
            self._shown(fleet, device),
            order.behind_s(device, now_s) if order else None,
            None if heard_s is None else now_s - heard_s,
            tuple(agent.get("alarms", ())),
            agent.get("refused"),
            agent.get("refused_because", {}),
            agent.get("sent_bytes"),
        )

    def _shown(self, name: str | None, device: str) -> Plain | None:
        """Return a device's value, or all its keys."""
        if name is None:
            return None
        keys = self.keys(name, device)
        if keys and keys != [""]:
            return {"keys": {key: self.value(name, device, key) for key in keys}}
        return self.value(name, device) or self._as_all(name, device)

    def _as_all(self, name: str, device: str) -> Plain | None:
        """Return the fleet's value as entries say, for a device that reports that it holds it."""
        now = self.value(name) if self._plan and name in self._plan.dynamic_folds else None
        order = self._orders.get(name)
        if now is None or order is None or device not in order.holders(now.get("inputs", "")):
            return None
        return now


def fleet_keys(onlooker: Onlooker, name: str) -> list[str]:
    """Return the keys of the fleet's value, or, where nobody speaks for all, those seen."""
    known = onlooker.keys(name, None)
    if known or not onlooker.is_of_fleet(name):
        return known
    return sorted({key for device in onlooker.devices for key in onlooker.keys(name, device)})


def _plain(fold: LocalFold, partial: Any) -> Plain:
    """Return a partial for people; what a user's fold raises is no value."""
    parts: Mapping[str, Any] = {}
    try:
        parts = lowered(fold.fold, partial, fold.resolution)
    except BaseException as error:  # noqa: BLE001 - a user's fold may raise anything
        pass_interrupt(error)
    columns = zip(fold.fold.columns_named, partial, strict=True)
    plain = {name: part.hex() if isinstance(part, bytes) else part for name, part in columns}
    return {"parts": dict(parts), **plain}
