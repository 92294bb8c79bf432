"""What a stranger sends is refused, and does no more."""

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.envelope import FORMAT
from lasp_edge.protocol.frames import (
    AskFrame,
    BeatFrame,
    PaneFrame,
    PresenceFrame,
    VariableFrame,
)
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.sizes import MAX_MESSAGE_BYTES
from tests.lasp_edge.protocol.support_strategies import ME, any_frame


def test_a_frame_that_is_too_large_is_refused_before_it_is_read():
    with pytest.raises(FrameError, match="too large"):
        decode(b"\xc1" * (MAX_MESSAGE_BYTES + 1))


def refused_or_decoded(payload):
    """Decode; whatever comes out must encode again, and nothing but FrameError may come."""
    try:
        frame = decode(payload)
    except FrameError as error:
        assert 0 < len(str(error)) < 200  # noqa: PT017 - the reason is counted, so it stays short
        return None
    assert decode(frame.encode()) == frame
    return frame


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(max_size=3) | st.binary(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.binary(max_size=300))
@example(b"")
@example(b"\xc1")
@example(b"\xd6\xff\x00\x00\x00\x00")  # a timestamp
@example(b"\xc7\x0c\xff" + b"\xff" * 12)  # a timestamp that is none
@example(b"\xc7\x00\x05")  # an extension
@example(b"\xdd\xff\xff\xff\xff")  # an array of four billion
@example(b"\xdf\xff\xff\xff\xff")
@example(b"\x91" * 60_000)
@example(b"\x81\xa1a" * 20_000)
@example(b"\x91" * 600 + b"\xc0")
@example(b"\xa2\xff\xff")  # no UTF-8
def test_random_bytes_are_refused(payload):
    refused_or_decoded(payload)


@given(any_frame, st.data())
def test_truncated_frames_are_refused(frame, data):
    payload = frame.encode()
    cut = data.draw(st.integers(0, len(payload) - 1))
    with pytest.raises(FrameError):
        decode(payload[:cut])
    with pytest.raises(FrameError):
        decode(payload + b"\xc0")


@given(any_frame, st.data())
def test_mutated_frames_are_refused_or_are_frames(frame, data):
    payload = bytearray(frame.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    refused_or_decoded(bytes(payload))


def envelope(kind, body, /, **changed):
    fields = {"version": FORMAT, "kind": kind, "device": "pi-1", "incarnation": 1, "nonce": 7}
    fields |= {"number": 1, "about": None, "body": body} | changed
    return msgpack.packb(list(fields.values()))


@given(st.integers(0, 9), anything)
def test_any_body_is_refused_or_a_frame(kind, body):
    refused_or_decoded(envelope(kind, body))


@given(any_frame, st.data())
def test_frames_with_a_foreign_value_somewhere_are_refused_or_are_frames(frame, data):
    fields = msgpack.unpackb(frame.encode())
    inside = fields
    while True:
        at = data.draw(st.integers(0, len(inside) - 1))
        deeper = isinstance(inside[at], list) and inside[at] and data.draw(st.booleans())
        if not deeper:
            break
        inside = inside[at]
    inside[at] = data.draw(anything)
    refused_or_decoded(msgpack.packb(fields))


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [1, 100, 500])
@pytest.mark.parametrize("place", ["version", "kind", "device", "nonce", "number", "body"])
def test_deep_nesting_is_refused_wherever_it_stands(place, depth):
    assert refused_or_decoded(envelope(1, [], **{place: nested(depth)})) is None


BLOCK_FIELDS = (
    "stream",
    "span_us",
    "incarnation",
    "nonce",
    "columns",
    "keys",
    "panes",
    "seqs",
)


def packed_block(**changed):
    whole = {
        "stream": 5,
        "span_us": 10,
        "incarnation": 1,
        "nonce": 7,
        "columns": [[3, 2]],
        "keys": [],
        "panes": [12, 1],
        "seqs": [9, 1],
    }
    return envelope(1, [[list((whole | changed).values())], []])


