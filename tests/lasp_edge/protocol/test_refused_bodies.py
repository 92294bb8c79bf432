"""A body with a wrong field is refused, whichever kind of frame and whichever field it is."""

import pytest

from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.kinds import decode
from tests.lasp_edge.protocol.support_packed import envelope, nested

BLOCK = {
    "stream": 5,
    "span_us": 10,
    "incarnation": 1,
    "nonce": 7,
    "columns": [[3, 2]],
    "keys": [],
    "panes": [12, 1],
    "seqs": [9, 1],
}


def packed_block(**changed):
    return envelope(1, [[list((BLOCK | changed).values())], []])


def test_the_block_that_is_changed_below_is_a_good_one():
    block = decode(packed_block()).blocks[0]
    assert (block.panes_us, block.seqs, block.keys) == ((120, 130), (9, 10), ("", ""))


@pytest.mark.parametrize("field", BLOCK)
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
        (15, [None, [[]]]),
        (15, [None, [[0, True, 1, 7, 0]]]),
        (15, [None, [[2**40, True, 1, 7, 0]]]),
        (15, [None, [[1, True, 1, 7, -1]]]),
        (15, [None, [[1, True, 1, 7, 2**40]]]),
        (15, [None, [[1, True, 2**30, 7, 0]]]),
        (15, [None, [[1, True, 1, 2**32, 0]]]),
        (15, [None, [[1, 1, 1, 7, 0]]]),
        (15, [None, [[1, None, 1, 7, 0]]]),
        (15, [None, [[1, True, 1, 7]]]),
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
    assert decode(envelope(15, [None, [[1, True, 1, 7, 5]]])).rows == ((1, True, 1, 7, 5),)
    with pytest.raises(FrameError, match="malformed body"):
        decode(envelope(15, [None, [[0, True, 1, 7, 5]]]))


@pytest.mark.parametrize("former", [(7, [1, True, 1, 7, 5]), (14, ["", [[5, 1, "ann", "30"]]])])
def test_commands_of_a_former_release_are_refused(former):
    with pytest.raises(FrameError, match="unknown kind"):
        decode(envelope(*former))


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
