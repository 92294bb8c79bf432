"""What a device promises of its panes: the low watermark, and what is too late."""

import dataclasses

import pytest

from device_agent.agent.settings import Settings
from lasp_edge.protocol.acks import NotTaken
from lasp_edge.protocol.frames import BeatFrame, PaneFrame
from lasp_edge.protocol.limits import EARLIEST_PANE_US
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import HOUR_US, MINUTE_US, NOW_US, Device, ack_of, greenhouse


def test_below_the_floor_readings_are_too_late_and_counted(tmp_path):
    device = Device(tmp_path, settings=Settings(retain_us=MINUTE_US))
    device.read([20.0, 21.0], [NOW_US, NOW_US - MINUTE_US])
    device.read([22.0], [NOW_US - MINUTE_US - 1])
    assert (device.counted["accepted"], device.counted["too_late"]) == (2, 1)
    device.restart()
    device.read([22.0], [NOW_US - MINUTE_US - 1])
    assert device.counted["too_late"] == 2


def test_the_floor_does_not_depend_on_how_readings_come_in_batches(tmp_path):
    settings = Settings(retain_us=MINUTE_US)
    together, alone = Device(tmp_path / "a", settings=settings), Device(tmp_path / "b")
    alone.settings = settings
    alone.restart()
    times_us = [NOW_US - 5 * MINUTE_US, NOW_US, NOW_US - 4 * MINUTE_US, NOW_US - 1]
    together.read([1.0, 2.0, 3.0, 4.0], times_us)
    for value, time_us in zip([1.0, 2.0, 3.0, 4.0], times_us, strict=True):
        alone.read([value], [time_us])
    assert together.counted == alone.counted == {"accepted": 3, "too_late": 1}


def test_a_pane_below_the_floor_leaves_only_when_acknowledged(tmp_path):
    device = Device(tmp_path, settings=Settings(retain_us=MINUTE_US))
    device.read([20.0], [NOW_US])
    device.read([20.0], [NOW_US + 5 * MINUTE_US])
    device.store.prune(device.core.intake.progress.floor_us)
    assert len(device.rows()) == 2
    device.land(20)
    device.tick(0)
    device.store.prune(device.core.intake.progress.floor_us)
    assert [pane.pane_us for pane, _ in device.rows()] == [NOW_US + 5 * MINUTE_US]


def test_a_pruned_device_still_refuses_what_lies_below_its_floor(tmp_path):
    device = Device(tmp_path, settings=Settings(retain_us=MINUTE_US))
    device.read([20.0], [NOW_US])
    device.read([20.0], [NOW_US + 60 * MINUTE_US])
    device.land(20)
    device.tick(4_000)
    device.read([20.0], [NOW_US])
    assert device.counted["too_late"] == 1
    assert ("", NOW_US) not in device.stored_panes()


def test_the_low_watermark_is_that_of_the_latest_source(device):
    device.core.intake.sources.cursor("other")
    device.read([20.0], [NOW_US])
    device.land(20)
    device.land(2)
    assert device.low_us == EARLIEST_PANE_US  # the other source has only now begun
    device.land(20)
    device.land(2)
    assert device.low_us is None  # nothing is known of it
    device.take([20.0], [NOW_US - MINUTE_US], [{}], source="other")
    device.land(20)
    device.land(2)
    assert device.low_us == NOW_US - MINUTE_US - device.settings.lateness_us


def test_a_source_of_stamped_readings_promises_the_present(device):
    device.read([20.0])
    device.land(20)
    device.land(2)
    assert device.low_us == device.now_us - device.settings.lateness_us


def test_a_reading_is_late_behind_each_promise_that_has_left_and_not_at_it(device):
    device.read([20.0])
    device.land(20)
    for _ in range(40):  # no entry leaves meanwhile, and the promise goes on
        device.land(2)
    promised_us = device.low_us
    device.take([21.0], [promised_us], [{}])
    assert "late" not in device.counted
    device.take([22.0], [promised_us - 1], [{}])
    assert device.counted["late"] == 1


def test_a_source_that_has_both_kinds_of_time_promises_the_earlier(device):
    device.take([20.0, 20.0], [None, NOW_US - MINUTE_US], [{}, {}])
    device.land(20)
    device.land(2)
    assert device.low_us == NOW_US - MINUTE_US - device.settings.lateness_us


