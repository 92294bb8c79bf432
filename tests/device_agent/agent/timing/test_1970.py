"""A device that starts in 1970: its readings wait until somebody knows the time."""

from decimal import Decimal
from fractions import Fraction

from device_agent.agent.timing import waiting
from device_agent.storage.sealed_file import put
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.units import SECOND_US
from tests.device_agent.agent.timing.clocked import TRUE_US, ClockedDevice, seconds_from
from tests.device_agent.agents import DAY_US, HOUR_US, NOW_US, Device


def test_a_device_in_1970_promises_nothing_and_its_readings_wait_for_their_time(tmp_path):
    device = ClockedDevice(tmp_path, off_us=-TRUE_US)
    true_us = seconds_from(device.true_us, 60)
    device.reads_for(60)
    assert {low.low_us for beat in device.frames(BeatFrame) for low in beat.lows} == {None}
    assert {beat.clock_s for beat in device.frames(BeatFrame)} == {None}
    assert device.times_us() == []
    assert device.core.report()["clock"]["waiting"] == 60
    assert device.store.restored().facts.clock.startswith("waiting for the clock")
    assert not device.core.done
    device.off_us, device.synchronised = 0, True
    device.tick()
    assert device.errors_us(true_us) == 0
    device.tick(5)
    assert device.low_us is not None
    assert device.store.restored().facts.clock == ""
    assert device.store.restored().waiting[1:] == (0, 0)


def test_readings_with_a_time_of_their_own_are_not_refused_for_the_devices_clock(tmp_path):
    device = ClockedDevice(tmp_path, off_us=-TRUE_US)
    own_us = seconds_from(TRUE_US - HOUR_US, 20)
    device.take([20.0] * 20, own_us, [{}] * 20, source="file", cursor="20")
    device.tick()
    assert device.counted.get("in_the_future", 0) == 0
    assert device.store.restored().sources["file"].cursor == "20"
    device.restart()
    device.off_us = 0
    device.tick()
    assert device.times_us() == own_us
    row = device.store.restored().sources["file"]
    assert (row.cursor, row.high_us, row.stamped) == ("20", own_us[-1], False)


def test_readings_keep_their_order_though_new_ones_come_while_others_wait(tmp_path, monkeypatch):
    monkeypatch.setattr("device_agent.agent.timing.waiting.PAGE_BYTES", 1)  # one batch a tick
    device = ClockedDevice(tmp_path, off_us=-TRUE_US)
    true_us = seconds_from(device.true_us, 10)
    device.reads_for(5)
    device.off_us = 0
    device.reads_for(5)
    while device.core.agent.clock.waiting:
        assert device.core.intake.low_us(device.now_us) is None
        device.tick()
    assert device.errors_us(true_us) == 0


def test_a_kill_at_any_time_neither_loses_nor_doubles_what_waits(tmp_path, monkeypatch):
    monkeypatch.setattr("device_agent.agent.timing.waiting.PAGE_BYTES", 1)
    device = ClockedDevice(tmp_path, off_us=-TRUE_US)
    true_us = seconds_from(device.true_us, 8)
    for second in range(8):
        device.read([20.0])
        if second % 3 == 1:
            device.restart()
        device.tick()
    device.off_us = 0
    for _ in range(10):
        device.restart()
        device.tick(0.1)
    assert device.errors_us(true_us) == 0
    assert device.counted["accepted"] == 8


def test_readings_of_a_boot_without_a_clock_cannot_be_dated_and_are_counted(tmp_path):
    device = ClockedDevice(tmp_path, off_us=-TRUE_US)
    device.read([20.0, 21.0, 22.0], [None, TRUE_US, None])
    device.off_us = 0
    device.reboot("boot-2")
    device.read([23.0])
    device.tick()
    assert device.counted["undated"] == 2
    assert device.times_us() == [TRUE_US, device.true_us - SECOND_US]


