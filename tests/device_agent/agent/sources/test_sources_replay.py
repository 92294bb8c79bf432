"""Recorded rows: read once each, in order, from where the cursor says, at the speed asked for."""

import gzip
import json
import os
import re
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_agent.agent.sources.choice import source_from_spec
from device_agent.agent.sources.jsonl_file import NOT_A_LINE, NOT_AN_OBJECT, JsonLines, record_of
from device_agent.agent.sources.replay import ROWS
from tests.device_agent.agent.sources.support_rows import (
    CONTEXT,
    LATER_US,
    csv_rows,
    rows,
    source,
    written,
)


def cursor_at(text, offset, line):
    """Return the cursor behind so many bytes and lines of a text."""
    data = text.encode() if isinstance(text, str) else text
    two_lines = sum(len(each[: 1 << 14]) for each in data.splitlines(keepends=True)[:2])
    return f"{offset}:{line}:{zlib.crc32(data[: min(offset, max(256, two_lines))]):08x}"


def drained(replay, now_us=LATER_US):
    """Return all values, and the last batch."""
    values, batch = [], None
    while batch is None or not batch.done:
        batch = replay.poll(now_us)
        assert batch is not None
        values += batch.values
    assert replay.poll(now_us) is None
    assert replay.due_us(now_us) is None
    return values, batch


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_replay_resumes_behind_any_batch_that_was_durable(tmp_path, kind, suffix):
    text = {"jsonl": rows, "csv": csv_rows}[kind](5_000)
    path = written(tmp_path / f"rows{suffix}", text)
    replay = source(path, kind)
    first = replay.poll(0)
    assert first.values == list(range(ROWS))
    assert first.times_us[:2] == [0, 1_000_000]
    assert not first.done
    again = source(path, kind, first.cursor)
    rest, last = drained(again)
    assert rest == list(range(ROWS, 5_000))
    assert last.cursor == cursor_at(text, len(text), 5_000 + (kind == "csv"))
    nothing, done = drained(source(path, kind, last.cursor))
    assert nothing == []
    assert done.cursor == last.cursor
    again.close()
    replay.close()
    assert replay.poll(0) is None


def test_lines_that_give_no_reading_are_counted_and_the_rest_is_read(tmp_path):
    lines = ['{"ts": 1, "t": 1}', "", "[1]", "{", "7", '{"t": 2}', "\xff", '{"ts": 3}', " "]
    deep = "[" * 100_000
    text = "\ufeff" + "\r\n".join([*lines, deep, '{"ts": 4, "t": NaN}', '{"ts": 5, "t": 5}']) + "\n"
    values, last = drained(source(written(tmp_path / "rows", text)))
    assert values[0] == 1
    assert values[1] != values[1]
    assert values[2:] == [5]
    assert last.refused == {
        NOT_AN_OBJECT: 2,
        NOT_A_LINE: 3,
        'no field "ts": the message has "t"': 1,
        'no event of t: the message has "ts"': 1,
    }
    assert last.cursor.startswith(cursor_at(text, len(text.encode()), 12))
    assert last.cursor.endswith(":7:0")  # seven of them, and others gave readings


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_columns_stand_between_other_marks_where_the_header_has_them(tmp_path, mark):
    rows = ["ts,t", "1795600000,21.5", '1795600001,"21,5"', "1795600002,x"]
    text = "".join(f"{row.replace(',', mark, 1)}\n" for row in rows)
    path = written(tmp_path / "rows.csv", text)
    batch = source(path, "csv", decimal_comma=True).poll(LATER_US)
    assert batch.values == [21.5, 21.5, "x"]
    batch = source(path, "csv").poll(LATER_US)
    assert batch.values == [21.5, "x"]
    assert batch.refused == {"t: '21,5' has a decimal comma: --decimal-comma reads it": 1}


