"""The live table of the demo: what each device holds, and how far it is behind the others."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Self

from lasp_edge.folds.numbers import decimals
from lasp_edge.language.plan import Plan
from lasp_edge.tool.lagging import Order
from lasp_edge.tool.screen import UNKNOWN, ago, in_words, lag, number
from simulations.demo.devices import Condition, Device, Value


class Measure(NamedTuple):
    """What of a program people are shown: the first part of its first fleet-wide value.

    Attributes:
        own: name of the device's own value.
        fleet: name of the fleet's.
        part: name of the part.
        decimals: how many of the part's decimals are shown.
        unit: such as "°C".
        keyed: there is a value for each key; how many keys there are is shown instead.
    """

    own: str
    fleet: str
    part: str
    decimals: int
    unit: str
    keyed: bool = False

    @classmethod
    def of(cls, plan: Plan) -> Self | None:
        """Return the measure of a program; None where it has no fleet-wide value."""
        for name, fold in plan.dynamic_folds.items():
            units = {e.unit for e in plan.events.values() if e.resolution == fold.resolution}
            unit = units.pop() if len(units) == 1 else ""
            part, places = fold.fold.parts[0], decimals(fold.resolution)
            return cls(fold.source.name, name, part, places, unit, fold.keyed)
        return None

    @property
    def word(self) -> str:
        """What is shown, in plain language."""
        return "keys" if self.keyed else in_words(self.part)

    def text(self, value: Value) -> str:
        """Return the value of the part with its unit, or how many keys have one."""
        if self.keyed:
            return f"{len(value.keys):,}"
        part = value.keys[""].parts.get(self.part)
        return UNKNOWN if part is None else f"{number(part, self.decimals)} {self.unit}".strip()


class LiveTable:
    """How each device stands, line by line.

    How far a device is behind is read off what the devices say that they hold: see `Order`.

    Args:
        measure: what is shown; None for a program without a fleet-wide value.
        clock: seconds.
    """

    def __init__(self, measure: Measure | None, clock: Callable[[], float]) -> None:
        self._measure = measure
        self._clock = clock
        self._order = Order()

    def rows(self, devices: Iterable[Device]) -> list[tuple[str, ...]]:
        """Return a head, and a row of words for each device."""
        shown = list(devices)
        for device in shown:
            fleet = self._fleet(device)
            if fleet is not None and _is_heard(device):
                self._order.note(device.name, fleet.inputs, self._clock())
        return [self._head(), *map(self._row, shown)]

    def _head(self) -> tuple[str, ...]:
        measure = self._measure
        if measure is None:
            return ("device", "samples", "still to send", "")
        seen = "as it sees them" if measure.keyed else "as it sees it"
        return ("device", "samples", f"its own {measure.word}", f"the fleet's, {seen}", "agreed")

    def _fleet(self, device: Device) -> Value | None:
        if self._measure is None or device.report is None:
            return None
        return device.report.values.get(self._measure.fleet)

    def _row(self, device: Device) -> tuple[str, ...]:
        report, measure = device.report, self._measure
        if report is None:
            cells = [UNKNOWN] * (2 if measure is None else 3)
            return (device.name, *cells, str(device.condition))
        samples = f"{report.accepted:,}"
        if measure is None:
            state = "" if device.condition is Condition.RUNNING else str(device.condition)
            return (device.name, samples, f"{report.dirty:,}", state)
        held = [report.values.get(measure.own), self._fleet(device)]
        texts = [UNKNOWN if value is None else measure.text(value) for value in held]
        return (device.name, samples, *texts, self._agreed(device, held[1]))

    def _agreed(self, device: Device, fleet: Value | None) -> str:
        report, behind_s = device.report, self._order.behind_s(device.name, self._clock())
        if device.condition is not Condition.RUNNING:
            return f"{device.condition} {ago(behind_s)}" if behind_s else str(device.condition)
        if not _is_heard(device):
            return "no connection"
        if report is not None and not report.others:
            return "alone"
        if fleet is None or not fleet.settled:
            return lag(behind_s)
        return f"yes, without {', '.join(fleet.absent)}" if fleet.absent else "yes"


def _is_heard(device: Device) -> bool:
    """Return whether the others can know what it holds."""
    report = device.report
    return device.condition is Condition.RUNNING and report is not None and report.connected
