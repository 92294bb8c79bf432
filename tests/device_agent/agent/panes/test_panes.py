"""Pane entries reach the lake once, whatever is lost, and whichever lake it is."""

from dataclasses import replace
from itertools import pairwise

import pytest

from device_agent.agent.panes.flights import LAST_TIMEOUT_US
from lasp_edge.protocol.frames import PaneFrame
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import MINUTE_US, NOW_US, PANE_US, Device, greenhouse


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


def test_an_entry_that_did_not_leave_was_not_tried(device):
    device.read([20.0], [NOW_US])
    (unsent,) = [each for each in device.tick(20) if each.pane_frame]
    tried = [entry.tries for entry in device.core.panes.memory.entries.values()]
    device.core.handle_unsent(unsent)
    assert tried == [1]
    assert [entry.tries for entry in device.core.panes.memory.entries.values()] == [0]
    assert [sink.flights.count for sink in device.core.panes.sinks] == [0]  # nobody answers it
