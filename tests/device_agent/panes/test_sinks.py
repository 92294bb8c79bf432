"""Delivery by entry and by sink: what one sink lacks, or refuses, holds nothing else."""

import itertools

import pytest

from crdts import Replica
from device_agent.panes.cache import KEPT_ENTRIES
from device_agent.panes.flights import IN_FLIGHT
from device_agent.settings import SECOND_US, Settings
from lasp_edge import Program, folds
from lasp_edge.protocol.acks import NotTaken
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.frames import PaneFrame
from lasp_edge.protocol.sinks import MAX_SINKS
from simulations.world.lander import SimulatedLander
from tests.device_agent.agents import DAY_US, LAKE, MINUTE_US, NOW_US, PANE_US, Device, ack_of

FAR = NotTaken.FAR_FUTURE.advice
UNKNOWN = NotTaken.UNKNOWN_STREAM.advice


def sink(device, name="lake"):
    return device.core.report()["sinks"][name]


def starts(frames):
    """Return the starts of all panes in frames."""
    return sorted(
        pane_us for frame in frames for block in frame.blocks for pane_us in block.panes_us
    )


def windows(*names, slide_s=10):
    """Return a program with some windows of temperatures."""
    program = Program("greenhouse")
    temperature = program.event("temperature", resolution="0.01")
    for name in names:
        program.window(name, source=temperature, fold=folds.mean(), size_s=60, slide_s=slide_s)
    return program.plan()


class Fleetlet:
    """A device and some landers; every answer arrives after some seconds."""

    def __init__(self, device, *landers, latency_s=0):
        self.device, self.landers, self.latency_s = device, landers, latency_s
        self.flying = []
        self.sent_entries = 0

    def run(self, seconds, step_s=1.0, up=lambda second: True):
        """Let time pass; the connection is up in the seconds for which `up` holds."""
        device, was_up = self.device, True
        for second in range(int(seconds / step_s)):
            is_up = up(second)
            if is_up and not was_up:
                device.core.handle_connected(device.now_us)
            if was_up and not is_up:
                device.core.handle_disconnected()
            was_up = is_up
            for publication in device.tick(step_s):
                if "/pane/" in publication.topic or "/beat/" in publication.topic:
                    (frame,) = device.frames(object, [publication])
                    self._lands(frame)
            device.sent.clear()
            if is_up:
                self._arrive()

    def _lands(self, frame):
        device = self.device
        if isinstance(frame, PaneFrame):
            self.sent_entries += len(starts([frame]))
        for lander in self.landers:
            answer = lander.hear(device.topic_of(frame), frame.encode(), device.now_us)
            if answer is not None:
                self.flying.append((device.now_us + self.latency_s * SECOND_US, answer))

    def _arrive(self):
        now_us = self.device.now_us
        arrived = [answer for at_us, answer in self.flying if at_us <= now_us]
        self.flying = [each for each in self.flying if each[0] > now_us]
        for answer in arrived:
            self.device.hear(answer)


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
    device.kill()


def test_what_was_not_taken_holds_no_promise_and_nobody_is_done(tmp_path):
    device = ahead(tmp_path)
    device.core.handle_end()
    device.land(20)
    device.land(20)
    assert device.low_us == NOW_US + 2 * DAY_US + 60 * SECOND_US  # the end of the last window
    assert not device.core.done
    device.kill()


def test_what_was_not_taken_is_sent_ever_less_often_until_it_lands(tmp_path):
    device = ahead(tmp_path)
    device.core.handle_end()
    tries = [device.now_us for _ in range(2 * 24 * 60) if device.land(60)]
    waits = [after - before for before, after in itertools.pairwise(tries)]
    assert waits[1] < waits[3] < waits[5] <= 75 * MINUTE_US + MINUTE_US
    assert len(tries) < 70
    device.settle()
    assert len(device.landed.panes) == 2
    device.kill()


def test_what_was_not_taken_is_still_told_after_a_restart(tmp_path):
    device = ahead(tmp_path)
    device.land(20)
    device.tick()
    before = sink(device)
    device.restart()
    device.tick(0)
    assert sink(device) == before
    assert device.core.beats.lows(device.now_us)[0].low_us > NOW_US
    device.kill()


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
    device.kill()


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
    assert sink(device)["not_taken"] == {UNKNOWN: 2}
    assert not device.core.done
    device.landed = former  # one that still knows them
    device.settle(4_000)
    assert sorted(pane[2] for pane in former.panes) == [NOW_US, NOW_US + MINUTE_US]
    device.kill()


# Several sinks, and two of one name.


