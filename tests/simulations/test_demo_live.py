"""What is seen: one table that is redrawn in a terminal, and nothing that is redrawn elsewhere."""

import io
import re

import pytest

from lasp_edge.examples.greenhouse import program as greenhouse
from lasp_edge.language.program import Program
from lasp_edge.tool.screen import Screen, aligned
from simulations.demo.devices import Condition, Device
from simulations.demo.live import LiveTable
from simulations.demo.program import program as demo
from simulations.demo.rooms import ROOMS
from tests.support_readme import block

UP_TWO_AND_CLEAR = "\x1b[2A\x1b[J"


class Shown(Device):
    """A device of which only the condition and the last report are there."""

    def __init__(self, name, condition, report):
        self.name, self.condition, self.report = name, condition, report


def report(accepted=5, *, connected=True, settled=True, absent=(), inputs="0f", others=1):
    fleet = {"parts": {"mean": 11.9666}, "settled": settled, "except": list(absent)}
    fleet["inputs"] = inputs
    values = {"local_average": {"parts": {"mean": 12.0}}, "global_average": fleet}
    state = {"dirty": 3, "connected": connected, "done": False, "others": others}
    return {"accepted": accepted, "values": values, **state}


def table(*devices: Shown, program: Program = greenhouse) -> list[str]:
    return aligned(LiveTable(program.plan(), lambda: 0.0).rows(devices))


@pytest.mark.parametrize(
    ("condition", "reported", "agreed"),
    [
        (Condition.RUNNING, report(), "yes"),
        (Condition.RUNNING, report(settled=False), "newest"),
        (Condition.RUNNING, report(others=0), "alone"),
        (Condition.RUNNING, report(absent=["pi-4"]), "yes, without pi-4"),
        (Condition.RUNNING, report(connected=False), "no connection"),
        (Condition.KILLED, report(), "killed"),
        (Condition.CUT_OFF, report(), "cut off"),
    ],
)
def test_the_last_column_has_the_state_of_a_device_in_words(condition, reported, agreed):
    head, row = table(Shown("pi-1", condition, reported))
    words = "device samples its own average the fleet's, as it sees it agreed"
    assert " ".join(head.split()) == words
    assert row.split(maxsplit=6) == ["pi-1", "5", "12.00", "°C", "11.97", "°C", agreed]


def test_a_device_is_behind_since_another_one_told_of_something_newer():
    at_s = 0.0
    table = LiveTable(greenhouse.plan(), lambda: at_s)
    slow = Shown("a", Condition.RUNNING, report(settled=False, inputs="01"))
    quick = Shown("b", Condition.RUNNING, report(settled=False, inputs="01"))

    def agreed(now_s, *, reported):
        nonlocal at_s
        at_s, quick.report = now_s, report(settled=False, inputs=reported)
        return [row[-1] for row in table.rows([slow, quick])[1:]]

    assert agreed(0.0, reported="01") == ["newest", "newest"]
    assert agreed(5.0, reported="02") == ["newest", "newest"]  # seen in this moment
    assert agreed(5.4, reported="02") == ["<1 s behind", "newest"]
    slow.condition = Condition.CUT_OFF
    slow.report = report(settled=False, inputs="03")  # it goes on by itself, and nobody hears it
    assert agreed(8.0, reported="02") == ["cut off 3 s", "newest"]


def test_a_device_that_has_told_nothing_yet_is_starting():
    assert table(Shown("pi-1", Condition.STARTING, {}))[1].split() == [
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


def test_the_readme_shows_the_table_as_it_is():
    shown = [re.split(r"\s{2,}", line) for line in block("live table").splitlines()]
    head, *rows = LiveTable(demo.plan(), lambda: 0.0).rows([])
    assert (tuple(shown[0]), rows) == (head, [])
    assert [row[0] for row in shown[1:]] == list(ROOMS)
    kinds = {re.sub(r"\d+ s", "# s", row[-1]) for row in shown[1:]}
    assert kinds == {"newest", "<# s behind", "cut off # s"}


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