def test_the_block_that_is_changed_below_is_a_good_one():
    block = decode(packed_block()).blocks[0]
    assert (block.panes_us, block.seqs, block.keys) == ((120, 130), (9, 10), ("", ""))


@pytest.mark.parametrize("field", BLOCK_FIELDS)
@pytest.mark.parametrize(
    "value",
    [
        *(None, True, -1, 2**63, 2**64 - 1, 1.5, float("nan"), "x", b"x", {}, {"a": 1}),
        *([1], [[1]], [1, 2, 3], [None, None, None], ["a", [1, 2]], nested(300)),
        *([1, float("nan")], [2**64 - 1, 1]),
    ],
    ids=range(19),
)
def test_a_wrong_field_of_a_block_is_refused(field, value):
    payload = packed_block(**{field: value})
    taken = {("stream", -1)}
    if isinstance(value, int) and (field, value) in taken:
        assert decode(payload).blocks[0].stream == value
    else:
        with pytest.raises(FrameError):
            decode(payload)


@pytest.mark.parametrize(
    "keys",
    [
        [["a"], [0]],
        [["a"], [0, 1]],
        [["a"], [0, -1]],
        [["a"], [0, 0.0]],
        [["a"]],
        [["a", 5], [0, 0]],
        ["a", [0, 0]],
        [[], [0, 0]],
    ],
    ids=repr,
)
def test_keys_that_do_not_fit_their_entries_are_refused(keys):
    assert decode(packed_block(keys=[["a"], [0, 0]])).blocks[0].keys == ("a", "a")
    with pytest.raises(FrameError):
        decode(packed_block(keys=keys))


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (1, []),
        (1, [[[]], []]),
        (1, [["abcdefgh"], []]),
        (1, [[{"a": 1}], []]),
        (1, [[], 5]),
        (1, [[], [[8, 60]]]),
        (1, [[], [[8, 60, 2]] * 65]),
        (3, [0, True, [], 0, None]),
        (3, [0, True, [], 0, None, [[-1, 60, 2]]]),
        (3, [0, True, [], 0, None, [[2**32, 60, 2]]]),
        (3, [0, True, [], 0, None, [[8, 2**58, 2]]]),
        (3, [0, True, [], 0, None, [[8, 60, -1]]]),
        (3, [0, True, [], 0, None, [[8, None, 2]]]),
        (2, []),
        (2, ["v", 5, [1]]),
        (3, [None, 1, [], 0, None, []]),
        (3, [2**58, True, [], 0, None, []]),
        (3, [0.5, True, [], 0, None, []]),
        (3, [0, True, [], 0, []]),
        (3, [0, True, [], 0, -1, []]),
        (3, [0, True, [], 0, 2**32, []]),
        (3, [0, True, [], 0, 1.5, []]),
        (3, [0, True, [], -1, None, []]),
        (3, [0, True, [], 2**40, None, []]),
        (3, [0, True, [], None, None, []]),
        (3, [0, True, [["v", 1, 1]], 0, None, []]),
        (3, [0, True, ["abcd"], 0, None, []]),
        (3, [0, True, [["v", -1, 1, None]], 0, None, []]),
        (3, [0, True, [["v", 1, -1, None]], 0, None, []]),
        (3, [0, True, [["v", 1, 1, -1]], 0, None, []]),
        (3, [0, True, [["v", 1, 1, "x"]], 0, None, []]),
        (4, [1]),
        (4, [None]),
        (4, []),
        (5, [1, 7, "lake", 5, None]),
        (5, [1, 7, "lake", [-1], None]),
        (5, [1, 7, "lake", [2**40], None]),
        (5, [1, 7, "lake", [True], None]),
        (5, [1, 7, 5, [1], None]),
        (5, [1, 7, "lake", [1]]),
        (5, [1, 7, "lake", [1], -1]),
        (5, [1, 7, "lake", [1], True]),
        (5, [2**30, 7, "lake", [1], None]),
        (5, [1, -1, "lake", [1], None]),
        (6, [5]),
        (6, ["a", "b"]),
        (7, []),
        (7, [0, True, 1, 7, 0]),
        (7, [2**40, True, 1, 7, 0]),
        (7, [1, True, 1, 7, -1]),
        (7, [1, True, 1, 7, 2**40]),
        (7, [1, True, 2**30, 7, 0]),
        (7, [1, True, 1, 2**32, 0]),
        (7, [1, 1, 1, 7, 0]),
        (7, [1, None, 1, 7, 0]),
        (7, [1, True, 1, 7]),
        (8, []),
        (8, [0, 1]),
        (8, [2**48, 1]),
        (8, [1, 0]),
        (8, [1, 16]),
        (8, [1, True]),
        (9, []),
        (9, [-1, None, 5, 9, 5, 9, [], False]),
        (9, [2**48, None, 5, 9, 5, 9, [], False]),
        (9, [1, 5, 5, 9, 5, 9, [], False]),
        (9, [1, "", 5, 9, 5, 9, [], False]),
        (9, [1, None, 2**30, 9, 5, 9, [], False]),
        (9, [1, None, 5, 2**32, 5, 9, [], False]),
        (9, [1, None, 5, 9, 2**30, 9, [], False]),
        (9, [1, None, 5, 9, 5, [], False]),
        (9, [1, None, 5, 9, 5, 9, 5, [], False]),
        (9, [1, None, 5, 9, 5, 9, [[8, 60, 2]] * 65, False]),
        (9, [1, None, 5, 9, 5, 9, []]),
        (9, [1, None, 5, 9, 5, 9, [], 1]),
        (9, [1, None, 5, 9, 5, 9, False]),
        (10, []),
        (0, []),
    ],
    ids=repr,
)
def test_a_wrong_body_is_refused(kind, body):
    with pytest.raises(FrameError):
        decode(envelope(kind, body))


