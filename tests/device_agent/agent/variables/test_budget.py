"""Frame budgets: what is reserved is never too little, and is free again when keys go."""

import random

import pytest

from crdts import Replica
from device_agent.agent.variables.budget import SHARD_BYTES, FrameBudget
from lasp_edge import folds
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution
from lasp_edge.folds.packed import MAX_BINARY_BYTES, packed_counts
from lasp_edge.protocol.frames import VariableFrame
from lasp_edge.protocol.shards import KEY_SHARDS, key_shard
from lasp_edge.protocol.sizes import SHARD_OVERHEAD_BYTES

ME = Replica(1, 7, "me")

SEVERAL = {
    "mean": folds.mean(),
    "top": folds.top(7),
    "quantile": folds.quantile(0.5, 0.99),
    "distinct": folds.distinct(),
    "small distinct": folds.distinct(8),
    "struct": folds.struct(a=folds.top(3), b=folds.min(), c=folds.quantile(0.5), d=folds.last()),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_a_frame_is_never_longer_than_its_room(name):
    fold, drawn = SEVERAL[name].at(Resolution("0.01")), random.Random(4)
    budget, keys = FrameBudget("v", [folds.count(), fold]), [f"room-{n}" for n in range(60)]
    partials = {}
    for key in keys:
        count = drawn.choice([1, 2, 9, 60, 500])
        values = [drawn.randint(-(2**30), 2**30) for _ in range(count)]
        partials[key] = fold.lift_column(values, [drawn.randint(0, 2**57) for _ in values])
        budget.settle(key, count)
    for shard in range(KEY_SHARDS):
        here = tuple(sorted(key for key in keys if key_shard(key) == shard))
        columns = tuple(zip(*(partials[key] for key in here), strict=True))
        seqs = (1,) * len(here)
        frame = VariableFrame(ME, 2**40 - 1, "v", 2**62, shard, here, seqs, columns)
        assert len(frame.encode()) <= SHARD_OVERHEAD_BYTES + budget.used(shard)


def test_room_that_is_asked_for_sample_by_sample_is_what_is_put_at_once():
    for fold in SEVERAL.values():
        one, other = FrameBudget("v", [fold]), FrameBudget("v", [fold])
        for key, count in (("a", 5), ("b", 1), ("c", 200)):
            for _ in range(count):
                one.reserve(key, 0)
            other.settle(key, count)
        used = [one.used(shard) for shard in range(KEY_SHARDS)]
        assert used == [other.used(shard) for shard in range(KEY_SHARDS)]


def test_what_was_asked_for_in_vain_is_given_back():
    budget = FrameBudget("v", [folds.mean()])
    budget.reserve("a", 0)
    budget.reserve("b", 0)
    assert budget.take_reserved() == ["a", "b"]
    assert budget.take_reserved() == []
    budget.settle("a", 1)
    budget.settle("b", 0)
    assert budget.used(key_shard("b")) == 0
    assert budget.used(key_shard("a")) > 0
    budget.settle("a", 0)
    assert [budget.used(shard) for shard in range(KEY_SHARDS)] == [0] * KEY_SHARDS


def test_a_fold_of_the_users_own_may_need_all_that_a_part_can():
    class Own(Fold):
        name, parts = "own", ("n",)
        columns = (Column("own_counts", Op.COUNTS),)

        def lift(self, value, time_us=0):
            return (packed_counts({0: 1}),)

        def lower(self, partial, resolution):
            return {"n": len(partial[0])}

    budget = FrameBudget("v", [Own()])
    keys = [key for n in range(200) if key_shard(key := f"room-{n}") == 3]
    for key in keys[: SHARD_BYTES // (MAX_BINARY_BYTES + 50)]:
        budget.reserve(key, 0)
    with pytest.raises(ValueError, match="would not fit into a frame of 65536 B"):
        budget.reserve(keys[5], 0)
    budget.reserve(keys[0], 1)


def test_a_variable_that_nobody_publishes_needs_no_room():
    budget = FrameBudget("v", [])
    for n in range(100_000):
        budget.reserve(f"room-{n}", 0)
    assert budget.used(3) == 0
