"""What operators said of parameters, as a schedule that any two devices read alike."""

import itertools

import msgpack
import pytest

from crdts import ControlEntry, ControlLog, ControlPlace, decode, encode
from crdts.control_log import BEFORE_ALL_US, INHERITED, TAKEN_BACK
from crdts.wire import CODES


def log_of(*said):
    """Return a log in which these were said one after the other."""
    log = ControlLog()
    for parameter, scope, from_us, value in said:
        log |= log.set(parameter, scope, from_us, value, "ann")
    return log


def value_at(log, device, time_us):
    """Return a value by its definition: one scope after the other, from the latest place on."""
    for scope in (device, ""):
        for at in sorted(log.entries, key=lambda place: -place.from_us):
            if at.scope == scope and at.from_us <= time_us and log.entries[at].value is not None:
                if log.entries[at].value:
                    return log.entries[at].value
                break
    return ""


def test_an_entry_for_tomorrow_survives_one_for_today():
    log = log_of(("above", "", 900, "30"), ("above", "", 500, "29"))
    assert [tuple(step) for step in log.steps("above")] == [
        (BEFORE_ALL_US, ""),
        (500, "29"),
        (900, "30"),
    ]


def test_a_reading_at_exactly_the_place_belongs_to_the_new_value():
    log = log_of(("above", "", 500, "29"))
    assert [value_at(log, "attic", t) for t in (499, 500)] == ["", "29"]
    assert log.steps("above")[1].from_us == 500


def test_a_devices_own_scope_goes_first_until_it_ends():
    log = log_of(
        ("above", "cellar", 200, "5"), ("above", "", 100, "9"), ("above", "cellar", 400, INHERITED)
    )
    assert [step.value for step in log.steps("above", "cellar")] == ["", "9", "5", "9"]
    assert [step.value for step in log.steps("above", "attic")] == ["", "9"]


def test_a_place_that_was_taken_back_is_as_if_nobody_had_spoken():
    log = log_of(("above", "", 100, "9"), ("above", "", 100, TAKEN_BACK))
    assert log.steps("above") == ControlLog().steps("above")
    assert log.value == {}
    assert log.entries[ControlPlace("above", "", 100)].number == 2


def test_equal_neighbours_are_one_step():
    log = log_of(("above", "", 100, "9"), ("above", "", 300, "9"), ("above", "", 500, "8"))
    assert [step.from_us for step in log.steps("above")] == [BEFORE_ALL_US, 100, 500]


def test_a_text_that_is_no_value_counts_as_taken_back():
    log = log_of(("mode", "", 100, "night"), ("mode", "", 300, "dusk"))
    known = {"day", "night"}.__contains__
    assert [step.value for step in log.steps("mode", counts=known)] == ["", "night"]


def test_steps_are_the_definition_at_every_time():
    values = (TAKEN_BACK, INHERITED, "7")
    for first, second, third in itertools.product(values, values, values):
        log = log_of(
            ("above", "", 1, "3"),
            ("above", "cellar", 2, first),
            ("above", "", 3, second),
            ("above", "cellar", 4, third),
        )
        for device in ("cellar", "attic"):
            steps = log.steps("above", device)
            for time_us in range(7):
                found = [step.value for step in steps if step.from_us <= time_us][-1]
                assert found == value_at(log, device, time_us)


def test_two_operators_at_once_leave_one_value_everywhere():
    here, there = (
        ControlLog().set("above", "", 5, "9", "ann"),
        ControlLog().set("above", "", 5, "8", "bob"),
    )
    assert here | there == there | here
    assert (here | there).value == {ControlPlace("above", "", 5): "8"}


@pytest.mark.parametrize("values", list(itertools.combinations([TAKEN_BACK, INHERITED, "30"], 2)))
def test_of_two_entries_of_one_number_the_greater_value_stands_everywhere(values):
    entries = [ControlEntry(1, "ann", value) for value in values]
    assert (entries[0] > entries[1]) != (entries[1] > entries[0])
    logs = [ControlLog({ControlPlace("above", "", 5): entry}) for entry in entries]
    assert (logs[0] | logs[1]).entries == (logs[1] | logs[0]).entries


def test_a_place_says_again_what_it_said_before_under_a_greater_number():
    log = log_of(("above", "", 5, "30"), ("above", "", 5, "28"), ("above", "", 5, "30"))
    assert log.entries == {ControlPlace("above", "", 5): ControlEntry(3, "ann", "30")}


def test_the_numbers_of_all_parameters_grow_together():
    log = log_of(("above", "", 5, "30"), ("offset", "cellar", 1, "2"))
    assert [log.entries[at].number for at in sorted(log.entries)] == [1, 2]


def test_what_is_said_in_any_order_is_one_log():
    log, said = ControlLog(), []
    for at, value in ((5, "1"), (5, "2"), (9, "3"), (5, TAKEN_BACK)):
        said.append(log.set("above", "", at, value, "ann"))
        log |= said[-1]
    for order in itertools.permutations(said):
        heard = ControlLog()
        for delta in order:
            heard |= delta
        assert heard == log


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (("x" * 65, "", 5, "1"), "a parameter's name needs text"),
        (("above", "x" * 256, 5, "1"), "a scope needs text"),
        (("above", "", 2**61, "1"), "a place needs an integer"),
        (("above", "", 5.0, "1"), "a place needs an integer"),
        (("above", "", 5, 1), "a value needs text"),
        (("above", "", 5, "x" * 256), "a value needs text"),
    ],
)
def test_what_cannot_be_said_is_refused(said, reason):
    with pytest.raises(ValueError, match=reason):
        ControlLog().set(*said, "ann")


@pytest.mark.parametrize(
    "plain",
    [
        [],
        {"above": []},
        {"above": {"": 5}},
        {"above": {"": [[5, 1, "ann"]]}},
        {"above": {"": [[5, 0, "ann", "1"]]}},
        {"above": {"": [[5, 1, "ann", 7]]}},
        {"above": {}},
        {"above": {"": [[6, 1, "ann", "1"], [5, 1, "ann", "1"]]}},
        {"above": {"": [[5, 1, "ann", "1"], [5, 2, "ann", "1"]]}},
    ],
)
def test_a_log_of_another_form_is_refused(plain):
    data = msgpack.packb(msgpack.ExtType(CODES[ControlLog], msgpack.packb(plain)))
    with pytest.raises(ValueError, match="needs"):
        decode(data)


def test_a_log_travels():
    log = log_of(("above", "", 5, "30"), ("above", "cellar", -7, None), ("mode", "", 0, ""))
    assert decode(encode(log)) == log
    assert log.lanes() == [("above", ""), ("above", "cellar"), ("mode", "")]
    assert log.of("above", "cellar").entries.keys() == {ControlPlace("above", "cellar", -7)}