def test_a_word_on_a_member_has_a_control_from_1():
    assert decode(envelope(7, [1, True, 1, 7, 5])).control == 1
    with pytest.raises(FrameError, match="out of range"):
        decode(envelope(7, [0, True, 1, 7, 5]))


# (shard 1 holds the keys "kitchen" and "shed-28")
ENTRY = {
    "variable": "v",
    "stream": 5,
    "shard": 1,
    "keys": ["kitchen", "shed-28"],
    "ages": [0, 1],
    "columns": [[3, 2]],
}


def packed_entry(**changed):
    return envelope(2, list((ENTRY | changed).values()))


def test_the_entry_that_is_changed_below_is_a_good_one():
    frame = decode(packed_entry())
    assert (frame.keys, frame.seqs, frame.columns) == (("kitchen", "shed-28"), (1, 0), ((3, 2),))
    empty = decode(packed_entry(keys=[], ages=[], columns=[[]]))
    assert (empty.keys, empty.columns) == ((), ((),))
    assert decode(packed_entry(shard=0, keys=[""], ages=[0], columns=[[1]])).keys == ("",)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"variable": b"v"}, "bad text"),
        ({"variable": "x" * 256}, "bad text"),
        ({"stream": 2**63}, "out of range"),
        ({"shard": -1}, "out of range"),
        ({"shard": 16}, "out of range"),
        ({"shard": 1.0}, "out of range"),
        ({"shard": 2}, "another shard"),
        ({"shard": 0}, "another shard"),
        ({"shard": 1, "keys": ["", "kitchen"]}, "another shard"),
        ({"keys": ["shed-28", "kitchen"]}, "out of order"),
        ({"keys": ["kitchen", "kitchen"]}, "out of order"),
        ({"keys": ["kitchen", "shed-28\x1f"]}, "control character"),
        ({"keys": ["kitchen", "z" * 256]}, "bad text"),
        ({"keys": ["kitchen", 5]}, "bad text"),
        ({"keys": "ab"}, "not an array"),
        ({"keys": ["kitchen"]}, "unequal length"),
        ({"ages": [0]}, "unequal length"),
        ({"ages": [0, 2]}, "out of range"),
        ({"ages": [0, -1]}, "out of range"),
        ({"ages": [0, True]}, "integers"),
        ({"columns": [[3, 2], [1]]}, "unequal length"),
        ({"columns": [[3, 1.5]]}, "integers"),
        ({"columns": [[3, True]]}, "integers"),
        ({"columns": [[b"a", 2]]}, "one type"),
        ({"columns": [[2, b"a"]]}, "integers"),
        ({"columns": [[b"a", None]]}, "one type"),
        ({"columns": [[b"a", b"x" * 20_001]]}, "too long"),
        ({"columns": [[3, 2**63]]}, "out of range"),
        ({"columns": [[3, 2]] * 65}, "too many columns"),
        ({"columns": 5}, "not an array"),
        ({"columns": [["a", "b"]]}, "not a column of integers"),
    ],
    ids=repr,
)
def test_a_wrong_entry_is_refused(changed, reason):
    with pytest.raises(FrameError, match=reason):
        decode(packed_entry(**changed))


