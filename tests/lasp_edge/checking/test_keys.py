"""A key in which the time is: each reading has rows of its own, and nobody says that it grows."""

from datetime import UTC, datetime
from itertools import count

import pytest

from crdts import BoundedLWWSet
from lasp_edge import Program, folds, scans
from lasp_edge.checking.determinism import risks_of
from lasp_edge.checking.keys import keyless, long_keys, restless, whole_tags
from lasp_edge.checking.streams import tried_streams
from lasp_edge.checking.trial import Findings
from tests.lasp_edge.support_programs import climate

KEYS = {
    "the time": (lambda event: f"{event.tags['room']} {event.time_us}", True),
    "the second": (lambda event: (event.tags["room"], event.time_us // 1_000_000), True),
    "a day": (lambda event: datetime.fromtimestamp(event.time_us / 1e6, UTC).date().isoformat(), 0),
    "a tag": (lambda event: event.tags["room"], False),
    "what fails": (lambda event: str(1 // 0), False),
}


@pytest.mark.parametrize("case", KEYS)
def test_a_key_with_the_time_in_it_is_named(case):
    key, is_named = KEYS[case]
    program = Program("house")
    warm = program.event("warm", resolution="0.1")
    program.window("w", source=warm, fold=folds.mean(), size_s=60, key=key)
    last = program.declare_dynamic(BoundedLWWSet(bound=5), "last", key=key)
    program.collect(warm, into=last)
    program.fold(last, folds.mean(), "here")
    program.result(program.scan("s", source=warm, scan=scans.changes(), key=key, per_device=True))
    found = [line.partition(" gives each second")[0] for line in restless(program.plan())]
    expected = {"key of window w", "key of variable last", "key of scan s"} if is_named else set()
    assert set(found) == expected


@pytest.mark.parametrize(
    ("key", "span"),
    [
        (lambda event: (event.tags["room"], event.time_us // 60_000_000), "minute"),
        (lambda event: str(event.time_us // 3_600_000_000), "hour"),
        (lambda event: str(event.time_us // 60_000_000 % 1_440), ""),
        (lambda event: str(event.time_us // 3_600_000_000 % 168), ""),
        (lambda event: str(event.time_us // 86_400_000_000), ""),
    ],
    ids=count(),
)
def test_a_window_with_a_key_for_each_minute_or_hour_is_named(key, span):
    program = Program("house")
    warm = program.event("warm", resolution="0.1")
    program.window("w", source=warm, fold=folds.mean(), size_s=60, key=key)
    program.result(program.scan("s", source=warm, scan=scans.changes(), key=key, per_device=True))
    found = [line.partition(" a key of its own")[0] for line in restless(program.plan())]
    assert found == [f"key of window w gives each {span}"] * bool(span)


@pytest.mark.parametrize(
    ("key", "is_named"),
    [
        (lambda event: event.value * 0.1, True),
        (lambda event: f"{event.value / 3}", True),
        (lambda event: (event.tags["room"], event.value * 0.1), True),
        (lambda event: f"{event.value * 0.1:.1f}", False),
        (lambda event: round(event.value * 0.1, 1), False),
        (lambda event: event.value / 2, False),
        (lambda event: event.value, False),
        (lambda event: event.tags["none"][7], False),
    ],
    ids=count(),
)
def test_a_key_that_prints_a_computed_double_is_named(key, is_named):
    program = Program("house")
    warm = program.event("warm", resolution="1", least=0, most=30)
    program.window("w", source=warm, fold=folds.mean(), size_s=60, key=lambda e: str(key(e)))
    assert len(long_keys(program.plan())) == is_named


@pytest.mark.parametrize(
    ("key", "is_named"),
    [
        (lambda event: str(event.tags), True),
        (lambda event: f"{event.device} {event.tags}", True),
        (lambda event: repr(event.tags) + event.device, True),
        (lambda event: f"{event.tags['room']}", False),
        (lambda event: str(event.tags["room"]), False),
        (lambda event: str(len(event.tags)), False),
    ],
    ids=count(),
)
def test_a_key_of_all_tags_is_named(key, is_named):
    program = Program("house")
    warm = program.event("warm", resolution="0.1")
    program.window("w", source=warm, fold=folds.mean(), size_s=60, key=key)
    lines = whole_tags(program.plan())
    assert len(lines) == is_named
    assert all("write those that are meant, as in event.tags" in line for line in lines)


def test_the_default_of_a_parameter_in_a_function_is_named():
    program = Program("house")
    warm = program.event("warm", resolution="0.1")
    limit = program.parameter("limit", "28", resolution="0.1")
    for name, where in (
        ("wrong", lambda event, _at: event.value > float(limit.default)),
        ("right", lambda event, at: event.value > at[limit]),
    ):
        program.window(name, source=warm, fold=folds.count(), size_s=60, where=where, uses=(limit,))
    (line,) = risks_of(program.plan())
    why = "what operators set never reaches it; write at[limit]"
    assert line == f"where of window wrong names limit.default: {why}"


def test_a_key_that_only_a_scan_gives_is_named_where_there_is_none():
    program = Program("house")
    warm = program.event("warm", resolution="0.1")
    by = {"key": lambda event: event.key}
    window = {"fold": folds.count(), "size_s": 60}
    program.window("w", source=warm, **window, **by)
    program.filter(warm, lambda event: event.key == "attic", "attic")
    program.window("of_attic", source="attic", **window, where=lambda event: event.key == "attic")
    changes = program.scan("changes", source=warm, scan=scans.changes(), per_device=True, **by)
    rising = program.filter(changes, lambda event: event.key == "attic", "rising")
    program.window("r", source=rising, **window, **by)
    program.window("o", source=warm, **window, key=lambda event: event.key or event.tags["room"])
    program.window("p", source=warm, **window, where=lambda event, at: event.tags["key"] == "a")
    assert {line.partition(" asks for event.key, ")[0] for line in keyless(program.plan())} == {
        *("key of window w", "key of scan changes", "where of window of_attic", "filter attic")
    }


@pytest.mark.parametrize(
    ("key", "is_named"),
    [
        (lambda e: e.tags["room"] if e.name == "warm" else e.tags["room"].lower(), True),
        (lambda e: e.tags["room"][: 9 if e.name == "warm" else 2], True),
        (lambda e: e.tags["room"].lower(), False),
        (lambda e: str(int(e.tags["room"])), False),
        (lambda e: e.device, False),
    ],
    ids=["small letters", "cut", "for both", "a number", "no tag"],
)
def test_two_events_whose_tags_are_spelt_in_two_ways_are_named(key, is_named):
    found = tried_streams(climate(key).plan())
    assert len(found.doubts) == is_named
    assert all("'Attic' of warm where tags are 'Attic'" in line for line in found.doubts)


def test_the_key_of_a_scan_before_is_of_other_tags():
    program = Program("lift")
    speed, load, wind = (program.event(name, resolution="1") for name in ("speed", "load", "wind"))
    by = {"key": lambda event: event.key or event.tags["lift"], "per_device": True}
    first = scans.as_of(speed, load, missing=0)
    loaded = program.scan("loaded", source=[speed, load], scan=first, **by)
    second = scans.as_of(loaded, wind, missing=0)
    every = program.scan("every", source=[loaded, wind], scan=second, **by)
    program.result(program.map(every, lambda event: event.value[1], "wind_at", resolution="1"))
    found = Findings()
    tried_streams(program.plan(), None, found)
    assert found.doubts == []
