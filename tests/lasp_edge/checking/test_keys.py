"""A key in which the time is: each reading has rows of its own, and nobody says that it grows."""

from datetime import UTC, datetime

import pytest

from crdts import BoundedLWWSet
from lasp_edge import Program, folds, scans
from lasp_edge.checking.determinism import risks_of
from lasp_edge.checking.keys import keyless, restless

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
