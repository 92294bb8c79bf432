"""Pane entries reach the lake once, whatever is lost; a promise never speaks of what has not."""

from dataclasses import replace
from itertools import pairwise

import pytest

from device_agent.panes.cache import KEPT_ENTRIES, PAGE
from device_agent.panes.flights import IN_FLIGHT, LAST_TIMEOUT_US
from device_agent.panes.sender import FRAME_BYTES
from device_agent.settings import SECOND_US, Settings
from lasp_edge import Program, folds
from lasp_edge.protocol.frames import BeatFrame, PaneFrame
from simulations.fleet import SimulatedLander
from tests.device_agent.agents import NOW_US, Device, greenhouse, truth_of

MINUTE_US = 60 * SECOND_US
DAY_US = 86_400 * SECOND_US
PANE_US = 10 * SECOND_US


@pytest.fixture
def device(tmp_path):
    device = Device(tmp_path)
    yield device
    device.kill()


def entries(frames):
    """Return (pane start, incarnation, nonce, seq, partial) of all entries in frames."""
    return [
        (pane_us, block.incarnation, block.nonce, seq, partial)
        for frame in frames
        for block in frame.blocks
        for pane_us, seq, partial in zip(
            block.panes_us, block.seqs, zip(*block.columns, strict=True), strict=True
        )
    ]


def test_a_restored_pane_is_frozen_and_sent_unchanged_under_its_old_name(device):
    device.read([20.0], [NOW_US])
    before = device.core.replica
    device.restart()
    device.read([30.0], [NOW_US + 1])
    sent = entries(device.frames(PaneFrame, device.tick(20)))
    after = device.core.replica
    assert sorted(sent) == sorted(
        [
            (NOW_US, before.incarnation, before.nonce, 1, (1, 2000, 2000)),
            (NOW_US, after.incarnation, after.nonce, 1, (1, 3000, 3000)),
        ]
    )
    assert after > before


def test_a_frozen_pane_that_has_landed_is_not_sent_again(device):
    device.read([20.0], [NOW_US])
    device.land(20)
    device.tick()
    device.restart()
    assert device.frames(PaneFrame, device.tick(20)) == []


def test_the_ack_of_an_old_seq_leaves_a_newer_entry_dirty(device):
    device.read([20.0], [NOW_US])
    (frame,) = device.frames(PaneFrame, device.tick(20))
    device.read([30.0], [NOW_US + 1])
    device.acknowledge(frame)
    assert device.core.panes.report()["dirty"] == 1
    (again,) = device.frames(PaneFrame, device.tick(20))
    assert entries([again])[0][3:] == (2, (2, 5000, 2000))
    device.acknowledge(again)
    assert device.core.panes.report()["dirty"] == 0


def test_a_frame_that_was_lost_is_sent_again_with_another_number(device):
    device.read([20.0], [NOW_US])
    (lost,) = device.frames(PaneFrame, device.tick(20))
    assert device.frames(PaneFrame, device.tick(1)) == []
    (again,) = device.frames(PaneFrame, device.tick(20))
    assert again.number > lost.number
    assert again.blocks == lost.blocks


def test_a_late_acknowledgement_counts_after_the_time_out(device):
    device.read([20.0], [NOW_US])
    (late,) = device.frames(PaneFrame, device.tick(20))
    device.tick(20)
    device.acknowledge(late)
    assert device.core.panes.cache.all_landed
    assert device.frames(PaneFrame, device.tick(500)) == []


def test_time_outs_grow_and_stay_bounded(device):
    device.read([20.0], [NOW_US])
    sent_at = [device.now_us for _ in range(2_000) if device.frames(PaneFrame, device.tick(1))]
    waits = [after - before for before, after in pairwise(sent_at)]
    assert waits[0] < 10 * SECOND_US
    assert max(waits) <= 1.25 * LAST_TIMEOUT_US + SECOND_US
    assert waits[-1] > 60 * SECOND_US


def test_a_reconnect_sends_everything_dirty_again_at_once(device):
    device.read([20.0], [NOW_US])
    device.tick(20)
    device.core.handle_disconnected()
    assert device.tick(1) == []
    device.core.handle_connected(device.now_us)
    assert len(device.frames(PaneFrame, device.tick(1))) == 1


def test_a_frame_that_the_link_did_not_take_is_sent_at_the_next_tick(device):
    device.read([20.0], [NOW_US])
    (unsent,) = [p for p in device.tick(20) if p.pane_frame]
    device.core.handle_unsent(unsent)
    assert len(device.frames(PaneFrame, device.tick(0.5))) == 1


def test_an_entry_is_sent_when_its_pane_is_over(device):
    device.read([20.0], [NOW_US])
    assert device.frames(PaneFrame, device.tick(1)) == []
    device.read([20.0], [NOW_US + PANE_US])
    assert [entry[0] for entry in entries(device.frames(PaneFrame, device.tick(1)))] == [NOW_US]


