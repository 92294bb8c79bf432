"""How keys, members and binary columns land."""

from dataclasses import replace

import pytest

from cloud_tier.lake.tables import Lake
from cloud_tier.lander.landing import Landing, Reader
from cloud_tier.lander.segments import Record, Segment
from crdts import BoundedLWWSet, Member, Membership, Replica, Version
from lasp_edge import Program, folds
from lasp_edge.protocol.frames import VariableFrame
from lasp_edge.protocol.frontier import Listening
from lasp_edge.protocol.shards import KEY_SHARDS, key_shard
from tests.cloud_tier.frames import ME, TOPICS, beat, member, panes, topic_of, variable
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, rooms

PROGRAM = rooms()
NOW_US = BEGIN_US + 100 * SECOND_US


def keyed():
    """A program whose local average is one a room."""
    program = Program("rooms")
    event = program.event("temperature", resolution="0.01")
    samples = program.declare_dynamic(
        BoundedLWWSet(bound=5), "samples", key=lambda event: event.tags["room"]
    )
    program.collect(event, into=samples)
    program.fold_dynamic(program.fold(samples, folds.mean(), "local_average"), "global_average")
    return program.plan()


def packed():
    """A program with every binary column, and one that stands beside another."""
    program = Program("rooms")
    event = program.event("temperature", resolution="0.01")
    fold = folds.struct(
        p=folds.quantile(0.5), top=folds.top(2), seen=folds.distinct(), last=folds.last()
    )
    program.window("by_room", source=event, fold=fold, size_s=60, slide_s=10)
    return program.plan()


KEYED, PACKED = keyed(), packed()


def record(frame, *, at_us=NOW_US, retained=False):
    return Record(at_us, topic_of(frame), retained, frame.encode())


def taken(program, *frames, membership=None):
    reader = Reader(program, TOPICS, None, membership)
    segment = Segment(1, Listening(NOW_US, BEGIN_US), [record(frame) for frame in frames])
    found = reader.take(segment)
    return reader.table(found).to_pylist(), found


def reasons(program, *frames, **options):
    return [reason for _, reason in taken(program, *frames, **options)[1].rejects]


def shard(program, number, keys, *, seqs=None, at=None):
    local = program.published_folds["local_average"]
    of = key_shard(keys[0]) if at is None else at
    columns = ((1,) * len(keys), tuple(range(len(keys)))) if keys else ()
    seqs = (number,) * len(keys) if seqs is None else seqs
    return VariableFrame(ME, number, local.name, local.stream, of, tuple(keys), seqs, columns)


def of_shard(at, count):
    return sorted(k for k in map(str, range(1000)) if key_shard(k) == at)[:count]


def test_shard_becomes_a_row_for_each_key_with_the_seq_of_its_own():
    keys = of_shard(5, 3)
    rows, _ = taken(KEYED, shard(KEYED, 9, keys, seqs=(3, 9, 1)))
    assert [(row["key"], row["changed"]) for row in rows] == list(zip(keys, (3, 9, 1), strict=True))
    assert {(row["kind"], row["shard"], row["seq"]) for row in rows} == {("variable", 5, 9)}
    assert [row["total_q"] for row in rows] == [0, 1, 2]


def test_empty_shard_becomes_one_row_without_a_key():
    (row,), _ = taken(KEYED, shard(KEYED, 9, [], at=7))
    assert (row["key"], row["shard"], row["seq"], row["changed"]) == (None, 7, 9, 9)
    assert (row["kind"], row["count"], row["total_q"]) == ("variable", None, None)


def test_variable_without_keys_lands_in_shard_0_also_where_its_set_is_empty():
    (row,), _ = taken(PROGRAM, variable(PROGRAM, 8, 2, 4400))
    assert (row["key"], row["shard"], row["changed"]) == ("", 0, 8)
    (row,), _ = taken(PROGRAM, replace(variable(PROGRAM, 8), keys=(), seqs=(), columns=()))
    assert (row["key"], row["shard"], row["changed"]) == (None, 0, 8)


def test_keys_where_there_are_none_and_keys_of_another_shard_are_rejected():
    (key,) = of_shard(5, 1)
    assert reasons(PROGRAM, shard(PROGRAM, 1, [key])) == ["keys of a variable that has none"]
    assert reasons(PROGRAM, shard(PROGRAM, 1, [], at=3)) == ["keys of a variable that has none"]
    # The empty key of a variable with keys is in a shard like any other; the frame alone cannot
    # know that.
    assert key_shard("") != 0
    assert reasons(KEYED, shard(KEYED, 1, [""], at=0)) == ["a key of another shard"]
    assert reasons(KEYED, shard(KEYED, 1, [key], at=4)) == ["a key of another shard"]
    assert reasons(KEYED, shard(KEYED, 1, [], at=KEY_SHARDS - 1)) == []


