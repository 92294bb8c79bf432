"""The live table of the demo: what each device holds, and whether all agree."""

from collections.abc import Iterable
from typing import NamedTuple, Self

from lasp_edge.folds.numbers import decimals
from lasp_edge.language.plan import Plan
from lasp_edge.tool.screen import UNKNOWN, ago, in_words, number
from simulations.demo.devices import Condition, Device, Report, Value

_MOST_DEVICES = 32


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
        return f"{number(value.keys[''].parts.get(self.part), self.decimals)} {self.unit}".strip()


def rows(devices: Iterable[Device], measure: Measure | None) -> list[tuple[str, ...]]:
    """Return the live table: a head, and a row of words for each device."""
    if measure is None:
        head: tuple[str, ...] = ("device", "samples", "still to send", "")
    else:
        own = f"its own {measure.word}"
        seen = "as it sees them" if measure.keyed else "as it sees it"
        fleet = f"the fleet's {measure.word}, {seen}"
        head = ("device", "samples", own, fleet, "agreed")
    return [head, *(_row(device, measure) for device in devices)]


def _row(device: Device, measure: Measure | None) -> tuple[str, ...]:
    report = device.report
    if report is None:
        cells = [UNKNOWN] * (2 if measure is None else 3)
        return (device.name, *cells, str(device.condition))
    samples = f"{report.accepted:,}"
    if measure is None:
        state = "" if device.condition is Condition.RUNNING else str(device.condition)
        return (device.name, samples, f"{report.dirty:,}", state)
    held = [report.values.get(name) for name in (measure.own, measure.fleet)]
    texts = [UNKNOWN if value is None else measure.text(value) for value in held]
    agreed = _agreed(device, report, held[1], report.agreed_s_ago.get(measure.fleet))
    return (device.name, samples, *texts, agreed)


def _agreed(device: Device, report: Report, fleet: Value | None, last_s: float | None) -> str:
    if device.condition is not Condition.RUNNING:
        return str(device.condition)
    if not report.connected:
        return "no connection"
    if fleet is None or not fleet.settled:
        return "not yet" if last_s is None else f"{ago(last_s)} ago"
    return f"yes, without {', '.join(fleet.absent)}" if fleet.absent else "yes"
