"""Device classes: what Home Assistant calls a quantity, with the units that it may have.

Home Assistant refuses a whole entity whose unit its class does not have. So a class is given only
where it is certain from unit and name, or where the program states it; and a stated one is checked
where it is declared.

    >>> from lasp_edge.folds.numbers import Resolution
    >>> device_class(EventType("temperature", Resolution("0.1"), "°C"))
    'temperature'
    >>> check_class("event 'power'", "power", "kWh")
    Traceback (most recent call last):
    ValueError: event 'power': device_class 'power' has the unit GW, MW, TW, W, kW or mW, not 'kWh'

Source: https://developers.home-assistant.io/docs/core/entity/sensor/#available-device-classes, the
classes and units that all releases since 2024.11 have.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from lasp_edge.language.declarations import AnyFold, DynamicFold, EventType, Window
from lasp_edge.language.plan import Plan

_ENERGY, _VOLUME = "GJ GWh J MJ MWh Wh kJ kWh cal kcal Mcal Gcal TWh mWh", "CCF L ft³ gal mL m³"
_PRESSURE = "Pa bar cbar hPa inHg kPa mbar mmHg psi"
CLASSES: Final[dict[str, tuple[str, ...]]] = {
    name: tuple(units.split())
    for name, units in {
        "apparent_power": "VA",
        "aqi": "",
        "area": "ac cm² ft² ha in² km² mi² mm² m² yd²",
        "atmospheric_pressure": _PRESSURE,
        "battery": "%",
        "carbon_dioxide": "ppm",
        "carbon_monoxide": "ppm",
        "conductivity": "S/cm mS/cm µS/cm",
        "current": "A mA",
        "data_rate": "B/s GB/s Gbit/s GiB/s KiB/s MB/s Mbit/s MiB/s bit/s kB/s kbit/s",
        "data_size": "B GB Gbit GiB KiB MB Mbit MiB TB TiB bit kB kbit",
        "distance": "cm ft in km m mi mm yd",
        "duration": "d h min ms s",
        "energy": _ENERGY,
        "energy_storage": _ENERGY,
        "frequency": "GHz Hz MHz kHz",
        "gas": "CCF ft³ m³",
        "humidity": "%",
        "illuminance": "lx",
        "irradiance": "BTU/(h⋅ft²) W/m²",
        "moisture": "%",
        "nitrogen_dioxide": "µg/m³",
        "nitrogen_monoxide": "µg/m³",
        "nitrous_oxide": "µg/m³",
        "ozone": "µg/m³",
        "ph": "",
        "pm1": "µg/m³",
        "pm10": "µg/m³",
        "pm25": "µg/m³",
        "power": "GW MW TW W kW mW",
        "power_factor": "%",
        "precipitation": "cm in mm",
        "precipitation_intensity": "in/d in/h mm/d mm/h",
        "pressure": _PRESSURE,
        "reactive_power": "var",
        "signal_strength": "dB dBm",
        "sound_pressure": "dB dBA",
        "speed": "ft/s in/d in/h km/h kn m/s mm/d mph",
        "sulphur_dioxide": "µg/m³",
        "temperature": "K °C °F",
        "volatile_organic_compounds": "µg/m³",
        "volatile_organic_compounds_parts": "ppb ppm",
        "voltage": "V mV",
        "volume": _VOLUME,
        "volume_flow_rate": "L/min ft³/min gal/min mL/s m³/h",
        "volume_storage": _VOLUME,
        "water": "CCF L ft³ gal m³",
        "weight": "g kg lb mg oz st µg",
        "wind_speed": "ft/s km/h kn m/s mph",
    }.items()
}
"""Device class of a sensor -> the units that it may have; none where it has no unit."""
TOTALS: Final = frozenset({"energy", "gas", "water", "volume"})
"""Classes of what a meter counts: Home Assistant takes a total of them, and no measurement."""
_CERTAIN: Final = (
    *("temperature", "power", "pressure", "voltage", "current", "frequency", "duration", "speed"),
    *("distance", "weight", "data_size", "data_rate", "volume_flow_rate", "sound_pressure"),
    *("conductivity", "illuminance", "irradiance", "precipitation_intensity", "apparent_power"),
)
OF_UNIT: Final[dict[str, str]] = {
    unit: name
    for name in _CERTAIN
    for unit in CLASSES[name]
    if sum(unit in CLASSES[other] for other in _CERTAIN) == 1
} | {"dBm": "signal_strength"}
"""Unit -> device class, where a measured value of the unit most likely is that one."""
OF_NAME: Final = (
    *[(unit, "", "energy") for unit in ("Wh", "kWh", "MWh")],
    *[(unit, "water", "water") for unit in ("m³", "L")],
    ("m³", "gas", "gas"),
    ("%", "humid", "humidity"),
    ("%", "moist", "moisture"),
    ("%", "battery", "battery"),
    ("ppm", "co2", "carbon_dioxide"),
    ("ppb", "voc", "volatile_organic_compounds_parts"),
    ("µg/m³", "voc", "volatile_organic_compounds"),
    ("µg/m³", "pm25", "pm25"),
    ("µg/m³", "pm10", "pm10"),
    ("m/s", "wind", "wind_speed"),
    ("km/h", "wind", "wind_speed"),
)
"""Unit, what is in the event's name, device class: a percentage may be of anything."""


