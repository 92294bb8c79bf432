"""The simulator finds bugs that are planted: a few of them here, all with `simulations.planted`."""

import pytest

from simulations.planted.__main__ import main
from simulations.planted.bug import BUGS, replaced
from simulations.planted.hunt import CANARY, Caught, hunt

QUICK = (
    "the_cursor_is_committed_apart_from_panes",
    "a_promise_does_not_wait_for_acknowledgements",
    "a_frozen_entry_is_continued",
    "the_lander_keeps_one_entry_a_device",
    "settled_without_the_report_of_a_connected_holder",
)


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_bug_is_found(name):
    assert hunt(BUGS[name], range(12)) is not None


def test_each_planted_bug_says_its_history_and_there_are_many():
    assert len(BUGS) >= 40
    assert all(bug.history.endswith(".") for bug in BUGS.values())


def test_nothing_is_found_where_nothing_is_wrong():
    assert hunt(CANARY, range(1, 5)) is None


def test_a_bug_that_is_not_found_and_a_canary_that_is_make_the_command_fail(capsys, monkeypatch):
    assert (
        main(["what_former_processes_accepted_is_never_said_to_count_twice", "--seeds", "1"]) == 1
    )
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
