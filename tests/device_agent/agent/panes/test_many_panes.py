"""More panes than memory and a frame hold: both stay bounded, and no pane is lost."""

import pytest

from crdts import Replica
from device_agent.agent.panes import cache
from device_agent.agent.panes.cache import KEPT_ENTRIES, PAGE
from device_agent.agent.panes.flights import IN_FLIGHT
from device_agent.agent.panes.sender import FRAME_BYTES
from device_agent.agent.settings import Settings
from lasp_edge import Program, folds
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.frames import PaneFrame
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.units import SECOND_US
from simulations.world.lander import SimulatedLander
from tests.device_agent.agent.panes.support_fleetlet import starts
from tests.device_agent.agents import (
    DAY_US,
    HOUR_US,
    LAKE,
    MINUTE_US,
    NOW_US,
    PANE_US,
    Device,
    greenhouse,
    truth_of,
)

A_NIGHT = 12 * HOUR_US // PANE_US


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
def test_a_night_offline_is_bounded_in_memory_and_promised_rightly(device):
    """4 times what memory holds, and 11 pages: a week would be more of the same."""
    device.core.handle_disconnected()
    device.tick()
    fill(device, A_NIGHT)
    assert len(device.core.panes.memory.entries) <= KEPT_ENTRIES
    (waiting,) = device.store.undelivered()
    assert (waiting.entries, waiting.oldest_us) == (A_NIGHT, NOW_US)
    assert device.core.panes.lows(device.now_us)[0].low_us <= NOW_US
    device.restart()
    assert device.core.panes.lows(device.now_us)[0].low_us is None  # the store was not asked yet
    device.tick()
    assert device.low_us == NOW_US
    device.settle()
    window = device.program.windows["by_room"]
    assert len(device.landed.panes) == A_NIGHT
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
        (oldest,) = device.store.database.execute(
            "SELECT min(pane_us) FROM pane WHERE dirty"
        ).fetchone()
        low_us = device.core.panes.lows(device.now_us)[0].low_us
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


def test_more_keys_than_memory_holds_of_stamped_readings_are_continued_rightly(tmp_path):
    device = Device(tmp_path, greenhouse(keyed=True))
    rooms = [{"room": str(room)} for room in range(KEPT_ENTRIES + 1_000)]
    for value in (20.0, 21.0):
        for start in range(0, len(rooms), 500):
            device.take([value] * 500, [None] * 500, rooms[start : start + 500])
    assert set(device.stored_panes().values()) == {(2, 4100, 2000)}


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


@pytest.fixture
def little_memory(monkeypatch):
    """Let memory hold a dozen entries."""
    monkeypatch.setattr(cache, "KEPT_ENTRIES", 12)
    monkeypatch.setattr(cache, "PAGE", 4)


def test_an_entry_whose_answer_waits_for_a_commit_is_sent_to_another_store(tmp_path, little_memory):
    """It landed, left memory before that was stored, and then the lake was lost."""
    settings = Settings(commit_every_us=600 * SECOND_US)
    device = Device(tmp_path, settings=settings)
    frames = []
    for day in range(IN_FLIGHT):
        fill(device, 4, start_us=NOW_US + day * DAY_US)
        frames += device.frames(PaneFrame, device.tick())
    device.acknowledge(*frames)
    device.core.counters.add("something that must be durable")
    device.durable.commit(device.now_us)
    memory = device.core.panes.memory
    assert memory.answered.keys() - memory.entries.keys()
    device.acknowledge(lake="lake-2")
    device.landed = SimulatedLander("lake-2", device.program)
    device.settle()
    assert len(device.landed.panes) == 16


def test_refused_entries_that_memory_let_go_are_soon_sent_to_a_new_process_again(
    tmp_path, little_memory
):
    """All were sent to it once, and lost on the way; what is new pushed them out of memory."""
    device = Device(tmp_path)
    device.landed = SimulatedLander(LAKE, greenhouse(slide_s=20))
    fill(device, 30)
    for _ in range(60):
        device.land(60)
    assert not device.landed.panes
    device.landed = device.landed.restarted(device.program, Replica(1, 2, "lander"))
    device.hear(AckFrame(Replica(1, 2, "lander"), 1, device.name, DEFAULT_SINK, LAKE))
    lost = [frame for _ in range(20) for frame in device.frames(PaneFrame, device.tick())]
    assert set(starts(lost)) == set(range(NOW_US, NOW_US + 30 * PANE_US, PANE_US))
    fill(device, 20, start_us=device.now_us)
    for _ in range(60):
        device.land(5)
    assert len(device.landed.panes) == 50
