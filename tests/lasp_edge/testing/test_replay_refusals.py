"""Readings that `replay` refuses, and those that a device refuses: both are named."""

from datetime import datetime

import pytest

from lasp_edge import Program, folds
from lasp_edge.examples.greenhouse import program as greenhouse
from lasp_edge.testing import replay

START_S = 1_764_028_800


def test_a_reading_that_is_refused_is_named():
    found = replay(greenhouse, [("pi-1", "temperature", 20, START_S)])
    assert any("KeyError: 'room'" in each for each in found.failures)


def test_a_value_that_is_refused_is_named_with_its_reading():
    program = Program("pond")
    ph = program.event("ph", resolution="0.01", least=0, most=14)
    order = program.event("order", text=True)
    program.window("m", source=ph, fold=folds.mean(), size_s=60)
    program.window("n", source=order, fold=folds.count(), size_s=60)
    values = [("ph", 7), ("ph", 16.5), ("ph", 18), ("ph", "sour"), ("order", 3), ("order", "tea")]
    found = replay(
        program, [("a", event, value, START_S + n) for n, (event, value) in enumerate(values)]
    )
    assert found.failures == [
        "refused: order: not a text, such as 3 of reading 4 (readings: 1)",
        "refused: ph: not a number, such as 'sour' of reading 3 (readings: 1)",
        "refused: ph: outside of 0 to 14, such as 16.5 of reading 1 (readings: 2)",
    ]
    assert [row["mean"] for row in found.window("m")] == [7.0]


DAY_S = 86_400
OUT_OF_ORDER = [
    *(("a", "litres", 100 + n, START_S + DAY_S * n) for n in range(10)),
    *(("a", "litres", 100, START_S + DAY_S * n + 60) for n in range(5)),
    ("b", "litres", 200, START_S + 60),
]
"""Device a has read what is nine days younger than the late ones; device b has read nothing."""


def by_day() -> Program:
    program = Program("by_day")
    litres = program.event("litres", resolution="1")
    program.window("read", source=litres, fold=folds.count(), size_s=DAY_S)
    return program


@pytest.mark.parametrize("faults", ["", "rough"])
def test_what_a_device_refuses_for_its_age_is_refused_and_counted(faults):
    found = replay(by_day(), OUT_OF_ORDER, faults=faults or ())
    # 9 days after the first, what is less than 2 days behind the first is too late.
    assert [row["count"] for row in found.window("read")] == [2, 1, 2, 2, 2, 1, 1, 1, 1, 1]
    late = "more than 7 days older than one that a read before (retain_days=7)"
    assert found.failures == [f"refused: too late: {late} (readings: 2)"]
    found = replay(by_day(), OUT_OF_ORDER, faults=faults or (), retain_days=9)
    assert [row["count"] for row in found.window("read")] == [3, 2, 2, 2, 2, 1, 1, 1, 1, 1]
    assert found.failures == []


def test_a_reading_that_is_refused_makes_no_other_one_too_late():
    program = Program("plausible")
    litres = program.event("litres", resolution="1", most=500)
    program.window("read", source=litres, fold=folds.count(), size_s=DAY_S)
    later = ("a", "litres", 501, START_S + 30 * DAY_S)
    found = replay(program, [later, *OUT_OF_ORDER[:3]])
    assert [row["count"] for row in found.window("read")] == [1, 1, 1]


@pytest.mark.parametrize("days", [0, -1, True, "7", float("nan")])
def test_days_that_are_no_number_above_0_are_refused(days):
    with pytest.raises(ValueError, match="retain_days: a number above 0 is needed"):
        replay(by_day(), OUT_OF_ORDER, retain_days=days)


@pytest.mark.parametrize(
    ("given", "options", "text"),
    [
        ([], {}, "a reading is needed"),
        ([("pi-1", "temperature", 20)], {}, "reading 0: a device, an event, a value, a time"),
        ([("pi-1", "temperature", 20, START_S * 1000)], {}, "reading 0: .* is it in milliseconds"),
        ([("pi-1", "temperature", 20, "noon")], {}, "reading 0: a datetime, or seconds since"),
        ([("pi-1", "temperature", 20, datetime(2025, 1, 1))], {}, "reading 0: .*a time zone"),  # noqa: DTZ001
        ([("pi-1", "temperature", 20, 1, {"k": 1})], {}, "reading 0: tags are texts, such as {'k'"),
        ([("pi-1", "temperature", 20, 1)], {"time": "ts"}, "time: options are for a file"),
        (
            [("pi-1", "Temperature", 20, 1)],
            {},
            "reading 0: there is no event 'Temperature'; there are temperature$",
        ),
        ([("temperature", "pi-1", 20, 1)], {}, "reading 0: there is no event 'pi-1'; there are "),
        ([("pi-1", ["temperature"], 20, 1)], {}, "reading 0: there is no event "),
        ("nowhere.jsonl", {"tim": "ts"}, "tim is no option of a file; there are "),
    ],
)
def test_what_cannot_be_replayed_is_refused(given, options, text):
    with pytest.raises(ValueError, match=text):
        replay(greenhouse, given, **options)
