"""What an operator says becomes entries, and a text that people read."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crdts import ControlLog
from crdts.control_log import INHERITED
from device_agent.console.parameters.change import ParameterChange, schedule_lines
from lasp_edge import Program
from lasp_edge.language.parameters import steps_of, value_at

ABOVE = Program("p").parameter("above", "28", resolution="0.5", unit="°C")


def log_of(*given):
    log = ControlLog()
    for scope, value, from_us, until_us in given:
        log |= ParameterChange(ABOVE, scope, value, from_us, until_us, "ann").delta(log)
    return log


commands = st.tuples(
    st.sampled_from(["", "cellar"]),
    st.sampled_from(["29", "30", "31.5"]),
    st.integers(0, 9),
    st.none() | st.integers(10, 20),
)


@given(st.lists(commands, max_size=4), commands)
def test_until_leaves_all_that_comes_after_it_as_it_was(before, last):
    log = log_of(*before)
    after = log | ParameterChange(ABOVE, *last, "ann").delta(log)
    scope, value, from_us, until_us = last
    scopes = [scope] if scope else []
    old, new = (steps_of(each, ABOVE, *scopes) for each in (log, after))
    for time_us in range(-1, 25):
        inside = from_us <= time_us and (until_us is None or time_us < until_us)
        later = [at.from_us for at in log.value if at.scope == scope and at.from_us > from_us]
        if until_us is None and later and time_us >= min(later):
            inside = False
        expected = value if inside else value_at(old, time_us)
        assert value_at(new, time_us) == expected


def test_a_device_follows_the_fleet_again_after_its_span():
    log = log_of(("cellar", "30", 5, 9))
    assert list(log.value.values()) == ["30", INHERITED]
    log |= ParameterChange(ABOVE, "", "31", 20, None, "ann").delta(log)
    assert value_at(steps_of(log, ABOVE, "cellar"), 21) == "31"


def test_a_span_over_others_takes_them_back():
    log = log_of(("", "29", 4, None), ("", "30", 6, None), ("", "31", 2, 10))
    assert [(at.from_us, text) for at, text in log.value.items()] == [(2, "31"), (10, "30")]


def test_a_place_is_taken_back():
    log = log_of(("", "29", 4, None), ("", None, 4, None))
    assert log.value == {}


def test_numbers_grow_with_each_entry():
    log = log_of(("", "29", 4, 9), ("cellar", "30", 4, 9))
    numbers = sorted(entry.number for entry in log.entries.values())
    assert all(before < after for before, after in pairwise(numbers))


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ((), ["above: 28 °C"]),
        (
            (("", "29.0", 0, None), ("cellar", "30", 1_000_000, None)),
            [
                "above: 28 °C until 1970-01-01 00:00:00 UTC, then 29 °C",
                (
                    "above of cellar: 28 °C until 1970-01-01 00:00:00 UTC, then 29 °C until "
                    "1970-01-01 00:00:01 UTC, then 30 °C"
                ),
            ],
        ),
    ],
)
def test_a_schedule_is_one_line_for_the_fleet_and_for_each_device_of_its_own(given, lines):
    assert list(schedule_lines(ABOVE, log_of(*given))) == lines
