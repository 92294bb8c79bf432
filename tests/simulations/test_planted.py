"""The simulator finds bugs that are planted: a few of them here, all with `simulations.planted`."""

import re
from collections import Counter
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path

import pytest

import cloud_tier
import crdts
import device_agent
import lasp_edge
import simulations
from simulations.planted import of_row_alerts
from simulations.planted.__main__ import main
from simulations.planted.bug import BUGS, USES, replaced, unused
from simulations.planted.hunt import CANARY, Caught, hunt

QUICK = {
    "the_cursor_is_committed_apart_from_panes": 14,
    "a_promise_does_not_wait_for_acknowledgements": 0,
    "a_frozen_entry_is_continued": 0,
    "settled_without_the_report_of_a_connected_holder": 0,
    "a_restarted_lander_has_forgotten_who_is_retired": 2,
    "a_final_row_does_not_hear_of_a_lost_store": 251,
    "what_the_present_life_promised_is_all_here": 160,
    "an_answer_of_a_gateway_names_the_commit_before_it": 1,
    "a_gateway_counts_no_device_that_is_silent": 15,
    "a_gateway_remembers_of_no_alert_how_it_stood": 189,
    "a_tentative_row_waits_for_nobody": 0,
}
"""Bug -> where the hunt begins: the first seed that finds it, or those after it if it moved."""


@pytest.mark.parametrize(("name", "first"), QUICK.items())
def test_a_planted_bug_is_found(name, first):
    assert hunt(BUGS[name], range(first, first + 20)) is not None


@pytest.mark.parametrize(
    ("bug", "seed"),
    [
        (of_row_alerts.an_alert_on_a_window_is_judged_by_the_row_that_came_last, 7),
        (of_row_alerts.a_row_that_is_revised_is_not_judged_again, 10),
    ],
)
def test_a_planted_bug_of_alerts_on_rows_is_found(bug, seed):
    assert hunt(BUGS[bug.__name__], [seed]).trouble.endswith("the oracle True")


def test_each_planted_bug_says_its_history_and_there_are_many():
    assert len(BUGS) >= 40
    assert all(bug.history.endswith(".") for bug in BUGS.values())


def test_nothing_is_found_where_nothing_is_wrong():
    assert hunt(CANARY, range(1, 5)) is None


def test_a_bug_that_is_not_found_and_a_canary_that_is_make_the_command_fail(capsys, monkeypatch):
    assert main(["what_was_accepted_alone_is_not_said_to_count_twice", "--seeds", "1"]) == 1
    assert "NOT FOUND" in capsys.readouterr().out
    monkeypatch.setattr("simulations.planted.__main__.hunt", lambda *_: Caught(3, "trouble"))
    assert main(["canary"]) == 1
    assert "RED  canary: trouble" in capsys.readouterr().out
    assert main(["--list"]) == 0
    with pytest.raises(SystemExit):
        main(["no_such_bug"])


def test_a_patch_is_taken_back():
    class Thing:
        def told(self):
            return 1

    with replaced(Thing, "told", lambda self: 2):
        assert Thing().told() == 2
    assert Thing().told() == 1


def _named() -> dict[str, Counter[str]]:
    """Return module -> how often it names each word beside its definitions."""
    found = {}
    for package in (cloud_tier, crdts, device_agent, lasp_edge, simulations):
        directory = Path(package.__path__[0])
        for path in sorted(directory.rglob("*.py")):
            text, module = path.read_text(), path.relative_to(directory.parent).with_suffix("")
            if "planted" not in module.parts:
                named = found[".".join(module.parts)] = Counter(re.findall(r"\w+", text))
                named.subtract(re.findall(r"\bdef (\w+)", text))
    return found


def test_what_each_bug_replaces_is_named_beside_its_definition():
    """What is private is named in its own module; who else has such a name does not count."""
    by_module = _named()
    everywhere = Counter[str]()
    for named in by_module.values():
        everywhere.update(named)
    for bug in BUGS.values():
        USES.clear()
        with bug.plant():
            replacements = list(USES)
        assert replacements, bug.name
        for each in replacements:
            owner, _, name = each.rpartition(".")
            (own,) = {owner, owner.rpartition(".")[0]} & by_module.keys()
            assert (by_module[own] if name.startswith("_") else everywhere)[name] > 0, each


class Meter:
    def told(self):
        return 1

    @property
    def level(self):
        return 2

    def forgotten(self):
        return 3


def test_what_is_replaced_and_not_used_is_known():
    USES.clear()
    with replaced(Meter, "told", lambda _: 5), replaced(Meter, "level", property(lambda _: 6)):
        with replaced(Meter, "forgotten", lambda _: 7):
            assert unused() == [
                f"{__name__}.Meter.{name}" for name in ("forgotten", "level", "told")
            ]
            assert (Meter().told(), Meter().level) == (5, 6)
        assert unused() == [f"{__name__}.Meter.forgotten"]


def test_a_bug_that_replaces_what_nobody_uses_makes_the_command_fail(capsys, monkeypatch):
    right = BUGS["a_frozen_entry_is_continued"]

    def both():
        stack = ExitStack()
        stack.enter_context(right.plant())
        stack.enter_context(replaced(Meter, "forgotten", lambda _: 7))
        return stack

    monkeypatch.setitem(BUGS, right.name, right._replace(plant=both))
    assert main([right.name, "--seeds", "12"]) == 1
    said = capsys.readouterr().out
    assert "seed " in said, "the other bug is found"
    assert f"UNUSED  {__name__}.Meter.forgotten" in said


SOURCE = """
LIMIT, SIZE, MOST, SPARE = 1, 2, 3, 4

class Kept:
    room = SIZE

def least(given=MOST):
    return min(given, LIMIT)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "limits_of_a_test.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    return import_module("limits_of_a_test")


@pytest.mark.parametrize("name", ["SIZE", "MOST", "SPARE"])
def test_a_constant_that_no_function_reads_cannot_be_replaced(module, name):
    with pytest.raises(ValueError, match=f"no function of limits_of_a_test reads {name}"):
        replaced(module, name, 0).__enter__()


def test_a_constant_that_a_function_reads_can_be_replaced(module):
    with replaced(module, "LIMIT", 0):
        assert module.least() == 0
    assert module.least() == 1


def test_what_the_owner_itself_does_not_have_cannot_be_replaced():
    with pytest.raises(KeyError):
        replaced(Meter, "gone", None).__enter__()