@pytest.mark.parametrize(
    ("header", "has"),
    [
        ("time;t", "it has time, t"),
        ("tss,t", 'it has tss, t; did you mean "tss"?'),
        ("when,t", "it has when, t"),
        ('{"a": 1}', 'it has {"a": 1}; it looks like JSON lines: jsonl:PATH reads them'),
        ("", "it is empty"),
    ],
)
def test_a_header_without_the_column_says_what_it_has(tmp_path, header, has):
    path = written(tmp_path / "rows", f"{header}\n1,2\n" if header else "")
    with pytest.raises(ValueError, match=re.escape(f"{path} has no column 'ts'; {has}")):
        source(path, "csv")


def test_plain_values_among_objects_are_counted(tmp_path):
    values, last = drained(source(written(tmp_path / "rows", rows(2) + "7\n[1]\n" + rows(1, 2))))
    assert values == [0, 1, 2]
    assert last.refused == {NOT_AN_OBJECT: 2}


def test_invalid_utf8_costs_its_own_line_only(tmp_path):
    path = written(
        tmp_path / "rows", rows(3).encode() + b'{"ts":3,"t":"\xff"}\n' + rows(2, 4).encode()
    )
    values, last = drained(source(path))
    assert values == [0, 1, 2, 4, 5]
    assert last.refused == {NOT_A_LINE: 1}


PIECES = st.sampled_from(
    [
        b'{"a":1}',
        b"{}",
        b"",
        b" ",
        b"[",
        b"]",
        b"{",
        b"}",
        b'{"a":[{}',
        b"{}]}",
        b"{},{}",
        b"1,2",
        b'"',
    ]
)