def test_a_silent_source_holds_the_promise_for_ten_minutes_and_then_follows_the_clock(device):
    device.core.intake.sources.cursor("clock")
    device.take([20.0], [NOW_US], [{}])
    device.take([20.0], [None], [{}], source="clock")
    for _ in range(9 * 6):
        device.land(10)
    assert device.low_us == NOW_US - device.settings.lateness_us
    assert device.core.report()["silent_source"] == "test"
    assert device.frames(BeatFrame)[-1].held_by == "test"
    for _ in range(3 * 6):
        device.land(10)
    low_us, after_us = device.low_us, device.settings.source_silent_us
    behind_us = device.now_us - device.settings.lateness_us - after_us
    assert behind_us - MINUTE_US < low_us <= behind_us
    device.take([21.0], [NOW_US + MINUTE_US], [{}])
    device.land(20)
    assert device.counted["late"] == 1
    assert device.core.report()["silent_source"] == ""


def test_a_recording_of_former_years_is_not_passed_by_the_present(device):
    device.now_us += 365 * 24 * HOUR_US
    device.take([20.0], [NOW_US], [{}])
    for _ in range(12):
        device.land(60)
    ahead_us = device.low_us - (NOW_US - device.settings.lateness_us)
    assert 0 < ahead_us <= 2 * MINUTE_US


def test_who_wants_it_waits_for_a_silent_source_for_ever(tmp_path):
    device = Device(tmp_path, settings=Settings(source_silent_us=0))
    device.take([20.0], [NOW_US], [{}])
    for _ in range(30):
        device.land(60)
    assert device.low_us == NOW_US - device.settings.lateness_us


def test_a_promise_never_speaks_of_what_has_not_landed(device):
    device.read([20.0], [NOW_US])
    device.read([20.0], [NOW_US + 4 * MINUTE_US])
    device.tick(2)
    assert device.low_us <= NOW_US
    device.land(20)
    device.land(2)
    device.land(2)
    assert device.low_us == NOW_US + 4 * MINUTE_US - device.settings.lateness_us


@pytest.mark.parametrize("is_stored", [False, True], ids=["in memory", "in the store alone"])
def test_a_promise_does_not_pass_what_is_ahead_of_a_landers_clock(tmp_path, is_stored):
    device = Device(tmp_path)
    device.read([20.0], [NOW_US])
    frames = device.frames(PaneFrame, device.tick(20))
    device.read([21.0], [NOW_US + 4 * MINUTE_US])
    frames += device.frames(PaneFrame, device.tick(20))
    device.hear(ack_in(1970, device, NotTaken.FAR_FUTURE, *frames))
    if is_stored:
        device.restart()
    device.tick(2)
    device.tick(2)
    assert device.core.report()["sinks"]["lake"]["waiting"] == 2
    assert device.low_us is not None
    assert device.low_us <= NOW_US


@pytest.mark.parametrize("reason", [NotTaken.UNKNOWN_STREAM, NotTaken.NOT_IN_FORM])
def test_what_a_lander_will_never_take_holds_no_promise(device, reason):
    device.read([20.0], [NOW_US])
    device.hear(ack_in(2_030, device, reason, *device.frames(PaneFrame, device.tick(20))))
    device.read([21.0], [NOW_US + 4 * MINUTE_US])
    device.land(20)
    device.land(2)
    device.land(2)
    assert device.low_us == NOW_US + 4 * MINUTE_US - device.settings.lateness_us


def test_what_was_ahead_of_a_landers_clock_lands_when_that_is_set(device):
    device.read([20.0], [NOW_US])
    frames = device.frames(PaneFrame, device.tick(20))
    device.hear(ack_in(1970, device, NotTaken.FAR_FUTURE, *frames))
    assert [device.frames(PaneFrame, device.tick()) for _ in range(10)] == [[]] * 10
    device.hear(ack_in(1970, device, NotTaken.FAR_FUTURE))
    assert device.frames(PaneFrame, device.tick()) == []
    device.hear(ack_in(2_030, device, NotTaken.FAR_FUTURE))
    assert len(device.land()) == 1
    assert device.core.report()["sinks"]["lake"]["waiting"] == 0