def device_class(event: EventType) -> str:
    """Return Home Assistant's class of an event's readings; "" where it is not certain."""
    name = event.name.casefold()
    named = (kind for unit, word, kind in OF_NAME if unit == event.unit and word in name)
    return event.shown.device_class or next(named, "") or OF_UNIT.get(event.unit, "")


def check_class(what: str, kind: str, unit: str | None) -> None:
    """Check a device class that a program states; None for a unit that is not known yet.

    Raises:
        ValueError: Home Assistant has no such class, or the class does not have this unit.
    """
    if kind not in CLASSES:
        from difflib import get_close_matches  # noqa: PLC0415 - only after a mistake

        near = get_close_matches(str(kind), CLASSES, 1)
        meant = f"; did you mean {near[0]!r}?" if near else f": {', '.join(CLASSES)}"
        raise ValueError(f"{what}: Home Assistant has no device_class {kind!r} of a number{meant}")
    units = CLASSES[kind]
    if unit is not None and unit not in (units or ("",)):
        has = _either(units) if units else "none"
        raise ValueError(f"{what}: device_class {kind!r} has the unit {has}, not {unit!r}")


def _either(words: Iterable[str]) -> str:
    *most, last = sorted(words)
    return f"{', '.join(most)} or {last}" if most else last


class Quantity(NamedTuple):
    """What a value is made from: unit, device class and title; "" for what is not certain."""

    unit: str
    device_class: str
    title: str


def measured(plan: Plan, fold: AnyFold | Window) -> Quantity:
    """Return what a fold's samples are.

    They are those of the event that the samples' variable `measures`, or else of the events that
    write it: those that it collects, and whose handlers name it.
    """
    if isinstance(fold, Window):
        return _all_are([fold.source])
    variable = (fold.source if isinstance(fold, DynamicFold) else fold).source
    names = [variable.measures] if variable.measures else plan.meanings[variable.name].events
    events = [plan.events[name] for name in names if name in plan.events]
    return _all_are([event for event in events if event.resolution == fold.resolution])


def _all_are(events: list[EventType]) -> Quantity:
    """Return what all of these events are."""
    unit = _only(each.unit for each in events)
    kind = _only(map(device_class, events)) if unit else ""
    return Quantity(unit, kind, _only(each.shown.title for each in events))


def check_shown(plan: Plan) -> None:
    """Check the device classes that a program states of its values.

    Raises:
        ValueError: a value does not have a unit of its class.
    """
    values: dict[str, AnyFold | Window]
    values = {**plan.local_folds, **plan.dynamic_folds, **plan.windows}
    for name, people in plan.shown.items():
        if people.device_class and name in values:
            check_class(f"show {name!r}", people.device_class, measured(plan, values[name]).unit)


def _only(texts: Iterable[str]) -> str:
    """Return the text that all are; "" where they differ."""
    several = set(texts)
    return several.pop() if len(several) == 1 else ""