def test_readings_that_wait_for_a_jump_to_be_understood_are_dated_after_a_reboot(tmp_path):
    device = ClockedDevice(tmp_path)
    device.tick()
    device.off_us = 2 * DAY_US
    device.tick()
    true_us = device.true_us
    device.read([20.0])
    assert device.core.report()["clock"]["waiting"] == 1
    device.off_us = 0
    device.now_us += HOUR_US
    device.reboot("boot-2")
    device.tick()
    assert device.errors_us([true_us]) <= SECOND_US


def test_what_waits_is_bounded_and_what_comes_after_it_is_refused_and_counted(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(waiting, "WAITING_BYTES", 500)
    device = ClockedDevice(tmp_path, off_us=-TRUE_US)
    device.reads_for(50)
    held = device.store.restored().waiting
    assert 0 < held.packed_bytes <= 500
    assert device.counted[f"refused: {waiting.FULL}"] == 50 - held.readings
    device.restart()
    device.reads_for(5)
    device.off_us = 0
    device.tick()
    device.tick()
    assert device.counted["accepted"] == held.readings
    device.reads_for(3)
    assert device.counted["accepted"] == held.readings + 3


def test_a_driver_in_1970_that_tells_no_clock_places_nothing(tmp_path):
    device = Device(tmp_path, now_us=5 * SECOND_US)
    device.read([20.0])
    device.take([21.0], [NOW_US], [{}])
    device.tick()
    assert device.low_us is None
    device.now_us = NOW_US
    device.tick()
    device.tick()
    assert [reading["time_us"] for reading in device.store.readings()] == [NOW_US]
    assert device.counted["undated"] == 1


STRANGE = [
    *({"/": [1, 0]}, {"/": ["1", "0"]}, {"/": [41, 2]}, {"/": [1, 2, 3]}, {"retracted": 20.5}),
    *({"decimal": "20.5"}, {"none": 1}, {}, [20.5], (20.5,), object(), b"20.5", True),
    *("20.5", None, float("nan"), float("inf"), 10**5_000, Fraction(1, 10**5_000)),
    *(Fraction(41, 2), Fraction(10**5_001, 10**5_000), Decimal("NaN"), Decimal("1e999999")),
]


def test_what_no_value_is_when_it_waits_is_the_same_as_when_it_does_not(tmp_path):
    outcomes = []
    for off_us in (0, -TRUE_US):
        device = ClockedDevice(tmp_path / str(off_us), off_us=off_us)
        device.tick()
        device.read([20.5, *STRANGE, 21.5])
        device.tick()
        device.off_us = 0
        device.tick()
        device.tick(5)
        assert device.core.report()["clock"]["waiting"] == 0
        accepted = [row["q"] for row in device.store.readings()]
        outcomes.append((accepted, device.counted["accepted"], device.counted["refused"]))
        assert device.counted["accepted"] + device.counted["refused"] == len(STRANGE) + 2
        assert [name for name in device.counted if name.startswith("failed: ")] == []
        device.kill()
    assert outcomes[0] == outcomes[1]
    assert (outcomes[0][0][0], outcomes[0][0][-1]) == (2050, 2150)


def test_readings_that_cannot_be_read_any_more_are_counted(tmp_path):
    device = ClockedDevice(tmp_path, off_us=-TRUE_US)
    device.read([20.0, 21.0])
    device.tick()
    device.read([22.0])
    device.tick()
    device.store.database.execute("BEGIN")
    (first, *_) = device.store.waiting(1)
    put(device.store.database, "waiting", [first._replace(batch=b"no JSON")])
    device.store.database.execute("COMMIT")
    device.off_us = 0
    device.tick()
    device.tick(5)
    assert (device.counted["accepted"], device.counted["refused"]) == (1, 2)


def test_exact_values_wait_as_exact_values(tmp_path):
    device = ClockedDevice(tmp_path, off_us=-TRUE_US)
    values = [Fraction(85, 4), Decimal("21.5"), 22.125, 23]
    device.take(values, [None] * 4, [{}] * 4)
    device.tick()
    assert device.times_us() == []
    device.restart()
    device.off_us, device.synchronised = 0, True
    device.tick()
    device.tick(5)
    assert [row["q"] for row in device.store.readings()] == [2125, 2150, 2212, 2300]
    assert device.counted.get("refused", 0) == 0
