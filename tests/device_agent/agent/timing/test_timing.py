"""Clocks that are ahead, and the fleet's time: where readings come, and what is promised."""

import pytest

from crdts import Replica
from lasp_edge import Plan, folds
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.units import SECOND_US
from tests.device_agent.agent.timing.clocked import TRUE_US, ClockedDevice, seconds_from
from tests.device_agent.agents import DAY_US, HOUR_US, LAKE, MINUTE_US, NOW_US, Device
from tests.lasp_edge.support_programs import averaged


def most_in_a_pane(device: Device) -> int:
    return max(count for count, *_ in device.stored_panes().values())


# A clock that is ahead.


@pytest.mark.parametrize("told", [False, True], ids=["alone", "with a peer"])
def test_a_clock_two_hours_ahead_for_ten_minutes_puts_each_reading_into_its_pane(tmp_path, told):
    device = ClockedDevice(tmp_path)
    true_us = seconds_from(device.true_us, 1_200)
    device.reads_for(300)
    if told:
        device.hears_peer()
    device.off_us = 2 * HOUR_US
    device.reads_for(600)
    assert device.core.report()["clock"]["state"] == ("ahead" if told else "waiting")
    assert (device.low_us is None) is not told
    device.off_us = 0
    device.reads_for(300)
    device.tick()
    assert device.errors_us(true_us) <= SECOND_US
    assert most_in_a_pane(device) <= 11  # seconds, and a pane of ten of them
    assert device.core.report()["clock"]["waiting"] == 0


def test_readings_stamped_by_a_driver_without_a_clock_of_its_own_follow_it_at_once(tmp_path):
    device = Device(tmp_path)
    for ahead_us in (2 * HOUR_US, -2 * HOUR_US):  # two hours ahead for ten minutes, and back
        device.now_us += ahead_us
        for _ in range(600):
            device.read([20.0])
            device.tick()
    assert most_in_a_pane(device) <= 11


def aged() -> Plan:
    """Return a program with a set of a minute."""
    program = averaged("aged", folds.count(), event={"resolution": "0.01"}, max_age_s=60)
    return program.plan()


@pytest.mark.parametrize("restarts", [False, True])
def test_a_set_of_a_minute_holds_a_minute_though_a_driver_was_two_hours_ahead(tmp_path, restarts):
    device = Device(tmp_path, aged(), now_us=NOW_US + 2 * HOUR_US)
    for _ in range(200):
        device.read([20.0])
        device.tick()
    device.now_us -= 2 * HOUR_US
    if restarts:
        device.restart()
    for _ in range(200):
        device.read([20.0])
        device.tick()
    assert device.core.samples.partials("here")[""][0] <= 62


def test_a_set_of_a_minute_holds_a_minute_though_the_clock_was_two_hours_ahead(tmp_path):
    device = ClockedDevice(tmp_path, aged(), off_us=2 * HOUR_US)
    device.reads_for(200)
    assert device.core.samples.partials("here")[""][0] <= 62
    device.off_us = 0
    device.hears_lander()
    device.reads_for(200)
    assert device.core.timing.state == "trusted"
    assert 59 <= device.core.samples.partials("here")[""][0] <= 62


def days_ahead_and_back(directory, *, clocked: bool) -> tuple[Device, int]:
    """Return a device that has read once when its clock was two days ahead, and the time."""
    if not clocked:
        device = Device(directory, now_us=NOW_US + 2 * DAY_US)
        device.read([20.0])
        device.tick()
        device.now_us = NOW_US
        device.restart()
        return device, NOW_US
    clock = ClockedDevice(directory, off_us=2 * DAY_US)
    clock.read([20.0])
    clock.tick()
    clock.off_us = 0
    clock.restart()
    clock.hears_lander()
    clock.tick()
    return clock, clock.true_us


