"""The alarm that another process has this device's name, and its end."""

from device_agent.agent.fleet.clones import CLONE_LEFT_US
from device_agent.agent.notices import CLONED
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import Device


def test_the_alarm_ends_soon_after_the_connection_of_the_clone_unless_that_goes_on(tmp_path):
    sure = Device(tmp_path)
    other, left_s = sure.core.replica._replace(nonce=5), CLONE_LEFT_US // SECOND_US
    sure.hear(BeatFrame(other, 3, (), False, ()))  # noqa: FBT003
    sure.hear(PresenceFrame(other._replace(nonce=6), 1, online=False))  # a former life's, kept
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
