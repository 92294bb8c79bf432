"""The built-in scans: their laws over drawn values, and what they refuse."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lasp_edge import folds, scans
from lasp_edge.folds.numbers import Resolution
from lasp_edge.testing import check_scan, scan_outputs

VALUES = st.lists(st.integers(-5, 5), max_size=12)
TIMED = st.lists(st.tuples(st.integers(0, 40), st.integers(-5, 5)), max_size=12).map(sorted)
few = settings(max_examples=25)


@few
@given(VALUES, st.integers(1, 4))
def test_last_is_a_slice(values, n):
    assert scan_outputs(scans.last(n), values) == [
        tuple(values[max(0, k - n + 1) : k + 1]) for k in range(len(values))
    ]


@few
@given(VALUES)
def test_differences_add_up(values):
    outputs = scan_outputs(scans.differences(), values)
    assert sum(outputs) == (values[-1] - values[0] if values else 0)
    assert len(outputs) == max(0, len(values) - 1)


@few
@given(VALUES, st.integers(1, 4))
def test_count_windows_are_a_beginning_of_the_values(values, n):
    outputs = scan_outputs(scans.every(n), values)
    assert [value for window in outputs for value in window] == values[: len(values) // n * n]


@few
@given(VALUES)
def test_changes_and_distinct_said_again_are_the_same(values):
    for scan in (scans.changes(), scans.distinct()):
        outputs = scan_outputs(scan, values)
        assert scan_outputs(scan, outputs) == outputs
    assert scan_outputs(scans.distinct(), values) == list(dict.fromkeys(values))


@few
@given(VALUES, st.integers(1, 3))
def test_top_is_the_greatest_so_far(values, n):
    outputs = scan_outputs(scans.top(n), values)
    assert outputs[-1:] == ([tuple(sorted(values, reverse=True)[:n])] if values else [])
    assert all(a != b for a, b in pairwise(outputs))


@few
@given(TIMED)
def test_sessions_lie_a_gap_apart_and_hold_all_values(timed):
    scan = scans.sessions(gap_s=3, fold=folds.sum()).at(Resolution("1"))
    times_s, values = [at for at, _ in timed], [value for _, value in timed]
    outputs = scan_outputs(scan, values, times_s=times_s)
    assert sum(total for _, _, total in outputs) == sum(values)
    assert all(b[0] - a[1] >= 3_000_000 for a, b in pairwise(outputs))
    inside = [[at for at in times_s if a <= at * 1_000_000 <= b] for a, b, _ in outputs]
    assert [at for times in inside for at in times] == times_s
    assert all(b - a < 3 for times in inside for a, b in pairwise(times))


@few
@given(TIMED, st.integers(1, 9))
def test_as_of_finds_the_newest_up_to_a_time(timed, within_s):
    names = ["left" if value > 0 else "right" for _, value in timed]
    times_s, values = [at for at, _ in timed], [value for _, value in timed]
    expected = []
    for at, value in timed:
        found = [(t, v) for t, v in timed if v <= 0 and t <= at]
        if value > 0 and found and at - found[-1][0] <= within_s:
            expected.append((value, found[-1][1]))
    scan = scans.as_of("left", "right", within_s=within_s)
    assert scan_outputs(scan, values, times_s=times_s, names=names) == expected


def opened(event):
    return event.value == 1


def closed(event):
    return event.value == 0


def test_a_pattern_of_two_within_a_time():
    scan = scans.pattern(opened, closed, within_s=5)
    outputs = scan_outputs(scan, [1, 1, 0, 1, 0], times_s=[0, 2, 4, 10, 16])
    assert outputs == [(0, 4_000_000), (2_000_000, 4_000_000)]


def test_a_pattern_asks_each_predicate_once_of_an_event_however_many_matches_wait():
    asked = []

    def closed_at(event):
        asked.append(event.time_us)
        return closed(event)

    scan = scans.pattern(opened, closed_at, within_s=60)
    outputs = scan_outputs(scan, [1, 1, 1, 0])
    assert outputs == [(first_us, 3_000_000) for first_us in (0, 1_000_000, 2_000_000)]
    assert asked == [1_000_000, 2_000_000, 3_000_000]


def test_a_pattern_of_two_and_then_nothing():
    scan = scans.pattern(opened, closed, within_s=5, absent_s=3)
    outputs = scan_outputs(scan, [1, 0, 1, 0, 7], times_s=[0, 2, 10, 11, 13])
    assert outputs == [(0, 2_000_000)]


def test_an_alarm_that_is_over_can_come_again():
    scan = scans.pattern(opened, absent_s=600)
    outputs = scan_outputs(scan, [1, 0, 1, 0, 1], times_s=[0, 100, 200, 900, 1000])
    assert outputs == [(200_000_000,), (1_000_000_000,)]


def test_a_meter_that_was_exchanged_counts_from_zero():
    scan = scans.differences(reset=True).at(Resolution("1"))
    assert scan_outputs(scan, [100, 130, 130, 180, 5, 25]) == [30, 0, 50, 5, 20]


def test_sessions_of_two_folds_have_their_parts():
    fold = folds.struct(count=folds.count(), mean=folds.mean())
    scan = scans.sessions(gap_s=2, fold=fold).at(Resolution("0.01"))
    assert list(scan.parts) == ["start_us", "end_us", "count", "mean"]
    assert scan_outputs(scan, [1.0, 2.0], times_s=[0, 1]) == [(0, 1_000_000, 2, 1.5)]


def test_values_that_do_not_fit_a_state_are_named():
    with pytest.raises(AssertionError, match="at most 65536 bytes"):
        scan_outputs(scans.distinct(), [f"{n:0200d}" for n in range(400)])


def test_a_cycle_that_does_not_end_is_named():
    scan = scans.loop(scans.last(1), lambda seen: seen)
    with pytest.raises(AssertionError, match="more than 1000 rounds"):
        scan_outputs(scan, [1])


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda: scans.last(0), "last: n must be a whole number from 1, not 0"),
        (lambda: scans.every(2, folds.sum()), r"every: of, as in every\(5, sum\), must be"),
        (lambda: scans.running(5), "running: function must be a function"),
        (lambda: scans.running(max, [1]), "a tuple in place of a list"),
        (lambda: scans.sessions(gap_s=0), "sessions: gap_s must be seconds above 0, not 0"),
        (lambda: scans.sessions(gap_s=1, fold=5), "a fold such as folds.mean"),
        (lambda: scans.as_of("x", "x", within_s=1), "two different events"),
        (lambda: scans.as_of(5, "x", within_s=1), "an event, a stream or its name"),
        (scans.pattern, "at least one predicate"),
        (lambda: scans.pattern(opened, closed), "within_s is needed"),
        (lambda: scans.distinct(within_s="1"), "must be seconds above 0"),
        (lambda: scans.loop(scans.sessions(gap_s=1), list), "a scan without timers"),
        (lambda: scans.top(n=True), "top: n must be a whole number"),
        (lambda: scans.sessions(1, folds.sum()).at(None), "needs events in steps"),
    ],
)
def test_what_cannot_work_is_refused_at_once(made, why):
    with pytest.raises(ValueError, match=why):
        made()


def test_other_parameters_are_another_meaning():
    several = [
        scans.last(2),
        scans.last(3),
        scans.last(3, partial=False),
        scans.differences(),
        scans.differences(reset=True),
        scans.differences().at(Resolution("0.1")),
        scans.sessions(gap_s=1),
        scans.sessions(gap_s=2),
        scans.pattern(opened, absent_s=1),
        scans.pattern(opened, absent_s=2),
        scans.loop(scans.last(2), list),
        scans.loop(scans.last(3), list),
        scans.distinct(),
        scans.distinct(within_s=1),
    ]
    assert len({scan.fingerprint for scan in several}) == len(several)


class Remembering(scans.Scan):
    """A scan that keeps something beside its state."""

    name, zero = "remembering", 0

    def __init__(self):
        self.seen = []

    def step(self, state, event):
        self.seen.append(event.value)
        return len(self.seen), ()


class Late(scans.Scan):
    """A scan whose timer gives a list."""

    name, zero = "late", 0

    def step(self, state, event):
        return event.time_us + 1, ()

    def due(self, state):
        return state or None

    def ring(self, state, at_us):
        return [], ()


def test_a_scan_that_depends_on_more_than_its_arguments_is_found():
    with pytest.raises(AssertionError, match=r"step from 0 at 5 gives \(1, \(\)\), and then \(2"):
        check_scan(Remembering(), [5])
    with pytest.raises(AssertionError, match="ring from 1 at 1 fails: ValueError: a plain value"):
        check_scan(Late(), [5])


def test_a_count_within_a_struct_of_sessions_is_a_whole_number():
    inner = folds.struct(low=folds.min(), n=folds.count())
    fold = folds.struct(count=folds.count(), mean=folds.mean(), inner=inner)
    scan = scans.sessions(gap_s=2, fold=fold).at(Resolution("0.5"))
    steps = {name: step for name, step in scan.parts.items() if step != "time"}
    assert steps.pop("count") == steps.pop("inner_n") == "1"
    assert set(steps.values()) == {"0.0005"}