@given(st.lists(PIECES, max_size=12))
def test_parsing_many_lines_at_once_finds_what_each_alone_gives(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("rows") / "rows"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    alone = [record_of(line) for line in lines if line.strip()]
    together = JsonLines(path, 0, 0).records(2_000, 0)
    assert sum(map(len, lines)) == 0 or len(together) >= 0
    balanced = b"{},{}" not in lines  # a line of two objects can hide one object of two lines
    assert together == alone or not balanced
    assert [row.record for row in JsonLines(path, 0, 0).rows(2_000, 0)] == alone


def test_half_a_last_line_waits_for_its_other_half(tmp_path):
    text = rows(3)
    path = written(tmp_path / "rows", text[:-5])
    values, last = drained(source(path))
    assert values == [0, 1]
    assert last.refused == {}
    written(path, text)
    values, _ = drained(source(path, cursor=last.cursor))
    assert values == [2]


def test_a_whole_last_line_needs_no_end_of_line(tmp_path):
    values, last = drained(source(written(tmp_path / "rows", rows(3)[:-1])))
    assert values == [0, 1, 2]
    assert last.cursor == cursor_at(rows(3), len(rows(3)) - 1, 3)


def test_a_last_csv_row_without_its_end_counts_once_nobody_writes_any_more(tmp_path):
    path = written(tmp_path / "rows", "ts,t\n1,10\n2,20", fresh=True)
    os.utime(path, (100, 100))
    replay = source(path, "csv")
    batch = replay.poll(101_000_000)
    assert batch.values == [10]
    assert not batch.done
    assert replay.due_us(101_000_000) == 102_000_000
    written(path, "ts,t\n1,10\n2,205", fresh=True)
    os.utime(path, (101, 101))
    assert replay.poll(102_000_000) is None
    assert replay.due_us(102_000_000) == 103_000_000
    values, last = drained(replay, 103_000_000)
    assert values == [205]
    assert last.cursor == cursor_at("ts,t\n1,10\n2,205", 15, 3)


def test_csv_values_are_numbers_where_they_look_like_one_and_empty_cells_are_none(tmp_path):
    text = 'ts,t,room\n1,21.50,007\n2,,b\n3,n/a,"c, d"\n4, 7 ,"two\nlines"\n\n5,1e2,é\n'
    replay = source(written(tmp_path / "rows", text), "csv", tag={"room": "room"})
    batch = replay.poll(LATER_US)
    assert (batch.values, batch.refused) == ([21.5, "n/a", 7, 100.0], {})
    assert type(batch.values[2]) is int
    assert [tags["room"] for tags in batch.tags] == ["007", "c, d", "two\nlines", "é"]
    assert batch.cursor == cursor_at(text, len(text.encode()), 8)


def test_csv_rows_of_a_wrong_width_or_quoting_are_counted(tmp_path):
    text = 'ts,t\n1,1\n2\n3,3,3\n"4"x,4\n5,5\n6,"open\n'
    values, last = drained(source(written(tmp_path / "rows", text), "csv"))
    assert values == [1, 5]
    assert last.refused == {"not as many fields as the header": 2, "not CSV": 2}


def test_an_open_quote_at_the_end_waits_while_somebody_writes(tmp_path):
    path = written(tmp_path / "rows", 'ts,t,x\n1,1,a\n2,2,"b\nc', fresh=True)
    os.utime(path, (100, 100))
    replay = source(path, "csv")
    assert replay.poll(100_000_000).values == [1]
    written(path, 'ts,t,x\n1,1,a\n2,2,"b\nc"\n3,3,d\n')
    values, _ = drained(replay)
    assert values == [2, 3]


def test_a_column_that_is_not_there_is_refused_with_those_that_are(tmp_path):
    path = written(tmp_path / "rows", csv_rows(1))
    with pytest.raises(ValueError, match=r"no column 'temp'; it has ts, t"):
        source(path, "csv", event={"t": "temp"})
    source(path, "csv", events=["t", "other"])


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_an_empty_file_is_done_at_once(tmp_path, kind):
    values, last = drained(source(written(tmp_path / "rows", ""), kind, time=None))
    assert values == []
    assert (last.cursor, last.refused) == ("0:0", {})


def test_a_cut_off_gzip_file_gives_what_it_holds_and_says_so(tmp_path):
    path = tmp_path / "rows.gz"
    path.write_bytes(gzip.compress(rows(5_000).encode())[:-200])
    values, last = drained(source(path))
    assert values == list(range(len(values)))
    assert len(values) > 100
    assert last.refused == {"unreadable rest of the file": 1}


@pytest.mark.parametrize("cursor", ["", "x", "5", "5:", ":5", "-1:0", "1:2:3"])
def test_a_cursor_that_is_no_place_in_a_file_is_refused(tmp_path, cursor):
    path = written(tmp_path / "rows", rows(2))
    with pytest.raises(ValueError, match="is not a place in a file"):
        source(path, cursor=cursor)


OTHER = "its first bytes are not those that were read of it"


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("kind", "before", "after", "said"),
    [
        ("jsonl", rows(50), rows(2), "it is shorter than the 980 bytes that were read of it"),
        ("jsonl", rows(50), rows(90, 50), OTHER),
        ("jsonl", rows(3), rows(90, 7), OTHER),
        (
            "csv",
            csv_rows(50),
            "ts,t\n7,7\n",
            "it is shorter than the 285 bytes that were read of it",
        ),
        ("csv", csv_rows(9), "t,ts\n" + "7,9\n" * 90, OTHER),
        ("csv", csv_rows(9, wide=99), csv_rows(40, 9, wide=99), OTHER),
    ],
    ids=["shorter", "rotated", "rotated when short", "csv shorter", "another header", "wide"],
)
class TestAnotherFile:
    """Another file stands where the agent goes on to read."""

    def test_with_times_it_is_read_from_its_beginning_and_that_is_said(
        self, tmp_path, suffix, kind, before, after, said
    ):
        path = tmp_path / f"rows{suffix}"
        _, last = drained(source(written(path, before), kind))
        again = source(written(path, after), kind, last.cursor)
        values, _ = drained(again)
        assert values == drained(source(path, kind))[0]
        assert values
        assert (
            again.news == f"it is another file than before: {said}; it is read from its beginning"
        )

    def test_without_times_it_is_refused_with_what_to_do(
        self, tmp_path, suffix, kind, before, after, said
    ):
        path = tmp_path / f"rows{suffix}"
        _, last = drained(source(written(path, before), kind, time=None))
        told = f"{path} is another file than before: {said}; its rows have no time of their own"
        with pytest.raises(ValueError, match=re.escape(told)):
            source(written(path, after), kind, last.cursor, time=None)


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("first", [1, 3, 50])
def test_a_file_that_grew_is_read_on(tmp_path, suffix, first):
    path = tmp_path / f"rows{suffix}"
    _, last = drained(source(written(path, rows(first))))
    again = source(written(path, rows(90)), cursor=last.cursor)
    assert (drained(again)[0], again.news) == (list(range(first, 90)), "")


