"""What a device promises of its panes: the low watermark, and what is too late."""

from device_agent.settings import SECOND_US, Settings
from lasp_edge.protocol.frames import BeatFrame
from tests.device_agent.agents import MINUTE_US, NOW_US, Device


def test_below_the_floor_readings_are_too_late_and_counted(tmp_path):
    device = Device(tmp_path, settings=Settings(retain_us=MINUTE_US))
    device.read([20.0, 21.0], [NOW_US, NOW_US - MINUTE_US])
    device.read([22.0], [NOW_US - MINUTE_US - 1])
    assert (device.counted["accepted"], device.counted["too_late"]) == (2, 1)
    device.restart()
    device.read([22.0], [NOW_US - MINUTE_US - 1])
    assert device.counted["too_late"] == 2
    device.kill()


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
    together.kill()
    alone.kill()


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
    device.kill()


def test_a_pruned_device_still_refuses_what_lies_below_its_floor(tmp_path):
    device = Device(tmp_path, settings=Settings(retain_us=MINUTE_US))
    device.read([20.0], [NOW_US])
    device.read([20.0], [NOW_US + 60 * MINUTE_US])
    device.land(20)
    device.tick(4_000)
    device.read([20.0], [NOW_US])
    assert device.counted["too_late"] == 1
    assert ("", NOW_US) not in device.stored_panes()
    device.kill()


def test_the_low_watermark_is_that_of_the_latest_source(device):
    device.core.intake.sources.cursor("other")
    device.read([20.0], [NOW_US])
    device.land(20)
    device.land(2)
    assert device.low_us is None  # nothing is known of the other source
    device.take([20.0], [NOW_US - MINUTE_US], [{}], source="other")
    device.land(20)
    device.land(2)
    assert device.low_us == NOW_US - MINUTE_US - device.settings.lateness_us


def test_a_source_of_stamped_readings_promises_the_present(device):
    device.read([20.0])
    device.land(20)
    device.land(2)
    assert device.low_us == device.now_us - device.settings.lateness_us


def test_a_source_that_has_both_kinds_of_time_promises_the_earlier(device):
    device.take([20.0, 20.0], [None, NOW_US - MINUTE_US], [{}, {}])
    device.land(20)
    device.land(2)
    assert device.low_us == NOW_US - MINUTE_US - device.settings.lateness_us


def test_a_promise_never_speaks_of_what_has_not_landed(device):
    device.read([20.0], [NOW_US])
    device.read([20.0], [NOW_US + 4 * MINUTE_US])
    device.tick(2)
    assert device.low_us <= NOW_US
    device.land(20)
    device.land(2)
    device.land(2)
    assert device.low_us == NOW_US + 4 * MINUTE_US - device.settings.lateness_us


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
