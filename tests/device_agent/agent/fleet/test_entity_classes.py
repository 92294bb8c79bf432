"""Entities of Home Assistant: units, device classes and components follow from event and fold."""

import pytest

from crdts import BoundedLWWSet
from device_agent.gateway.results import GatewayDiscovery
from device_agent.outputs.classes import row_reading
from lasp_edge import Program, folds, scans
from lasp_edge.folds.numbers import Resolution
from lasp_edge.language import device_classes
from lasp_edge.language.declarations import EventType
from lasp_edge.protocol.topics import Topics
from tests.device_agent.agent.fleet.home import UNITS, started, template


@pytest.mark.parametrize(
    ("name", "unit", "fold", "kind", "state"),
    [
        ("temperature", "°C", folds.mean(), "temperature", "measurement"),
        ("humidity", "%", folds.max(), "humidity", "measurement"),
        ("cpu", "%", folds.mean(), None, "measurement"),
        ("power", "W", folds.last(), "power", "measurement"),
        ("meter", "kWh", folds.last(), "energy", "total_increasing"),
        ("meter", "kWh", folds.sum(), "energy", "total"),
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
        home.tick(device, 10)
        for part in ("some", "every"):
            config = home.messages()["pi-1"]["components"][f"moving__{part}"]
            assert config["platform"] == "binary_sensor"
            state = home.retained[config["state_topic"]]
            shown.append(template(jinja, config["value_template"], state))
    assert shown == ["False", "False", "True", "False"]


@pytest.mark.parametrize(
    "event",
    [
        *(EventType("any", Resolution("1"), unit) for unit in device_classes.OF_UNIT),
        *(EventType(word, Resolution("1"), unit) for unit, word, _ in device_classes.OF_NAME),
    ],
    ids=str,
)
def test_each_class_that_we_name_has_the_unit(event):
    assert event.unit in UNITS[device_classes.device_class(event)]


def made(event_of, fold_of, show=None):
    """Return the plan of a program that folds one event in a window, and what is declared."""
    program = Program("house")
    program.event("humidity", resolution="0.1", unit="%")
    event = event_of(program)
    samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples", measures=event)

    @program.on_event(event)
    def sampled(event, update):
        update(samples, BoundedLWWSet.add, event.value, event.time_us)

    local = program.fold(samples, fold_of(), "value")
    if show is not None:
        program.show(local, **show)
    program.window("slid", source=event, fold=folds.sum(), size_s=60, slide_s=10)
    program.window("apart", source=event, fold=folds.sum(), size_s=60)
    return program.plan()


def degrees(program):
    return program.event("temperature", resolution="0.1", unit="°C")


def test_a_value_that_a_handler_fills_has_unit_and_class_of_its_event(tmp_path, home):
    started(tmp_path, home, plan=made(degrees, folds.mean))
    own = home.entities["lasp__house__pi-1__value__mean"]
    assert (own["unit_of_measurement"], own["device_class"]) == ("°C", "temperature")


def test_title_and_class_are_shown_and_change_no_stream(tmp_path, home):
    def wind(program):
        return program.event(
            "gusts", resolution="0.1", unit="m/s", title="Wind", device_class="wind_speed"
        )

    def plain(program):
        return program.event("gusts", resolution="0.1", unit="m/s")

    plan, bare = made(wind, folds.max), made(plain, folds.max)
    shown = made(wind, folds.max, {"title": "Strongest gust", "device_class": "speed"})
    assert plan.digest == bare.digest == shown.digest
    assert {each.local_folds["value"].stream for each in (plan, bare, shown)} == {
        plan.local_folds["value"].stream
    }
    found = []
    for number, each in enumerate((bare, plan, shown)):
        started(tmp_path / str(number), home, plan=each)
        own = home.entities["lasp__house__pi-1__value__max"]
        found.append((own["name"], own["device_class"]))
    assert found == [
        ("value", "speed"),
        ("Wind value", "wind_speed"),
        ("Strongest gust", "speed"),
    ]


def test_the_sums_of_windows_that_follow_each_other_are_totals():
    def meter(program):
        return program.event("energy", resolution="0.01", unit="kWh")

    plan = made(meter, folds.last)
    discovery = GatewayDiscovery(plan, Topics("house"), "gateway", "homeassistant")
    (apart,) = discovery.value(plan.windows["apart"], None).values()
    (slid,) = discovery.value(plan.windows["slid"], None).values()
    assert (apart["device_class"], apart["state_class"]) == ("energy", "total")
    assert apart["last_reset_value_template"] == "{{ value_json.start }}"
    assert (slid.get("device_class"), slid["state_class"]) == (None, "measurement")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"unit": "°C", "device_class": "power"}, "has the unit GW, MW, TW, W, kW or mW, not '°C'"),
        ({"unit": "°C", "device_class": "temperatur"}, "did you mean 'temperature'"),
        ({"device_class": 7}, "Home Assistant has no device_class 7 of a number"),
        ({"unit": "pH", "device_class": "ph"}, "has the unit none, not 'pH'"),
        ({"title": "a\nb"}, "event 'x': title: a printable name"),
    ],
)
def test_a_class_that_home_assistant_would_refuse_is_refused_at_once(more, says):
    with pytest.raises(ValueError, match=says):
        Program("house").event("x", **more)


def test_the_class_of_a_value_is_checked_when_its_unit_is_known():
    with pytest.raises(ValueError, match="show 'value': device_class 'power' has the unit"):
        made(degrees, folds.mean, {"device_class": "power"})
    with pytest.raises(ValueError, match="a fold's target, a window or a result is needed"):
        Program("house").show("nothing", title="x")


def test_parts_of_rows_have_units_and_times_are_times():
    program = Program("laundry")
    power = program.event("power", resolution="1", unit="W")
    busy = program.filter(power, lambda event: event.value > 5, "busy")
    fold = folds.struct(count=folds.count(), mean=folds.mean())
    sessions = scans.sessions(gap_s=300, fold=fold)
    runs = program.scan("runs", source=busy, scan=sessions, per_device=True)
    steps = scans.differences()
    program.result(program.scan("steps", source=power, scan=steps, per_device=True))
    program.result(runs)
    rounded = program.map(power, lambda event: event.value / 1000, "kilowatts", resolution="0.1")
    program.result(rounded)
    plan = program.plan()
    found = {
        f"{name} {part}": (config.get("device_class", ""), config.get("unit_of_measurement", ""))
        for name, result in plan.stream_results.items()
        for part, step in result.parts
        for config in [row_reading(plan, result, part, step)]
    }
    assert found == {
        "runs start_us": ("timestamp", ""),
        "runs end_us": ("timestamp", ""),
        "runs count": ("", ""),
        "runs mean": ("", "W"),
        "steps difference": ("", "W"),
        "kilowatts value": ("", ""),
    }


def test_a_part_that_a_program_calls_a_time_has_the_stream_of_a_number():
    ids = []
    for step in ("1", "time"):
        program = Program("house")
        door = program.event("door")
        opened = program.map(door, lambda event: (event.time_us,), "opened")
        program.result(opened, parts={"at_us": step})
        result = program.plan().stream_results["opened"]
        ids.append((result.stream, result.parts))
    assert ids[0] == ids[1]
    assert result.times == {"at_us"}
