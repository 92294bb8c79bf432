"""Frames: what was encoded is decoded, and what a stranger sends is refused and does no more."""

from dataclasses import replace

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crdts import Replica, Version
from lasp_edge.folds.fold import MAX_COLUMNS
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.envelope import FORMAT
from lasp_edge.protocol.frames import (
    AckFrame,
    AskFrame,
    BeatFrame,
    MemberFrame,
    PaneFrame,
    PresenceFrame,
    Report,
    VariableFrame,
)
from lasp_edge.protocol.kinds import FRAME_KINDS, decode
from lasp_edge.protocol.shards import key_shard
from lasp_edge.protocol.sizes import (
    BLOCK_OVERHEAD_BYTES,
    FRAME_OVERHEAD_BYTES,
    MAX_FRAME_BYTES,
    SHARD_OVERHEAD_BYTES,
    entry_bytes,
)

texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=20)
names = texts.filter(bool)
int64 = st.integers(-(2**63), 2**63 - 1)
uint64 = st.integers(0, 2**64 - 1)
seqs = st.integers(0, 2**40 - 1)
numbers = st.integers(1, 2**40 - 1)
incarnations, nonces = st.integers(0, 2**30 - 1), st.integers(0, 2**32 - 1)
replicas = st.builds(Replica, incarnations, nonces, names)
versions = st.builds(Version, incarnations, nonces, seqs)
parts = st.none() | int64
binaries = st.binary(max_size=40)


