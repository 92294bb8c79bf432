"""Variables with keys: each has a state of its own, comes, goes, and costs what it changes."""

import json
import random

import pytest

from crdts import Replica, Version
from device_agent.settings import SECOND_US
from device_agent.variables.budget import SHARD_BYTES
from lasp_edge import Program, folds
from lasp_edge.aggregates import fleet as fleet_module
from lasp_edge.protocol.frames import AskFrame, BeatFrame, VariableFrame
from lasp_edge.protocol.shards import KEY_SHARDS, key_shard
from lasp_edge.protocol.sizes import MAX_FRAME_BYTES
from simulations.oracle import PublishedPartial, Reading, dynamic_partials, inputs, local_partials
from tests.device_agent.agents import NOW_US, Device, greenhouse, rooms

PEER = Replica(3, 33, "pi-2")
ROOMS = ("attic", "cellar", "hall", "kitchen", "")


@pytest.fixture
def device(tmp_path):
    device = Device(tmp_path, rooms())
    yield device
    device.kill()


def read(device, room, *values):
    """Let it read values in a room, stamped by the agent."""
    device.read(values, tags={"room": room})


def here(device):
    """Return key -> partial of the local fold."""
    device.tick(0)
    return {k: r.partial for k, r in device.core.results.local()["here"].items()}


def everywhere(device):
    """Return key -> partial of the dynamic fold."""
    found = device.core.results.fleet()["everywhere"]
    return {key: result.partial for key, result in found.items()}


def shard_frames(device, published):
    return {frame.shard: frame for frame in device.frames(VariableFrame, published)}


def entry(device, number, keys, **changed):
    """Return a peer's entry with key -> partial."""
    names = tuple(sorted(keys))
    fields = {
        "sender": PEER,
        "number": number,
        "variable": "here",
        "stream": device.program.local_folds["here"].stream,
        "shard": key_shard(names[0]) if names else 0,
        "keys": names,
        "seqs": (number,) * len(names),
        "columns": tuple(zip(*(keys[name] for name in names), strict=True)),
    }
    return VariableFrame(**fields | changed)


def exchange(*devices, seconds=1.0):
    """Let time pass for all of them, and let each hear what the others publish."""
    said = [(device, device.frames(object, device.tick(seconds))) for device in devices]
    for speaker, frames in said:
        for device in devices:
            for frame in frames:
                if device is not speaker and isinstance(frame, VariableFrame | BeatFrame):
                    device.hear(frame)


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
    a.kill()
    b.kill()


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
    a.kill()
    b.kill()


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
    lost.kill()
    b.kill()


def test_a_key_takes_its_own_inputs_and_the_whole_takes_all(device):
    read(device, "attic", 1.0)
    read(device, "hall", 1.0)
    device.tick()

    def inputs_now():
        keys = device.core.results.fleet()["everywhere"]
        whole = device.core.agreements.all()["everywhere"].inputs
        return {key: result.inputs for key, result in keys.items()}, whole

    (before, whole), stream = inputs_now(), device.program.dynamic_folds["everywhere"].stream
    assert len({*before.values(), whole}) == 3
    read(device, "hall", 2.0)
    device.tick()
    after, other = inputs_now()
    assert (after["attic"], after["hall"] == before["hall"], other == whole) == (
        before["attic"],
        False,
        False,
    )
    words = {}
    for frame in device.frames(VariableFrame):
        for key, seq, partial in zip(
            frame.keys, frame.seqs, zip(*frame.columns, strict=True), strict=False
        ):
            words[key, "pi-1"] = PublishedPartial(Version.of(frame.sender, seq), partial)
    assert stream
    for key in before:
        assert inputs(device.program, "everywhere", words, {}, key) == after[key]
    assert inputs(device.program, "everywhere", words, {}) == other


STRANGE = {
    "another definition": {"stream": 5},
    "seq 0": {"seqs": (0,)},
    "number 0": {"number": 0},
    "the empty key in the shard of a variable without keys": {"keys": {"": (1, 100)}, "shard": 0},
    "too few columns": {"keys": {"attic": (1,)}},
    "too many columns": {"keys": {"attic": (1, 2, 3)}},
    "a part out of range": {"keys": {"attic": (2**31, 5)}},
    "bytes": {"keys": {"attic": (b"x", b"y")}},
    "none": {"keys": {"attic": (None, 1)}},
}


@pytest.mark.parametrize("strange", STRANGE)
def test_a_strangers_entry_that_does_not_fit_changes_nothing_and_is_counted(device, strange):
    device.hear(entry(device, 1, {"attic": (1, 100)}))
    before = everywhere(device)
    changed = {"number": 2, "keys": {"attic": (9, 900)}} | STRANGE[strange]
    device.hear(entry(device, **changed))
    assert everywhere(device) == before
    refused = [name for name in device.counted if name.startswith("frame: ")]
    assert len(refused) == 1


