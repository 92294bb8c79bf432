"""Delivery by entry and by sink: what one sink lacks, or refuses, holds nothing else."""

import itertools

from crdts import Replica
from device_agent.agent.panes.sender import FIRST_REFUSAL_US
from device_agent.agent.panes.sinks import TOO_MANY
from device_agent.agent.panes.undelivered import NO_LONGER_THERE
from device_agent.agent.settings import Settings
from lasp_edge import Program, folds
from lasp_edge.protocol.acks import AckFrame, NotTaken
from lasp_edge.protocol.frames import BeatFrame, PaneFrame
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.sinks import DEFAULT_SINK, MAX_SINKS
from lasp_edge.units import SECOND_US
from simulations.world.lander import SimulatedLander
from tests.device_agent.agent.panes.support_fleetlet import Fleetlet, full, sink, starts
from tests.device_agent.agents import DAY_US, LAKE, MINUTE_US, NOW_US, Device, ack_of

FAR = NotTaken.FAR_FUTURE.advice
UNKNOWN = NotTaken.UNKNOWN_STREAM.advice


def windows(*names, slide_s=10):
    """Return a program with some windows of temperatures."""
    program = Program("greenhouse")
    temperature = program.event("temperature", resolution="0.01")
    for name in names:
        program.window(name, source=temperature, fold=folds.mean(), size_s=60, slide_s=slide_s)
    return program.plan()


# One entry that is not taken.


def ahead(tmp_path):
    """Return a device with one pane of today, and one of the day after tomorrow."""
    device = Device(tmp_path, settings=Settings(max_skew_us=9 * DAY_US))
    device.take([20.0, 21.0], [NOW_US, NOW_US + 2 * DAY_US], [{}, {}])
    return device


def test_panes_that_share_a_frame_with_one_that_is_not_taken_land(tmp_path):
    device = ahead(tmp_path)
    (frame,) = device.land(20)
    assert starts([frame]) == [NOW_US, NOW_US + 2 * DAY_US]
    assert [pane[2] for pane in device.landed.panes] == [NOW_US]
    assert sink(device)["not_taken"] == {FAR: 1}
    assert sink(device)["waiting"] == 1
    assert not device.core.done


def test_what_was_not_taken_holds_no_promise_and_nobody_is_done(tmp_path):
    device = ahead(tmp_path)
    device.core.handle_end()
    device.land(20)
    device.land(20)
    assert device.low_us == NOW_US + 2 * DAY_US + 60 * SECOND_US  # the end of the last window
    assert not device.core.done


def test_what_was_not_taken_is_sent_ever_less_often_until_it_lands(tmp_path):
    device = ahead(tmp_path)
    device.core.handle_end()
    tries = [device.now_us for _ in range(2 * 24 * 60) if device.land(60)]
    waits = [after - before for before, after in itertools.pairwise(tries)]
    assert waits[1] < waits[3] < waits[5] <= 75 * MINUTE_US + MINUTE_US
    assert len(tries) < 70
    device.settle()
    assert len(device.landed.panes) == 2


def test_what_was_not_taken_is_still_told_after_a_restart(tmp_path):
    device = ahead(tmp_path)
    device.land(20)
    device.tick()
    before = sink(device)
    device.restart()
    device.tick(0)
    assert sink(device) == before
    assert device.core.panes.lows(device.now_us)[0].low_us > NOW_US


def test_a_device_with_one_new_window_lands_all_its_old_ones(tmp_path):
    device = Device(tmp_path, windows("old", "new"))
    device.landed = SimulatedLander(LAKE, windows("old"))
    device.read([20.0, 21.0], [NOW_US, NOW_US + MINUTE_US])
    device.core.handle_end()
    for _ in range(30):
        device.land()
    assert len(device.landed.panes) == 2
    assert sink(device)["not_taken"] == {UNKNOWN: 2}
    assert sink(device)["of_former_programs"] == 0
    upgraded = device.landed.restarted(device.program, Replica(1, 2, "lander"))
    Fleetlet(device, upgraded).run(60)  # it greets, so all is tried at once
    assert device.core.done
    assert len(upgraded.panes) == 4


