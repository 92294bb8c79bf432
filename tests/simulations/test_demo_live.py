"""What is seen: one table that is redrawn in a terminal, and nothing that is redrawn elsewhere."""

import io
import json

import pytest

from lasp_edge.examples.greenhouse import program as greenhouse
from lasp_edge.language.program import Program
from lasp_edge.tool.screen import Screen, aligned
from simulations.demo.devices import Condition, Report
from simulations.demo.live import Measure, rows

UP_TWO_AND_CLEAR = "\x1b[2A\x1b[J"


class Shown:
    """What of a device is shown."""

    def __init__(self, name, condition, report):
        self.name, self.condition, self.report = name, condition, report


def report(accepted=5, *, connected=True, settled=True, absent=(), agreed_s_ago=None):
    fleet = {"parts": {"mean": 11.9666}, "settled": settled, "except": list(absent), "inputs": "0f"}
    values = {"local_average": {"parts": {"mean": 12.0}}, "global_average": fleet}
    counts = {"accepted": accepted, "repeated": 0, "late": 0, "too_late": 0, "refused": 0}
    state = {"dirty": 3, "connected": connected, "done": False, "values": values}
    if agreed_s_ago is not None:
        state["agreed_s_ago"] = {"global_average": agreed_s_ago}
    made = Report.of(json.dumps(counts | state))
    assert made is not None
    return made


def table(*devices: Shown, program: Program = greenhouse) -> list[str]:
    return aligned(rows(devices, Measure.of(program.plan())))


@pytest.mark.parametrize(
    ("condition", "told", "agreed"),
    [
        (Condition.RUNNING, report(), "yes"),
        (Condition.RUNNING, report(settled=False), "not yet"),
        (Condition.RUNNING, report(settled=False, agreed_s_ago=2.4), "2 s ago"),
        (Condition.RUNNING, report(absent=["pi-4"]), "yes, without pi-4"),
        (Condition.RUNNING, report(connected=False), "no connection"),
        (Condition.KILLED, report(), "killed"),
        (Condition.CUT_OFF, report(), "cut off"),
    ],
)
def test_the_last_column_says_in_words_how_a_device_stands(condition, told, agreed):
    head, row = table(Shown("pi-1", condition, told))
    words = "device samples its own average the fleet's average, as it sees it agreed"
    assert " ".join(head.split()) == words
    assert row.split(maxsplit=6) == ["pi-1", "5", "12.00", "°C", "11.97", "°C", agreed]


def test_a_device_that_has_told_nothing_yet_is_starting():
    assert table(Shown("pi-1", Condition.STARTING, None))[1].split() == [
        "pi-1", "-", "-", "-", "starting"
    ]  # fmt: skip


def test_a_program_without_a_fleet_wide_value_shows_what_is_still_to_send():
    plain = Program("plain")
    plain.event("t")
    lines = table(Shown("a", Condition.RUNNING, report(12_345)), program=plain)
    assert [line.split() for line in lines] == [
        ["device", "samples", "still", "to", "send"],
        ["a", "12,345", "3"],
    ]


def test_a_terminal_redraws_the_table_below_what_stays():
    out = io.StringIO()
    screen = Screen(out, is_terminal=True)
    screen.show(["head", "row 1"])
    screen.show(["head", "row 2"])
    screen.say("stays")
    screen.show([])
    screen.say("end")
    assert out.getvalue() == (
        f"head\nrow 1\n{UP_TWO_AND_CLEAR}head\nrow 2\n"
        f"{UP_TWO_AND_CLEAR}stays\nhead\nrow 2\n{UP_TWO_AND_CLEAR}end\n"
    )


def test_a_table_that_does_not_fit_the_terminal_is_cut_rather_than_wrapped(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "5")
    out = io.StringIO()
    Screen(out, is_terminal=True).show(["x" * 30] * 9)
    assert out.getvalue().splitlines() == ["x" * 19, "x" * 19, "... and 7 more"]


def test_without_a_terminal_there_are_only_lines_that_stay():
    out = io.StringIO()
    screen = Screen(out)
    screen.show(["head", "row"])
    screen.say("stays")
    assert out.getvalue() == "stays\n"
