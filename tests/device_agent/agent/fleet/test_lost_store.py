"""A device that follows a lost store says since when it has all its readings."""

from crdts import Replica
from lasp_edge.protocol.fencing import SourceHigh
from lasp_edge.protocol.frames import EVERY_WINDOW, BeatFrame
from tests.device_agent.agent.fleet.test_fence import SOURCE, told
from tests.device_agent.agents import NOW_US, Device


def begun(device):
    beats = device.frames(BeatFrame, device.tick(400))
    return beats[-1].begun


def test_the_reading_that_another_store_had_accepted_last_bounds_what_is_whole(tmp_path):
    device = Device(tmp_path, fenced=True)
    told(device, Replica(7, 77, "pi-1"), SourceHigh(SOURCE, NOW_US + 10, 11))
    device.tick(2)
    told(device, Replica(8, device.core.replica.nonce, "pi-1"))
    device.tick(2)
    device.read([20.0], [NOW_US + 20])
    assert begun(device) == ((EVERY_WINDOW, NOW_US + 11),)
    device.restart()
    told(device, device.core.replica)
    assert begun(device) == ((EVERY_WINDOW, NOW_US + 11),)


def test_a_new_store_of_a_new_device_is_whole(tmp_path):
    device = Device(tmp_path, fenced=True)
    told(device, Replica(0, 0, "pi-1"))
    device.tick(2)
    device.read([20.0], [NOW_US + 20])
    assert begun(device) == ()
