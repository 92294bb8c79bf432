"""The live table of the demo: each device's values, and how far it is behind the others."""

from collections.abc import Callable, Iterable

from lasp_edge.folds.numbers import decimals
from lasp_edge.language.declarations import DynamicFold
from lasp_edge.language.plan import Plan
from lasp_edge.tool.lagging import Order
from lasp_edge.tool.screen import UNKNOWN, ago, in_words, lag, number
from simulations.demo.devices import Condition, Device, Value, by_key


class LiveTable:
    """How each device stands, line by line, by the first part of the first fleet-wide value.

    How far a device is behind is read off their reports: see `Order`.

    Args:
        plan: of the program; one without a fleet-wide value shows the entries still to send.
        clock: seconds.
    """

    def __init__(self, plan: Plan, clock: Callable[[], float]) -> None:
        self._clock, self._order = clock, Order()
        self._fold = next(iter(plan.dynamic_folds.values()), None)
        resolution = None if self._fold is None else self._fold.resolution
        units = {event.unit for event in plan.events.values() if event.resolution == resolution}
        self._unit = units.pop() if len(units) == 1 else ""

    def rows(self, devices: Iterable[Device]) -> list[tuple[str, ...]]:
        """Return a head, and a row of words for each device."""
        shown, fold = list(devices), self._fold
        if fold is None:
            return [("device", "samples", "still to send", ""), *map(_sending, shown)]
        for device in shown:
            if (fleet := device.values.get(fold.name)) is not None and device.is_connected:
                self._order.note(device.name, fleet["inputs"], self._clock())
        word, seen = ("keys", "them") if fold.keyed else (in_words(fold.fold.parts[0]), "it")
        head = ("device", "samples", f"its own {word}", f"the fleet's, as it sees {seen}", "agreed")
        return [head, *(self._row(device, fold) for device in shown)]

    def _row(self, device: Device, fold: DynamicFold) -> tuple[str, ...]:
        own, fleet = (device.values.get(name) for name in (fold.source.name, fold.name))
        texts = self._text(own, fold), self._text(fleet, fold)
        return (*_counted(device), *texts, self._agreed(device, fleet))

    def _text(self, value: Value | None, fold: DynamicFold) -> str:
        if value is None:
            return UNKNOWN
        if fold.keyed:
            return f"{len(by_key(value)):,}"
        part = value["parts"].get(fold.fold.parts[0])
        shown = number(part, decimals(fold.resolution))
        return shown if part is None else f"{shown} {self._unit}".strip()

    def _agreed(self, device: Device, fleet: Value | None) -> str:
        behind_s = self._order.behind_s(device.name, self._clock())
        if device.condition is not Condition.RUNNING:
            return f"{device.condition} {ago(behind_s)}" if behind_s else str(device.condition)
        if not device.is_connected:
            return "no connection"
        if not device.report["others"]:
            return "alone"
        if fleet is None or not fleet["settled"]:
            return lag(behind_s)
        absent = ", ".join(fleet["except"])
        return f"yes, without {absent}" if absent else "yes"


def _counted(device: Device) -> tuple[str, str]:
    return device.name, f"{device.accepted:,}" if device.report else UNKNOWN


def _sending(device: Device) -> tuple[str, ...]:
    to_send = f"{device.to_send:,}" if device.report else UNKNOWN
    state = "" if device.condition is Condition.RUNNING else str(device.condition)
    return (*_counted(device), to_send, state)
