"""Devices that read in rooms: what they are given, what they hold, and what their peers say."""

from crdts import Replica
from lasp_edge.protocol.frames import BeatFrame, VariableFrame
from lasp_edge.protocol.shards import key_shard

PEER = Replica(3, 33, "pi-2")
ROOMS = ("attic", "cellar", "hall", "kitchen", "")


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
    """Return shard -> its frame among what was published."""
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
