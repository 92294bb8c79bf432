"""Sums of what a meter shows: it goes on from reading to reading, so only its differences add up.

>>> from lasp_edge import Program, folds
>>> program = Program("house")
>>> meter = program.event("heat_meter", resolution="0.1", unit="kWh")
>>> _ = program.window("used", source=meter, fold=folds.sum(), size_s=3_600)
>>> print(summed_meters(program.plan())[0].partition("; ")[2])
sum the differences: program.scan(.., scan=scans.differences(reset=True))
"""

import re
from collections.abc import Iterator
from typing import Final

from lasp_edge.checking.programs import nested_folds
from lasp_edge.folds.sums import Sum
from lasp_edge.language.declarations import EventType
from lasp_edge.language.device_classes import CLASSES
from lasp_edge.language.plan import Plan
from lasp_edge.scans.differences import ConsecutiveDifferences
from lasp_edge.scans.rate import ChangeRate

_SHOWN: Final = frozenset(
    unit for name in ("energy", "volume", "gas", "water", "distance") for unit in CLASSES[name]
) | {"l"}
"""The units of what meters show."""
_NAMES: Final = frozenset({"meter", "counter", "odometer", "mileage"})


def summed_meters(plan: Plan) -> list[str]:
    """Return a line for each window that adds up what a meter shows."""
    shown = {*_taken_as_meters(plan)}
    return [
        f"{where}: readings of {event.name} go on from one to the next, and here each is added to "
        "those before; sum the differences: program.scan(.., scan=scans.differences(reset=True))"
        for name, window in plan.windows.items()
        for event in [plan.events.get(window.source.name)]
        if event is not None and not window.controls.value
        if event.name in shown or _is_meter(event)
        for where, fold in nested_folds(f"window {name}", window.fold)
        if isinstance(fold, Sum)
    ]


def _taken_as_meters(plan: Plan) -> Iterator[str]:
    """Yield the events whose readings a scan takes for a counter that may be reset."""
    for name, made in plan.functions.streams.items():
        if isinstance(made, ConsecutiveDifferences | ChangeRate) and vars(made)["_reset"]:
            yield from plan.streams[name].sources


def _is_meter(event: EventType) -> bool:
    words = re.split(r"[^a-z]+", event.name.lower())
    return event.unit in _SHOWN and not _NAMES.isdisjoint(words)
