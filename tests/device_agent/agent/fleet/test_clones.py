"""The alarm that another process has this device's name, and its end."""

from crdts import Replica
from device_agent.agent.fleet.clones import CLONE_LEFT_US, CloneAlarm
from device_agent.agent.fleet.fence import MOST_SUCCESSIONS, SUCCEEDS_AGAIN_US
from device_agent.agent.notices import CLONED, CLONED_BY
from lasp_edge.protocol.fencing import HelloFrame, VouchFrame
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame
from lasp_edge.units import SECOND_US
from simulations.world.lander import LANDER
from tests.device_agent.agents import Device


def outbid(device, seconds):
    """Let time pass in which a lander answers that it has heard a clone that is later."""
    for _ in range(seconds):
        for hello in device.frames(HelloFrame, device.tick()):
            clone = Replica(device.core.replica.incarnation + 1, 5, "pi-1")
            device.hear(VouchFrame.of(LANDER, 1, hello, clone, keeps=True))
        if not device.core.fence.is_asking:
            device.hear(VouchFrame.hint(LANDER, 1, "pi-1"))


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
    device, left_s, named = Device(tmp_path), CLONE_LEFT_US // SECOND_US, "pi-2 reported at noon"
    alarm, other = CloneAlarm(device.core.agent), device.core.replica._replace(nonce=5)
    alarm.look(PresenceFrame(other, 1, online=False), device.now_us)
    alarm.met(5, device.now_us, by=named)
    assert device.core.report()["alarms"] == [CLONED_BY.format(named)]
    device.tick(left_s + 1)
    assert device.core.report()["alarms"] == []
    alarm.met(5, device.now_us)  # it speaks
    device.tick(left_s + 1)
    assert device.core.report()["alarms"] == [CLONED]


def test_a_race_of_clones_goes_on_slowly_and_who_lost_it_is_heard_when_the_other_has_ended(
    tmp_path,
):
    """Else a gateway that starts after the race takes nothing more of the device that goes on."""
    device = Device(tmp_path, fenced=True)
    outbid(device, seconds=2 * 60 * MOST_SUCCESSIONS)
    raced = device.core.replica.incarnation
    assert raced <= 2 * (2 * MOST_SUCCESSIONS + 1) + 1
    ended = Replica(raced + 1, 5, "pi-1")
    for _ in range(2 * SUCCEEDS_AGAIN_US // SECOND_US):
        for hello in device.frames(HelloFrame, device.tick()):
            known = max(ended, device.core.replica)
            device.hear(VouchFrame.of(LANDER, 1, hello, known, keeps=True))
        if not device.core.fence.is_asking and device.core.replica < ended:
            device.hear(VouchFrame.hint(LANDER, 1, "pi-1"))
    assert device.core.replica > ended
