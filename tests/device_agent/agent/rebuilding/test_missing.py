"""A real core and store under entries that come early, late and again: panes equal the truth."""

from dataclasses import replace
from random import Random

import pytest

from crdts import ControlLog
from lasp_edge import Program, folds
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.protocol.commands import CommandFrame
from lasp_edge.protocol.frames import AskFrame, BeatFrame, PaneFrame
from lasp_edge.units import SECOND_US as S
from tests.device_agent.agent.rebuilding.support_operated import (
    OPERATOR,
    PLAN,
    SETTINGS,
    Fleet,
    wander,
)
from tests.device_agent.agents import NOW_US, Device, ack_of
from tests.device_agent.agents import greenhouse as plain_greenhouse
from tests.lasp_edge.language.support_controlled import greenhouse
from tests.support_commands import schedule_command


@pytest.mark.parametrize("seed", range(12))
def test_panes_equal_the_truth_whatever_was_said_and_when(tmp_path, seed):
    fleet = Fleet(tmp_path)
    wander(fleet, Random(seed))
    for parameter, scope in fleet.log.lanes():
        fleet.tell(parameter, scope)
    fleet.build()
    fleet.check()
    assert any(fleet.windows(name) for name in PLAN.windows)


def test_a_filter_and_a_value_count_in_a_program_without_parameters(tmp_path):
    program = Program("filtered")
    sizes = {
        "source": program.event("temperature", resolution="0.1"),
        "size_s": 20,
        "slide_s": 10,
        "value": lambda event, _at: -2 * event.value,
        "where": lambda event, _at: event.value > 1,
    }
    program.window("sums", fold=folds.sum(), **sizes)
    program.window("by_room", fold=folds.mean(), key=lambda e: e.tags["room"], **sizes)
    fleet = Fleet(tmp_path, program.plan())
    for seed in range(3):
        fleet.device.read([-1.0, 1.0], None, {"room": "hall"})
        fleet.device.tick(7)
        fleet.device.read([-3.0 - seed], [NOW_US], {"room": "shed"})
        fleet.build()
        fleet.check()
        fleet.device.restart()
    assert len(fleet.windows("by_room")) > len(fleet.windows("sums")) > 2
    assert fleet.device.frames(PaneFrame)


@pytest.fixture
def fleet(tmp_path):
    fleet = Fleet(tmp_path)
    fleet.device.read([20.0], [NOW_US], {"room": "hall"})
    return fleet


def test_a_restart_finds_what_is_still_to_be_built(fleet):
    fleet.device.tick()
    fleet.say("offset", "", NOW_US - 60 * S, "3")
    fleet.device.durable.commit(fleet.device.now_us)
    fleet.device.restart()
    fleet.build()
    fleet.check()
    assert fleet.device.core.commands.known.control == fleet.log


def read_half_a_day(device):
    for hour in range(12):
        device.read([20.0 + hour], [NOW_US + hour * 3_600 * S], {"room": "hall"})
        device.tick()


def test_a_crash_amid_the_building_leaves_nothing_out_and_doubles_nothing(fleet):
    device = fleet.device
    read_half_a_day(device)
    fleet.say("offset", "", NOW_US, "3")
    for _ in range(2):
        device.durable.commit(device.now_us)
        assert device.core.missing.waits
        device.restart()
        assert device.core.missing.waits
    fleet.build()
    fleet.check()
    device.restart()
    assert not device.core.missing.waits, "it is known that all is built"


def test_an_entry_that_left_memory_is_continued(fleet):
    device, count = fleet.device, 2_600
    times = [NOW_US + at * 20 * S for at in range(count)]
    device.read([20.0] * count, times, {"room": "hall"})
    device.tick()
    device.tick()
    assert len(device.core.panes.memory.entries) < count
    device.read([7.0], [NOW_US + S], {"room": "hall"})
    device.tick()
    fleet.check()


def test_what_is_still_to_be_built_holds_the_promise(fleet):
    device = fleet.device
    read_half_a_day(device)
    fleet.say("offset", "", NOW_US, "3")
    low_us = device.core.missing.bounded_us(2**60)
    assert low_us <= NOW_US
    fleet.build()
    assert device.core.missing.bounded_us(2**60) > NOW_US + 10 * 3_600 * S
    fleet.check()


def test_a_meaning_that_was_left_is_sent_no_more_and_forgotten(fleet):
    device = fleet.device
    device.tick(60)
    before = {pane.stream for pane, _ in device.rows()}
    fleet.say("offset", "", NOW_US - 3_600 * S, "3")
    fleet.build()
    after = {pane.stream for pane, _ in device.rows()}
    assert len(before - after) == 2, "the windows that use the offset"
    device.sent.clear()
    device.tick(120)
    sent = {block.stream for frame in device.frames(PaneFrame) for block in frame.blocks}
    assert sent <= after


def test_what_another_device_was_told_changes_no_pane(fleet):
    fleet.device.tick()
    before = fleet.device.rows()
    fleet.say("offset", "attic", NOW_US - 60 * S, "3")
    fleet.device.tick()
    assert [pane for pane, _ in fleet.device.rows()] == [pane for pane, _ in before]