def test_a_pane_that_fills_slowly_travels_every_ten_seconds_and_not_with_every_reading(tmp_path):
    device = Device(tmp_path, greenhouse(size_s=86_400, slide_s=86_400))
    count = 0
    for second in range(100):
        device.read([20.0 + second % 3])
        frames = device.frames(PaneFrame, device.tick(1))
        count += len(frames)
        device.read([20.0])  # before the acknowledgement, which comes for an old seq then
        device.acknowledge(*frames)
    assert 8 <= count <= 11
    device.kill()


def test_unchanged_entries_cause_no_traffic(device):
    device.read([20.0], [NOW_US])
    device.land(20)
    quiet = [device.land(1) for _ in range(300)]
    assert not any(quiet)


def test_another_lake_makes_everything_dirty_again(device):
    device.read([20.0, 21.0], [NOW_US, NOW_US - MINUTE_US])
    device.land(20)
    device.read([22.0], [NOW_US + MINUTE_US])
    device.land(20)
    assert device.core.panes.cache.all_landed
    device.acknowledge(lake="lake-2")
    again = entries(device.frames(PaneFrame, device.tick(1)))
    assert [entry[0] for entry in again] == [NOW_US - MINUTE_US, NOW_US, NOW_US + MINUTE_US]


def test_what_landed_just_before_the_lake_changed_is_sent_to_the_new_one(device):
    # Both acknowledgements are in one commit: the store must not keep the first one's word.
    device.read([20.0], [NOW_US])
    device.acknowledge()  # the lake is known
    (frame,) = device.frames(PaneFrame, device.tick(20))
    device.acknowledge(frame)
    device.acknowledge(lake="lake-2")
    device.tick(0)
    device.restart()
    assert len(entries(device.frames(PaneFrame, device.tick(1)))) == 1


def test_an_acknowledgement_of_the_old_lake_does_not_count_for_the_new_one(device):
    device.read([20.0], [NOW_US])
    device.acknowledge()
    (frame,) = device.frames(PaneFrame, device.tick(20))
    device.acknowledge(lake="lake-2")
    device.acknowledge(frame)
    assert not device.core.panes.cache.all_landed


def test_the_lake_is_remembered_over_restarts(device):
    device.read([20.0], [NOW_US])
    device.land(20)
    device.tick()
    device.restart()
    device.acknowledge(lake="lake-2")
    assert len(entries(device.frames(PaneFrame, device.tick(1)))) == 1


def test_an_acknowledgement_of_another_replicas_seqs_is_not_taken_for_this_ones(device):
    device.read([20.0], [NOW_US])
    (frame,) = device.frames(PaneFrame, device.tick(20))
    block = frame.blocks[0]
    for other in (block._replace(nonce=5), block._replace(incarnation=9)):
        device.acknowledge(replace(frame, blocks=(other,)))
    assert not device.core.panes.cache.all_landed
    device.acknowledge(frame)
    assert device.core.panes.cache.all_landed


def fill(device, panes, rooms=1, start_us=NOW_US):
    """Read one value in each of so many panes, in batches."""
    times_us = [start_us + pane * PANE_US for pane in range(panes)]
    for start in range(0, panes, 2_000):
        part = times_us[start : start + 2_000]
        device.now_us = max(device.now_us, part[-1])
        for room in range(rooms):
            device.read([20.0] * len(part), part, {"room": str(room)} if rooms > 1 else None)


def flights_of(device):
    """Return the flights to its only sink."""
    (sink,) = device.core.panes.sinks
    return sink.flights


def test_frames_are_bounded_in_bytes_and_few_are_in_flight(device):
    fill(device, 5_000)
    published = [p for p in device.tick(1) if p.pane_frame]
    assert len(published) == IN_FLIGHT == flights_of(device).count
    assert max(len(p.payload) for p in published) <= FRAME_BYTES
    assert [p for p in device.tick(1) if p.pane_frame] == []


@pytest.mark.slow
def test_a_week_offline_is_bounded_in_memory_and_promised_rightly(device):
    device.core.handle_disconnected()
    device.tick()
    fill(device, 60_480)
    assert len(device.core.panes.memory.entries) <= KEPT_ENTRIES
    (waiting,) = device.store.undelivered()
    assert (waiting.entries, waiting.oldest_us) == (60_480, NOW_US)
    assert device.core.beats.lows(device.now_us)[0].low_us <= NOW_US
    device.restart()
    assert device.core.beats.lows(device.now_us)[0].low_us is None  # the store was not asked yet
    device.tick()
    assert device.low_us == NOW_US
    device.settle()
    window = device.program.windows["by_room"]
    assert len(device.landed.panes) == 60_480
    truth = truth_of(window, device.store.readings())
    assert {(pane[1], pane[2]): p for pane, (_, p) in device.landed.panes.items()} == truth


