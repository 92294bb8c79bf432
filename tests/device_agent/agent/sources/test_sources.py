"""Times, fields and the choice of a source."""

import argparse
import contextlib
import csv
import gzip
import json
import random
import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_agent.agent.sources import choice, times
from device_agent.agent.sources.choice import add_source_arguments, source_from_spec, source_options
from device_agent.agent.sources.host import Host
from device_agent.agent.sources.mapping import FieldMapping
from device_agent.agent.sources.mqtt_topic import MqttTopic
from device_agent.agent.sources.replay import Replay
from device_agent.agent.sources.source import Option, SourceContext, SourceKind
from device_agent.agent.sources.time_zones import Zone
from device_agent.agent.sources.times import END_US, FIRST_US, number, time_us
from device_agent.agent.sources.values import EventRule
from lasp_edge.folds.numbers import Refused
from lasp_edge.link import BrokerUrl

NOT_UNDERSTOOD = re.escape(times.NOT_UNDERSTOOD)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0, None, 0),
        (1594598424, None, 1_594_598_424_000_000),
        (1594598424502, None, 1_594_598_424_502_000),
        (1594598424502333, None, 1_594_598_424_502_333),
        (1594598424.25, None, 1_594_598_424_250_000),
        (1594598424502.5, None, 1_594_598_424_502_500),
        (1594598424502333.5, "us", 1_594_598_424_502_334),
        (12, "ms", 12_000),
        (12, "us", 12),
        (200_000_000_000, "s", 200_000_000_000_000_000),
        ("1594598424.5", None, 1_594_598_424_500_000),
        (" 12 ", "s", 12_000_000),
        ("2020-07-13T00:00:24.5Z", None, 1_594_598_424_500_000),
        ("2020-07-13T02:00:24.5+02:00", "iso", 1_594_598_424_500_000),
        ("20200713", None, 20_200_713_000_000),
        ("2020-07-13T00:00:00.1234565Z", None, 1_594_598_400_123_456),
        ("2020-07-13T00:00:00.1234575Z", None, 1_594_598_400_123_458),
        ("2020-07-13T00:00:00.999999999+00:00", None, 1_594_598_401_000_000),
    ],
)
def test_times_by_unit_size_and_text(value, unit, expected):
    assert time_us(value, unit) == expected


@pytest.mark.parametrize(
    ("value", "unit", "reason"),
    [
        (None, None, "no time"),
        (True, None, NOT_UNDERSTOOD),
        ([1], None, NOT_UNDERSTOOD),
        ("", None, NOT_UNDERSTOOD),
        ("noon", None, NOT_UNDERSTOOD),
        ("noon", "s", NOT_UNDERSTOOD),
        ("2020-07-13", "s", NOT_UNDERSTOOD),
        ("2020-13-13", None, NOT_UNDERSTOOD),
        (12, "iso", NOT_UNDERSTOOD),
        (-1, None, "time out of range"),
        (-0.1, None, "time out of range"),
        ("1969-12-31T00:00Z", None, "time out of range"),
        ("2020-07-13 00:00:24", None, "time without a zone: add --time-zone, such as .*"),
        ("2020-07-13", None, "time without a zone: .*"),
        ("20200713", "iso", "time without a zone: .*"),
        (float("nan"), None, "time out of range"),
        (float("inf"), None, "time out of range"),
        (float("-inf"), "s", "time out of range: is --time-unit s right.*"),
        (1e300, "s", "time out of range: is --time-unit s right.*"),
        (10**400, None, "time out of range"),
        (253_402_300_800, "s", "time out of range: is --time-unit s right.*"),
        ("1" * 400, None, NOT_UNDERSTOOD),
        ("1" * 40, "iso", NOT_UNDERSTOOD),
        ("2020-07-13x12:00", "iso", NOT_UNDERSTOOD),
        ("1" * 40, None, "time out of range"),
    ],
)
def test_what_is_no_time_is_refused(value, unit, reason):
    with pytest.raises(Refused, match=f"^{reason}$"):
        time_us(value, unit)


@given(st.integers(0, END_US - 1))
def test_iso_is_exact(exact):
    moment = (EPOCH + timedelta(microseconds=exact)).replace(tzinfo=None)
    assert time_us(moment.isoformat(), zone=Zone("UTC")) == exact
    assert time_us(moment.isoformat() + "Z", "iso") == exact
    assert time_us(exact, "us") == exact


@given(st.floats(0, 4e9))
def test_a_float_of_seconds_is_within_a_microsecond_of_exact(seconds):
    assert abs(time_us(seconds, "s") - Fraction(seconds) * 10**6) < 1


@given(st.one_of(st.floats(), st.integers(), st.text(), st.none(), st.booleans()))
def test_anything_is_a_time_in_range_or_refused(value):
    for unit in (None, "s", "ms", "us", "iso"):
        with contextlib.suppress(Refused):
            assert 0 <= time_us(value, unit) < END_US


