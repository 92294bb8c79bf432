"""The values of a fleet as its messages give them, and how far each device is behind.

Values come from the topics of results, where devices publish them, and else from the devices' own
entries, if the program is known. How far a device is behind is read off the states that devices
report: these are numbered in the order in which they were first seen, and a device that still
reports an earlier one is behind since the next one was seen.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from crdts import OwnedMap
from device_agent.console.view.devices import KnownDevices
from device_agent.console.view.published import Plain
from lasp_edge.aggregates.absence import PresentFold
from lasp_edge.aggregates.fleet import FleetFold, OutOfRangeError
from lasp_edge.errors import pass_interrupt
from lasp_edge.folds.lowered import lowered
from lasp_edge.language.declarations import LocalFold
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame, VariableFrame
from lasp_edge.protocol.inputs import inputs_digest
from lasp_edge.protocol.topics import ResultAddress
from lasp_edge.tool.lagging import Order

MOST_RESULTS = 100_000
"""Results that are remembered, some 100 MB at most; a command is no device."""


class FleetValues:
    """The values of one fleet, as published or computed from entries.

    Args:
        devices: of the fleet.
        plan: the fleet's program, where it is known.

    Attributes:
        gateways: the names in which gateways publish rows of the whole fleet: they are no devices;
            and for what each of them waits.
        agreed_s: value of the fleet -> when all connected devices were last seen to hold the same.
    """

    def __init__(self, devices: KnownDevices, plan: Plan | None) -> None:
        self._known, self._plan = devices, plan
        self._folds = {
            name: FleetFold(fold.fold, keyed=fold.keyed)
            for name, fold in (plan.published_folds.items() if plan else ())
        }
        self._dynamic = dict(plan.dynamic_folds) if plan else {}
        self._published: dict[tuple[str | None, str | None], dict[str | None, Plain]] = {}
        self.gateways: dict[str, list[str]] = {}
        self._count = 0
        self._totals: dict[str, dict[str, Plain]] = {}  # value -> by key, since the last message
        self._orders: defaultdict[str, Order] = defaultdict(Order)
        self.agreed_s: dict[str, float] = {}

    def put(self, address: ResultAddress, result: Plain, now_s: float) -> bool:
        """Remember a result; return whether there was room for it."""
        of_device = self._published.setdefault(address[:2], {})
        if address.key not in of_device:
            if self._count >= MOST_RESULTS:
                self.drop(address)
                return False
            self._count += 1
        of_device[address.key] = result
        if address.device and address.name and address.key is None and "settled" in result:
            self._orders[address.name].note(address.device, str(result["inputs"]), now_s)
        if address.name and result.get("settled"):
            self.agreed_s[address.name] = now_s
        return True

    def drop(self, address: ResultAddress) -> None:
        """Forget a result."""
        of_device = self._published.get(address[:2], {})
        self._count -= of_device.pop(address.key, None) is not None
        if not of_device:
            self._published.pop(address[:2], None)

    def take(self, frame: Frame, now_s: float) -> None:
        """Take a device's report or entries."""
        self._totals.clear()
        if isinstance(frame, BeatFrame):
            self._take_reports(frame, now_s)
        elif isinstance(frame, VariableFrame) and frame.variable in self._folds:
            assert self._plan is not None
            if frame.stream == self._plan.local_folds[frame.variable].stream:
                entry = OwnedMap({frame.sender.device: frame.entry})
                with suppress(OutOfRangeError):
                    self._folds[frame.variable].join(frame.shard, entry)

    def _take_reports(self, frame: BeatFrame, now_s: float) -> None:
        device = frame.sender.device
        for report in frame.reports:
            for fold in self._dynamic.values():
                if fold.source.name == report.variable:
                    order, state = (
                        self._orders[fold.name],
                        inputs_digest(report.digest, fold.stream),
                    )
                    order.note(device, state, now_s)
                    if len(order.held(filter(self._known.is_online, self.devices))) == 1:
                        self.agreed_s[fold.name] = now_s
        if self._plan is None and frame.reports:
            self._orders[""].note(device, str([each.digest for each in frame.reports]), now_s)

    @property
    def names(self) -> list[str]:
        """The names of all values that are known, sorted."""
        declared = {*self._plan.local_folds, *self._dynamic} if self._plan else set()
        return sorted(declared | {name for name, _ in self._published if name})

    @property
    def devices(self) -> list[str]:
        """The devices that are known and not retired, sorted."""
        publishing = {device for _, device in self._published if device} - self.gateways.keys()
        retired = self._known.commands.membership.retired
        return sorted(publishing.union(self._known.names) - retired.keys())

    def is_of_fleet(self, name: str) -> bool:
        """Return whether a value is the fleet's, and not each device's own."""
        results = self._results(name)
        return name in self._dynamic or any(
            device is None or "inputs" in result for device, _, result in results
        )

    def keys(self, name: str, device: str | None = None) -> list[str]:
        """Return the keys of a value that are known, sorted; those of the fleet's without a device.

        Where nobody publishes the fleet's value, it has all keys that its devices hold.
        """
        published = self._published.get((name, device), ())
        keys = sorted(key for key in published if key is not None)
        keys = keys or sorted(self._computed(name, device))
        if keys or device is not None or not self.is_of_fleet(name):
            return keys
        return sorted({key for each in self.devices for key in self.keys(name, each)})

    def is_settled(self, name: str) -> bool | None:
        """Return whether all connected devices hold the fleet's value; None: nobody reports it."""
        published = self._published.get((name, None), {}).get(None)
        if published is None and not self._computed(name, None):
            published = self._most_reported(name, None)
        if published is not None and "settled" in published:
            return bool(published["settled"])
        here = filter(self._known.is_online, self.devices)
        reported = self._orders[name].held(here) if name in self._orders else set()
        if not reported:
            return None
        value = None if name in self._dynamic and self._dynamic[name].keyed else self.value(name)
        return len(reported) == 1 and (value is None or reported == {value.get("inputs")})

    def away_in(self, name: str) -> list[str]:
        """Return the devices that are away and whose last entry counts in the fleet's value."""
        fold = self._dynamic.get(name)
        if fold is None:
            counted = [device for of, device in self._published if of == name and device]
        else:
            entries = self._folds[fold.source.name]
            notes = fold.absence and self._folds[fold.absence.name]
            counted = PresentFold(entries, notes).devices if notes else entries.devices
        here = self._known.is_online
        return [device for device in self.devices if device in counted and not here(device)]

    def value(self, name: str, device: str | None = None, key: str | None = None) -> Plain | None:
        """Return a value as published by a device or for the fleet, or else as its entries give it.

        Args:
            name: of the value.
            device: whose value, or view of the fleet's; None: the fleet's.
            key: of a value with keys; None: of one without.

        Returns:
            the value as plain data; None where it is not known.
        """
        published = self._published.get((name, device), {}).get(key)
        if published is not None and "parts" in published:
            return published
        computed = self._computed(name, device).get(key or "")
        if computed is None and device is None:
            return self._most_reported(name, key)
        return computed

    def whole(self, name: str, device: str | None = None) -> Plain | None:
        """Return a value, or all its keys, as a device holds it; without a device, the fleet's."""
        keys = self.keys(name, device)
        if keys not in ([], [""]):
            return {"keys": {key: self.value(name, device, key) for key in keys}}
        return self.value(name, device) or self._as_all(name, device)

    def report(self, device: str) -> Plain:
        """Return an agent's report about itself; empty where it publishes none."""
        return self._published.get((None, device), {}).get(None, {})

    def behind_s(self, name: str | None, device: str, now_s: float) -> float | None:
        """Return how long others have reported a newer state; None where it reported nothing."""
        order = self._orders.get(name or "")
        return order.behind_s(device, now_s) if order else None

    def _results(self, name: str) -> Iterator[tuple[str | None, str | None, Plain]]:
        """Yield device, key and result of all that was published of a value, sorted by device."""
        found = [(device, each) for (of, device), each in self._published.items() if of == name]
        for device, by_key in sorted(found, key=str):
            for key, result in by_key.items():
                yield device, key, result

    def _most_reported(self, name: str, key: str | None) -> Plain | None:
        """Return the fleet's value that most devices hold, where nobody publishes one for all."""
        results = [result for _, of, result in self._results(name) if of == key]
        # A value with keys has no parts itself.
        views = [each for each in results if each.get("inputs") and "parts" in each]
        counts = Counter(each["inputs"] for each in views)
        return max(views, key=lambda each: counts[each["inputs"]], default=None)

    def _computed(self, name: str, device: str | None) -> dict[str, Plain]:
        """Return key -> value, computed from the devices' entries; empty without the program."""
        if device is None and name in self._dynamic:
            return self._total(name)
        source = self._plan.local_folds.get(name) if self._plan else None
        entries = self._folds.get(name)
        if source is None or entries is None or device is None:
            return {}
        shards = (entries.entry(device, shard) for shard in entries.shards)
        rows = [row for entry in shards if entry is not None for row in entry.payload]
        return {key: _plain(source, partial) for key, _, partial in rows}

    def _total(self, name: str) -> dict[str, Plain]:
        if name not in self._totals:
            fold = self._dynamic[name]
            entries = self._folds[fold.source.name]
            entries.set_membership(self._known.commands.membership)
            totals = {key: entries.total(key) for key in entries.keys}
            self._totals[name] = {
                key: _plain(fold.source, total.partial)
                | {"devices": total.devices, "inputs": inputs_digest(total.digest, fold.stream)}
                for key, total in totals.items()
            }
        return self._totals[name]

    def _as_all(self, name: str, device: str | None) -> Plain | None:
        """Return the fleet's value by its entries, for a device that reports the same state."""
        now = self.value(name) if name in self._dynamic and device is not None else None
        order = self._orders.get(name)
        if now is None or order is None or device not in order.holders(now.get("inputs", "")):
            return None
        return now


def _plain(fold: LocalFold, partial: Any) -> Plain:
    """Return a partial for people; where a user's fold raises, no part has a value."""
    parts: Mapping[str, Any] = {}
    try:
        parts = lowered(fold.fold, partial, fold.resolution)
    except BaseException as error:  # noqa: BLE001 - a user's fold may raise anything
        pass_interrupt(error)
    columns = zip(fold.fold.columns_named, partial, strict=True)
    plain = {name: part.hex() if isinstance(part, bytes) else part for name, part in columns}
    return {"parts": dict(parts), **plain}
