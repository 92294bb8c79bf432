"""The alarm that another process has this device's name, and its end."""

from device_agent.agent.fleet.clones import CLONE_LEFT_US, CloneAlarm
from device_agent.agent.notices import CLONED
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import Device


def test_the_alarm_ends_soon_after_the_connection_of_the_clone_unless_that_goes_on(tmp_path):
    sure = Device(tmp_path)
    other, left_s = sure.core.replica._replace(nonce=5), CLONE_LEFT_US // SECOND_US
    sure.hear(BeatFrame(other, 3, (), False, ()))  # noqa: FBT003
    sure.tick(left_s + 1)
    assert sure.core.report()["alarms"] == [CLONED]
    sure.hear(PresenceFrame(other, 4, online=False))
    sure.tick(left_s - 20)
    assert sure.core.report()["alarms"] == [CLONED]
    sure.hear(BeatFrame(other, 5, (), False, ()))  # noqa: FBT003 - it has connected again
    sure.tick(left_s + 1)
    assert sure.core.report()["alarms"] == [CLONED]
    sure.hear(PresenceFrame(other, 6, online=False))
    sure.tick(left_s + 1)
    assert sure.core.report()["alarms"] == []


def test_a_clone_that_has_left_and_that_others_still_name_raises_it_for_a_minute(tmp_path):
    device, left_s = Device(tmp_path), CLONE_LEFT_US // SECOND_US
    alarm, other = CloneAlarm(device.core.agent), device.core.replica._replace(nonce=5)
    alarm.look(PresenceFrame(other, 1, online=False), device.now_us)
    alarm.met(5, device.now_us, speaks=False)
    assert device.core.report()["alarms"] == [CLONED]
    device.tick(left_s + 1)
    assert device.core.report()["alarms"] == []
    alarm.met(5, device.now_us)  # it speaks
    device.tick(left_s + 1)
    assert device.core.report()["alarms"] == [CLONED]
