"""Each scan as users write it, on devices that are killed and cut off, against plain Python."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from lasp_edge import Program, folds, scans
from lasp_edge.testing import replay

START_S = 1_764_028_800
VALUES = [20, 20, 26, 25, 22, 22, 21, 30, 30, 31, 19, 20]
TIMES_S = [START_S + 7 * n + n % 3 for n in range(len(VALUES))]


def program_of(**made):
    program = Program("scans")
    warm = program.event("warm", resolution="0.1")
    for name, scan in made.items():
        program.result(program.scan(name, source=warm, scan=scan, per_device=True))
    return program, warm


def run(program, faults="rough"):
    given = [("pi-1", "warm", value, time_s) for value, time_s in zip(VALUES, TIMES_S, strict=True)]
    found = replay(program, given, faults=faults, seed=3)
    assert found.failures == []
    return found


def rows(found, name):
    fixed = {"device", "key", "time"}
    return [
        tuple(part for column, part in row.items() if column not in fixed)
        for row in found.result(name)
    ]


def test_each_gives_its_definition():
    program, _ = program_of(
        steady=scans.debounce(for_s=7.5),
        hot=scans.held_for(lambda event: event.value > 24, for_s=5),
        level=scans.hysteresis(above="25.5", below=21.5),
        rate=scans.rate(per_s=60, resolution="0.01"),
        fast=scans.sessions(gap_s=8, so_far=True),
    )
    found = run(program)
    pairs = list(pairwise(zip(TIMES_S, VALUES, strict=True)))
    stayed = [20, 25, 22, 21, 30, 31, 19, 20]  # the readings are 8, 8 and 5 seconds apart
    assert rows(found, "steady") == [(value,) for value in stayed]
    hot = [datetime.fromtimestamp(TIMES_S[n], UTC) for n in (2, 7)]
    assert rows(found, "hot") == [(since,) for since in hot]
    assert rows(found, "level") == [(0,), (1,), (0,), (1,), (0,)]
    assert rows(found, "rate") == [
        (round(60 * (b - a) / (t - s) * 100) / 100,) for (s, a), (t, b) in pairs
    ]
    assert [row[2] for row in rows(found, "fast")] == [1, 1, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1]


@pytest.mark.parametrize("hold_s", [None, 3])
def test_a_time_weighted_mean_counts_each_value_for_as_long_as_it_held(hold_s):
    scan = scans.time_weighted_mean(every_s=20, hold_s=hold_s, resolution="0.001")
    program, _ = program_of(mean=scan)
    held = {}
    ends_s = [*TIMES_S[1:], TIMES_S[-1] + 1000]
    for value, from_s, until_s in zip(VALUES, TIMES_S, ends_s, strict=True):
        for second in range(from_s, min(until_s, from_s + (hold_s or 20))):
            held.setdefault(second // 20, []).append(value)
    expected = [(round(sum(each) / len(each), 3),) for _, each in sorted(held.items())]
    assert rows(run(program), "mean") == expected


def test_the_three_greatest_of_a_span_come_at_each_reading():
    program, warm = program_of()
    top = program.scan("top", source=warm, scan=scans.top(3, within_s=30), per_device=True)
    greatest = program.map(top, lambda event: event.value[0], "greatest", resolution="0.1")
    program.result(greatest)
    program.window("of_all", source=greatest, fold=folds.sum(), size_s=3600)
    found, expected = run(program), []
    for at_s in TIMES_S:
        pairs = zip(TIMES_S, VALUES, strict=True)
        expected.append(max(value for s, value in pairs if at_s - 30 < s <= at_s))
    assert rows(found, "greatest") == [(value,) for value in expected]
    assert [row["sum"] for row in found.window("of_all")] == [sum(expected)]
