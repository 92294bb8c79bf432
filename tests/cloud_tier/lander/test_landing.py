import gc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud_tier.lander.landing import FAR_US, Reader, collector_off
from cloud_tier.lander.segments import Record, Segment
from crdts import Replica
from lasp_edge.protocol.frontier import Listening
from tests.cloud_tier.frames import ME, TOPICS, beat, panes, topic_of, variable
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, rooms

PROGRAM = rooms()
NOW_US = BEGIN_US + 100 * SECOND_US


def record(frame, *, at_us=NOW_US, retained=False, topic=None):
    return Record(at_us, topic or topic_of(frame), retained, frame.encode())


def taken(*records, incarnations=None):
    reader = Reader(PROGRAM, TOPICS, incarnations)
    return reader, reader.take(Segment(1, Listening(NOW_US, BEGIN_US), list(records)))


def rows(*records):
    reader, found = taken(*records)
    assert not found.rejects
    return reader.table(found).to_pylist()


def reasons(*records, **options):
    return [reason for _, reason in taken(*records, **options)[1].rejects]


def test_pane_frame_becomes_rows_and_is_to_be_acknowledged():
    _, found = taken(record(panes(PROGRAM, 4)), record(panes(PROGRAM, 6, first_seq=3)))
    assert found.frames == {ME: [4, 6]}
    table = rows(record(panes(PROGRAM, 4)))
    assert [row["pane_us"] for row in table] == [BEGIN_US, BEGIN_US + 10 * SECOND_US]
    first = table[0]
    assert (first["kind"], first["key"], first["device"]) == ("pane", "attic", "pi-0")
    assert (first["incarnation"], first["nonce"], first["seq"]) == (3, 7, 1)
    assert (first["count"], first["total_q"], first["min_q"]) == (1, 2000, None)
    assert (first["low_us"], first["done"], first["received_us"]) == (None, None, NOW_US)


def test_panes_of_an_earlier_life_keep_their_own_name():
    (first, _) = rows(record(panes(PROGRAM, 1, incarnation=1, nonce=99)))
    assert (first["incarnation"], first["nonce"]) == (1, 99)


def test_variable_becomes_a_row_with_its_version():
    (row,) = rows(record(variable(PROGRAM, 8, 2, 4400)))
    assert (row["kind"], row["key"], row["seq"]) == ("variable", "", 8)
    assert (row["count"], row["total_q"], row["pane_us"]) == (2, 4400, 0)


def test_newest_promise_of_a_segment_becomes_one_row_heard_when_it_first_came():
    frames = [beat(1, 10), beat(2, 20), beat(2, 20), beat(1, 10)]
    records = [record(frame, at_us=NOW_US + n) for n, frame in enumerate(frames)]
    (row,) = rows(*records)
    assert (row["kind"], row["seq"], row["low_us"], row["done"]) == ("promise", 2, 20, False)
    assert row["received_us"] == NOW_US + 1


def test_retained_beat_is_no_sign_of_life():
    assert rows(record(beat(1, 10), retained=True)) == []


def test_tick_carries_the_clock_of_the_segment():
    reader, found = taken()
    reader.add_tick(found, "lander", Segment(5, Listening(NOW_US, BEGIN_US), []))
    (row,) = reader.table(found).to_pylist()
    assert (row["kind"], row["device"], row["lander"], row["seq"]) == ("tick", "", "lander", 5)
    assert (row["now_us"], row["since_us"]) == (NOW_US, BEGIN_US)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"stream": 1}, "unknown stream"),
        ({"span_us": 5 * SECOND_US}, "panes of another length"),
        ({"incarnation": 4}, "panes of a later replica"),
        ({"columns": ((1, 2),)}, "not the columns of its stream"),
        ({"columns": ((1, None), (1, 1))}, "a total is missing"),
        ({"columns": ((1, 2**31), (1, 1))}, "partial out of range"),
        ({"panes_us": (0, -(2**52) // 10**7 * 10**7)}, "panes before the year 1900"),
        ({"panes_us": (0, NOW_US + FAR_US + 70 * SECOND_US)}, "panes from the far future"),
    ],
)
def test_pane_frame_that_does_not_fit_is_rejected_whole_and_not_acknowledged(changes, reason):
    _, found = taken(record(panes(PROGRAM, 4, **changes)))
    assert [why for _, why in found.rejects] == [reason]
    assert found.frames == {}
    assert found.columns["kind"] == []


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (variable(PROGRAM, 1, 2), "not the columns of its stream"),
        (replace(variable(PROGRAM, 1, 2, 4400), stream=5), "unknown stream"),
        (replace(variable(PROGRAM, 1), columns=((b"x",),)), "not the columns of its stream"),
        (beat(1, NOW_US + 2 * FAR_US), "promise from the far future"),
    ],
)
def test_frame_that_does_not_fit_is_rejected(frame, reason):
    assert reasons(record(frame)) == [reason]


def test_shared_state_is_the_devices_own_affair():
    assert rows(record(replace(variable(PROGRAM, 1), stream=0, columns=((b"state",),)))) == []


def test_bytes_and_topics_of_strangers_are_rejected_with_a_reason():
    topic, frame = TOPICS.pane("pi-0"), panes(PROGRAM, 1)
    assert reasons(
        Record(1, topic, retained=False, payload=b"\xc1"),
        Record(1, topic, retained=False, payload=b"x" * 70_000),
        record(beat(1, 5), topic=topic),
        record(frame, topic=TOPICS.pane("pi-1")),
        record(frame, topic=topic.replace("/pane/", "/var/")),
        record(frame, topic="lasp/v1/rooms/zz/pane/pi-0"),
    ) == [
        "not msgpack",
        "too large",
        *["not the frame of its topic"] * 3,
        "not the shard of this device",
    ]


def test_repeated_rejects_are_counted_and_the_first_is_kept():
    bad = [record(panes(PROGRAM, n, stream=1)) for n in range(1, 4)]
    _, found = taken(*bad)
    assert list(found.rejects.values()) == [(bad[0], 3)]


def test_incarnation_far_ahead_of_the_known_one_is_set_aside():
    far = Replica(3 + 1025, 7, "pi-0")
    near = Replica(3 + 1024, 7, "pi-0")
    why = "incarnation far ahead of the known one"
    assert reasons(record(beat(1, 5, replica=far)), incarnations={"pi-0": 3}) == [why]
    assert reasons(record(beat(1, 5, replica=near)), incarnations={"pi-0": 3}) == []
    assert reasons(record(beat(1, 5, replica=far))) == []


@given(st.binary(max_size=300), st.sampled_from(["pane", "var", "beat", "ack", "x"]))
def test_no_bytes_stop_the_lander(payload, kind):
    topic = TOPICS.pane("pi-0").replace("/pane/", f"/{kind}/")
    reader, found = taken(Record(NOW_US, topic, retained=False, payload=payload))
    assert len(found.rejects) == 1
    assert reader.table(found).num_rows == 0


@given(st.integers(0, 200), st.integers(0, 255))
def test_no_damaged_frame_stops_the_lander(at, byte):
    payload = bytearray(panes(PROGRAM, 1).encode())
    payload[at % len(payload)] = byte
    reader, found = taken(Record(NOW_US, TOPICS.pane("pi-0"), retained=False, payload=payload))
    reader.table(found)


def test_collector_is_off_while_decoding_and_on_again_whatever_happens():
    def fail():
        with collector_off():
            assert not gc.isenabled()
            raise RuntimeError

    assert gc.isenabled()
    with pytest.raises(RuntimeError):
        fail()
    assert gc.isenabled()
