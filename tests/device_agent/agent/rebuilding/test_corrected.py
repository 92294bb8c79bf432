"""Readings of windows with parameters that are taken back: panes are as if they had never been."""

from random import Random

import pytest

from device_agent.agent.stored_rows import Retraction
from lasp_edge import Program, folds
from lasp_edge.units import SECOND_US as S
from simulations.world.controlled import READ
from tests.device_agent.agent.rebuilding.support_operated import Fleet, wander
from tests.device_agent.agents import NOW_US


def corrected():
    """Return a program with windows that parameters change, and one that they do not."""
    program = Program("greenhouse")
    warm = program.event(READ, resolution="0.1")
    made = {
        "above": program.parameter("above", "-50", resolution="0.1"),
        "offset": program.parameter("offset", "0", resolution="0.1"),
        "error": program.parameter("error", "0.01", resolution="0.001"),
        "mode": program.parameter("mode", "day", choices=("day", "night")),
    }
    span, step = program.parameter("span_s", "40"), program.parameter("step_s", "20")
    program.window(
        "sums",
        source=warm,
        fold=folds.sum(),
        size_s=span,
        slide_s=step,
        uses=(made["above"], made["offset"]),
        value=lambda event, at: event.value + at["offset"],
        where=lambda event, at: event.value > at["above"],
    )
    program.window(
        "by_room",
        source=warm,
        fold=folds.mean(),
        size_s=30,
        key=lambda event: event.tags["room"],
        uses=(made["error"], made["mode"]),
        where=lambda event, at: at["mode"] == "day" or event.value > 100 * at["error"],
    )
    program.window("plain", source=warm, fold=folds.mean(), size_s=30)
    return program.plan()


@pytest.mark.parametrize("seed", range(6))
def test_panes_equal_the_truth_whatever_was_taken_back_and_when(tmp_path, seed):
    fleet = Fleet(tmp_path, corrected())
    wander(fleet, Random(seed), takes_back=True)
    for parameter, scope in fleet.log.lanes():
        fleet.tell(parameter, scope)
    fleet.build()
    fleet.check()
    assert fleet.device.counted["retractions"] > 0
    assert any(fleet.windows("plain").values())


def test_a_correction_outlives_restarts_and_later_entries(tmp_path):
    fleet = Fleet(tmp_path, corrected())
    device, room = fleet.device, {"room": "hall"}
    device.read([20.0, 30.0, 30.0], [NOW_US, NOW_US + S, NOW_US + S], room)
    device.tick()
    for _ in range(2):  # the second one changes nothing
        device.take([Retraction(30.0)], [NOW_US + S], [room])
        device.tick()
        device.restart()
    device.read([30.0], [NOW_US + S], room)  # known, and taken back for good
    fleet.say("offset", "", NOW_US - 5 * S, "3")
    fleet.build()
    fleet.check()
    assert set(fleet.truth("sums").values()) == {(230,)}
    assert device.counted["repeated"] == 2


def test_what_comes_with_its_correction_leaves_nothing(tmp_path):
    fleet = Fleet(tmp_path, corrected())
    room = {"room": "hall"}
    fleet.device.take([20.0, 30.0, Retraction(30.0)], [NOW_US, NOW_US + S, NOW_US + S], [room] * 3)
    fleet.build()
    fleet.check()
    assert set(fleet.truth("plain").values()) == {(1, 200)}


def test_a_window_whose_fold_has_no_inverse_refuses_it(tmp_path):
    program = Program("house")
    warm = program.event(READ, resolution="0.1")
    above = program.parameter("above", "0")
    program.window(
        "most",
        source=warm,
        fold=folds.max(),
        size_s=10,
        uses=(above,),
        where=lambda event, at: event.value > at[above],
    )
    fleet = Fleet(tmp_path, program.plan())
    fleet.device.read([20.0], [NOW_US])
    fleet.device.take([Retraction(20.0)], [NOW_US], [{}])
    fleet.build()
    assert any("not_revisable" in name for name in fleet.device.counted)
    assert set(fleet.windows("most").values()) == {(200,)}