def test_a_cursor_of_an_earlier_release_goes_on_without_a_look_at_the_head(tmp_path):
    path = written(tmp_path / "rows", rows(4))
    assert drained(source(path, cursor=f"{len(rows(2))}:2"))[0] == [2, 3]


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    path = written(tmp_path / "rows", rows(2))
    replay = source_from_spec(f"jsonl:{path}", CONTEXT)
    path.unlink()
    with pytest.raises(ValueError, match="cannot read"):
        replay.open(None)


def test_rows_come_at_a_multiple_of_their_speed(tmp_path):
    times = [1_000, 1_001, 1_001.5, 1_000.2, 1_004, 1_010]
    text = "".join(json.dumps({"ts": at, "t": at}) + "\n" for at in times)
    path = written(tmp_path / "rows", text)
    replay = source(path, speed=2.0)
    now_us = LATER_US
    assert replay.poll(now_us).values == [1_000]
    assert replay.due_us(now_us) == now_us + 500_000
    assert replay.poll(now_us + 499_999) is None
    first = replay.poll(now_us + 500_000)
    assert first.values == [1_001]
    assert replay.due_us(now_us + 500_000) == now_us + 750_000
    assert replay.poll(now_us + 1_999_999).values == [1_001.5, 1_000.2]
    last = replay.poll(now_us + 9_000_000)
    assert (last.values, last.done) == ([1_004, 1_010], True)
    assert replay.due_us(now_us) is None

    resumed = source(path, cursor=first.cursor, speed=2.0)
    assert resumed.poll(now_us).values == [1_001.5, 1_000.2]


def test_agents_that_replay_one_file_keep_step(tmp_path):
    text = "".join(json.dumps({"ts": n, "t": n, "id": n % 2}) + "\n" for n in range(10))
    path = written(tmp_path / "rows", text)
    one, two = (source(path, speed=1.0, device_field="id", device=device) for device in ("0", "1"))
    assert one.poll(LATER_US).values == [0]
    assert two.poll(LATER_US).values == []
    assert one.poll(LATER_US + 3_000_000).values == [2]
    assert two.poll(LATER_US + 3_000_000).values == [1, 3]


def test_a_paced_replay_gives_the_same_readings_as_a_fast_one(tmp_path):
    text = rows(200) + "{\n\n" + rows(200, 200)
    path = written(tmp_path / "rows", text)
    fast, last = drained(source(path))
    paced, values, now_us, refused = source(path, speed=50.0), [], LATER_US, {}
    while (due_us := paced.due_us(now_us)) is not None:
        now_us = due_us
        batch = paced.poll(now_us)
        if batch is not None:
            values += batch.values
            refused |= batch.refused
            cursor = batch.cursor
    assert values == fast
    assert (cursor, refused) == (last.cursor, last.refused)
    assert now_us - LATER_US == 399 * 1_000_000 // 50


def test_the_real_data_is_read_whole(shared_data):
    path = shared_data / "rpi_mqtt_3dev" / "messages.jsonl.gz"
    fields = {"t": "data.temp"}
    counts = {
        device: len(drained(source(path, event=fields, device_field="device", device=device))[0])
        for device in ("iot-device-01", "iot-device-02", "iot-device-03")
    }
    assert counts == {"iot-device-01": 13_821, "iot-device-02": 12_959, "iot-device-03": 23_490}
