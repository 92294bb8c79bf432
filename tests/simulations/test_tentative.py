"""Windows wait for devices for X seconds: the law on real cores, and what breaks it is found."""

import pytest

from simulations.planted.bug import BUGS
from simulations.planted.hunt import hunt
from simulations.planted.of_waiting import LAW
from simulations.tentative import USUAL_S, Draw, draw_of, main, normal_s, run_of, troubles

OUTAGE_S = 25
"""Longer than two windows, and no more than the draws here need."""


@pytest.mark.parametrize("number", [1, 6, 12])
def test_a_draw_holds_the_law(number):
    """A fast clock; a gateway that is killed; an outage that is shorter than X."""
    assert troubles(draw_of(number)) == []


def test_without_x_rows_come_at_once_and_never_shows_final_ones_alone():
    at_once, never = run_of(Draw(3, 0, OUTAGE_S)), run_of(Draw(3, None, OUTAGE_S))
    assert {made.row.status for made in never.rows} == {"final"}
    assert at_once.tentative == len(at_once.first)
    assert min(at_once.delays_s("tentative")) < 0, "before anybody was done with it"
    truth = {at: (row.partial[0], row.devices_in) for at, row in current(never).items()}
    assert truth == never.truth


def test_the_normal_delay_is_what_the_command_prints():
    assert normal_s(2) <= USUAL_S[False]
    assert normal_s(1, is_fast=True) <= USUAL_S[True]


@pytest.mark.parametrize("bug", [name for name, bug in BUGS.items() if bug.needs == LAW])
def test_a_planted_bug_breaks_the_law(bug):
    first = 1 if "beyond" in bug else 0  # the draw that has what it needs
    assert hunt(BUGS[bug], range(first, first + 1)) is not None


def test_the_command_counts_the_draws_that_hold(capsys, monkeypatch):
    monkeypatch.setattr("simulations.tentative.normal_s", lambda _seed, is_fast: USUAL_S[is_fast])
    assert main(["--draws", "1", "--no-curve"]) == 0
    assert "1 of 1 draws hold; in 0 of them nothing was tentative" in capsys.readouterr().out


def current(found):
    return {
        made.row.at.start_us: made.row for made in found.rows if made.row.end_us <= found.end_us
    }