def test_after_a_restart_many_new_panes_do_not_hide_the_old_dirty_ones(device):
    fill(device, 3)
    device.restart()
    fill(device, PAGE, start_us=NOW_US + DAY_US)  # before the store was asked for old ones
    device.core.handle_connected(device.now_us)
    device.tick()
    assert device.low_us == NOW_US


def test_every_promise_waits_for_the_oldest_dirty_pane_in_the_store(device):
    fill(device, 6_000)
    for step in range(40):
        device.tick(0)
        (oldest,) = device.store._db.execute("SELECT min(pane_us) FROM pane WHERE dirty").fetchone()
        low_us = device.core.beats.lows(device.now_us)[0].low_us
        assert oldest is None or low_us is None or low_us <= oldest
        device.land()
        if step % 10 == 5:
            device.restart()
        if step == 20:
            device.acknowledge(lake="lake-2")
            device.landed = SimulatedLander("lake-2", device.program)


def test_an_evicted_pane_that_a_late_reading_hits_is_continued_and_not_replaced(device):
    device.read([20.0, 21.0], [NOW_US, NOW_US + 1])
    fill(device, 2 * KEPT_ENTRIES, start_us=NOW_US + MINUTE_US)
    assert device.core.panes.memory.evicted_us >= NOW_US + PANE_US
    device.read([22.0], [NOW_US + 2])
    assert device.stored_panes()["", NOW_US] == (3, 6300, 2000)
    device.settle()
    assert len(device.core.panes.memory.entries) <= KEPT_ENTRIES + PAGE
    landed = {pane[2]: partial for pane, (_, partial) in device.landed.panes.items()}
    assert landed[NOW_US] == (3, 6300, 2000)


def test_more_keys_than_memory_holds_in_one_pane_are_continued_rightly(tmp_path):
    device = Device(tmp_path, greenhouse(keyed=True))
    rooms = [{"room": str(room)} for room in range(KEPT_ENTRIES + 1_000)]
    for value in (20.0, 21.0):
        for start in range(0, len(rooms), 500):
            device.take([value] * 500, [NOW_US + round(value)] * 500, rooms[start : start + 500])
    assert len(device.core.panes.memory.entries) <= KEPT_ENTRIES
    assert set(device.stored_panes().values()) == {(2, 4100, 2000)}
    device.kill()


def test_more_keys_than_memory_holds_of_stamped_readings_are_continued_rightly(tmp_path):
    device = Device(tmp_path, greenhouse(keyed=True))
    rooms = [{"room": str(room)} for room in range(KEPT_ENTRIES + 1_000)]
    for value in (20.0, 21.0):
        for start in range(0, len(rooms), 500):
            device.take([value] * 500, [None] * 500, rooms[start : start + 500])
    assert set(device.stored_panes().values()) == {(2, 4100, 2000)}
    device.kill()


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


@pytest.mark.parametrize(("size_s", "slide_s"), [(50, 20), (60, 10), (7, 3), (0.5, 0.2)])
def test_panes_combine_to_windows_where_the_slide_does_not_divide_the_size(
    tmp_path, size_s, slide_s
):
    device = Device(tmp_path, greenhouse(size_s=size_s, slide_s=slide_s))
    window = device.program.windows["by_room"]
    times_us = [NOW_US + step * 1_700_000 for step in range(200)]
    device.now_us = times_us[-1]
    device.read([20.0 + step % 7 for step in range(200)], times_us)
    device.settle()
    truth: dict = {}
    for reading in device.store.readings():
        start_us = reading["time_us"] // window.slide_us * window.slide_us
        while start_us + window.size_us > reading["time_us"]:
            lifted = window.fold.lift(reading["q"])
            before = truth.get(("", start_us), window.fold.zero)
            truth["", start_us] = window.fold.combine(before, lifted)
            start_us -= window.slide_us
    assert device.landed.windows(device.program, "by_room") == truth
    device.kill()


def test_frames_of_binary_partials_are_bounded_too(tmp_path):
    program = Program("binary")
    temperature = program.event("temperature", resolution="0.01")
    program.window("best", source=temperature, fold=folds.top(400), size_s=10)
    program = program.plan()
    device = Device(tmp_path, program)
    for pane in range(30):
        times_us = [NOW_US + pane * 10 * SECOND_US + n for n in range(400)]
        device.read([float(n) for n in range(400)], times_us)
    frames = [f for _ in range(10) for f in device.land(20)]
    sizes = [len(frame.encode()) for frame in frames]
    assert sum(len(block.seqs) for frame in frames for block in frame.blocks) >= 30
    assert max(sizes) <= FRAME_BYTES < sum(sizes)
    fold = program.windows["best"].fold
    whole = fold.lift_column([100 * n for n in range(400)], [0] * 400)
    assert {partial for _, partial in device.landed.panes.values()} == {whole}
    device.kill()
