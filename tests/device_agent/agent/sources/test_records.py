"""Paths, arrays and several events in one message; why a record gives no reading."""

from collections import Counter
from itertools import combinations_with_replacement
from random import Random

import pytest

from device_agent.agent.sources.fields import Field, SpreadField
from device_agent.agent.sources.mapping import FieldMapping, Origin
from device_agent.agent.sources.time_zones import Zone


def rows(batch):
    columns = (batch.names, batch.times_us, batch.values, map(dict, batch.tags))
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.b[0].c", 1),
        ("a.b[1].c", None),
        ("a.b[2].c", "absent"),
        ("a.b.c", "absent"),
        ("a[0]", "absent"),
        ("x.y", 5),
        ("m[1][0]", 3),
    ],
)
def test_paths_go_into_objects_and_arrays(path, expected):
    record = {"a": {"b": [{"c": 1}, {"c": None}]}, "x.y": 5, "x": {"y": 6}, "m": [[1], [3]]}
    assert Field(path).of(record, "absent") == expected


@pytest.mark.parametrize("path", ["", "a..b", "a[b]", "[0]", "a[0", "a.", "a]"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ValueError, match=r"a field is needed, such as temp, data\.temp"):
        Field(path)


def test_braces_find_every_sensor_and_tell_them_apart():
    field = SpreadField("data[1].{sensor}.{kind}")
    record = {"data": [0, {"s1": {"t": 1, "h": 2}, "s2": {"t": 3}, "s3": 4}]}
    assert field.all_of(record) == [
        ({"sensor": "s1", "kind": "t"}, 1),
        ({"sensor": "s1", "kind": "h"}, 2),
        ({"sensor": "s2", "kind": "t"}, 3),
    ]
    mapping = FieldMapping({"t": "{sensor}.t"}, constant_tags={"site": "x"})
    batch = mapping.batch("s", [{"a": {"t": 1}, "b": {"t": 2}}])
    assert rows(batch) == [
        ("t", None, 1, {"sensor": "a", "site": "x"}),
        ("t", None, 2, {"sensor": "b", "site": "x"}),
    ]
    assert mapping.batch("s", [{"a": {"h": 1}}]).refused == {
        'no event of t: the message has "a"': 1
    }


def test_several_events_out_of_one_message_share_its_time_and_tags():
    mapping = FieldMapping({"t": "v[0]", "h": "v[1]"}, time="ts", tags={"room": "room"})
    batch = mapping.batch("s", [{"ts": 1, "room": "a", "v": [20, 40]}])
    both = (1_000_000, {"room": "a"})
    assert rows(batch) == [("t", both[0], 20, both[1]), ("h", both[0], 40, both[1])]


def test_an_array_of_readings_keeps_what_stands_around_it():
    mapping = FieldMapping(["t"], time="ts", tags={"room": "room"}, items="list")
    records = [
        {"room": "a", "list": [{"ts": 1, "t": 20}, {"ts": 2, "t": 21, "room": "b"}, 7]},
        {"room": "c", "list": []},
        {"room": "c", "lst": []},
        "not JSON",
    ]
    batch = mapping.batch("s", records)
    assert rows(batch) == [
        ("t", 1_000_000, 20, {"room": "a"}),
        ("t", 2_000_000, 21, {"room": "b"}),
    ]
    assert batch.refused == {
        "neither a JSON object nor a value": 1,
        'no field "list": the message has "room", "lst"': 1,
        "not JSON": 1,
    }


def test_a_misspelled_field_is_named_beside_what_the_message_has():
    mapping = FieldMapping({"v": "v"}, time="tsx")
    batch = mapping.batch("s", [{"ts": 1, "v": 2}] * 100)
    assert batch.refused == {'no field "tsx": the message has "ts", "v"': 100}


def test_a_field_that_is_there_and_of_no_use_is_not_said_to_be_missing():
    timed = FieldMapping({"v": "v"}, time="a.ts").batch("s", [{"a": {"ts": None}, "v": 2}])
    assert timed.refused == {'field "a.ts" is null': 1}
    listed = FieldMapping(["v"], items="list").batch("s", [{"list": {"v": 1}}, {"list": None}])
    assert listed.refused == {'field "list" is no list': 1, 'field "list" is null': 1}


def test_reasons_do_not_grow_with_what_strangers_send():
    mapping = FieldMapping({"v": "v"})
    batch = mapping.batch("s", [{f"key{number}" * 99: 1} for number in range(100)])
    assert sum(batch.refused.values()) == 100
    assert len(batch.refused) <= 5
    assert max(map(len, batch.refused)) < 100


def test_a_tag_of_the_message_comes_before_that_of_the_topic():
    mapping = FieldMapping(["t"], tags={"room": "room"})
    origins = [Origin({"room": "topic", "floor": "1"})] * 2
    batch = mapping.batch("s", [{"t": 1}, {"t": 2, "room": "field"}], origins)
    assert [dict(tags) for tags in batch.tags] == [
        {"room": "topic", "floor": "1"},
        {"room": "field", "floor": "1"},
    ]


def test_what_belongs_to_others_is_counted_only_before_the_first_reading():
    mapping = FieldMapping(["t"], passes_others=True)
    lamp = {"state": "ON", "brightness": 5}
    assert mapping.batch("s", [lamp]).refused == {
        'no event of t: the message has "state", "brightness"': 1
    }
    assert mapping.batch("s", [{"t": 1}, lamp, lamp]).refused == {}
    assert mapping.batch("s", [lamp, "not JSON"]).refused == {"not JSON": 1}


def test_a_unit_that_is_not_the_expected_one_is_refused():
    mapping = FieldMapping(["t"], expected={"unit.t": "C"})
    records = [{"t": 1, "unit": {"t": "C"}}, {"t": 70, "unit": {"t": "F"}}, {"t": 2}]
    batch = mapping.batch("s", records)
    assert batch.values == [1, 2]
    assert batch.refused == {'field "unit.t" is not "C"': 1}


def test_words_for_no_value_are_no_reading():
    mapping = FieldMapping(["t", "h"], absent=("unavailable",))
    batch = mapping.batch("s", [{"t": "Unavailable", "h": "40"}, {"t": 21.5}])
    assert rows(batch) == [("h", None, 40, {}), ("t", None, 21.5, {})]
    assert batch.refused == {}


def test_local_times_are_placed_in_their_zone():
    mapping = FieldMapping(["t"], time="at", zone=Zone("Europe/Berlin"))
    records = [{"at": "2026-07-01T12:00:00", "t": 1}, {"at": "2026-07-01T12:00:00Z", "t": 2}]
    noon_utc = 1_782_907_200_000_000
    assert mapping.batch("s", records).times_us == [noon_utc - 7_200_000_000, noon_utc]


def test_a_tag_with_half_of_a_surrogate_pair_is_the_sources_fault():
    mapping = FieldMapping({"t": "t"}, tags={"room": "room"})
    batch = mapping.batch("s", [{"t": 1, "room": "\ud800"}, {"t": 2, "room": "a"}, {"t": 3}])
    assert batch.values == [2, 3]
    assert batch.refused == {'tag "room" is no text: half of a surrogate pair is in it': 1}


MOMENTS = (
    12,
    2.5,
    15 * 10**10,
    10**12,
    10**15,
    10**18,
    -1,
    0,
    True,
    "12",
    None,
    float("nan"),
    float("inf"),
    [1],
)


@pytest.mark.parametrize("unit", [None, "s", "ms", "iso"])
@pytest.mark.parametrize("first_us", [0, 5_000_000])
def test_times_of_many_records_are_those_of_each(unit, first_us):
    rng = Random(1)
    for kinds in combinations_with_replacement(MOMENTS, 2):
        records = [{"ts": rng.choice(kinds), "x": n} for n in range(4)]
        options = {"time": "ts", "unit": unit, "first_us": first_us}
        together = FieldMapping(["x"], **options).batch("s", records)
        alone = [FieldMapping(["x"], **options).batch("s", [each]) for each in records]
        assert together.times_us == [time_us for each in alone for time_us in each.times_us]
        assert together.values == [value for each in alone for value in each.values]
        assert together.refused == dict(sum((Counter(each.refused) for each in alone), Counter()))


@pytest.mark.parametrize("seed", range(20))
def test_records_by_column_give_what_each_gives_by_itself(seed):
    random = Random(seed)
    there = random.choice(["a", "b", "ab"])

    def record():
        fields = {"a": random.choice([1, 2.5, None, True, "3"]), "b": random.randint(0, 9)}
        kept = {name: fields[name] for name in there if random.random() < 0.6 + 0.4 * (seed % 2)}
        return {"ts": random.randint(1, 9) / 2} | kept | ({} if random.random() < 0.9 else {"c": 0})

    records = [record() for _ in range(random.randint(1, 30))]
    names = random.choice([["a"], ["b", "a"], {"x": "a", "y": "b"}, {"x": "data.a", "y": "b"}])
    mapping = FieldMapping(names, time="ts", unit="s", constant_tags={"site": "x"})
    by_column = mapping.batch("s", records)
    by_row = mapping.batch("s", records, [Origin({}) for _ in records])
    assert rows(by_column) == rows(by_row)
    assert by_column.refused == by_row.refused