def test_one_bad_key_refuses_the_whole_entry(device):
    shard = [f"room-{n}" for n in range(100) if key_shard(f"room-{n}") == 3][:2]
    device.hear(entry(device, 1, {shard[0]: (1, 100), shard[1]: (-(2**31), 100)}))
    assert everywhere(device) == {}


def test_frames_with_wrong_shards_or_huge_keys_are_counted(device):
    topic = device.core.agent.topics.of("var", "pi-2", "here", "03")
    for number, keys in enumerate((("kitchen",), ("k" * 300,), ("b", "a"), ("k\x01",))):
        stream = device.program.local_folds["here"].stream
        n = len(keys)
        frame = VariableFrame(PEER, 9, "here", stream, 3, keys, (9,) * n, ((1,) * n, (5,) * n))
        device.durable.hear(topic, frame.encode(), device.now_us)
        counted = [name for name in device.counted if name.startswith("frame: ")]
        assert len(counted) == number + 1
    assert everywhere(device) == {}


def test_a_keyed_entry_for_a_variable_without_keys_is_refused_and_the_reverse(tmp_path):
    plain = Device(tmp_path / "plain", greenhouse())
    stream = plain.program.local_folds["local_average"].stream
    frame = VariableFrame(PEER, 1, "local_average", stream, 1, ("kitchen",), (1,), ((1,), (5,)))
    plain.hear(frame)
    plain.hear(VariableFrame(PEER, 1, "local_average", stream, 0, (), (), ()))
    assert plain.counted["frame: variable: out of range"] == 2
    assert "pi-2" not in plain.core.samples.published["local_average"].entries.devices
    plain.kill()


def test_an_entry_on_the_topic_of_another_shard_is_refused(device):
    frame = entry(device, 1, {"kitchen": (1, 100)})
    device.hear(frame, device.core.agent.topics.of("var", "pi-2", "here", "02"))
    assert device.counted["frame: on another's topic"] == 1
    device.hear(frame)
    assert everywhere(device) == {"kitchen": (1, 100)}


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
    device.kill()


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
    samples = device.core.samples._sets.held["samples"]
    assert refused == 40 * len(keys) - sum(map(len, samples.values()))
    for key, state in samples.items():
        truth[key] = device.program.local_folds["here"].fold.lift_column(
            state.values(), [time_us for time_us, _, _ in state.samples()]
        )
    assert here(device) == truth
    device.kill()


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
    a.kill()
    b.kill()


def test_expiry_looks_at_what_is_due_and_not_at_every_key(tmp_path):
    device = Device(tmp_path, rooms(bound=None, max_age_s=100))
    tags = [{"room": f"room-{n}"} for n in range(500)]
    device.take([20.0] * 500, [None] * 500, tags)
    device.tick(50)
    read(device, "room-3", 1.0)
    looked_at = device.core.samples._sets.expire(device.now_us + 40 * SECOND_US)
    assert looked_at == []
    device.tick(51)
    assert here(device) == {"room-3": (1, 100)}
    device.tick(60)
    assert here(device) == {}
    device.kill()


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
    assert "by key (version 1), kept in the store" in line
    read(device, "attic", 5.0)
    device.restart()
    assert here(device) == {"attic": (1, 500)}
    assert set(device.store.restored().stored("samples")) == {"attic"}
    device.program = rooms()
    device.restart()
    assert set(here(device)) == set(ROOMS)
    device.kill()


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
    device.kill()


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
    a.kill()
    b.kill()


def test_results_have_a_topic_a_key_that_is_cleared_when_the_key_goes(tmp_path):
    device = Device(tmp_path, rooms(bound=None, max_age_s=30))
    read(device, "attic", 1.0)
    device.tick(10)
    read(device, "Küche", 2.0)
    device.tick(10)
    said = {p.topic.split("/out/")[1]: p.payload for p in device.sent if "/out/" in p.topic}
    assert set(said) == {
        "agent/pi-1",
        "everywhere/pi-1",
        *(f"{name}/pi-1/{key}" for name in ("everywhere", "here") for key in ("attic", "Küche")),
    }
    result = json.loads(said["everywhere/pi-1/attic"])
    assert (result["parts"], result["count"], result["devices"]) == ({"mean": 1.0}, 1, 1)
    assert json.loads(said["everywhere/pi-1"])["settled"]
    device.sent.clear()
    device.tick(15)
    again = {p.topic.split("/out/")[1]: p.payload for p in device.sent if "/out/" in p.topic}
    assert (again["here/pi-1/attic"], again["everywhere/pi-1/attic"]) == (b"", b"")
    assert "here/pi-1/Küche" not in again  # nothing new
    device.kill()


