"""A device that is admitted again: what sinks refused meanwhile is owed to them until it lands."""

from crdts import Replica, Version
from lasp_edge.protocol.acks import NotTaken
from lasp_edge.protocol.frames import PaneFrame
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import MINUTE_US, NOW_US, Device
from tests.support_commands import member_command

OPERATOR = Replica(1, 5, "operator")


def retire(device, control, *, retired):
    """Let the device hear that it is retired, or admitted."""
    up_to = Version.of(device.core.replica, 0)
    device.hear(member_command(OPERATOR, control, device.name, control, retired, up_to))


def low_us(device):
    """Return what a beat would promise to the sink."""
    return device.core.panes.lows(device.now_us)[0].low_us


def sent(device, seconds=5):
    """Return the next frames with panes."""
    while not (frames := device.frames(PaneFrame, device.tick(seconds))):
        pass
    return frames


def retired(tmp_path):
    """Return a device that was retired before it sent its first reading."""
    device = Device(tmp_path)
    retire(device, 1, retired=True)
    device.read([20.0], [NOW_US])
    device.acknowledge()
    return device


def test_a_promise_speaks_of_nothing_that_was_refused_because_the_device_was_retired(tmp_path):
    """A sink that hears of the admission before the next beat has the promise from before it."""
    device = retired(tmp_path)
    device.acknowledge(*sent(device, MINUTE_US // SECOND_US), reason=NotTaken.RETIRED)
    device.read([21.0], [NOW_US + 5 * MINUTE_US])
    device.acknowledge(*sent(device), reason=NotTaken.RETIRED)
    assert low_us(device) <= NOW_US
    retire(device, 2, retired=False)
    assert low_us(device) <= NOW_US
    device.settle()
    assert low_us(device) > NOW_US + MINUTE_US, "all has landed"


def test_a_refusal_that_left_before_the_sink_heard_of_the_admission_counts_as_no_answer(tmp_path):
    device = retired(tmp_path)
    in_flight = sent(device, MINUTE_US // SECOND_US)
    retire(device, 2, retired=False)
    device.acknowledge(*in_flight, reason=NotTaken.RETIRED)
    assert low_us(device) <= NOW_US
    before_us = device.now_us
    sent(device)
    assert device.now_us - before_us < MINUTE_US // 2