@pytest.mark.parametrize("text", ["nan", "inf", "1_000", "0x10", "\uff11", "1e", ".", "", "--1"])
def test_texts_that_look_like_numbers_to_python_only_are_none(text):
    assert number(text) is None


def test_the_times_of_the_real_data_are_those_of_its_reference(shared_data):
    directory = shared_data / "rpi_mqtt_3dev"
    times: dict[str, list[int]] = {}
    with gzip.open(directory / "messages.jsonl.gz") as file:
        for line in file:
            message = json.loads(line)
            times.setdefault(message["device"], []).append(time_us(message["ts"]))
    with (directory / "reference_last100_temp.csv").open() as file:
        for row in csv.DictReader(file):
            last = times[row["device"]][-100:]
            assert (last[0], last[-1]) == (int(row["first_us"]), int(row["last_us"]))


def columns(batch):
    return list(zip(batch.names, batch.times_us, batch.values, map(dict, batch.tags), strict=True))


def test_fields_are_paths_and_a_key_with_dots_comes_first():
    mapping = FieldMapping({"t": "a.b.c"}, time="at")
    nested, dotted = {"a": {"b": {"c": 1}}, "at": 1}, {"a.b.c": 2, "a": {"b": {"c": 1}}, "at": 2}
    batch = mapping.batch("s", [nested, dotted])
    assert columns(batch) == [("t", 1_000_000, 1, {}), ("t", 2_000_000, 2, {})]


def test_a_mapped_event_that_is_missing_is_no_reading_unless_it_is_required():
    records = [{"a": 1}, {}, {"a": {"b": None}}, {"a": [1]}]
    batch = FieldMapping({"t": "a.b"}).batch("s", records)
    assert columns(batch) == [("t", None, None, {})]
    assert batch.refused == {
        'no field "a.b": the message has "a"': 2,
        'no field "a.b": the message has no fields': 1,
    }
    batch = FieldMapping({"t": EventRule("a.b", required=True)}).batch("s", records)
    assert columns(batch) == [("t", None, None, {})] * 4
    assert batch.refused == {}


def test_without_a_mapping_events_are_optional_fields_of_their_own_name():
    records = [{"t": 1}, {"h": None, "x": 2}, {"x": 2}, {"t": 3, "h": 4}]
    batch = FieldMapping(["t", "h"]).batch("s", records)
    assert [(name, value) for name, _, value, _ in columns(batch)] == [
        ("t", 1),
        ("h", None),
        ("t", 3),
        ("h", 4),
    ]
    assert batch.refused == {'no event of t, h: the message has "x"': 1}


def test_records_without_a_usable_time_are_refused_once_each():
    mapping = FieldMapping({"t": "t", "h": "h"}, time="ts")
    records = [{"t": 1}, {"t": 1, "ts": "noon"}, {"t": 1, "ts": -1}, {"t": 1, "h": 2, "ts": 3}]
    batch = mapping.batch("s", [*records, "not JSON"])
    assert batch.names == ["t", "h"]
    assert batch.refused == {
        'no field "ts": the message has "t"': 1,
        times.NOT_UNDERSTOOD: 1,
        "time out of range": 1,
        "not JSON": 1,
    }


def test_only_rows_of_the_device_are_read():
    mapping = FieldMapping({"t": "t"}, device_field="id", device="7")
    records = [{"id": "7", "t": 1}, {"id": 7, "t": 2}, {"id": "8", "t": 3}, {"t": 4}, {"id": None}]
    batch = mapping.batch("s", records)
    assert batch.values == [1, 2]
    assert batch.refused == {"no device": 2}


def test_tags_are_plain_texts_and_equal_ones_are_one_object():
    tags = {"room": "where.room", "floor": "floor"}
    mapping = FieldMapping({"t": "t"}, tags=tags, constant_tags={"floor": "?", "site": "x"})
    records = [
        {"t": 1, "where": {"room": "a"}, "floor": 1},
        {"t": 1, "where": {"room": "a"}, "floor": True},
        {"t": 1, "where": {"room": ["a"]}, "floor": None},
        {"t": 1, "where": {"room": "a"}, "floor": 1},
    ]
    tags = mapping.batch("s", records).tags
    assert [dict(each) for each in tags] == [
        {"floor": "1", "site": "x", "room": "a"},
        {"floor": "true", "site": "x", "room": "a"},
        {"floor": "?", "site": "x"},
        {"floor": "1", "site": "x", "room": "a"},
    ]
    assert tags[3] is tags[0]


CONTEXT = SourceContext(["temperature", "cpu"], "d", random.Random(1))


def test_a_row_in_the_table_is_all_that_a_new_kind_needs(monkeypatch):
    every = Option("every", 7, int, "an option of its own")
    kind = SourceKind(
        "clock", "ZONE", lambda spec, zone, context: (zone, context.get(every)), [every]
    )
    monkeypatch.setattr(choice, "KINDS", (*choice.KINDS, kind))
    given = parsed("--every", "3")
    assert source_from_spec("clock:UTC", CONTEXT._replace(options=given)) == ("UTC", 3)
    assert source_from_spec("clock:UTC", CONTEXT) == ("UTC", 7)
    with pytest.raises(ValueError, match="or clock:ZONE, not 'clock': it is clock:ZONE"):
        source_from_spec("clock", CONTEXT)


