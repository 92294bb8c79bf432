"""Sizes: entries take a few bytes, and what is announced is an upper bound."""

from dataclasses import replace

import pytest
from hypothesis import given

from crdts import Replica
from lasp_edge.folds.fold import MAX_COLUMNS
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.frames import (
    PaneFrame,
    VariableFrame,
)
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.shards import key_shard
from lasp_edge.protocol.sizes import (
    BLOCK_OVERHEAD_BYTES,
    FRAME_OVERHEAD_BYTES,
    MAX_FRAME_BYTES,
    SHARD_OVERHEAD_BYTES,
    entry_bytes,
)
from tests.lasp_edge.protocol.support_strategies import (
    ME,
    pane_frames,
    variable_frames,
)


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


def test_an_empty_frame_takes_24_bytes():
    assert len(PaneFrame(Replica(3, 2**31, "kitchen"), 1_000, ()).encode()) == 24
