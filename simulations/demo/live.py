"""The live table of the demo: what each device holds, and how far it is behind the others."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Self

from lasp_edge.folds.numbers import decimals
from lasp_edge.language.plan import Plan
from lasp_edge.tool.lagging import Order
from lasp_edge.tool.screen import UNKNOWN, ago, in_words, lag, number
from simulations.demo.devices import Condition, Device, Value, by_key


class Measure(NamedTuple):
    """What of a program people are shown: the first part of its first fleet-wide value.

    Attributes:
        own: name of the device's own value.
        fleet: name of the fleet's.
        part: name of the part.
        places: how many of the part's decimals are shown.
        unit: such as "°C".
        keyed: there is a value for each key; how many keys there are is shown instead.
    """

    own: str
    fleet: str
    part: str
    places: int
    unit: str
    keyed: bool

    @classmethod
    def of(cls, plan: Plan) -> Self | None:
        """Return the measure of a program; None where it has no fleet-wide value."""
        for name, fold in plan.dynamic_folds.items():
            units = {e.unit for e in plan.events.values() if e.resolution == fold.resolution}
            unit = units.pop() if len(units) == 1 else ""
            part, places = fold.fold.parts[0], decimals(fold.resolution)
            return cls(fold.source.name, name, part, places, unit, fold.keyed)
        return None

    def text(self, value: Value | None) -> str:
        """Return the value of the part with its unit, or how many keys have one."""
        if value is None:
            return UNKNOWN
        if self.keyed:
            return f"{len(by_key(value)):,}"
        part = value["parts"].get(self.part)
        return UNKNOWN if part is None else f"{number(part, self.places)} {self.unit}".strip()


class LiveTable:
    """How each device stands, line by line.

    How far a device is behind is read off what the devices report: see `Order`.

    Args:
        measure: what is shown; None for a program without a fleet-wide value.
        clock: seconds.
    """

    def __init__(self, measure: Measure | None, clock: Callable[[], float]) -> None:
        self._measure, self._clock = measure, clock
        self._order = Order()

    def rows(self, devices: Iterable[Device]) -> list[tuple[str, ...]]:
        """Return a head, and a row of words for each device."""
        shown = list(devices)
        for device in shown:
            if (fleet := self._fleet(device)) is not None and device.is_connected:
                self._order.note(device.name, fleet["inputs"], self._clock())
        return [self._head(), *map(self._row, shown)]

    def _head(self) -> tuple[str, ...]:
        measure = self._measure
        if measure is None:
            return ("device", "samples", "still to send", "")
        word, seen = ("keys", "them") if measure.keyed else (in_words(measure.part), "it")
        return ("device", "samples", f"its own {word}", f"the fleet's, as it sees {seen}", "agreed")

    def _fleet(self, device: Device) -> Value | None:
        return None if self._measure is None else device.values.get(self._measure.fleet)

    def _row(self, device: Device) -> tuple[str, ...]:
        measure, samples = self._measure, f"{device.accepted:,}" if device.report else UNKNOWN
        if measure is None:
            state = "" if device.condition is Condition.RUNNING else str(device.condition)
            return (
                device.name,
                samples,
                f"{device.to_send:,}" if device.report else UNKNOWN,
                state,
            )
        own, fleet = device.values.get(measure.own), self._fleet(device)
        return (device.name, samples, measure.text(own), measure.text(fleet), self._agreed(device))

    def _agreed(self, device: Device) -> str:
        behind_s, fleet = self._order.behind_s(device.name, self._clock()), self._fleet(device)
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
