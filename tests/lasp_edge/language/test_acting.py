"""What a program may watch, and what is refused, with the words that say what to write."""

import pickle
import re

import pytest

from crdts import BoundedLWWSet
from lasp_edge import Program, folds, scans
from lasp_edge.language.acting import FoldValue
from lasp_edge.language.raising import device_alerts, fleet_alerts
from lasp_edge.language.updates import Update


@pytest.fixture
def program():
    made = Program("house")
    temperature = made.event("temperature", resolution="0.1")
    made.samples = made.declare_dynamic(BoundedLWWSet(bound=5), "samples")
    made.collect(temperature, into=made.samples)
    several = folds.struct(mean=folds.mean(), high=folds.max())
    made.both = made.fold(made.samples, several, "both")
    made.everywhere = made.fold_dynamic(made.both, "everywhere")
    return made


def nothing(value, update):
    """Do nothing."""


@pytest.mark.parametrize(
    ("arguments", "levels", "text"),
    [
        (["samples"], {}, "on_value: a value that fold or fold_dynamic makes is needed"),
        (["nowhere"], {}, "on_value: a value that fold or fold_dynamic makes is needed"),
        (["both"], {"above": 28}, "has the parts mean, high; say which one, such as part='mean'"),
        (["both"], {"part": "low"}, "has the parts mean, high, and no 'low'"),
        (["both"], {"for_s": 60}, "for_s needs above= or below="),
        (["both"], {"part": "mean", "above": 1, "below": 2}, "must not be the greater one"),
        (["both"], {"part": "mean", "above": "warm"}, 'a number or decimal text such as "0.5"'),
        (["both"], {"part": "mean", "above": float("nan")}, "a number or decimal text"),
        (["both"], {"part": "mean", "above": 1, "for_s": -1}, "for_s: seconds from 0 are needed"),
        (["both"], {"every_s": "often"}, "every_s: seconds from 0 are needed, not 'often'"),
    ],
)
def test_what_cannot_be_watched_is_refused(program, arguments, levels, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        program.on_value(*arguments, **levels)
    assert program.plan().reactions == ()


def test_another_programs_variable_is_refused(program):
    with pytest.raises(ValueError, match="is not a variable of program 'other'"):
        Program("other").on_value(program.everywhere)


def test_a_handler_has_to_be_a_function(program):
    with pytest.raises(ValueError, match=r"a function \(value, update\) is needed, not 3"):
        program.on_value("both")(3)


@pytest.mark.parametrize(
    ("name", "levels", "text"),
    [
        ("warm", {"part": "mean"}, "alert 'warm': write above= or below="),
        ("warm", {"above": 28}, "alert 'warm': the value has the parts mean, high; say which"),
        ("", {"above": 28}, "alert: a printable name"),
        ("warm", {"part": "mean", "above": 28, "hysteresis": -1}, "hysteresis is a number from 0"),
        (
            "warm",
            {"part": "mean", "above": 28, "below": 27, "hysteresis": 1},
            "above= and below= together say both levels themselves",
        ),
    ],
)
def test_an_alert_that_cannot_work_is_refused(program, name, levels, text):
    with pytest.raises(ValueError, match=text):
        program.alert(name, "everywhere", **levels)
    assert program.plan().alerts == {}


def test_an_alert_has_one_name(program):
    program.alert("warm", program.everywhere, part="high", above=28)
    with pytest.raises(ValueError, match="alert 'warm': the name is taken"):
        program.alert("warm", program.both, part="high", above=29)


def test_two_handlers_of_one_name_are_remembered_apart(program):
    for _ in range(3):
        program.on_value("both")(nothing)
    program.on_value("both", part="mean", above=3)(nothing)
    assert len({watched.identity for watched in program.plan().reactions}) == 4


def test_a_plan_with_reactions_can_be_pickled_without_its_functions(program):
    program.on_value("both", part="mean", above=3)(nothing)
    program.alert("warm", program.everywhere, part="high", above=28)
    plan = pickle.loads(pickle.dumps(program.plan()))
    assert (plan.reactions, plan.alerts) == (program.plan().reactions, program.plan().alerts)


def test_a_handler_of_a_value_may_not_add_samples_that_its_code_does_not_name(program):
    program.on_value("both")(nothing)
    value = FoldValue("both", "", None, {}, "", settled=True, devices=())
    with pytest.raises(ValueError, match="let it name the variable itself"):
        Update(program.plan(), value=value)(program.samples, "add", 1.0, 0)


def test_where_no_device_is_at_hand_nothing_is_known(program):
    assert Update(program.plan()).value(program.everywhere) is None


@pytest.fixture
def streaming(program):
    temperature, shut = "temperature", program.event("shut", text=True)
    program.window("minute", source=temperature, fold=folds.mean(), size_s=60)
    program.steps = program.scan(
        "steps", source=temperature, scan=scans.differences(), per_device=True
    )
    runs = program.scan("runs", source=temperature, scan=scans.sessions(gap_s=5), per_device=True)
    program.result(runs)
    names = program.scan("names", source=shut, scan=scans.changes(), per_device=True)
    program.result(names, parts={"word": "text"})
    return program


@pytest.mark.parametrize(
    ("watched", "part", "text"),
    [
        ("shut", None, "that fold or fold_dynamic makes, a window or a result is needed"),
        ("steps", None, "'steps' has no rows to watch; write program.result(steps)"),
        ("names", None, "'names' have none; give them one, such as ones = program.map(names, "),
        ("runs", "start_us", "has the parts count, and no 'start_us'"),
        ("minute", "max", "has the parts mean, and no 'max'"),
    ],
)
def test_what_no_alert_can_watch_is_refused(streaming, watched, part, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        streaming.alert("a", watched, part=part, above=1)


def test_a_window_of_another_program_is_not_watched(streaming):
    other = Program("other")
    source = other.event("temperature", resolution="1")
    theirs = other.window("minute", source=source, fold=folds.mean(), size_s=60)
    with pytest.raises(ValueError, match="is not a variable of program 'house'"):
        streaming.alert("a", theirs, above=1)


def test_alerts_are_of_devices_or_of_gateways(streaming):
    fleet = streaming.scan("fleet", source="temperature", scan=scans.sessions(gap_s=5))
    streaming.result(fleet)
    for name in ("minute", "runs", "fleet", "everywhere"):
        part = {"minute": None, "everywhere": "mean"}.get(name, "count")
        streaming.alert(f"on {name}", name, part=part, above=1)
    plan = streaming.plan()
    assert sorted(device_alerts(plan)) == ["on everywhere", "on runs"]
    assert sorted(fleet_alerts(plan)) == ["on fleet", "on minute"]