def test_what_was_in_flight_when_a_sink_was_put_right_lands_soon(tmp_path):
    device = Device(tmp_path, windows("old", "new"))
    device.landed = SimulatedLander(LAKE, windows("old"))
    device.read([20.0], [NOW_US])
    device.core.handle_end()
    for _ in range(60):
        device.land(60)
    assert sink(device)["not_taken"] == {UNKNOWN: 1}
    while not device.frames(PaneFrame, device.tick(60)):
        pass  # it leaves once more, and is lost
    upgraded = device.landed.restarted(device.program, Replica(1, 2, "lander"))
    device.hear(AckFrame(Replica(1, 2, "lander"), 1, device.name, DEFAULT_SINK, LAKE))
    Fleetlet(device, upgraded).run(60)
    assert device.core.done


def test_what_no_sink_takes_is_sent_again_late_and_ever_later(tmp_path):
    device, sent_us = Device(tmp_path, windows("new")), []
    device.read([20.0], [NOW_US])
    device.core.handle_end()
    for _ in range(4):
        while not (frames := device.frames(PaneFrame, device.tick(5))):
            pass
        sent_us.append(device.now_us)
        device.now_us += 5 * SECOND_US  # until the answer comes
        device.acknowledge(*frames, reason=NotTaken.UNKNOWN_STREAM)
    waits_us = [after - before for before, after in itertools.pairwise(sent_us)]
    assert waits_us[0] >= 5 * SECOND_US + FIRST_REFUSAL_US * 3 // 4
    assert waits_us == sorted(waits_us)


def test_what_a_sink_is_asked_for_again_waits_for_its_answer_whatever_another_sink_says(tmp_path):
    device = Device(tmp_path, windows("new"))
    device.read([20.0], [NOW_US])
    device.core.handle_end()
    device.acknowledge()
    for _ in range(8):
        while not (frames := device.frames(PaneFrame, device.tick(20))):
            pass
        device.acknowledge(*frames, sink="archive", lake="b", reason=NotTaken.UNKNOWN_STREAM)
    device.hear(AckFrame(Replica(1, 2, "archive"), 1, device.name, "archive", "b"))
    while not (frames := device.frames(PaneFrame, device.tick(20))):
        pass
    device.acknowledge(*frames)  # the lake had been away; the archive gets nothing for a while
    sent = [frame for _ in range(30) for frame in device.frames(PaneFrame, device.tick(20))]
    assert len(sent) >= 3
    device.acknowledge(*sent, sink="archive", lake="b")
    assert device.core.done


# A former program.


def test_panes_of_a_former_program_are_sent_count_and_are_told(tmp_path):
    device = Device(tmp_path, windows("average"))
    former = device.landed
    device.read([20.0, 21.0], [NOW_US, NOW_US + MINUTE_US])
    device.tick(0)
    device.program = windows("average", slide_s=20)
    device.restart()
    device.core.handle_end()
    device.tick(2)
    assert not device.core.done
    assert sink(device)["of_former_programs"] == 2
    assert device.low_us is None or device.low_us <= NOW_US
    device.landed = SimulatedLander(LAKE, device.program)
    device.land(20)
    assert sink(device)["not_taken"] == {NO_LONGER_THERE: 2}
    assert not device.core.done
    device.landed = former  # one that still knows them
    device.settle(4_000)
    assert sorted(pane[2] for pane in former.panes) == [NOW_US, NOW_US + MINUTE_US]


# Several sinks, and two of one name.


def test_two_sinks_get_everything_once_and_each_has_its_own_promise(device):
    panes = full(device)
    archive = SimulatedLander("a-1", device.program, sink="archive")
    Fleetlet(device, device.landed).run(30)
    assert device.core.done
    both = Fleetlet(device, device.landed, archive)
    device.hear(ack_of(device.name, sink=("archive", "a-1")))  # it greets
    assert not device.core.done
    device.tick(2)
    assert device.low_of("lake") > device.low_of("archive") == NOW_US
    both.run(60)
    assert device.core.done
    assert archive.panes == device.landed.panes
    assert both.sent_entries == panes, "the lake is told nothing again"
    both.run(600)
    assert both.sent_entries == panes


def test_a_sink_that_is_gone_keeps_no_other_from_knowing_that_all_has_come(device):
    full(device)
    archive = SimulatedLander("a-1", device.program, sink="archive")
    device.hear(ack_of(device.name, sink=("archive", "a-1")))  # it greets, and is gone
    Fleetlet(device, device.landed).run(60)
    assert not device.core.done
    beats = device.frames(BeatFrame, device.tick(60))
    assert [(beat.done, beat.done_for) for beat in beats] == [(False, {"lake"})]
    assert beats == [decode(beat.encode()) for beat in beats]
    Fleetlet(device, device.landed, archive).run(600)
    beats = device.frames(BeatFrame, device.tick(60))
    assert [(beat.done, beat.done_for) for beat in beats] == [(True, set())]


