"""Entities of Home Assistant: units, device classes and components follow from event and fold."""

import json

import pytest

from crdts import BoundedLWWSet
from device_agent.outputs import discovery
from lasp_edge import Program, folds
from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.declarations import EventType
from tests.device_agent.agent.fleet.home import TOTALS_ONLY, UNITS, started, template


@pytest.mark.parametrize(
    ("name", "unit", "fold", "kind", "state"),
    [
        ("temperature", "°C", folds.mean(), "temperature", "measurement"),
        ("humidity", "%", folds.max(), "humidity", "measurement"),
        ("cpu", "%", folds.mean(), None, "measurement"),
        ("power", "W", folds.last(), "power", "measurement"),
        ("meter", "kWh", folds.last(), "energy", "total_increasing"),
        ("meter", "kWh", folds.mean(), None, "measurement"),
        ("water", "m³", folds.max(), "water", "total_increasing"),
        ("gas", "m³", folds.last(), "gas", "total_increasing"),
        ("gas", "m³", folds.mean(), None, "measurement"),
        ("temperature", "°C", folds.stddev(), None, "measurement"),  # 1 °C is not 34 °F of them
        ("temperature", "°C", folds.sum(), None, "measurement"),
        ("humidity", "%", folds.stddev(), "humidity", "measurement"),
        ("voc", "ppb", folds.mean(), "volatile_organic_compounds_parts", "measurement"),
        ("pressure", "hPa", folds.min(), "pressure", "measurement"),
        ("light", "lx", folds.quantile(0.5), "illuminance", "measurement"),
        ("air", "ppm", folds.mean(), None, "measurement"),
        ("co2", "ppm", folds.mean(), "carbon_dioxide", "measurement"),
        ("bananas", "pieces", folds.sum(), None, "measurement"),
        ("bare", "", folds.mean(), None, "measurement"),
    ],
)
def test_units_and_classes_come_from_the_event(tmp_path, home, name, unit, fold, kind, state):
    program = Program("house")
    event = program.event(name, resolution="0.1", unit=unit)
    samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples")
    program.collect(event, into=samples)
    program.fold(samples, fold, "value")
    started(tmp_path, home, plan=program.plan())
    (config,) = [c for c in home.entities.values() if c["name"] == "value"]
    assert config.get("unit_of_measurement", "") == unit
    assert (config.get("device_class"), config["state_class"]) == (kind, state)


def test_each_part_is_an_entity_and_only_what_is_in_the_unit_has_it(tmp_path, home):
    program = Program("house")
    event = program.event("temperature", resolution="0.5", unit="°C")
    program.event("humidity", resolution="0.5", unit="%")
    samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples")
    program.collect(event, into=samples)
    fold = folds.struct(
        mean=folds.mean(), n=folds.count(), p=folds.quantile(0.5, 0.9), spread=folds.variance()
    )
    program.fold(samples, fold, "all of it")
    mixed = program.declare_dynamic(BoundedLWWSet(bound=5), "mixed")
    program.collect(event, into=mixed)
    program.fold(mixed, folds.any(), "moving")
    started(tmp_path, home, plan=program.plan())
    units = {
        config["name"]: config.get("unit_of_measurement")
        for config in home.entities.values()
        if config["name"].startswith("all of it")
    }
    assert units == {
        "all of it mean": "°C",
        "all of it n": None,
        "all of it p p50": "°C",
        "all of it p p90": "°C",
        "all of it spread": None,
    }


def test_what_is_yes_or_no_is_a_binary_sensor(tmp_path, home, jinja):
    program = Program("house")
    event = program.event("temperature")
    samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples")
    program.collect(event, into=samples)
    program.fold(samples, folds.struct(some=folds.any(), every=folds.all()), "moving")
    device = started(tmp_path, home, plan=program.plan())
    shown = []
    for value in (0, 1):
        device.read([value])
        home.take(device.tick(10))
        for part in ("some", "every"):
            topic = f"homeassistant/binary_sensor/lasp__house__pi-1/moving__{part}"
            config = json.loads(home.retained[f"{topic}/config"])
            state = home.retained[config["state_topic"]]
            shown.append(template(jinja, config["value_template"], state))
    assert shown == ["False", "False", "True", "False"]


@pytest.mark.parametrize(
    "event",
    [
        *(EventType("any", Resolution("1"), unit) for unit in discovery.OF_UNIT),
        *(EventType(word, Resolution("1"), unit) for unit, word, _ in discovery.OF_NAME),
    ],
    ids=str,
)
def test_each_class_that_we_name_has_the_unit(event):
    kind = discovery.device_class(event)
    assert event.unit in UNITS[kind]
    assert kind not in TOTALS_ONLY
    meter = discovery.meter_class(event)
    assert not meter or (meter in TOTALS_ONLY and event.unit in UNITS[meter])
