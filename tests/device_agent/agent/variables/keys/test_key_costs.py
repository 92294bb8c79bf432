"""Keys fit into their frames, and a change costs what it changes, however many keys there are."""

import random

import pytest

from device_agent.agent.variables.budget import SHARD_BYTES
from lasp_edge import folds
from lasp_edge.aggregates import fleet as fleet_module
from lasp_edge.protocol.shards import key_shard
from lasp_edge.protocol.sizes import MAX_FRAME_BYTES
from lasp_edge.units import SECOND_US
from tests.device_agent.agent.variables.keys.support_rooms import (
    everywhere,
    exchange,
    here,
    read,
    shard_frames,
)
from tests.device_agent.agents import Device, rooms


def fill(device, shard, length=200):
    """Read in ever more rooms of one shard until one is refused; return how many there were."""
    count = 0
    rooms_of_shard = (
        room for n in range(10**6) if key_shard(room := f"{n}".zfill(length)) == shard
    )
    while not device.counted.get("refused"):
        read(device, next(rooms_of_shard), 2e7)
        count += 1
        assert count < 2_000
    return count - 1


def test_an_update_that_would_make_a_shard_too_large_is_refused_and_counted(device):
    taken = fill(device, 3)
    assert taken > SHARD_BYTES / 300
    assert any("would not fit into a frame" in reason for reason in device.counted)
    frames = shard_frames(device, device.tick())
    assert len(frames[3].keys) == taken
    assert MAX_FRAME_BYTES * 0.7 < len(frames[3].encode()) <= MAX_FRAME_BYTES
    read(device, frames[3].keys[0], 1.0)  # what is there may go on
    read(device, "kitchen", 1.0)
    assert here(device)[frames[3].keys[0]][0] == 2
    assert here(device)["kitchen"] == (1, 100)
    assert device.counted["refused"] == 1
    device.restart()
    refused = device.counted["refused"]
    read(device, "z" * 199 + next(c for c in "abcdefghijklmn" if key_shard("z" * 199 + c) == 3), 1)
    assert device.counted["refused"] == refused + 1


def test_keys_that_go_make_room_for_others(tmp_path):
    device = Device(tmp_path, rooms(max_age_s=10))
    taken = fill(device, 3)
    device.tick(12)
    device.counted["refused"] = 0
    assert fill(device, 3) == taken


@pytest.mark.parametrize(
    "fold",
    [
        folds.quantile(0.5),
        folds.top(3),
        folds.distinct(),
        folds.struct(a=folds.top(9), b=folds.max()),
    ],
    ids=["quantile", "top", "distinct", "struct"],
)
def test_shards_of_binary_folds_fit_their_frames_too(tmp_path, fold):
    device = Device(tmp_path, rooms(fold, bound=40))
    drawn = random.Random(5)
    keys = [room for n in range(20_000) if key_shard(room := f"room-{n}") == 3][:250]
    for room in keys:
        device.read([drawn.uniform(1, 20_000) for _ in range(40)], tags={"room": room})
    refused = device.counted.get("refused", 0)
    frame = shard_frames(device, device.tick())[3]
    assert len(frame.encode()) <= MAX_FRAME_BYTES
    truth = {}
    samples = device.core.samples.sets.held["samples"]
    assert refused == 40 * len(keys) - sum(map(len, samples.values()))
    for key, state in samples.items():
        truth[key] = device.program.local_folds["here"].fold.lift_column(
            state.values(), [time_us for time_us, _, _ in state.samples()]
        )
    assert here(device) == truth


def test_one_change_among_many_keys_costs_what_one_key_costs(tmp_path, monkeypatch):
    a, b = Device(tmp_path / "a", rooms(), name="a"), Device(tmp_path / "b", rooms(), name="b")
    tags = [{"room": f"room-{n}"} for n in range(2_000)]
    a.take([20.0] * 2_000, [None] * 2_000, tags)
    exchange(a, b)
    assert len(everywhere(b)) == 2_000
    hashed, written = [], []
    honest = fleet_module.entry_hash
    monkeypatch.setattr(
        fleet_module, "entry_hash", lambda *args: hashed.append(args[0]) or honest(*args)
    )
    commit = a.store.commit
    a.store.commit = lambda changes: written.append(changes) or commit(changes)
    read(a, "room-7", 30.0)
    exchange(a, b)
    assert set(hashed) == {"room-7"}
    assert len(hashed) == 4  # the old and the new word, on both devices
    meaning = a.store.restored().facts.meanings["samples"]
    assert [[*c.states, *c.deltas] for c in written] == [[(meaning, "room-7")]]
    assert everywhere(a)["room-7"] == everywhere(b)["room-7"] == (2, 5_000)


def test_expiry_looks_at_what_is_due_and_not_at_every_key(tmp_path):
    device = Device(tmp_path, rooms(bound=None, max_age_s=100))
    tags = [{"room": f"room-{n}"} for n in range(500)]
    device.take([20.0] * 500, [None] * 500, tags)
    device.tick(50)
    read(device, "room-3", 1.0)
    looked_at = device.core.samples.sets.expire(device.now_us + 40 * SECOND_US)
    assert looked_at == []
    device.tick(51)
    assert here(device) == {"room-3": (1, 100)}
    device.tick(60)
    assert here(device) == {}


def test_what_moved_is_not_remembered_beyond_what_is_held(tmp_path):
    device = Device(tmp_path, rooms(folds.max(), bound=300))
    read(device, "hall", *range(300))
    assert here(device) == {"hall": (29_900,)}
    sets = device.core.samples.sets
    for value in range(40):
        device.read([value] * 20, tags={"room": "hall"})
        moved = sets.moved["samples"]["hall"]
        assert moved is None or sum(map(len, moved)) <= 2 * 300
    assert moved is None
    assert here(device) == {"hall": (3_900,)}
