"""Variables with keys: each has a state of its own, and comes and goes for all devices."""

import re

from lasp_edge.protocol.frames import AskFrame, BeatFrame, VariableFrame
from lasp_edge.protocol.shards import KEY_SHARDS, key_shard
from lasp_edge.units import SECOND_US
from tests.device_agent.agent.variables.keys.support_rooms import (
    PEER,
    ROOMS,
    entry,
    everywhere,
    exchange,
    here,
    read,
    shard_frames,
)
from tests.device_agent.agents import Device, rooms


def test_each_key_has_samples_of_its_own(device):
    for value in range(8):
        read(device, "attic", value)
    read(device, "cellar", 10.0, 20.0)
    read(device, "", 1.0)
    assert here(device) == {"": (1, 100), "attic": (5, 2500), "cellar": (2, 3000)}
    assert everywhere(device) == here(device)
    assert [*device.core.results.local()] == ["here"]
    assert [*device.core.results.fleet()] == ["everywhere"]


def test_a_reading_whose_key_fails_is_refused_and_changes_nothing(device):
    read(device, "attic", 1.0)
    device.read([2.0], tags={})  # KeyError
    device.read([2.0], tags={"room": "x" * 256})
    device.read([2.0], tags={"room": "a\x1fb"})
    assert here(device) == {"attic": (1, 100)}
    assert device.counted["refused"] == 3
    assert any("control characters" in reason for reason in device.counted)
    assert any("at most 255 B" in reason for reason in device.counted)


def test_a_change_publishes_the_shard_of_its_key_and_no_other(device):
    device.tick()
    read(device, "kitchen", 1.0)
    read(device, "cellar", 2.0)
    frames = shard_frames(device, device.tick())
    assert {n: f.keys for n, f in frames.items()} == {1: ("kitchen",), 9: ("cellar",)}
    assert device.frames(VariableFrame, device.tick()) == []
    read(device, "kitchen", 3.0)
    (frame,) = device.frames(VariableFrame, device.tick())
    assert (frame.keys, frame.columns) == (("kitchen",), ((2,), (400,)))
    assert frame.number > frames[1].number > 0
    assert frame.seqs == (frame.number,)


def test_each_shard_is_retained_on_a_topic_of_its_own(device):
    for room in ROOMS:
        read(device, room, 1.0)
    topics = device.core.agent.topics
    published = [p for p in device.tick() if "/var/" in p.topic]
    assert len(published) == len({p.topic for p in published}) == KEY_SHARDS
    for publication in published:
        (frame,) = device.frames(VariableFrame, [publication])
        assert publication.retain
        assert publication.topic == topics.of("var", "pi-1", "here", f"{frame.shard:02x}")


def test_a_key_keeps_its_seq_while_others_of_its_shard_change(device):
    shard = [f"room-{n}" for n in range(100) if key_shard(f"room-{n}") == 3][:3]
    for room in shard:
        read(device, room, 1.0)
    before = shard_frames(device, device.tick())[3]
    read(device, shard[1], 2.0)
    after = shard_frames(device, device.tick())[3]
    assert after.keys == before.keys == tuple(sorted(shard))
    changed = [a != b for a, b in zip(before.seqs, after.seqs, strict=True)]
    assert changed == [key == shard[1] for key in after.keys]
    assert max(after.seqs) == after.number


def test_a_key_goes_when_all_its_samples_are_too_old_and_may_come_again(tmp_path):
    program = rooms(bound=None, max_age_s=10)
    a, b = Device(tmp_path / "a", program, name="a"), Device(tmp_path / "b", program, name="b")
    read(a, "attic", 1.0)
    read(a, "hall", 2.0)
    read(b, "attic", 5.0)
    exchange(a, b)
    assert everywhere(a) == everywhere(b) == {"attic": (2, 600), "hall": (1, 200)}
    read(a, "hall", 4.0)
    exchange(a, b, seconds=9.5)
    assert everywhere(a) == everywhere(b) == {"hall": (1, 400)}
    exchange(a, b)
    assert everywhere(a) == everywhere(b) == {}
    assert a.store.restored().variables.get("samples", {}) == {}
    a.restart()
    read(a, "hall", 7.0)
    exchange(a, b)
    exchange(a, b)
    assert everywhere(a) == everywhere(b) == {"hall": (1, 700)}


def test_a_peers_older_entry_never_resurrects_a_key(device):
    shard = [f"room-{n}" for n in range(100) if key_shard(f"room-{n}") == 3][:2]
    both = dict.fromkeys(shard, (1, 100))
    old, new = entry(device, 4, both), entry(device, 5, {shard[0]: (1, 100)}, seqs=(4,))
    empty = entry(device, 6, {}, shard=3)
    for frame in (old, new, old):
        device.hear(frame)
    assert everywhere(device) == {shard[0]: (1, 100)}
    for frame in (empty, new, old):
        device.hear(frame)
    assert everywhere(device) == {}
    again = entry(device, 7, {shard[1]: (2, 300)})
    for frame in (again, empty, old):
        device.hear(frame)
    assert everywhere(device) == {shard[1]: (2, 300)}
    life = entry(device, 1, {}, shard=3, sender=PEER._replace(incarnation=4))
    for frame in (life, again):
        device.hear(frame)
    assert everywhere(device) == {}