def test_word_on_a_member_lands_once_and_says_nothing_of_the_devices_life():
    far = Replica(3_000, 7, "pi-0")
    rows, found = taken(PROGRAM, member(2, seq=5), member(2, seq=5), member(3, retired=False))
    assert [(row["kind"], row["control"], row["retired"], row["seq"]) for row in rows] == [
        ("member", 2, True, 5),
        ("member", 3, False, 0),
    ]
    assert {row["device"] for row in rows} == {"pi-0"}
    assert found.frames == {}
    assert reasons(PROGRAM, member(1, replica=far), beat(1, 5), beat(2, 5, replica=far)) == [
        "incarnation far ahead of the known one"
    ]


def test_older_word_on_a_member_is_not_landed_again():
    known = Membership({"pi-0": Member(4, retired=False, version=Version(3, 7, 5))})
    assert taken(PROGRAM, member(3, seq=9), membership=known)[0] == []


def test_word_on_a_member_from_nowhere_is_rejected():
    assert reasons(PROGRAM, member(1025, seq=9)) == ["control far ahead of the known one"]
    assert reasons(PROGRAM, member(1024, seq=9), member(1025, seq=9)) == []


def test_panes_of_a_retired_device_land_up_to_the_version_and_no_further():
    frames = [member(1, seq=1), panes(PROGRAM, 4), panes(PROGRAM, 5, first_seq=0)]
    rows, found = taken(PROGRAM, *frames)
    assert [(row["seq"], row["total_q"]) for row in rows if row["kind"] == "pane"] == [
        (1, 2000),
        (0, 2000),
        (1, 4100),
    ]
    assert found.frames == {ME: [5]}, "only what was taken whole is acknowledged"
    assert [reason for _, reason in found.rejects] == ["of a retired device"]


def test_late_panes_of_an_earlier_life_of_a_retired_device_count():
    frames = [member(1, seq=1), panes(PROGRAM, 4, incarnation=2, nonce=99, first_seq=70)]
    rows, found = taken(PROGRAM, *frames)
    assert len(rows) == 1 + 2
    assert found.frames == {ME: [4]}


def test_device_that_is_admitted_again_lands_whole():
    again = [member(1, seq=1), panes(PROGRAM, 4), member(2, retired=False), panes(PROGRAM, 4)]
    rows, found = taken(PROGRAM, *again)
    assert [row["seq"] for row in rows if row["kind"] == "pane"] == [1, 1, 2]
    assert found.frames == {ME: [4]}


def test_variables_and_promises_of_a_retired_device_are_kept():
    rows, found = taken(PROGRAM, member(1), variable(PROGRAM, 8, 2, 4400), beat(1, 5))
    assert [row["kind"] for row in rows] == ["member", "variable", "promise"]
    assert not found.rejects


def test_lander_that_starts_again_knows_who_was_retired(tmp_path):
    lake = Lake(tmp_path)
    lake.create(PROGRAM.columns)
    landing = Landing(lake, "one")
    assert landing.membership() == Membership()
    reader = Reader(PROGRAM, TOPICS)
    frames = [member(1, seq=5), member(2, retired=False, seq=5), member(3, seq=9)]
    segment = Segment(1, Listening(NOW_US, BEGIN_US), [record(frame) for frame in frames])
    found = reader.take(segment)
    landing.land(1, reader.table(found), found)
    membership = Landing(lake, "two").membership()
    assert membership.retired == {"pi-0": Version(3, 7, 9)}
    again = Reader(PROGRAM, TOPICS, None, membership)
    found = again.take(segment)
    assert again.table(found).num_rows == 0, "heard before"


def binary_panes(**changes):
    """Return a frame of one pane of PACKED, and the partial in it."""
    window = PACKED.windows["by_room"]
    fold = window.fold
    partial = fold.combine(fold.lift(2150, 3), fold.lift(2250, 4))
    parts = dict(zip(fold.columns_named, partial, strict=True)) | changes
    columns = tuple((part,) for part in parts.values())
    frame = panes(PACKED, 1, columns=columns, keys=("",), panes_us=(BEGIN_US,), seqs=(1,))
    return frame, parts


def test_binary_columns_land_as_bytes():
    frame, parts = binary_panes()
    (row,), found = taken(PACKED, frame)
    assert {name: row[name] for name in parts} == parts
    assert sum(isinstance(part, bytes) for part in parts.values()) == 3
    assert found.frames == {ME: [1]}


def kinds_of(fold):
    """Return the binary columns of a fold by op, and those that stand beside another."""
    return {str(column.op): column.name for column in fold.columns if column.binary or column.by}


NAMES = kinds_of(PACKED.windows["by_room"].fold)


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
def test_partial_that_is_not_canonical_is_rejected(op, part):
    frame, _ = binary_panes(**{NAMES[op]: part})
    (reason,) = reasons(PACKED, frame)
    assert reason in {"partial not in its form", "partial out of range"}
    assert taken(PACKED, frame)[0] == []


def test_bytes_where_integers_belong_are_rejected():
    assert reasons(PROGRAM, panes(PROGRAM, 1, columns=((b"x", b"y"), (1, 1)))) == ["not integers"]
