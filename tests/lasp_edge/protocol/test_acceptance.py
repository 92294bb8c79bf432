"""What a lander takes, what it refuses and why, and what it tells of each entry."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crdts import Member, Membership, Replica, Version
from crdts.frontier import Promise
from lasp_edge.protocol.acceptance import (
    Acceptance,
    CommandRows,
    EntryRows,
    PaneRows,
    Record,
    Refusal,
)
from lasp_edge.protocol.acks import NotTaken
from lasp_edge.protocol.admission import FIRST_CONTACT_HELD
from lasp_edge.protocol.frames import PresenceFrame
from lasp_edge.protocol.kinds import FRAME_KINDS, Subscriber
from lasp_edge.protocol.limits import (
    CLOCK_NUMBERS,
    CONTROLS_AHEAD,
    FUTURE_US,
    INCARNATIONS_AHEAD,
    LATEST_PANE_US,
)
from lasp_edge.protocol.repeating import CORRECT_US, REPEAT_US
from lasp_edge.protocol.shards import KEY_SHARDS, key_shard
from tests.lasp_edge.protocol.support_frames import (
    BEGIN_US,
    ME,
    NOW_US,
    SECOND_US,
    STORE,
    TOPICS,
    acceptance,
    beat,
    command,
    keys_of_shard,
    packed,
    panes,
    record,
    rooms,
    shard,
    variable,
)

PLAN, KEYED, PACKED = rooms(), rooms(keyed=True), packed()


def accepted(*frames, plan=PLAN, **known):
    records = [each if isinstance(each, Record) else record(each) for each in frames]
    return acceptance(plan, **known).take(records)


def reasons(*frames, **known):
    return [reason for _, reason in accepted(*frames, **known).refused]


def test_a_lander_has_a_handler_for_each_kind_that_it_subscribes_to():
    rows = [row for row in FRAME_KINDS.values() if row.subscribers & Subscriber.LANDER]
    assert rows
    assert all(callable(getattr(Acceptance, row.handler)) for row in rows)


def taken(found, device="pi-0"):
    """Return the seqs that a device is told have landed, by replica."""
    return {at: sorted(seqs) for at, seqs in found.answers[device].taken.items()}


def not_taken(found, device="pi-0"):
    """Return the seqs that a device is told have not, by reason."""
    answer = found.answers[device].not_taken
    return {NotTaken(reason): sorted(seqs) for (reason, *_), seqs in answer.items()}


def test_pane_entries_stay_packed_and_are_to_be_acknowledged():
    first, second = panes(PLAN, 4), panes(PLAN, 6, first_seq=3)
    found = accepted(first, second)
    assert found.rows == [PaneRows("pi-0", frame.blocks[0], NOW_US) for frame in (first, second)]
    assert taken(found) == {(3, 7): [1, 2, 3, 4]}
    assert not found.refused


def test_the_newest_promise_counts_as_heard_when_it_first_came():
    frames = [beat(1, 10), beat(2, 20), beat(2, 20), beat(1, 10)]
    found = accepted(*(record(frame, at_us=NOW_US + n) for n, frame in enumerate(frames)))
    promise = Promise(Version.of(ME, 2), 20, done=False, heard_us=NOW_US + 1)
    assert (found.promises.entries, found.rows) == ({"pi-0": promise}, [])


def test_a_beat_that_was_overtaken_states_nothing_of_windows_that_lack_readings():
    first, newest = (
        replace(beat(number, 10, store=STORE), begun=begun)
        for number, begun in ((1, ()), (2, ((7, NOW_US),)))
    )
    for frames in ((first, newest), (newest, first), (newest, first, newest)):
        assert accepted(*frames).begun == {"pi-0": ((7, NOW_US),)}


def test_a_retained_beat_is_no_sign_of_life():
    assert not accepted(record(beat(1, 10), retained=True)).promises.entries


def test_a_device_whose_program_lacks_a_window_is_left_out_of_it():
    (window,) = rooms().windows.values()
    presence = PresenceFrame(ME, 1, online=True)
    begun = replace(beat(1, 10, store=STORE), begun=((7, NOW_US),))
    for streams, lacking in [((5,), ((window.stream, LATEST_PANE_US),)), ((window.stream,), ())]:
        of = acceptance(rooms())
        stated = replace(presence, streams=streams)
        found = of.take([record(stated), record(begun)])
        assert found.begun == {"pi-0": ((7, NOW_US), *lacking)}
        assert found.unsent == ({"pi-0": lacking} if lacking else {})
        again = of.take([record(replace(presence, number=2, streams=())), record(begun)])
        assert again.begun == {"pi-0": ((7, NOW_US),)}, "who states none may have all"


@pytest.mark.parametrize(
    ("changes", "text", "reason"),
    [
        ({"stream": 1}, "unknown stream", NotTaken.UNKNOWN_STREAM),
        ({"span_us": 5 * SECOND_US}, "panes of another length", NotTaken.OTHER_LENGTH),
        ({"incarnation": 4}, "panes of a later replica", NotTaken.LATER_REPLICA),
        ({"columns": ((1, 2),)}, "not the columns of its stream", NotTaken.NOT_IN_FORM),
        ({"columns": ()}, "not the columns of its stream", NotTaken.NOT_IN_FORM),
        ({"columns": ((b"x", b"y"), (1, 1))}, "not integers", NotTaken.NOT_IN_FORM),
    ],
)
def test_a_block_that_does_not_fit_is_not_taken_and_holds_no_other(changes, text, reason):
    bad = panes(PLAN, 4, **changes).blocks[0]
    good = panes(PLAN, 4, first_seq=5)
    found = accepted(replace(good, blocks=(bad, *good.blocks)))
    assert [why for _, why in found.refused] == [text]
    assert not_taken(found) == {reason: [1, 2]}
    assert taken(found) == {(3, 7): [5, 6]}
    assert found.rows == [PaneRows("pi-0", good.blocks[0], NOW_US)]


@pytest.mark.parametrize(
    ("changes", "text", "reason"),
    [
        ({"columns": ((1, None), (1, 1))}, "a total is missing", NotTaken.NOT_IN_FORM),
        ({"columns": ((1, 2**31), (1, 1))}, "partial out of range", NotTaken.NOT_IN_FORM),
        (
            {"panes_us": (0, -(2**52) // 10**7 * 10**7)},
            "panes before the year 1900",
            NotTaken.BEFORE_1900,
        ),
        (
            {"panes_us": (0, NOW_US + FUTURE_US + 70 * SECOND_US)},
            "panes from the far future",
            NotTaken.FAR_FUTURE,
        ),
    ],
)
def test_an_entry_that_does_not_fit_is_not_taken_and_holds_no_other(changes, text, reason):
    found = accepted(panes(PLAN, 4, **changes))
    assert [why for _, why in found.refused] == [text]
    assert (taken(found), not_taken(found)) == ({(3, 7): [1]}, {reason: [2]})
    (row,) = found.rows
    assert (row.block.keys, row.block.columns[0], row.block.seqs) == (("attic",), (1,), (1,))


def test_a_pane_and_a_promise_of_the_day_ahead_are_taken():
    last_us = (NOW_US + FUTURE_US) // 10**7 * 10**7
    assert taken(accepted(panes(PLAN, 4, panes_us=(0, last_us)))) == {(3, 7): [1, 2]}
    assert accepted(beat(1, NOW_US + FUTURE_US)).promises.entries


def test_of_one_block_each_reason_is_told():
    far_us = NOW_US + FUTURE_US + 70 * SECOND_US
    of_all = {
        "columns": ((1, None, 1, 1), (5, 5, 5, 5)),
        "keys": ("a", "b", "c", "d"),
        "panes_us": (far_us // 10**7 * 10**7, 0, 0, 0),
        "seqs": (1, 2, 3, 4),
    }
    found = accepted(command(1, seq=3), panes(PLAN, 4, **of_all))
    assert taken(found) == {(3, 7): [3]}
    assert not_taken(found) == {
        NotTaken.FAR_FUTURE: [1],
        NotTaken.NOT_IN_FORM: [2],
        NotTaken.RETIRED: [4],
    }


def test_a_promise_counts_for_the_sink_and_the_store_that_it_names():
    ours = [beat(1, 10), beat(2, 20, store=STORE)]
    others = [beat(3, 30, store="lake-2"), beat(4, 40, sink="archive", store=STORE)]
    found = accepted(*ours, *others)
    assert found.promises.entries["pi-0"].low_us == 20
    assert not found.refused


@pytest.mark.parametrize(
    ("heard", "is_ours"),
    [
        (beat(1, 10, store=STORE), True),
        (beat(1, 10), False),
        (beat(1, 10, store="lake-2"), False),
        (beat(1, 10, sink="archive", store=STORE), False),
    ],
)
def test_whose_beats_do_not_name_the_store_is_known(heard, is_ours):
    assert accepted(heard).heard == {"pi-0": is_ours}


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (variable(PLAN, 1, 2), "not the columns of its stream"),
        (replace(variable(PLAN, 1, 2, 4400), stream=5), "unknown stream"),
        (replace(variable(PLAN, 1), columns=((b"x",),)), "not the columns of its stream"),
        (beat(1, NOW_US + 2 * FUTURE_US), "promise from the far future"),
    ],
)
def test_a_frame_that_does_not_fit_is_refused(frame, reason):
    assert reasons(frame) == [reason]


def test_bytes_and_topics_of_strangers_are_refused_with_a_reason():
    topic, frame = TOPICS.of("pane", "pi-0"), panes(PLAN, 1)
    assert reasons(
        Record(1, topic, retained=False, payload=b"\xc1"),
        Record(1, topic, retained=False, payload=b"x" * 70_000),
        record(beat(1, 5), topic=topic),
        record(frame, topic=TOPICS.of("pane", "pi-1")),
        record(frame, topic=topic.replace("/pane/", "/var/")),
        record(frame, topic="lasp/v1/rooms/zz/pane/pi-0"),
    ) == [
        "not msgpack",
        "too large",
        *["not the frame of its topic"] * 3,
        "not the shard of this device",
    ]


def test_repeated_refusals_are_counted_and_the_first_is_kept():
    bad = [record(panes(PLAN, n, stream=1)) for n in range(1, 4)]
    assert list(accepted(*bad).refused.values()) == [Refusal(bad[0], 3)]


def test_an_incarnation_far_ahead_of_the_known_one_is_refused():
    far = beat(1, 5, replica=Replica(3 + INCARNATIONS_AHEAD + 1, 7, "pi-0"))
    near = beat(1, 5, replica=Replica(3 + INCARNATIONS_AHEAD, 7, "pi-0"))
    assert reasons(far, incarnations={"pi-0": 3}) == ["incarnation too far ahead"]
    assert reasons(near, incarnations={"pi-0": 3}) == []
    assert reasons(far) == [FIRST_CONTACT_HELD], "nobody knows yet what is far for this device"


def test_a_shard_is_taken_with_its_keys_or_empty():
    frame, empty = shard(KEYED, 9, keys_of_shard(5, 3), seqs=(3, 9, 1)), shard(KEYED, 9, [], at=7)
    assert accepted(frame, empty, plan=KEYED).rows == [
        EntryRows(frame, NOW_US),
        EntryRows(empty, NOW_US),
    ]


def test_keys_where_there_are_none_and_keys_of_another_shard_are_refused():
    (key,) = keys_of_shard(5, 1)
    assert reasons(shard(PLAN, 1, [key])) == ["keys of a variable that has no keys"]
    assert reasons(shard(PLAN, 1, [], at=3)) == ["keys of a variable that has no keys"]
    # The empty key of a variable with keys is in a shard like any other; the frame alone cannot
    # know that.
    assert key_shard("") != 0
    assert reasons(shard(KEYED, 1, [""], at=0), plan=KEYED) == ["a key of another shard"]
    assert reasons(shard(KEYED, 1, [key], at=4), plan=KEYED) == ["a key of another shard"]
    assert reasons(shard(KEYED, 1, [], at=KEY_SHARDS - 1), plan=KEYED) == []


def test_a_member_command_is_taken_once_and_says_nothing_of_the_devices_life():
    commands = [command(2, seq=5), command(2, seq=5), command(3, retired=False)]
    found = accepted(*commands)
    assert found.rows == [
        CommandRows(command(2, seq=5).commands(), NOW_US, {"pi-0": 3 * SECOND_US}),
        CommandRows(command(3, retired=False).commands(), NOW_US),
    ]
    assert found.answers == {}
    far = Replica(3_000, 7, "pi-0")
    assert reasons(command(1, replica=far), beat(1, 5), beat(2, 5, replica=far)) == [
        "incarnation too far ahead"
    ]


def test_an_older_member_command_is_not_taken_again():
    known = Membership({"pi-0": Member(4, retired=False, version=Version(3, 7, 5))})
    assert accepted(command(3, seq=9), membership=known).rows == []


def test_a_command_that_is_not_heard_for_some_time_is_repeated_for_all():
    lander, spoken = acceptance(PLAN), Replica(1, 9, "lander")
    lander.take([record(command(2, seq=5))])
    heard_us = NOW_US
    assert list(lander.repeated(spoken, heard_us + REPEAT_US - 1)) == []
    (frame,) = lander.repeated(spoken, heard_us + 2 * REPEAT_US)
    assert (frame.commands().membership, frame.sender) == (lander.membership, spoken)
    lander.connected(heard_us + 2 * REPEAT_US + 1)
    assert len(list(lander.repeated(spoken, heard_us + 2 * REPEAT_US + 2 * CORRECT_US + 1))) == 1


def test_a_control_far_ahead_of_the_known_one_is_refused():
    far = command(CLOCK_NUMBERS + CONTROLS_AHEAD + 1, seq=9)
    assert reasons(far) == ["control too far ahead"]
    assert reasons(command(CLOCK_NUMBERS + CONTROLS_AHEAD, seq=9), far) == []


def test_panes_of_a_retired_device_are_taken_up_to_the_version_and_no_further():
    found = accepted(command(1, seq=1), panes(PLAN, 4), panes(PLAN, 5, first_seq=0))
    assert [row.block.seqs for row in found.rows[1:]] == [(1,), (0, 1)]
    assert found.rows[1].block.columns == ((1,), (2000,))
    assert taken(found) == {(3, 7): [0, 1]}
    assert not_taken(found) == {NotTaken.RETIRED: [2]}
    assert [reason for _, reason in found.refused] == ["of a retired device"]


def test_late_panes_of_an_earlier_life_of_a_retired_device_count():
    found = accepted(command(1, seq=1), panes(PLAN, 4, incarnation=2, nonce=99, first_seq=70))
    assert [len(row.block.seqs) for row in found.rows[1:]] == [2]
    assert taken(found) == {(2, 99): [70, 71]}


def test_a_device_that_is_admitted_again_is_taken_whole():
    again = [command(1, seq=1), panes(PLAN, 4), command(2, retired=False), panes(PLAN, 4)]
    found = accepted(*again)
    assert [row.block.seqs for row in found.rows if isinstance(row, PaneRows)] == [(1,), (1, 2)]
    assert taken(found) == {(3, 7): [1, 2]}


def test_variables_and_promises_of_a_retired_device_are_kept():
    found = accepted(command(1), variable(PLAN, 8, 2, 4400), beat(1, 5))
    assert [type(row) for row in found.rows] == [CommandRows, EntryRows]
    assert found.promises.entries.keys() == {"pi-0"}
    assert not found.refused


def binary_panes(**changes):
    """Return a frame of one pane of PACKED."""
    window = PACKED.windows["by_room"]
    fold = window.fold
    partial = fold.combine(fold.lift(2150, 3), fold.lift(2250, 4))
    parts = dict(zip(fold.columns_named, partial, strict=True)) | changes
    columns = tuple((part,) for part in parts.values())
    return panes(PACKED, 1, columns=columns, keys=("",), panes_us=(BEGIN_US,), seqs=(1,))


def test_binary_columns_are_taken():
    assert taken(accepted(binary_panes(), plan=PACKED)) == {(3, 7): [1]}


NAMES = {
    str(column.op): column.name
    for column in PACKED.windows["by_room"].fold.columns
    if column.binary or column.by
}


@pytest.mark.parametrize(
    ("op", "part"),
    [
        ("counts", b"\0" * 7),
        ("counts", b"\x80\0\0\0\0\0\0\0"),
        ("top", b"\x80\0\0\1\x80\0\0\2"),
        ("top", b"\x80\0\0\1" * 3),
        ("hll", b"\x02\x01\x07\x0c\x03\x08\x01\x08" + b"\0" * 4),
        ("hll", b"x"),
        ("hll", 5),
        ("counts", None),
        ("at_max", None),
        ("at_max", 2**31),
    ],
)
def test_a_partial_that_is_not_canonical_is_refused(op, part):
    found = accepted(binary_panes(**{NAMES[op]: part}), plan=PACKED)
    ((_, reason),) = found.refused
    assert reason in {"partial not in its form", "partial out of range"}
    assert found.rows == []


@given(st.binary(max_size=300), st.sampled_from(["pane", "var", "beat", "ack", "x"]))
def test_no_bytes_stop_the_lander(payload, kind):
    topic = TOPICS.of("pane", "pi-0").replace("/pane/", f"/{kind}/")
    found = accepted(Record(NOW_US, topic, retained=False, payload=payload))
    assert (len(found.refused), found.rows) == (1, [])


@given(st.integers(0, 200), st.integers(0, 255))
def test_no_damaged_frame_stops_the_lander(at, byte):
    payload = bytearray(panes(PLAN, 1).encode())
    payload[at % len(payload)] = byte
    accepted(Record(NOW_US, TOPICS.of("pane", "pi-0"), retained=False, payload=payload))