@pytest.mark.parametrize("clocked", [False, True])
def test_one_reading_stamped_two_days_ahead_does_not_stop_those_that_follow(tmp_path, clocked):
    device, begun_us = days_ahead_and_back(tmp_path, clocked=clocked)
    for seconds in range(5):
        device.read([21.0])
        device.take([22.0], [begun_us + seconds * SECOND_US - 6 * DAY_US], [{}], source="own")
        device.tick()
    assert device.counted.get("too_late", 0) == 0
    kept = list(device.store.readings())[1:]
    assert len(kept) == 10
    stamped = [reading for reading in kept if reading["source"] == "test"]
    for seconds, reading in enumerate(stamped):
        assert abs(reading["accepted_us"] - begun_us - seconds * SECOND_US) <= SECOND_US
        assert reading["time_us"] == reading["accepted_us"]
    device.restart()
    progress = device.core.intake.progress
    assert progress.high_us <= begun_us + 6 * SECOND_US
    assert progress.floor_us <= progress.high_us - 7 * DAY_US


def test_a_clock_twenty_years_ahead_prunes_nothing_that_is_still_to_come(tmp_path):
    device = ClockedDevice(tmp_path)
    device.reads_for(30)
    device.settle()
    device.off_us = 20 * 365 * DAY_US
    device.reboot("boot-2")  # plausible: nobody knows better
    device.read([20.0])
    device.tick(HOUR_US / SECOND_US + 1)
    device.off_us = 0
    device.hears_lander()
    device.tick()
    assert device.core.timing.state == "trusted"
    device.read([21.0])
    device.tick()
    assert device.counted.get("too_late", 0) == 0
    assert abs(device.times_us()[-1] - device.true_us) <= 2 * SECOND_US


def test_what_was_pruned_stays_pruned(tmp_path):
    device = Device(tmp_path)
    device.read([20.0], [NOW_US])
    device.settle()
    device.now_us += 30 * DAY_US
    device.read([20.0])
    device.tick()
    device.now_us += HOUR_US
    device.tick()  # the pane of the first is forgotten
    device.now_us -= 30 * DAY_US
    device.take([20.0], [NOW_US], [{}])
    assert device.counted["too_late"] == 1
    device.restart()
    device.take([20.0], [NOW_US], [{}])
    assert device.counted["too_late"] == 2


def test_a_promise_comes_back_with_the_clock(tmp_path):
    device = ClockedDevice(tmp_path, off_us=2 * HOUR_US)
    device.read([20.0], [device.true_us + 2 * HOUR_US])
    device.tick(20)
    device.off_us = 0
    device.hears_lander()
    device.tick()
    assert device.core.intake.low_us(device.now_us) <= device.true_us
    assert device.core.intake.progress.high_us <= device.true_us


# The fleet's time.


def test_a_device_without_a_clock_takes_the_time_of_its_fleet_and_does_not_tell_it(tmp_path):
    device = ClockedDevice(tmp_path, off_us=-TRUE_US)
    true_us = seconds_from(device.true_us, 30)
    device.reads_for(10)
    device.hears_peer()
    device.reads_for(20)
    device.tick()
    assert device.errors_us(true_us) <= 2 * SECOND_US
    assert device.core.report()["clock"]["state"] == "behind"
    assert device.low_us is not None
    assert {beat.clock_s for beat in device.frames(BeatFrame)} == {None}


def test_one_liar_among_three_peers_moves_nothing(tmp_path):
    device = ClockedDevice(tmp_path)
    true_us = seconds_from(device.true_us, 30)
    for second in range(30):
        if not second % 5:
            device.hears_peer(3 * DAY_US, "liar")
            device.hears_peer(0, "pi-3")
            device.hears_peer(SECOND_US, "pi-4")
        device.read([20.0])
        device.tick()
    assert device.errors_us(true_us) == 0
    assert device.frames(BeatFrame)[-1].clock_s == pytest.approx(device.true_us / SECOND_US, abs=2)


def test_a_lander_in_1970_moves_nothing(tmp_path):
    device = ClockedDevice(tmp_path)
    device.hears_lander(-TRUE_US + DAY_US)
    device.read([20.0])
    device.tick()
    assert device.core.timing.state == "trusted"
    assert device.times_us() == [TRUE_US]