def full(device, panes=30):
    device.read([20.0] * panes, [NOW_US + pane * PANE_US for pane in range(panes)])
    device.core.handle_end()
    return panes


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
    device.kill()


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
    device.kill()


# Slow and broken acknowledgements.


def many(device, panes):
    times_us = [NOW_US + pane * PANE_US for pane in range(panes)]
    for start in range(0, panes, 2_000):
        part = times_us[start : start + 2_000]
        device.now_us = max(device.now_us, part[-1])
        device.read([20.0] * len(part), part)


def waiting(device):
    return sum(each.entries for each in device.store.undelivered())


def test_answers_that_take_seven_minutes_still_clean_everything_in_time(device):
    many(device, 12_000)
    fleet = Fleetlet(device, device.landed, latency_s=430)
    fleet.run(1_200)
    assert waiting(device) < 1_000
    fleet.run(900)
    assert waiting(device) == 0
    assert fleet.sent_entries < 4 * 12_000


def test_a_connection_of_one_second_in_two_with_slow_answers_cleans_everything(device):
    many(device, 6_000)
    fleet = Fleetlet(device, device.landed, latency_s=5)
    fleet.run(400, up=lambda second: second % 2 == 0)
    assert waiting(device) == 0
    assert fleet.sent_entries < 4 * 6_000


@pytest.mark.parametrize("reason", [0, NotTaken.RETIRED])
def test_an_answer_counts_for_the_seq_it_names_though_the_entry_is_in_the_store_alone(
    device, reason
):
    device.core.handle_disconnected()
    many(device, 2 * KEPT_ENTRIES)
    alone = [each for each in device.rows() if each[0] not in device.core.panes.memory.entries]
    (older, one), (named, two), *_ = alone
    blocks = block_of(older, one._replace(seq=one.seq + 50_000)), block_of(named, two)
    device.acknowledge(PaneFrame(device.core.replica, 1, blocks), reason=reason)
    device.tick(0)
    rows = dict(device.rows())
    assert (rows[older].dirty, rows[older].refused) == (1, 0)
    assert bool(rows[named].dirty) == bool(rows[named].refused) == bool(reason)


def test_an_answer_that_comes_between_is_not_undone_by_recalling_the_entry(device):
    device.core.handle_disconnected()
    many(device, 2 * KEPT_ENTRIES)
    device.tick(0)
    _, (beside, row), *_ = device.rows()
    device.acknowledge(PaneFrame(device.core.replica, 1, (block_of(beside, row),)))
    device.read([21.0], [NOW_US + 1])  # recalls it together with the pane before it
    device.tick(0)
    entry = device.core.panes.memory.entries[beside]
    assert (entry.dirty, dict(device.rows())[beside].dirty) == (0, 0)


def test_an_entry_that_is_recalled_before_a_new_sink_is_noted_is_delivered_to_that_one(device):
    """A line is read twice: its pane comes back from the store, and nothing of it changes."""
    device.core.handle_disconnected()
    many(device, 2 * KEPT_ENTRIES)
    device.tick(0)
    device.acknowledge()
    device.acknowledge(sink="archive", lake="archive-1")
    memory = device.core.panes.memory
    pane, row = next(each for each in device.rows() if each[0] not in memory.entries)
    device.read([20.0], [pane.pane_us])
    assert memory.entries[pane].dirty == 0b11
    device.acknowledge(PaneFrame(device.core.replica, 1, (block_of(pane, row),)))
    device.tick(0)
    assert dict(device.rows())[pane].dirty == 0b10


def block_of(pane, row):
    """Return the block of one stored entry."""
    columns = tuple((part,) for part in row.partial)
    span_us = row.end_us - pane.pane_us
    return PaneEntries(
        pane.stream,
        span_us,
        pane.incarnation,
        pane.nonce,
        columns,
        ("",),
        (pane.pane_us,),
        (row.seq,),
    )


def test_without_any_answer_little_is_sent_and_in_the_end_all_lands(device):
    many(device, 3_000)
    nobody = Fleetlet(device)
    nobody.run(3_600, step_s=2)
    assert nobody.sent_entries < 40 * 400  # a frame in two minutes
    assert device.core.panes.sinks
    assert IN_FLIGHT * 400 < 3_000
    Fleetlet(device, device.landed).run(300)
    assert waiting(device) == 0


def test_what_was_sent_while_the_clock_was_ahead_is_sent_again_when_it_is_set_back(device):
    full(device)
    device.now_us += 40 * MINUTE_US
    device.tick(20)
    device.now_us -= 40 * MINUTE_US
    assert starts(device.land(1))
    device.settle()
