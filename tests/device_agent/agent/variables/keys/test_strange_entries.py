"""An entry with keys that does not fit the program, its shard or its topic changes nothing."""

import pytest

from lasp_edge.protocol.frames import VariableFrame
from lasp_edge.protocol.shards import key_shard
from tests.device_agent.agent.variables.keys.support_rooms import PEER, entry, everywhere
from tests.device_agent.agents import Device, greenhouse

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


def test_an_entry_on_the_topic_of_another_shard_is_refused(device):
    frame = entry(device, 1, {"kitchen": (1, 100)})
    device.hear(frame, device.core.agent.topics.of("var", "pi-2", "here", "02"))
    assert device.counted["frame: on another's topic"] == 1
    device.hear(frame)
    assert everywhere(device) == {"kitchen": (1, 100)}