def test_landers_that_are_set_right_are_followed_back_within_two_minutes(tmp_path):
    """All answers of a lander have the number 1; each start of it draws a nonce."""
    device = ClockedDevice(tmp_path)

    def answered_for(seconds, ahead_us, nonces):
        for _ in range(seconds):
            clock_s = (device.true_us + ahead_us) // SECOND_US
            for name, nonce in nonces.items():
                sender = Replica(1, nonce, name)
                device.hear(AckFrame(sender, 1, device.name, name, LAKE, clock_s=clock_s))
            device.tick()

    answered_for(30, HOUR_US, {"lander-1": 5, "lander-2": 9})
    assert device.core.timing.state == "behind"
    answered_for(90, 0, {"lander-1": 7, "lander-2": 7})
    assert device.core.timing.state == "trusted"


@pytest.mark.parametrize("beats_later", [0, 3])
def test_beats_that_the_broker_kept_for_a_device_do_not_move_its_clock(tmp_path, beats_later):
    device = ClockedDevice(tmp_path)
    for ago_s in range(3_600, 1_800, -15):  # then both fell asleep, and this one was cut off
        device.hears_peer(-ago_s * SECOND_US, "pi-2")
        device.hears_peer(-ago_s * SECOND_US, "pi-3")
    device.reads_for(30)
    for _ in range(beats_later):  # they are awake, and beat again
        device.hears_peer(0, "pi-2")
        device.hears_peer(0, "pi-3")
        device.reads_for(15)
    assert device.core.timing.state == "trusted"
    assert device.times_us() == seconds_from(TRUE_US, 30 + 15 * beats_later)


def test_a_sleep_of_eight_hours_is_no_jump(tmp_path):
    device = ClockedDevice(tmp_path)
    device.read([20.0])
    device.tick(8 * 3_600)
    device.read([21.0])
    device.tick()
    assert device.times_us() == [TRUE_US, TRUE_US + 8 * HOUR_US]


def test_a_clock_that_is_told_to_be_right_is_believed(tmp_path):
    device = ClockedDevice(tmp_path, off_us=-TRUE_US + DAY_US, trust_clock=True)
    device.hears_lander()
    device.tick()
    device.read([20.0])
    device.tick()
    assert device.times_us() == [DAY_US + SECOND_US]


def test_an_idle_device_writes_its_time_once_an_hour(tmp_path):
    device = ClockedDevice(tmp_path)
    device.tick(20)
    commits = []
    whole = device.store.commit
    device.store.commit = lambda changes: (commits.append(changes.facts.trusted_us), whole(changes))
    for _ in range(2 * 360):
        device.tick(10)
    assert len([time_us for time_us in commits if time_us is not None]) == 2


def test_a_machine_whose_clock_was_ahead_does_not_wait_for_it_after_the_next_boot(tmp_path):
    device = ClockedDevice(tmp_path, off_us=2 * HOUR_US)
    device.tick(20)
    device.off_us = 0
    for _ in range(30):
        device.hears_peer()
        device.hears_peer(device="pi-3")
        device.tick(10)
    device.reboot("boot-2")
    device.tick()
    assert device.core.report()["clock"]["state"] == "trusted"


def test_waiting_for_a_clock_lasts_fifteen_minutes_at_most_where_nobody_knows_better(tmp_path):
    device = ClockedDevice(tmp_path)
    device.tick()
    device.off_us = -2 * HOUR_US
    for _ in range(15):
        device.tick(60)
        device.read([20.0])
        assert device.times_us() == []
    device.tick(60)
    assert len(device.times_us()) == 15
    assert device.times_us()[-1] == device.true_us - 2 * HOUR_US - MINUTE_US


def test_what_a_device_said_itself_is_no_witness_of_its_clock(tmp_path):
    """An earlier process of it had no clock, and the broker gives back what it sent."""
    device = ClockedDevice(tmp_path)
    device.reads_for(60)
    before = device.core.report()["clock"]
    device.hears_peer(2 * HOUR_US, device.name)
    device.reads_for(60)
    assert device.core.report()["clock"] == before
    device.hears_peer(2 * HOUR_US)
    device.reads_for(60)
    assert device.core.report()["clock"] != before
