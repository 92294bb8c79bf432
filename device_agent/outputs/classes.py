"""What Home Assistant has to know of a value: component, unit, device class and state class.

A value has the unit of what it was made from, and that one's class where the fold keeps it: a mean
of temperatures is a temperature, their spread is not, a count has no unit at all. Readings of a
meter are totals: the latest is one that only rises, the sum over devices one that may fall when a
device leaves, and a mean of them is nothing that a class stands for.
"""

from typing import Any, Final

from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution, decimals
from lasp_edge.folds.units import SAME_UNIT, inner_fold
from lasp_edge.language.declarations import (
    AS_NAMED,
    TEXT,
    AnyFold,
    Stream,
    StreamResult,
    Window,
)
from lasp_edge.language.device_classes import TOTALS, measured
from lasp_edge.language.plan import Plan

Config = dict[str, Any]

_YES_OR_NO: Final = frozenset({"any", "all"})
_NO_TEMPERATURES: Final = frozenset({"sum", "stddev"})
"""In the unit of temperatures, but none: who sees °F would see 32 of them added."""
_OF_METERS: Final = {"last": "total_increasing", "max": "total_increasing", "sum": "total"}
"""Fold -> state class of what it makes of a meter's totals; others make no total of them."""
_RESET: Final = {"last_reset_value_template": "{{ value_json.start }}"}
"""The sum of a window begins at 0 with each window."""


def component(fold: Fold, part: str) -> str:
    """Return which component of Home Assistant shows a part of a fold's value."""
    return "binary_sensor" if _is_yes_or_no(inner_fold(fold, part)) else "sensor"


def _is_yes_or_no(inner: Fold) -> bool:
    return inner.is_built_in and inner.name in _YES_OR_NO


def reading(plan: Plan, fold: AnyFold | Window, part: str) -> Config:
    """Return unit, classes and decimals of a part of a fold's value."""
    inner = inner_fold(fold.fold, part)
    if _is_yes_or_no(inner):
        return {"payload_on": "True", "payload_off": "False"}
    stated = plan.shown.get(fold.name, AS_NAMED).device_class
    if not inner.is_built_in and not stated:
        return {}
    found: Config = {"state_class": "measurement"}
    if inner.is_built_in and inner.name not in SAME_UNIT:
        return found
    unit, kind, _ = measured(plan, fold)
    found |= {"unit_of_measurement": unit} if unit else {}
    found["suggested_display_precision"] = decimals(fold.resolution)
    return found | _classes(fold, inner, stated, kind)


def _classes(fold: AnyFold | Window, inner: Fold, stated: str, kind: str) -> Config:
    """Return the classes of what a fold makes of samples of a class, if it keeps that.

    Args:
        fold: the whole.
        inner: what gives the part.
        stated: the class that the program states of the value.
        kind: the class of the samples.
    """
    if stated or kind not in TOTALS:
        kept = stated or ("" if kind == "temperature" and inner.name in _NO_TEMPERATURES else kind)
        state = {"state_class": _OF_METERS.get(inner.name, "total")} if stated in TOTALS else {}
        return state | ({"device_class": kept} if kept else {})
    if inner.name not in _OF_METERS:
        return {}  # a measurement, which a meter's class cannot be
    found = {"state_class": _OF_METERS[inner.name], "device_class": kind}
    if inner.name == "sum" and isinstance(fold, Window):
        return found | _RESET if _follow_each_other(fold) else {}
    return found


def _follow_each_other(window: Window) -> bool:
    """Return whether each reading is in one window alone: then their sums add up."""
    controls = window.controls
    is_fixed = controls.size is None and controls.slide is None
    return is_fixed and window.size_us == window.slide_us


def row_reading(plan: Plan, result: StreamResult, part: str, step: str) -> Config:
    """Return unit, classes and decimals of a part of a result's rows."""
    if part in result.times:
        return {"device_class": "timestamp"}
    if step == TEXT:
        return {}
    found: Config = {"state_class": "measurement"}
    unit = _unit_of_rows(plan, plan.streams[result.name], part)
    found |= {"unit_of_measurement": unit} if unit else {}
    return found | {"suggested_display_precision": decimals(Resolution(step))}


def _unit_of_rows(plan: Plan, stream: Stream, part: str) -> str:
    """Return the unit of a part of a stream's rows; "" where it is not certain."""
    fold = getattr(plan.functions.streams.get(stream.name), "fold", None)
    if fold is not None and part in fold.parts:
        inner = inner_fold(fold, part)
        in_unit = inner.is_built_in and inner.name in SAME_UNIT
    else:
        in_unit = part in {"value", "difference"}
    units = set(_units(plan, stream.name)) if in_unit else set()
    return units.pop() if len(units) == 1 else ""


def _units(plan: Plan, name: str) -> list[str]:
    """Return the units of the events whose values come through a stream as they were measured."""
    if name in plan.events:
        return [plan.events[name].unit]
    stream = plan.streams[name]
    if stream.operator in {"map", "flat_map"}:
        return [""]
    return [unit for source in stream.sources for unit in _units(plan, source)]