@st.composite
def blocks(draw, most=6):
    length, width = draw(st.integers(1, most)), draw(st.integers(0, 5))
    span_us = draw(st.sampled_from([1, 10_000_000, 60_000_000, 2**57]))
    panes = st.integers(-(2**57) // span_us, 2**57 // span_us)

    def column(values):
        return tuple(draw(st.lists(values, min_size=length, max_size=length)))

    return PaneEntries(
        draw(int64),
        span_us,
        draw(incarnations),
        draw(nonces),
        tuple(column(binaries if draw(st.booleans()) else parts) for _ in range(width)),
        column(st.just("") if draw(st.booleans()) else texts),
        tuple(index * span_us for index in column(panes)),
        column(seqs),
    )


@st.composite
def variable_frames(draw):
    """Return an entry of one shard, of a variable without keys, or of a shared state."""
    number, keys = draw(numbers), draw(st.sets(texts, max_size=5).map(sorted))
    shard = key_shard(draw(st.sampled_from(keys))) if keys else draw(st.integers(0, 15))
    keys = [key for key in keys if key_shard(key) == shard]
    if draw(st.booleans()):
        shard, keys = 0, [""]
    length, stream = len(keys), draw(int64)

    def column(values):
        return tuple(draw(st.lists(values, min_size=length, max_size=length)))

    columns = [column(draw(st.sampled_from([parts, binaries]))) for _ in range(draw(seqs) % 5)]
    if stream == 0:
        columns = [column(binaries)]
    changed = column(st.integers(0, number))
    return VariableFrame(
        draw(replicas), number, draw(names), stream, shard, tuple(keys), changed, tuple(columns)
    )


pane_frames = st.builds(PaneFrame, replicas, numbers, st.lists(blocks(), max_size=3).map(tuple))
FRAMES = {
    PaneFrame: pane_frames,
    VariableFrame: variable_frames(),
    BeatFrame: st.builds(
        BeatFrame,
        replicas,
        numbers,
        st.none() | st.integers(-(2**58), 2**58 - 1),
        st.booleans(),
        st.lists(st.builds(Report, texts, seqs, uint64, st.none() | uint64), max_size=4).map(tuple),
        seqs,
    ),
    PresenceFrame: st.builds(PresenceFrame, replicas, numbers, st.booleans()),
    AckFrame: st.builds(
        AckFrame, replicas, numbers, replicas, texts, st.lists(seqs, max_size=5).map(tuple)
    ),
    AskFrame: st.builds(AskFrame, replicas, numbers, names, texts),
    MemberFrame: st.builds(MemberFrame, replicas, numbers, names, numbers, st.booleans(), versions),
}
any_frame = st.one_of(*FRAMES.values())

ME = Replica(1, 7, "pi-1")
BLOCK = PaneEntries(5, 10, 1, 7, ((3, 2), (66, None)), ("attic", ""), (120, 100), (9, 4))
FRAME = PaneFrame(ME, 1, (BLOCK,))


def test_every_kind_of_frame_is_tested():
    assert {row.frame for row in FRAME_KINDS.values()} == set(FRAMES)


@pytest.mark.parametrize("kind", FRAMES, ids=lambda kind: kind.__name__)
def test_decoding_undoes_encoding(kind):
    @given(FRAMES[kind])
    def check(frame):
        again = decode(frame.encode())
        assert again == frame
        assert type(again) is kind

    check()


def test_frames_of_two_kinds_are_never_equal():
    assert AskFrame(ME, 1, "pi-2", "x") != PresenceFrame(ME, 1, "x")


def test_version_of_a_variable_frame_is_its_replicas():
    assert VariableFrame(ME, 9, "x", 5, 0, ("",), (4,), ((1,),)).version == Version(1, 7, 9)


def test_a_mean_entry_takes_a_few_bytes():
    length = 200
    block = PaneEntries(
        -(2**60),
        10_000_000,
        3,
        2**31,
        ((2,) * length, (4400,) * length),
        ("",) * length,
        tuple(range(1_594_598_370_000_000, 1_594_598_370_000_000 + length * 10**7, 10**7)),
        tuple(range(70_000, 70_000 + length)),
    )
    frame = PaneFrame(ME, 70, (block,))
    assert len(frame.encode()) < 10 * length
    assert decode(frame.encode()) == frame


# Size bounds


def binary_bytes(partial):
    return sum(len(part) for part in partial if isinstance(part, bytes))


def partials_of(block):
    """Return the partials of columns that may be none at all."""
    return list(zip(*block.columns, strict=True)) or [()] * len(block.keys)


def bound_of(frame):
    entries = sum(
        entry_bytes(key, len(block.columns), binary_bytes(partial))
        for block in frame.blocks
        for key, partial in zip(block.keys, partials_of(block), strict=True)
    )
    return FRAME_OVERHEAD_BYTES + len(frame.blocks) * BLOCK_OVERHEAD_BYTES + entries


@given(pane_frames)
def test_announced_sizes_are_upper_bounds(frame):
    assert len(frame.encode()) <= bound_of(frame)


@pytest.mark.parametrize("columns", [0, 1, 15, 16, MAX_COLUMNS])
@pytest.mark.parametrize("length", [1, 20, 300])
def test_announced_sizes_are_upper_bounds_of_the_largest_frames(columns, length):
    widest = PaneEntries(
        -(2**63),
        1,
        2**30 - 1,
        2**32 - 1,
        ((-(2**63),) * length,) * columns,
        tuple(f"\N{GRINNING FACE}{index:09}" for index in range(length)),
        tuple(2**57 * (-1) ** index for index in range(length)),
        tuple((2**40 - 1) * (index % 2) for index in range(length)),
    )
    frame = PaneFrame(Replica(2**30 - 1, 2**32 - 1, "\N{GRINNING FACE}" * 63), 2**40 - 1, ())
    for several in (1, 3):
        frame = replace(frame, blocks=(widest,) * several)
        size = len(frame.encode())
        assert size <= bound_of(frame)
        if size <= MAX_FRAME_BYTES:
            assert decode(frame.encode()) == frame


@given(variable_frames())
def test_announced_sizes_of_a_shard_are_upper_bounds(frame):
    entries = [
        entry_bytes(key, len(frame.columns), binary_bytes(partial))
        for key, partial in zip(frame.keys, partials_of(frame), strict=True)
    ]
    assert len(frame.encode()) <= SHARD_OVERHEAD_BYTES + sum(entries)


@pytest.mark.parametrize("length", [1, 20, 300])
@pytest.mark.parametrize("part", [-(2**63), None, b"x" * 300], ids=["int", "none", "bytes"])
def test_announced_sizes_are_upper_bounds_of_the_largest_shards(part, length):
    keys = [key for n in range(20_000) if key_shard(key := f"\N{GRINNING FACE}{n:09}") == 5]
    keys = tuple(keys[:length])
    columns = ((part,) * length,) * MAX_COLUMNS
    replica = Replica(2**30 - 1, 2**32 - 1, "\N{GRINNING FACE}" * 63)
    name = "\N{GRINNING FACE}" * 16
    frame = VariableFrame(replica, 2**40 - 1, name, -(2**63), 5, keys, (0,) * length, columns)
    entries = [entry_bytes(key, MAX_COLUMNS, binary_bytes((part,) * MAX_COLUMNS)) for key in keys]
    payload = frame.encode()
    assert len(payload) <= SHARD_OVERHEAD_BYTES + sum(entries)
    if len(payload) <= MAX_FRAME_BYTES:
        assert decode(payload) == frame


def test_a_keyed_mean_entry_takes_a_few_bytes():
    keys = [key for n in range(4_000) if key_shard(key := f"room-{n:04}") == 3]
    length = len(keys)
    columns = ((100,) * length, (220_000,) * length)
    seqs = tuple(range(70_000, 70_000 + length))
    frame = VariableFrame(ME, 70_000 + length, "average", 2**60, 3, tuple(keys), seqs, columns)
    assert length > 200
    assert len(frame.encode()) < (len("room-0000") + 11) * length


def test_a_frame_that_is_too_large_is_refused_before_it_is_read():
    with pytest.raises(FrameError, match="too large"):
        decode(b"\xc1" * (MAX_FRAME_BYTES + 1))


def test_more_columns_than_a_frame_takes_are_our_own_mistake():
    with pytest.raises(ValueError, match="at most 64 columns"):
        PaneFrame(ME, 1, (BLOCK._replace(columns=((1, 2),) * 65),)).encode()


# Strangers


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
    return envelope(1, [list((whole | changed).values())])


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
        (1, [[]]),
        (1, ["abcdefgh"]),
        (1, [{"a": 1}]),
        (2, []),
        (2, ["v", 5, [1]]),
        (3, [None, 1, [], 0]),
        (3, [2**58, True, [], 0]),
        (3, [0.5, True, [], 0]),
        (3, [0, True, []]),
        (3, [0, True, [], -1]),
        (3, [0, True, [], 2**40]),
        (3, [0, True, [], None]),
        (3, [0, True, [["v", 1, 1]], 0]),
        (3, [0, True, ["abcd"], 0]),
        (3, [0, True, [["v", -1, 1, None]], 0]),
        (3, [0, True, [["v", 1, -1, None]], 0]),
        (3, [0, True, [["v", 1, 1, -1]], 0]),
        (3, [0, True, [["v", 1, 1, "x"]], 0]),
        (4, [1]),
        (4, [None]),
        (4, []),
        (5, [1, 7, "lake", 5]),
        (5, [1, 7, "lake", [-1]]),
        (5, [1, 7, "lake", [2**40]]),
        (5, [1, 7, "lake", [True]]),
        (5, [1, 7, 5, [1]]),
        (5, [2**30, 7, "lake", [1]]),
        (5, [1, -1, "lake", [1]]),
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


def test_a_word_on_a_member_is_the_memberships_and_back():
    frame = MemberFrame(ME, 9, "pi-2", 3, retired=True, version=Version(1, 7, 60))
    membership = frame.membership()
    assert membership.retired == {"pi-2": Version(1, 7, 60)}
    assert MemberFrame.of(ME, 9, "pi-2", membership.entries["pi-2"]) == frame


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
    whole = b"x" * 60_000  # a shared state fills a frame
    state = decode(packed_entry(stream=0, shard=0, keys=[""], ages=[0], columns=[[whole]]))
    assert state.columns == ((whole,),)


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
        ({"stream": 0}, "encoded state"),
        ({"stream": 0, "columns": [["a", "b"]]}, "encoded state"),
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
        {"version": 1},
        {"version": 3},
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
    former = [1, 6, "pi-1", 1, 7, 1, ["v"], {}]
    with pytest.raises(FrameError, match="format 1, and this lasp-edge reads format 2"):
        decode(msgpack.packb(former))


@pytest.mark.parametrize("kind", [PaneFrame, BeatFrame, PresenceFrame, VariableFrame])
def test_what_a_device_says_of_itself_is_about_no_other_device(kind):
    bodies = {1: [], 2: ["v", 5, 0, [""], [0], [[1]]], 3: [None, False, [], 0], 4: [True]}
    body = bodies[kind.kind]
    assert decode(envelope(kind.kind, body)).about == "pi-1"
    assert decode(envelope(kind.kind, body, about="pi-1")).about == "pi-1"
    with pytest.raises(FrameError, match="about another device"):
        decode(envelope(kind.kind, body, about="pi-2"))


def test_an_empty_frame_takes_22_bytes():
    assert len(PaneFrame(Replica(3, 2**31, "kitchen"), 1_000, ()).encode()) == 22


@pytest.mark.parametrize("name", ["a\x1fb", "a\nb", "\x00"])
def test_control_characters_in_names_and_keys_are_refused(name):
    me = Replica(1, 7, "pi-1")
    entries = PaneEntries(5, 10, 1, 7, ((3,),), (name,), (120,), (9,))
    with pytest.raises(FrameError, match="control character"):
        decode(PaneFrame(me, 1, (entries,)).encode())
    with pytest.raises(FrameError, match="bad replica"):
        decode(PresenceFrame(Replica(1, 7, name), 1, online=True).encode())