def test_entries_of_other_shards_and_devices_stay_as_they_are(device):
    for room in ROOMS:
        device.hear(entry(device, 1, {room: (1, 100)}))
        device.hear(entry(device, 1, {room: (2, 500)}, sender=PEER._replace(device="pi-3")))
    device.hear(entry(device, 2, {}, shard=key_shard("hall")))
    assert everywhere(device) == dict.fromkeys(sorted(ROOMS), (3, 600)) | {"hall": (2, 500)}


def test_a_new_life_publishes_every_shard_under_its_own_name(device):
    for room in ROOMS:
        read(device, room, 1.0, 2.0)
    before = shard_frames(device, device.tick())
    device.restart()
    after = shard_frames(device, device.tick())
    assert sorted(after) == sorted(before) == list(range(KEY_SHARDS))
    assert {frame.sender for frame in after.values()} == {device.core.replica}
    assert {f.keys for f in after.values()} == {f.keys for f in before.values()}
    assert all(frame.number >= 1 for frame in after.values())
    held = {key for frame in after.values() for key in frame.keys}
    assert held == set(ROOMS)
    read(device, "attic", 3.0)
    assert here(device)["attic"] == (3, 600)


def test_keys_that_went_while_a_device_was_off_are_gone_for_its_peers(tmp_path):
    program = rooms(bound=None, max_age_s=10)
    a, b = Device(tmp_path / "a", program, name="a"), Device(tmp_path / "b", program, name="b")
    read(a, "attic", 1.0)
    exchange(a, b)
    assert everywhere(b) == {"attic": (1, 100)}
    a.kill()
    a.now_us += 60 * SECOND_US
    a.start()
    exchange(a, b)
    exchange(a, b)
    assert everywhere(a) == everywhere(b) == {}


def test_a_lost_store_takes_the_keys_of_the_lost_life_away(tmp_path):
    a = Device(tmp_path / "a", rooms(), name="a")
    b = Device(tmp_path / "b", rooms(), name="b")
    read(a, "attic", 1.0)
    said = a.frames(VariableFrame, a.tick())
    for frame in said:
        b.hear(frame)
    a.kill()
    lost = Device(tmp_path / "empty", rooms(), name="a")
    for frame in said:
        lost.hear(frame)  # the broker kept them
    exchange(lost, b)
    assert lost.core.replica > said[0].sender
    assert everywhere(lost) == everywhere(b) == {}


def test_sets_grouped_by_another_key_are_set_aside_and_found_again(tmp_path):
    device = Device(tmp_path, rooms())
    for room in ROOMS:
        read(device, room, 1.0)
    device.kill()
    device.program = rooms(version=2)
    device.start()
    assert here(device) == {}
    device.tick()
    (line,) = device.core.report()["set_aside"]
    assert re.search(r"by key \(version 1\), \d+ bytes kept in the store", line)
    read(device, "attic", 5.0)
    device.restart()
    assert here(device) == {"attic": (1, 500)}
    assert set(device.store.restored().stored("samples")) == {"attic"}
    device.program = rooms()
    device.restart()
    assert set(here(device)) == set(ROOMS)


def test_a_smaller_bound_holds_for_every_key_after_a_restart(tmp_path):
    device = Device(tmp_path, rooms(bound=5))
    for room in ROOMS:
        read(device, room, 1.0, 2.0, 3.0, 4.0, 5.0)
    device.program = rooms(bound=2)
    device.restart()
    assert set(here(device).values()) == {(2, 900)}
    device.restart()
    read(device, "attic", 6.0)
    assert here(device)["attic"] == (2, 1100)


def test_a_shard_that_did_not_arrive_is_asked_for_though_a_newer_one_did(tmp_path):
    a, b = Device(tmp_path / "a", rooms(), name="a"), Device(tmp_path / "b", rooms(), name="b")
    exchange(a, b)
    read(a, "kitchen", 1.0)
    lost = a.tick()
    read(a, "cellar", 1.0)
    asks = []
    for frame in a.frames(VariableFrame, a.tick()):
        b.hear(frame)
    for _ in range(8):
        read(a, "attic", 1.0)  # so that each beat is said
        for frame in a.frames(VariableFrame | BeatFrame, a.tick(2)):
            b.hear(frame)
        asks += b.frames(AskFrame, b.tick(2))
    assert a.frames(VariableFrame, lost)
    assert asks
    assert {ask.variable for ask in asks} == {"here"}
    a.hear(asks[0], a.core.agent.topics.of("inbox", "a"))
    for frame in a.frames(VariableFrame | BeatFrame, a.tick(2)):
        b.hear(frame)
    b.tick(2)
    assert everywhere(b) == everywhere(a)
