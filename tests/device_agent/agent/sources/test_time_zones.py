"""Times without an offset: refused, or placed by the rules of a zone that is named."""

import logging
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_agent.agent.sources.time_zones import Zone
from device_agent.agent.sources.times import time_us
from lasp_edge.folds.numbers import Refused

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BERLIN = Zone("Europe/Berlin")


def utc(*moment):
    return int(datetime(*moment, tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-15T12:00:00", (2026, 1, 15, 11)),
        ("2026-07-15T12:00:00", (2026, 7, 15, 10)),
        ("2026-03-29T01:59:59", (2026, 3, 29, 0, 59, 59)),
        ("2026-03-29T03:00:00", (2026, 3, 29, 1)),
        ("2026-10-25T01:59:59", (2026, 10, 24, 23, 59, 59)),
        ("2026-10-25T02:30:00", (2026, 10, 25, 0, 30)),  # the earlier of the two
        ("2026-10-25T03:00:00", (2026, 10, 25, 2)),
        ("2026-10-25T02:30:00+01:00", (2026, 10, 25, 1, 30)),  # it says which
    ],
)
def test_a_local_time_is_placed_by_the_rules_of_its_zone(text, expected):
    assert time_us(text, zone=BERLIN) == utc(*expected)


def test_a_time_that_no_clock_showed_is_refused():
    with pytest.raises(Refused, match="time that the clocks of Europe/Berlin skip"):
        time_us("2026-03-29T02:30:00", zone=BERLIN)


def test_an_hour_that_comes_twice_is_said_once(caplog):
    zone = Zone("Europe/Berlin")
    with caplog.at_level(logging.WARNING):
        for minute in range(3):
            time_us(f"2026-10-25T02:3{minute}:00", zone=zone)
    [record] = caplog.records
    assert record.getMessage() == (
        "2026-10-25 02:30:00 comes twice, as the clocks of Europe/Berlin are set back: "
        "the earlier one is taken"
    )


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Europe/Berln", 'did you mean "Europe/Berlin"?'),
        ("CEST", "a place is needed, such as Europe/Berlin"),  # EST is no summer time
        ("", "a place is needed"),
    ],
)
def test_a_zone_that_is_none_is_told_with_the_place_that_was_meant(name, meant):
    with pytest.raises(ValueError, match=re.escape(meant)):
        Zone(name)


@given(st.datetimes(EPOCH.replace(tzinfo=None), timezones=st.just(UTC)))
def test_in_utc_a_time_is_what_it_says(moment):
    expected = (moment - EPOCH) // timedelta(microseconds=1)
    assert time_us(moment.replace(tzinfo=None).isoformat(), zone=Zone("utc")) == expected


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Europe/Berln", "there is no zone 'Europe/Berln'; did you mean \"Europe/Berlin\""),
        ("berlin", 'did you mean "Europe/Berlin"'),
        ("Berln", 'did you mean "Europe/Berlin"'),
        ("../etc/passwd", "there is no zone"),
        ("", "there is no zone"),
    ],
)
def test_a_zone_that_is_not_there_is_named_with_the_nearest(name, reason):
    with pytest.raises(ValueError, match=reason):
        Zone(name)