def ack_in(year, device, reason, *frames):
    """Return what a lander whose clock says this year did not take."""
    told = ack_of(device.name, *frames, reason=reason)
    return dataclasses.replace(told, clock_s=(year - 1970) * 31_556_952 + 1)


def test_a_late_reading_takes_the_promise_back_until_it_has_landed(device):
    device.read([20.0], [NOW_US])
    device.land(20)
    device.land(2)
    assert device.low_us == NOW_US - device.settings.lateness_us
    device.read([20.0], [NOW_US - 10 * MINUTE_US])
    assert device.counted["late"] == 1
    device.tick(2)
    assert device.low_us == NOW_US - 10 * MINUTE_US


def test_a_finished_replay_promises_the_end_of_its_last_window_and_then_is_done(device):
    device.read([20.0], [NOW_US], done=True)
    device.tick(2)
    assert (device.low_us, device.frames(BeatFrame)[-1].done) == (NOW_US, False)
    device.land(20)
    device.land(2)
    beat = device.frames(BeatFrame)[-1]
    assert (device.low_us, beat.done) == (NOW_US + 60 * SECOND_US, True)


START_US = NOW_US // HOUR_US * HOUR_US
"""Of the pane of an hour in which the tests below read."""
BEAT_S = 12
"""After which a beat comes, though its promise lies in the same pane as the last one's."""


def hourly(tmp_path):
    """Return an agent whose only window is an hour, after a minute of readings that have landed."""
    device = Device(tmp_path, greenhouse(size_s=3_600, slide_s=3_600))
    for _ in range(60):
        device.read([20.0], [device.now_us])
        device.land()
    return device


def test_a_promise_does_not_wait_for_the_end_of_a_long_pane(tmp_path):
    """It is behind by what readings wait before they are sent, and by what is late in a source."""
    device = hourly(tmp_path)
    device.land(BEAT_S)
    lag_us = device.now_us - device.low_us
    assert lag_us <= 20 * SECOND_US + device.settings.lateness_us


def test_a_version_that_landed_says_nothing_of_what_was_read_since(tmp_path):
    device = hourly(tmp_path)
    last_us = device.now_us + MINUTE_US
    device.read([20.0], [last_us])
    (first,) = device.frames(PaneFrame, device.tick(20))
    device.read([21.0], [last_us + MINUTE_US])
    device.read([22.0], [last_us + 2 * MINUTE_US])
    (_lost,) = device.frames(PaneFrame, device.tick(20))
    device.acknowledge(first)
    device.tick(BEAT_S)
    assert device.low_us == last_us - device.settings.lateness_us


def test_a_reading_behind_a_long_panes_promise_takes_it_back(tmp_path):
    device = hourly(tmp_path)
    device.land(BEAT_S)
    late_us = device.low_us - 5 * SECOND_US
    for values in ([20.0], [float(n) for n in range(8)]):  # one by one, and by column
        late_us -= 10
        device.read(values, [late_us + at for at in range(len(values))])
        device.tick(BEAT_S)
        assert device.low_us == late_us


def test_another_lake_takes_a_long_panes_promise_back_to_its_start(tmp_path):
    device = hourly(tmp_path)
    device.read([20.0], [device.now_us])
    (frame,) = device.frames(PaneFrame, device.tick(20))
    device.acknowledge(frame, lake="lake-2")
    device.read([21.0], [device.now_us + MINUTE_US])
    device.tick(BEAT_S)
    assert device.low_us > START_US
    device.acknowledge(lake="lake-3")
    device.tick(BEAT_S)
    assert device.low_us == START_US


def test_a_restart_promises_no_more_than_the_panes_start(tmp_path):
    device = hourly(tmp_path)
    device.read([20.0], [device.now_us])
    device.restart()
    device.read([21.0], [device.now_us + MINUTE_US])
    device.tick(BEAT_S)
    assert device.low_us == START_US


def test_what_was_promised_stays_promised_where_another_store_is_promised_less(device):
    device.read([20.0])
    device.land(20)
    device.land(2)
    promised_us = device.core.intake.progress.promised_us
    assert promised_us == device.low_us
    device.acknowledge(lake="lake-2")
    device.tick(60)
    assert device.low_us < promised_us == device.core.intake.progress.promised_us