def test_a_binary_part_of_a_pane_is_bounded_too():
    good = decode(packed_block(columns=[[b"x" * 20_000, b""]])).blocks[0]
    assert good.columns == ((b"x" * 20_000, b""),)
    with pytest.raises(FrameError, match="too long"):
        decode(packed_block(columns=[[b"x" * 20_001, b""]]))
    with pytest.raises(FrameError, match="one type"):
        decode(packed_block(columns=[[b"x", 1]]))


@pytest.mark.parametrize(
    "changed",
    [
        {"version": FORMAT - 1},
        {"version": FORMAT + 1},
        {"version": True},
        {"version": 1.0},
        {"kind": True},
        {"kind": 2**63},
        {"kind": "1"},
        {"device": ""},
        {"device": "x" * 256},
        {"device": b"pi-1"},
        {"incarnation": 2**30},
        {"incarnation": -1},
        {"nonce": 2**32},
        {"nonce": None},
        {"number": 2**40},
        {"number": -1},
        {"number": 0},
        {"about": ""},
        {"about": 5},
        {"about": "x" * 256},
        {"about": "pi\n"},
        {"number": True},
        {"body": {}},
        {"body": None},
        {"extras": []},
        {"extras": None},
        {"extras": {}, "more": 1},
    ],
    ids=repr,
)
def test_a_wrong_envelope_is_refused(changed):
    with pytest.raises(FrameError):
        decode(envelope(6, ["v"], **changed))


def test_extras_that_a_reader_does_not_know_are_ignored():
    asked = decode(envelope(6, ["v"], about="pi-2", extras={"group": "east"}))
    assert asked == AskFrame(ME, 1, "pi-2", "v")


def test_a_frame_of_the_former_format_is_refused_with_that_reason():
    former = [2, 6, "pi-1", 1, 7, 1, ["v"], {}]
    with pytest.raises(FrameError, match="format 2, and this lasp-edge reads format 3"):
        decode(msgpack.packb(former))


@pytest.mark.parametrize("kind", [PaneFrame, BeatFrame, PresenceFrame, VariableFrame])
def test_what_a_device_says_of_itself_is_about_no_other_device(kind):
    bodies = {
        1: [[], []],
        2: ["v", 5, 0, [""], [0], [[1]]],
        3: [[], False, [], 0, None, []],
        4: [True, "", ""],
    }
    body = bodies[kind.kind]
    assert decode(envelope(kind.kind, body)).about == "pi-1"
    assert decode(envelope(kind.kind, body, about="pi-1")).about == "pi-1"
    with pytest.raises(FrameError, match="about another device"):
        decode(envelope(kind.kind, body, about="pi-2"))