def test_where_no_lake_ever_answers_the_first_sink_that_does_is_all_there_is(device):
    """A gateway alone: nothing waits for a lake that was never there."""
    panes = full(device)
    gateway = SimulatedLander("g-1", device.program, sink="gateway")
    alone = Fleetlet(device, gateway)
    alone.run(30)
    assert list(device.core.report()["sinks"]) == ["gateway"]
    assert (device.core.done, alone.sent_entries) == (True, panes)
    device.restart()
    assert list(device.core.report()["sinks"]) == ["gateway"]
    late = Fleetlet(device, gateway, device.landed)
    device.hear(ack_of(device.name))
    late.run(60)
    assert device.landed.panes == gateway.panes
    assert {row.dirty for _, row in device.rows()} == {0}


def test_a_sink_that_is_away_holds_no_other_up_and_costs_little(device):
    device.hear(ack_of(device.name, sink=("archive", "a-1")))
    alone = Fleetlet(device, device.landed)
    for minute in range(10):
        device.read([20.0], [NOW_US + minute * MINUTE_US])
        alone.run(60)
        assert sink(device)["waiting"] == 0
        assert sink(device, "archive")["waiting"] == minute + 1
    assert alone.sent_entries < 100
    archive = SimulatedLander("a-1", device.program, sink="archive")
    device.hear(ack_of(device.name, sink=("archive", "a-1")))
    Fleetlet(device, device.landed, archive).run(200)
    assert archive.panes == device.landed.panes
    assert sink(device, "archive")["waiting"] == 0


def test_invented_sinks_are_bounded_and_are_forgotten(tmp_path):
    device = Device(tmp_path, settings=Settings(retain_us=30 * MINUTE_US))
    full(device)
    Fleetlet(device, device.landed).run(30)
    for number in range(5 * MAX_SINKS):
        device.hear(ack_of(device.name, sink=(f"invented {number}", "x")))
    assert len(device.core.report()["sinks"]) == MAX_SINKS
    assert device.counted["frame: acknowledgement of one sink too many"] == 4 * MAX_SINKS + 1
    alarms = [name for name in device.counted if name.startswith("sink: ")]
    assert alarms == [f"sink: {TOO_MANY}"], (
        "the owner is told: it may be the own one that is left out"
    )
    device.tick(2)
    device.restart()
    assert len(device.core.report()["sinks"]) == MAX_SINKS
    device.core.handle_end()
    fleet = Fleetlet(device, device.landed)
    fleet.run(32 * 60, step_s=10)
    assert list(device.core.report()["sinks"]) == ["lake"]
    assert device.core.done
    device.restart()
    device.tick(0)
    assert {row.dirty for _, row in device.rows()} == {0}


def test_a_sink_that_was_forgotten_begins_anew(tmp_path):
    device = Device(tmp_path, settings=Settings(retain_us=30 * MINUTE_US))
    full(device)
    archive = SimulatedLander("a-1", device.program, sink="archive")
    Fleetlet(device, device.landed, archive).run(30)
    device.hear(ack_of(device.name, sink=("archive", "a-1")))
    Fleetlet(device, device.landed, archive).run(60)
    Fleetlet(device, device.landed).run(32 * 60, step_s=10)
    assert list(device.core.report()["sinks"]) == ["lake"]
    anew = SimulatedLander("a-2", device.program, sink="archive")
    device.hear(ack_of(device.name, sink=("archive", "a-2")))
    Fleetlet(device, device.landed, anew).run(60)
    assert anew.panes == device.landed.panes


def test_a_sink_that_has_nothing_to_say_is_not_forgotten_however_short_the_retention_is(tmp_path):
    device = Device(tmp_path, settings=Settings(retain_us=MINUTE_US))
    full(device)
    archive = SimulatedLander("a-1", device.program, sink="archive")
    device.hear(ack_of(device.name, sink=("archive", "a-1")))
    fleet = Fleetlet(device, device.landed, archive)
    fleet.run(30)
    sent = fleet.sent_entries
    for _ in range(20):
        fleet.run(100)
        device.hear(ack_of(device.name, sink=("archive", "a-1")))
    assert device.core.report()["sinks"].keys() == {"lake", "archive"}
    assert fleet.sent_entries == sent, "all of it has landed in both"
