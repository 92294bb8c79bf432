"""A plan knows which events write a variable, and what its values mean."""

import tomllib
from functools import partial
from pathlib import Path

import pytest

from crdts import BoundedLWWSet, Counter, GSet
from lasp_edge import Event, Program
from lasp_edge.language.updates import run_handlers
from lasp_edge.release import RELEASE


class LogName:
    """Something that holds a variable."""

    def __init__(self, variable):
        self.variable = variable

    def __call__(self, event, update):
        update(self.variable, "add", event.value, event.time_us)

    def method(self, event, update):
        self(event, update)


def _add(update, variable, event):
    update(variable, BoundedLWWSet.add, event.value, event.time_us)


def closure(samples):
    return lambda event, update: update(samples, "add", event.value, event.time_us)


def helper(samples):
    def add(event, update):
        _add(update, samples, event)

    return lambda event, update: [add(event, update)]


def container(samples):
    held = {"all": [samples]}
    return lambda event, update: _add(update, held["all"][0], event)


def attribute(samples):
    held = LogName(samples)
    return lambda event, update: _add(update, held.variable, event)


def callable_object(samples):
    return LogName(samples)


def bound_method(samples):
    return LogName(samples).method


def partial_function(samples):
    def add(variable, event, update):
        _add(update, variable, event)

    return partial(add, samples)


def default(samples):
    def add(event, update, variable=samples):
        _add(update, variable, event)

    return add


WAYS = [
    closure,
    helper,
    container,
    attribute,
    callable_object,
    bound_method,
    partial_function,
    default,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_handler_writes_what_its_code_names_and_nothing_else(way):
    program = Program("house")
    temperature, humidity = program.event("temperature"), program.event("humidity")
    warm = program.declare_dynamic(BoundedLWWSet(bound=5), "warm")
    damp = program.declare_dynamic(BoundedLWWSet(bound=5), "damp")
    program.on_event(temperature)(way(warm))
    program.on_event(humidity)(way(damp))
    meanings = program.plan().meanings
    assert meanings["warm"].events == ("temperature",)
    assert meanings["damp"].events == ("humidity",)
    (change,) = run_handlers(program.plan(), Event("humidity", 60.0, 5, "pi-1", {}))
    assert change.variable == "damp"


def test_a_handler_that_names_no_variable_may_write_all():
    program = Program("house")
    temperature = program.event("temperature")
    program.event("humidity")
    program.declare_dynamic(BoundedLWWSet(bound=5), "samples")
    program.on_event(temperature)(lambda _event, _update: None)
    assert program.plan().meanings["samples"].events == ("temperature",)


def test_a_hidden_write_is_refused_until_it_is_declared():
    def declared(**given):
        program = Program("house")
        temperature = program.event("temperature")
        named = program.declare_dynamic(BoundedLWWSet(bound=5), "named")
        hidden = program.declare_dynamic(BoundedLWWSet(bound=5), "hidden")
        hiding = iter([hidden] * 2)

        def handler(event, update):
            for variable in (named, next(hiding)):
                _add(update, variable, event)

        program.on_event(temperature, **({"writes": [hidden]} if given else {}))(handler)
        return program.plan()

    event = Event("temperature", 20.0, 5, "pi-1", {})
    with pytest.raises(ValueError, match=r"write on_event\('temperature', writes=\[hidden\]\)"):
        run_handlers(declared(), event)
    plan = declared(writes=True)
    assert [change.variable for change in run_handlers(plan, event)] == ["named", "hidden"]
    assert plan.meanings["hidden"].events == ("temperature",)


def test_what_waits_for_a_threshold_is_a_source_of_what_it_writes():
    program = Program("house")
    program.event("temperature")
    total = program.declare(Counter(), "total")
    doors = program.declare(GSet(), "doors")
    samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples")

    @program.on_threshold(doors)
    def seen(_value, update):
        update(samples, BoundedLWWSet.add, 1, 5)

    meanings = program.plan().meanings
    assert meanings["samples"].events == ("doors (on_threshold)",)
    assert meanings[total.name].events == ()


def test_the_release_is_that_of_the_package():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert project["project"]["version"] == RELEASE


def test_programs_that_declare_the_same_have_one_digest():
    def made(resolution="0.01", bound=5, unit="°C", version=1):
        program = Program("house")
        temperature = program.event("temperature", resolution=resolution, unit=unit)
        samples = program.declare_dynamic(
            BoundedLWWSet(bound=bound), "samples", key=lambda e: e.tags["room"], version=version
        )
        program.collect(temperature, into=samples)
        return program.plan().digest

    assert made() == made() == made(resolution="1e-2")
    assert len({made(), made("0.1"), made(bound=6), made(unit="K"), made(version=2)}) == 5