def test_a_function_that_fails_leaves_the_reading_out_of_its_window_alone(tmp_path):
    program = greenhouse()
    divisor = program.parameter("divisor", "1")
    program.window(
        "ratios",
        source="temperature",
        fold=folds.sum(),
        size_s=10,
        uses=(divisor,),
        value=lambda event, at: event.value / at[divisor],
    )
    fleet = Fleet(tmp_path, program.plan())
    fleet.device.read([20.0], [NOW_US], {"room": "hall"})
    fleet.device.tick()
    assert fleet.windows("ratios")
    fleet.say("divisor", "", NOW_US - 60 * S, "0")
    fleet.build()
    assert fleet.windows("ratios") == {}
    assert fleet.windows("sums")
    (reason,) = [name for name in fleet.device.counted if "ZeroDivisionError" in name]
    assert reason.startswith("failed: window ratios: ")
    assert any("window ratios: " in each for each in fleet.device.core.report()["failures"])


def test_entries_of_unknown_parameters_are_counted_and_change_nothing(fleet):
    log = ControlLog().set("nothing", "", 5, "1", "ann")
    fleet.device.hear(schedule_command(OPERATOR, 1, "nothing", "", log))
    assert fleet.device.core.commands.known.control == ControlLog()
    assert fleet.device.counted["frame: command: no such parameter"] == 1


def test_what_was_said_is_repeated_where_somebody_knows_less(fleet):
    device = fleet.device
    fleet.say("offset", "", NOW_US, "3")
    old = fleet.log.copy()
    fleet.say("offset", "", NOW_US + S, "4")
    device.hear(schedule_command(OPERATOR, 9, "offset", "", old))
    said = [f for _ in range(6) for f in device.frames(CommandFrame, device.tick())]
    assert [frame.commands().control for frame in said] == [fleet.log]


def test_what_a_sink_does_not_understand_yet_holds_the_promise_and_is_sent_again(fleet):
    device = fleet.device
    fleet.say("offset", "", NOW_US - 60 * S, "3")
    frames = [f for _ in range(40) for f in device.frames(PaneFrame, device.tick())]
    assert frames
    device.acknowledge(*frames, reason=1)
    device.tick()
    assert device.core.panes.cache.oldest_dirty_us(1, NOW_US) <= NOW_US
    device.hear(replace(ack_of("cellar"), control=device.core.commands.control))
    again = device.frames(PaneFrame, device.tick())
    assert {b.stream for f in again for b in f.blocks} >= {
        b.stream for f in frames for b in f.blocks
    }


def test_what_a_sink_refuses_of_another_program_holds_no_promise(fleet):
    device = fleet.device
    device.read([21.0, 22.0], [NOW_US, NOW_US + S], {"room": "hall"})
    frames = [f for _ in range(40) for f in device.frames(PaneFrame, device.tick())]
    device.acknowledge(*frames, reason=1)
    device.tick()
    assert device.core.panes.cache.count
    assert device.core.panes.cache.oldest_dirty_us(1, device.now_us) is None


def test_a_device_says_which_streams_are_its_programs(fleet):
    fleet.device.tick()
    fleet.say("offset", "", NOW_US - 60 * S, "3")
    fleet.build()
    streams = fleet.device.store.restored().facts.streams
    assert {pane.stream for pane, _ in fleet.device.rows()} <= set(streams)


def floor_told(device):
    device.hear(AskFrame(OPERATOR, 1, device.name, ""))
    published = [frame for _ in range(3) for frame in device.tick()]
    return device.frames(BeatFrame, published)[-1].floor_us


def test_a_beat_tells_from_when_on_the_readings_are_here(fleet):
    fleet.device.read([21.0], [NOW_US + 5 * S], {"room": "hall"})
    assert floor_told(fleet.device) == NOW_US + 5 * S - SETTINGS.retain_us


def test_a_program_without_parameters_tells_no_floor(tmp_path):
    device = Device(tmp_path, plain_greenhouse(), settings=SETTINGS)
    device.read([20.0])
    assert floor_told(device) is None


def test_what_was_said_of_a_parameter_that_is_no_more_counts_for_nobody(tmp_path):
    """Else who ran the former program would never know the same as who is new."""
    program = greenhouse()
    gone = program.parameter("gone", "0")
    program.window(
        "others",
        source="temperature",
        fold=folds.sum(),
        size_s=10,
        uses=(gone,),
        value=lambda event, at: event.value + at[gone],
    )
    fleet = Fleet(tmp_path, program.plan())
    fleet.say("offset", "", NOW_US, "3")
    after = fleet.log.copy()
    fleet.say("gone", "", NOW_US, "1")
    fleet.device.tick()
    fleet.device.kill()
    fleet.device.program = PLAN
    fleet.device.start()
    assert fleet.device.core.commands.known.control == after
    assert fleet.device.core.commands.control == FleetRegimes(PLAN, fleet.log).control
    assert fleet.device.core.commands.control == after.fingerprint()
