"""Spans that were meant in milliseconds or microseconds are named, with what to write."""

import pytest

from crdts import BoundedLWWSet
from lasp_edge import Program, folds, scans
from lasp_edge.checking.spans import odd_spans


def windowed(span_s):
    program = Program("attic")
    warm = program.event("warm", resolution="0.1")
    program.window("w", source=warm, fold=folds.mean(), size_s=span_s)
    return odd_spans(program.plan())


@pytest.mark.parametrize(
    ("span_s", "meant_s"),
    [
        (30_000, 30),
        (60_000, 60),
        (300_000, 300),
        (600_000, 600),
        (900_000, 900),  # 250 hours, but no whole number of half days
        (1_800_000, 1_800),
        (3_600_000, 3_600),  # 1,000 hours, but no whole number of days
        (3 * 3_600_000, 3 * 3_600),  # 125 days
        (6 * 3_600_000, 6 * 3_600),
        (60_000_000, 60),
        (600_000_000, 600),
        (3_600_000_000, 3_600),
    ],
)
def test_a_span_in_milliseconds_or_microseconds_is_named(span_s, meant_s):
    (line,) = windowed(span_s)
    unit = "milli" if span_s < 60_000_000 else "micro"
    assert line.startswith(f"window w: size_s={span_s} is ")
    assert line.endswith(f"; is it in {unit}seconds? for {meant_s} seconds, write size_s={meant_s}")


@pytest.mark.parametrize(
    "span_s",
    [
        *(0.01, 0.5, 5, 60, 90, 100, 900, 1_000, 3_600, 5_000, 7_200, 10_000, 86_400, 90_000),
        *(36 * 3_600, 100_000, 72 * 3_600, 7 * 86_400, 1_000_000, 30 * 86_400, 31 * 86_400),
        *(90 * 86_400, 365 * 86_400, 1_000 * 86_400),
    ],
)
def test_a_span_that_people_mean_in_seconds_is_not_named(span_s):
    assert windowed(span_s) == []


def all_spans(long_s):
    """Return a program with each kind of span."""
    program = Program("house")
    warm = program.event("warm", resolution="0.1")
    last = program.declare_dynamic(BoundedLWWSet(bound=5, max_age_s=long_s), "last")
    program.collect(warm, into=last)
    here = program.fold(last, folds.mean(), "here")
    fleet = program.fold_dynamic(here, "fleet", stale_after_s=long_s)
    program.alert("hot", fleet, above=27, hysteresis=1, for_s=long_s)
    program.on_value(here, every_s=long_s)(lambda value, update: None)
    program.window("w", source=warm, fold=folds.mean(), size_s=2 * long_s, slide_s=long_s)
    hot = lambda event: event.value > 25  # noqa: E731 - as in the docs
    for name, scan in {
        "gaps": scans.sessions(gap_s=long_s),
        "within": scans.pattern(hot, hot, within_s=long_s),
        "absent": scans.pattern(hot, absent_s=long_s),
        "held": scans.held_for(hot, long_s),
        "bounced": scans.debounce(long_s),
        "means": scans.time_weighted_mean(every_s=long_s),
    }.items():
        program.scan(name, source=warm, scan=scan, per_device=True)
    return program.plan()


def test_spans_are_named_wherever_a_program_has_some():
    places = [line.partition("=")[0] for line in odd_spans(all_spans(60_000))]
    assert places == [
        "variable last: max_age_s",
        "window w: size_s",
        "window w: slide_s",
        "fold_dynamic fleet: stale_after_s",
        "alert hot: for_s",
        "on_value of here: every_s",
        "scan gaps: gap_s",
        "scan within: within_s",
        "scan absent: absent_s",
        "scan held: for_s",
        "scan bounced: for_s",
        "scan means: every_s",
    ]
    assert odd_spans(all_spans(60)) == []


def alerted(for_s):
    program = Program("house")
    warm = program.event("warm", resolution="0.1")
    last = program.declare_dynamic(BoundedLWWSet(bound=5), "last")
    program.collect(warm, into=last)
    here = program.fold(last, folds.mean(), "here")
    program.alert("hot", here, above=27, hysteresis=1, for_s=for_s)
    return odd_spans(program.plan())


def test_an_alert_that_waits_less_than_any_device_compares_is_named():
    (line,) = alerted(0.06)
    assert line == (
        "alert hot: for_s=0.06 is 60 milliseconds, and no device compares values as often; for 60 "
        "seconds, write for_s=60"
    )
    assert alerted(0) == alerted(0.5) == []