def test_a_report_has_values_by_key(device):
    read(device, "attic", 1.0)
    device.tick()
    values = device.core.report()["values"]
    assert values["here"] == {
        "keys": {"attic": {"parts": {"mean": 1.0}, "count": 1, "total_q": 100}}
    }
    assert set(values["everywhere"]) == {"keys", "inputs", "devices", "settled", "except"}
    assert values["everywhere"]["keys"]["attic"]["devices"] == 1


def test_binary_parts_are_hexadecimal_in_a_report(tmp_path):
    device = Device(tmp_path, rooms(folds.top(2)))
    read(device, "attic", 1.0, 3.0, 2.0)
    device.tick()
    values = device.core.report()["values"]
    json.dumps(values)
    assert here(device)["attic"][0].hex() in values["here"]["keys"]["attic"].values()
    device.kill()


def some_readings(drawn, device, step):
    """Let a device read in some of the rooms of the hour; return what it read."""
    found = []
    for _ in range(drawn.randint(0, 3)):
        tags, value = {"room": f"room-{drawn.randint(0, 5) + step // 4}"}, drawn.randint(0, 99)
        device.read([value], tags=tags)
        seen = Reading(device.name, "temperature", value, device.now_us, tags, stamped=True)
        found.append(seen._replace(accepted_us=device.now_us))
    return found


def restart_now_and_then(drawn, fleet):
    """Restart some device; the broker gives it again what it kept of the others."""
    device = drawn.choice(fleet)
    if drawn.random() < 0.2:
        device.restart()
        for other in fleet:
            other.core.exchange.connected(other.now_us)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("max_age_s", [None, 7], ids=["bound", "bound and age"])
def test_any_history_of_keys_gives_what_the_oracle_gives(tmp_path, seed, max_age_s):
    drawn = random.Random(seed)
    fold = folds.struct(mean=folds.mean(), low=folds.min(), high=folds.max())
    program = rooms(fold, bound=4, max_age_s=max_age_s)
    fleet = [Device(tmp_path / name, program, name=name) for name in ("a", "b", "c")]
    readings = {device.name: [] for device in fleet}
    for step in range(25):
        for device in fleet:
            readings[device.name] += some_readings(drawn, device, step)
        restart_now_and_then(drawn, fleet)
        exchange(*fleet)
    for _ in range(3):
        exchange(*fleet)
    now_us = fleet[0].now_us
    for device in fleet:
        assert here(device) == local_partials(program, "here", readings[device.name], now_us)
    truth = dynamic_partials(program, "everywhere", readings, (), now_us)
    assert truth
    for device in fleet:
        assert everywhere(device) == truth, f"seed {seed}"
    assert len({d.core.agreements.all()["everywhere"] for d in fleet}) == 1
    for device in fleet:
        device.kill()


@pytest.mark.parametrize("fold", [folds.sum(), folds.max(), folds.top(5)], ids=repr)
def test_a_large_set_slides_to_what_folding_anew_gives(tmp_path, fold):
    program = rooms(fold, bound=600)
    device, drawn = Device(tmp_path, program), random.Random(3)
    lifted = program.local_folds["here"].fold
    for step in range(150):
        count = 1 if step % 10 else drawn.randint(1, 700)
        device.read([drawn.randint(-99, 99) for _ in range(count)], tags={"room": "hall"})
        if step % 3:
            state = device.core.samples._sets.held["samples"]["hall"]
            times_us = [time_us for time_us, _, _ in state.samples()]
            assert here(device) == {"hall": lifted.lift_column(state.values(), times_us)}
    assert device.core.samples._local._kept["here"]["hall"]._slides
    device.kill()


def test_what_moved_is_not_remembered_beyond_what_is_held(tmp_path):
    device = Device(tmp_path, rooms(folds.max(), bound=300))
    read(device, "hall", *range(300))
    assert here(device) == {"hall": (29_900,)}
    sets = device.core.samples._sets
    for value in range(40):
        device.read([value] * 20, tags={"room": "hall"})
        moved = sets.moved["samples"]["hall"]
        assert moved is None or sum(map(len, moved)) <= 2 * 300
    assert moved is None
    assert here(device) == {"hall": (3_900,)}
    device.kill()


def test_a_program_without_keys_says_nothing_of_shards(tmp_path):
    program = Program("plain")
    program.event("temperature")
    device = Device(tmp_path, program.plan())
    device.tick()
    assert device.frames(VariableFrame) == []
    assert NOW_US
    device.kill()