def test_a_source_is_chosen_by_its_text(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("temperature\n1\n")
    url = BrokerUrl.parse("mqtt://localhost")
    assert isinstance(source_from_spec("host", CONTEXT), Host)
    replay = source_from_spec(f"csv:{path}", CONTEXT)
    assert isinstance(replay, Replay)
    assert replay.name == f"csv:{path}"
    topic = source_from_spec("mqtt:a/:b/#", CONTEXT._replace(broker=url))
    assert isinstance(topic, MqttTopic)
    assert topic.name == "mqtt:a/:b/#"


@pytest.mark.parametrize(
    ("spec", "changes", "reason"),
    [
        ("", {}, "--source is host"),
        ("hosts", {}, "--source is host"),
        ("host:x", {}, "--source is host"),
        ("jsonl:", {}, "--source is host"),
        ("xml:rows", {}, "--source is host"),
        ("jsonl:nowhere", {}, "the file nowhere is not there"),
        ("host", {"events": ["temp"]}, "the program has none of these"),
        ("mqtt:t", {}, "needs --broker"),
        ("mqtt:a/#/b", {"broker": BrokerUrl.parse("mqtt://x")}, "a/#/b: # must be the last level"),
        ("jsonl:FILE", {"options": {"event": {"temp": "x"}}}, "only the events temperature, cpu"),
        ("jsonl:FILE", {"options": {"event": {"cpu": "a..b"}}}, "a field is needed"),
        ("jsonl:FILE", {"options": {"time": ""}}, "a field is needed"),
        ("jsonl:FILE", {"options": {"time-unit": "s"}}, "--time-unit needs --time"),
        (
            "jsonl:FILE",
            {"options": {"time-unit": "h", "time": "t"}},
            "--time-unit is one of s, ms, us, iso",
        ),
        ("jsonl:FILE", {"options": {"speed": 2.0}}, "--speed needs --time"),
        ("jsonl:FILE", {"options": {"speed": 0.0, "time": "t"}}, "--speed is a positive number"),
        (
            "jsonl:FILE",
            {"options": {"speed": float("nan"), "time": "t"}},
            "--speed is a positive number",
        ),
    ],
)
def test_a_source_that_cannot_work_is_refused_with_the_reason(tmp_path, spec, changes, reason):
    path = tmp_path / "rows"
    path.write_text("")
    with pytest.raises(ValueError, match=reason):
        source_from_spec(spec.replace("FILE", str(path)), CONTEXT._replace(**changes))


def parsed(*arguments):
    """Return the sources' options of a command line."""
    parser = argparse.ArgumentParser()
    add_source_arguments(parser)
    return source_options(parser.parse_args(["--source", "host", *arguments]))


def test_only_options_that_are_given_are_passed_on():
    assert parsed() == {}
    given = ("--time", "ts", "--event", "a=b", "--event", "c=d.e", "--host-every", "0.5")
    assert parsed(*given, "--speed", "2") == {
        "time": "ts",
        "event": {"a": "b", "c": "d.e"},
        "every": 500_000,
        "speed": 2.0,
    }
    assert parsed("--speed", "max", "--with-tag", "x=1=2") == {
        "speed": None,
        "with-tag": {"x": "1=2"},
    }


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--event", "a"), "--event NAME=FIELD is needed, not 'a'"),
        (("--tag", "a="), "--tag NAME=FIELD is needed"),
        (("--with-tag", "=a"), "--with-tag NAME=VALUE is needed"),
        (("--speed", "fast"), "--speed: a number or max is needed"),
        (("--every", "0"), "--every: a positive number of seconds is needed"),
        (("--host-every", "nan"), "--every: a positive number"),
        (("--every", "1e9"), "--every: a positive number"),
    ],
)
def test_an_option_that_means_nothing_is_refused(arguments, reason):
    with pytest.raises(ValueError, match=reason):
        parsed(*arguments)


@pytest.mark.parametrize(
    ("value", "unit"), [(1_795_366_800, "ms"), (86_400.5, None), ("1795366800", "us")]
)
def test_an_uptime_and_seconds_taken_as_milliseconds_are_no_times(value, unit):
    with pytest.raises(Refused, match="a time of 1970: is it an uptime, or is --time-unit missing"):
        time_us(value, unit, first_us=FIRST_US)
    assert time_us(value, unit) < FIRST_US


def test_a_date_that_is_written_out_may_be_long_ago():
    assert time_us("1970-01-21T18:45:20Z", first_us=FIRST_US) == 1_795_520_000_000
    assert time_us(1_594_598_424, "s", first_us=FIRST_US) == 1_594_598_424_000_000
