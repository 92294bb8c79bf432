"""Values of values: a function of several, and a fold over what each device gives."""

import pytest

from crdts import BoundedLWWSet
from lasp_edge import Program, folds
from lasp_edge.testing import check_program, replay

START_S = 1_764_028_800
WARM = [("a", 20.0), ("a", 20.3), ("b", 22.0), ("c", 19.0), ("a", 20.5)]
COLD = [("a", 15.03), ("b", 15.0), ("b", 14.0)]
ROOM = {"room": "attic"}


def halls(*, keyed=False, stale=(None, None)):
    """Return a program, and the local and fleet means of its two events."""
    program, found = Program("halls"), {}
    for name, step, stale_s in (("warm", "0.1", stale[0]), ("cold", "0.01", stale[1])):
        event = program.event(name, resolution=step)
        key = (lambda event: event.tags["room"]) if keyed else None
        bounded = BoundedLWWSet(bound=2)
        samples = program.declare_dynamic(bounded, f"{name}s", measures=event, key=key)
        program.collect(event, into=samples)
        local = program.fold(samples, folds.mean(), f"{name} here")
        fleet = program.fold_dynamic(local, f"{name} fleet", stale_after_s=stale_s)
        found |= {f"{name} here": local, f"{name} fleet": fleet}
    return program, found


def run(program, faults="rough", cold=COLD):
    given = [("warm", each) for each in WARM] + [("cold", each) for each in cold]
    readings = [
        (device, name, value, START_S + n, ROOM) for n, (name, (device, value)) in enumerate(given)
    ]
    found = replay(program, readings, faults=faults, seed=3)
    assert found.failures == []
    return found


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("faults", [(), "rough"])
def test_a_value_of_two_values_is_agreed_watched_and_rounded_to_its_step(keyed, faults):
    program, of = halls(keyed=keyed)
    values = of["warm fleet"], of["cold fleet"]
    spread = program.combine("spread", lambda warm, cold: warm - cold, *values, resolution="0.1")
    program.alert("apart", spread, above="5.7", below=1)
    program.combine(
        "half", lambda spread: spread / 2, spread, resolution="0.01"
    )  # and a value of that one
    found = run(program, faults)
    key = "attic" if keyed else ""
    warm = (20.3 + 20.5 + 22 + 19) / 4
    assert found.value("spread", key).number == round(warm - (15.03 + 15 + 14) / 3, 1) == 5.8
    assert found.value("spread", key).settled
    assert found.value("half", key).number == 2.9
    assert {row["state"] for row in found.alerts} == {"on"}


@pytest.mark.parametrize("cold", [[], [("a", 0)]])
def test_without_a_sample_and_divided_by_zero_there_is_no_value(cold):
    program, of = halls()
    values = of["warm fleet"], of["cold fleet"]
    program.combine("ratio", lambda warm, cold: warm / cold, *values, resolution="0.1")
    assert run(program, cold=cold).value("ratio").number is None
    check_program(program)


def test_a_value_of_values_may_have_more_steps_than_a_reading():
    program, of = halls()
    values = of["warm fleet"], of["cold fleet"]
    program.combine("area", lambda warm, cold: warm * cold / 3, *values, resolution="0.001")
    readings = [("a", "warm", 200_000_000.5, START_S), ("a", "cold", -20_000_000, START_S)]
    found = replay(program, readings)
    assert found.failures == []
    assert found.value("area").number == -1333333336666666.667
    check_program(program)


def test_values_of_each_device_are_combined_on_it():
    program, of = halls()
    values = of["warm here"], of["cold here"]
    here = program.combine("here", lambda warm, cold: warm - cold, *values, resolution="0.1")
    program.fold_dynamic(here, folds.max(), "widest", resolution="0.1")
    program.alert("wide", here, above=7)
    found = run(program)
    assert found.value("widest").number == 7.5
    states = {row["device"]: row["state"] for row in found.alerts}
    assert states == {"a": "off", "b": "on", "c": "off"}, "c has measured nothing cold"


