"""A peer's entries and beats, and what a device of the greenhouse makes of them."""

from crdts import Replica
from lasp_edge.protocol.frames import BeatFrame, VariableReport
from tests.device_agent.agents import entry_of

PEER = Replica(3, 33, "pi-2")


def stream_of(device):
    """Return the stream of the local average."""
    return device.program.local_folds["local_average"].stream


def entry(device, replica, seq, partial, stream=None):
    """Return another replica's entry of the local average."""
    stream = stream_of(device) if stream is None else stream
    return entry_of(replica, seq, "local_average", stream, partial)


def fleet(device):
    """Return what a device holds as the fleet's average."""
    return device.core.results.fleet()["global_average"][""]


def beat(device, replica=PEER, number=1, seq=1, digest=None):
    """Return a beat that reports an entry; without a digest, that of what the device holds."""
    digest = device.core.exchange.reports()[0].digest if digest is None else digest
    reports = (VariableReport("local_average", seq, digest),)
    return BeatFrame(replica, number, (), done=False, reports=reports)