def test_a_fold_of_several_parts_is_given_to_the_function_by_name():
    program, _ = halls()
    ends = program.fold(
        program.plan().variables["warms"], folds.struct(l=folds.min(), h=folds.max()), "ends"
    )
    fleet = program.fold_dynamic(ends, "fleet ends")
    program.combine("width", lambda ends: ends["h"] - ends["l"], fleet, resolution="0.1")
    assert run(program).value("width").number == 3.0


def test_a_fold_over_devices_is_of_one_result_a_device():
    program, of = halls()
    here = of["warm here"]
    fleet = program.fold_dynamic(here, folds.max(), "hottest", resolution="0.01")
    program.fold_dynamic(here, folds.quantile(0.5), "median", resolution="0.01")
    program.fold_dynamic(here, folds.mean(), "mean of means", resolution="0.01")
    program.alert("hot", fleet, above="21.99")
    found = run(program)
    assert found.value("hottest").number == 22.0
    assert found.value("median").number == pytest.approx(20.4, rel=0.01)
    assert found.value("mean of means").number == pytest.approx((20.4 + 22 + 19) / 3)
    assert found.value("warm fleet").number == pytest.approx((20.3 + 20.5 + 22 + 19) / 4)
    assert {row["state"] for row in found.alerts} == {"on"}


REFUSED = {
    "nothing": (lambda p, of: p.combine("x", abs, resolution="1"), "values that fold or fold_dyn"),
    "a set of samples": (
        lambda p, of: p.combine("x", abs, p.plan().variables["warms"], resolution="1"),
        "values that fold or fold_dynamic made are needed, not 'warms'",
    ),
    "both tiers": (
        lambda p, of: p.combine("x", max, of["warm here"], of["cold fleet"], resolution="1"),
        "values of the fleet, or of each device, are needed, not of both",
    ),
    "another count of arguments": (
        lambda p, of: p.combine("x", lambda one: one, *both(of), resolution="1"),
        "its function is called with 2 values: too many positional arguments",
    ),
    "no function": (lambda p, of: p.combine("x", 5, *both(of), resolution="1"), "a function of"),
    "a name that is taken": (
        lambda p, of: p.combine("warm fleet", max, *both(of), resolution="1"),
        "is the target of a fold already",
    ),
    "a fold that asks for times": (
        lambda p, of: p.fold_dynamic(of["warm here"], folds.last(), "x"),
        "fold_dynamic 'x': .*last.* asks for times",
    ),
    "a part that is not there": (
        lambda p, of: p.fold_dynamic(of["warm here"], folds.max(), "x", part="high"),
        "'warm here' has the parts mean, no 'high'",
    ),
}


def both(of):
    return of["warm fleet"], of["cold fleet"]


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_combined_is_refused_at_once(case):
    declare, why = REFUSED[case]
    program, of = halls()
    before = program.plan().digest
    with pytest.raises(ValueError, match=why):
        declare(program, of)
    assert program.plan().digest == before


def test_values_that_wait_for_silent_devices_otherwise_are_not_combined():
    program, of = halls(stale=(600, 300))
    with pytest.raises(ValueError, match="all of them need one stale_after_s="):
        program.combine("x", max, *both(of), resolution="1")
    program, of = halls(stale=(600, 600))
    program.combine("x", max, *both(of), resolution="1")
    assert program.plan().dynamic_folds["x"].stale_us == 600_000_000


def test_a_function_that_calls_a_value_by_the_name_of_another_is_refused():
    program, of = halls()
    values = [
        program.fold_dynamic(of["warm here"], "hot"),
        program.fold_dynamic(of["cold here"], "cool"),
    ]
    with pytest.raises(ValueError, match=r"calls 'hot' cool, .* in the order hot, cool"):
        program.combine("x", lambda cool, hot: hot - cool, *values, resolution="0.1")
    program.combine("x", lambda hot, cool: hot - cool, *values, resolution="0.1")
    program.combine("y", lambda a, b: a - b, *values, resolution="0.1")
