"""`lasp-edge simulate` runs any program in a virtual fleet, and says whether it ended right."""

import re
import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace

import pytest

from device_agent.gateway.streams import FleetStreams
from lasp_edge import Program, folds, scans
from lasp_edge.errors import Exit
from lasp_edge.examples import greenhouse
from lasp_edge.tool.command_line import run_command
from lasp_edge.tool.loading import load_plan
from simulations.comparison import Comparison
from simulations.planted.of_delivery import the_lander_adds_what_comes_twice
from simulations.simulate import command
from simulations.simulate.sampled_run import sampled_run
from simulations.world.scenario import Scenario
from simulations.world.sensors import asked_tags
from tests.support_readme import block

GREENHOUSE = "lasp_edge.examples.greenhouse:program"


def simulate(*words):
    few = [GREENHOUSE, "--devices", "2", "--hours", "0.01"]
    return run_command("simulate", "simulations.simulate.command", [*few, *words])


def test_a_program_ends_right_under_faults_and_is_plotted(tmp_path, capsys):
    page = tmp_path / "run.html"
    code = simulate("--faults", "kill=100", "loss=0.1", "--plot", str(page))
    said = capsys.readouterr().out
    assert code == Exit.FINE
    assert "2 devices, 36 seconds" in said
    assert re.search(r"^\d+\.\d CPU-seconds, \d+ MB of memory at most$", said, re.MULTILINE)
    assert page.read_text().count("<polyline") == 3


def test_a_run_that_ends_wrong_says_how_to_replay_it_and_which_faults_matter(capsys):
    with contextmanager(the_lander_adds_what_comes_twice)():
        code = simulate("--faults", "doubled=0.9", "cut=100")
    said = capsys.readouterr().out
    assert code == Exit.DIFFERS
    assert "windows are not what the oracle says" in said
    assert "--devices 2 --hours 0.01 --seed 1 --every 5 --faults doubled=0.9 cut=100" in said
    assert "the faults that matter:\n  2 devices" in said


def test_where_stores_are_lost_it_says_why_windows_differ(capsys):
    assert simulate("--faults", "store_lost=300", "--hours", "0.05") == Exit.FINE
    assert re.search(r"^the other [1-9]\d* lack readings", capsys.readouterr().out, re.MULTILINE)
    simulate("--faults", "kill=300")
    assert "the other" not in capsys.readouterr().out


@pytest.mark.parametrize("seed", ["2", "5"])
def test_faults_that_are_drawn_leave_every_window_to_be_compared(capsys, seed):
    assert simulate("--faults", "drawn", "--hours", "0.03", "--seed", seed) == Exit.FINE
    found = re.search(r"^(\d+) of (\d+) windows are", capsys.readouterr().out, re.MULTILINE)
    assert found[1] == found[2] != "0"


ORDERED = """
from lasp_edge import Program, scans
program = Program("ordered")
door = program.event("door", resolution="1")
house = lambda event: event.tags["house"]
program.result(program.scan("changed", source=door, key=house, scan=scans.changes()))
visits = program.scan("visits", source=door, key=house, scan=scans.sessions(gap_s=6))
program.result(visits)
"""


@pytest.fixture
def ordered(tmp_path, monkeypatch):
    (tmp_path / "ordered.py").write_text(ORDERED)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "ordered", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def run(*words):
        few = ["ordered", "--devices", "2", "--hours", "0.02", "--faults", "kill=100", *words]
        return run_command("simulate", "simulations.simulate.command", few)

    return run


def test_where_stores_are_lost_rows_of_the_fleet_are_those_of_what_landed(ordered, capsys):
    assert ordered("store_lost=300", "--seed", "2") == Exit.FINE
    said = capsys.readouterr().out
    assert re.search(r"^([1-9]\d*) of \1 rows are what the oracle says$", said, re.MULTILINE)
    assert "not compared: result changed: what did not land, since stores were lost\n" in said


def test_a_wrong_row_of_the_fleet_is_not_excused_by_a_store_that_was_lost(
    ordered, capsys, monkeypatch
):
    monkeypatch.setattr(FleetStreams, "_new", lambda _self, _at, cell: dict([*cell.items()][1:]))
    assert ordered("store_lost=300", "--seed", "2") == Exit.DIFFERS
    said = capsys.readouterr().out
    assert re.search(r"^FAILED: .* rows are not what the oracle says", said, re.MULTILINE)
    assert re.search(r"such as result \w+ at 20\d\d-.*: the fleet has .*, the oracle ", said)
    assert "SentRow" not in said


def test_an_order_over_the_fleet_needs_all_devices_at_once(ordered, capsys):
    assert ordered("--apart") == Exit.USAGE
    assert "in one order over the whole fleet are changed, visits" in capsys.readouterr().err


def test_a_run_that_lost_all_readings_is_no_pass(ordered, capsys):
    assert ordered("store_lost=3000", "--seed", "2") == Exit.NOTHING_COMPARED
    *_, last = capsys.readouterr().out.splitlines()
    assert last == (
        "nothing was compared: all readings were lost, or are there twice, by store_lost; "
        "take another --seed, or --faults without these"
    )


def test_a_run_in_which_nothing_is_recomputed_says_so_last(tmp_path, monkeypatch, capsys):
    text = "from crdts import MVRegister\nfrom lasp_edge import Program\nprogram = Program('x')\n"
    handler = (
        "program.on_event(door)(lambda event, update: update(seen, MVRegister.write, event.device))"
    )
    declared = "door, seen = program.event('door'), program.declare(MVRegister(), 'seen')\n"
    (tmp_path / "sharing.py").write_text(text + declared + handler)
    monkeypatch.syspath_prepend(str(tmp_path))
    words = ["sharing", "--devices", "2", "--hours", "0.02"]
    assert run_command("simulate", "simulations.simulate.command", words) == Exit.NOTHING_COMPARED
    *_, last = capsys.readouterr().out.splitlines()
    assert last == "nothing was compared: nothing has a recomputation; why stands above"


def test_sessions_that_time_alone_ends_are_compared():
    program = Program("house")
    door = program.event("door", resolution="1")
    visits = scans.sessions(gap_s=1_800, fold=folds.count())
    program.result(program.scan("visits", source=door, scan=visits))
    outcome = sampled_run(program.plan(), Scenario(1, 2, 30), 5)
    assert outcome.trouble == []
    assert outcome.compared.lines() == ["1 of 1 rows are what the oracle says"]


def test_what_devices_counted_is_said_of_windows_that_differ():
    plan, fleet = greenhouse.program.plan(), Scenario(1, 2, 30)
    outcome = sampled_run(plan, fleet, 5)
    counted = Counter({"doubtful": 3, "too_late": 1_000})
    compared = outcome.compared + Comparison(differing=Counter({"window w": 2}))
    notes = command.notes(fleet, replace(outcome, compared=compared, counted=counted))
    assert "counted by devices: doubtful 3, too_late 1,000" in notes
    assert not [note for note in command.notes(fleet, outcome) if "counted" in note]


def test_what_retired_and_admitted_devices_read_is_compared(capsys):
    assert simulate("--faults", "retire=300", "--hours", "0.02") == Exit.FINE
    said = capsys.readouterr().out
    assert re.search(r"^faults: retire ([3-9]|\d\d)$", said, re.MULTILINE)
    assert re.search(r"^([1-9]\d*) of \1 windows are what the oracle says$", said, re.MULTILINE)


FAILING = """
from lasp_edge import Program, folds, scans
program = Program("failing")
temperature = program.event("temperature", resolution="0.1")
program.window("w", source=temperature, fold=folds.mean(), size_s=10, {})
"""


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("key=lambda event: str(1 // 0)", "refused: program: ZeroDivisionError: "),
        ("where=lambda event, at: 1 // 0", "window w: ZeroDivisionError: "),
    ],
)
@pytest.mark.parametrize("apart", [[], ["--apart"]])
def test_where_no_reading_counts_it_says_why_and_fails(
    function, reason, apart, tmp_path, monkeypatch, capsys
):
    (tmp_path / "failing.py").write_text(FAILING.format(function))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "failing", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(command, "GROUP", 1)
    words = ["failing", "--devices", "2", "--hours", "0.01", *apart]
    assert run_command("simulate", "simulations.simulate.command", words) == Exit.DIFFERS
    said = capsys.readouterr().out
    assert "nothing to compare of window w: no reading counted\n" in said
    assert re.search(rf"^counted by devices: .*{reason}.* [1-9]\d*", said, re.MULTILINE)
    assert said.endswith("FAILED: nothing was compared\n")


def test_what_a_scan_of_the_fleet_raises_is_a_failure():
    program = Program("failing")
    door = program.event("door", resolution="1")
    running = scans.running(lambda state, event: 1 // (state - state), 1)
    program.result(program.scan("odd", source=door, scan=running), parts={"n": "1"})
    outcome = sampled_run(program.plan(), Scenario(1, 2, 20), 5)
    (failure,) = outcome.failures
    assert failure.startswith("failed: odd: ZeroDivisionError: ")
    assert failure in command.notes(Scenario(1, 2, 20), outcome)


HOTHOUSE = ["lasp_edge.examples.hothouse:program", "--devices", "2", "--hours", "0.05"]


def hot(*settings):
    words = [*HOTHOUSE, "--set", *settings]
    return run_command("simulate", "simulations.simulate.command", words)


def test_parameters_have_the_values_that_were_set(capsys):
    assert hot("alarm_above=1000") == Exit.NOTHING_COMPARED
    said = capsys.readouterr().out
    assert "nothing to compare of window hot: no reading counted" in said
    assert "\nnothing was compared: " in said
    assert hot("alarm_above=1000", "offset=2000@60") == Exit.FINE
    said = capsys.readouterr().out
    assert "1 of 1 windows are what the oracle says" in said, "from a minute on all count"


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("alarm=3", "has no parameter 'alarm'; did you mean \"alarm_above\"?"),
        ("offset=warm", "parameter 'offset': a number in steps of 0.01 is needed, not 'warm'"),
        ("offset=1@180", "offset=1@180: whole seconds from 1 to 179 are needed after the @"),
        ("offset", "NAME=VALUE is needed, not 'offset'"),
    ],
)
def test_what_cannot_be_set_is_refused(setting, text, capsys):
    assert hot(setting) == Exit.USAGE
    start, _, said = capsys.readouterr().err.partition(" --set: ")
    assert (start, text in said) == ("lasp-edge simulate:", True)


def test_texts_are_drawn_for_an_event_of_texts():
    program = Program("texts")
    line = program.event("line", text=True)
    program.result(program.map(line, lambda event: (event.value,), "seen"), parts={"seen": "text"})
    outcome = sampled_run(program.plan(), Scenario(1, 2, 60), 5)
    assert not outcome.trouble
    assert outcome.compared.of("result") == (outcome.readings, 0)


def test_fleets_in_which_nothing_was_compared_are_added_as_such():
    empty = Comparison(known=Counter({"window w": 0}))
    (line,) = (empty + empty).lines()
    assert line == "nothing to compare of window w: no reading counted"
    assert (empty + empty).is_empty
    one = Comparison(known=Counter({"window w": 1}))
    assert (empty + one).lines() == ["1 of 1 windows are what the oracle says"]
    assert not Comparison(not_compared=["a register"]).is_empty


def test_windows_of_lost_readings_are_not_compared_rather_than_wrong():
    compared = Comparison()
    compared.add("window w", {1: 5, 2: 7}, {1: 6, 2: 8})
    assert compared.lines() == ["0 of 2 windows are what the oracle says"]
    (line,) = compared.lines(["store_lost", "clone"])
    why = "readings were lost, or are there twice, by store_lost, clone"
    assert line == f"none of 2 windows can be compared: {why}"
    compared.add("window w", {3: 9}, {3: 9})
    assert compared.lines(["clone"]) == ["1 of 3 windows are what the oracle says"]


@pytest.mark.parametrize("name", ["press", "hothouse", "cold chain", "greenhouse", "meter"])
def test_the_windows_of_the_programs_that_are_shown_are_what_the_oracle_says(name):
    shown = {}
    exec(block(name), shown)
    outcome = sampled_run(shown["program"].plan(), Scenario(1, 2, 90), 5)
    assert not outcome.trouble
    assert outcome.compared.known.total() > 0
    assert not outcome.compared.differing


BY_READING = {
    "where": {"where": lambda event, _at: event.tags["room"] != "a"},
    "value": {"value": lambda event, _at: 20 - event.value},
    "both": {
        "value": lambda event, _at: 2 * event.value,
        "where": lambda event, _at: event.value > 30,
    },
    "fails": {"where": lambda event, _at: 1 / (event.value > 20) > 0},
}


@pytest.mark.parametrize("key", [None, lambda event: event.tags["room"]], ids=["whole", "keyed"])
def test_a_window_with_a_filter_or_a_value_and_without_a_parameter_has_its_rows(key):
    program = Program("filtered")
    temperature = program.event("temperature", resolution="0.1")
    sizes = {"source": temperature, "size_s": 20, "slide_s": 10, "key": key}
    for name, functions in BY_READING.items():
        program.window(name, fold=folds.mean(), **sizes, **functions)
    outcome = sampled_run(program.plan(), Scenario(3, 3, 120), 5)
    assert not outcome.trouble
    assert outcome.compared.of("window")[0] > 4 * 10
    assert not outcome.compared.differing


def test_the_tags_that_keys_look_at_are_found():
    assert asked_tags(greenhouse.program.plan()) == ["room"]


@pytest.mark.parametrize("words", [["--devices", "0"], ["--faults", "explosion=1"]])
def test_what_cannot_be_simulated_is_refused(words, capsys):
    assert simulate(*words) == Exit.USAGE
    assert "lasp-edge simulate: " in capsys.readouterr().err


WINDOWS_ONLY = """
from lasp_edge import Program, folds, scans
program = Program("wide")
temperature = program.event("temperature", resolution="0.1")
program.window("means", source=temperature, fold=folds.mean(), size_s=10, slide_s=10)
"""


def test_devices_that_do_not_hear_each_other_are_run_in_groups(tmp_path, monkeypatch, capsys):
    (tmp_path / "wide.py").write_text(WINDOWS_ONLY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(command, "GROUP", 2)
    words = ["wide:program", "--devices", "5", "--hours", "0.006", "--apart", "--interval", "5"]
    assert run_command("simulate", "simulations.simulate.command", words) == Exit.FINE
    said = capsys.readouterr().out
    assert "5 devices, 22 seconds" in said
    assert "9 of 9 windows" in said  # three groups, and windows that begin at three times


def test_devices_that_share_variables_must_hear_each_other(capsys):
    assert simulate("--apart") == Exit.USAGE
    assert "--apart is for programs with windows only" in capsys.readouterr().err


SELDOM = """
from lasp_edge import Program, scans

program = Program("seldom")
door = program.event("door", resolution="1")
odd = scans.pattern(*[lambda event: event.value == 11] * 9, within_s=5)
program.result(program.scan("odd", source=door, scan=odd))
"""


def test_where_fleet_and_oracle_both_have_nothing_it_is_no_pass(tmp_path, monkeypatch, capsys):
    (tmp_path / "seldom.py").write_text(SELDOM)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "seldom", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    words = ["seldom", "--devices", "2", "--hours", "0.01"]
    assert run_command("simulate", "simulations.simulate.command", words) == Exit.NOTHING_COMPARED
    said = capsys.readouterr().out
    assert "nothing to compare of result odd: no reading counted\n" in said
    assert "\nnothing was compared: what the program asks for was not read, so fleet" in said


PRICED = """
from lasp_edge import Program, folds

program = Program("priced")
litres = program.event("litres", resolution="1")
price = lambda event: {"car": 2, "truck": 3}[event.tags["kind"]]
line = folds.regression(lambda event: int(event.tags["lane"]), price, steps=("1", "1"))
program.window("fares", source=litres, fold=line, size_s=10)
"""


def test_tags_that_only_fields_of_a_fold_ask_for_are_drawn_or_given(tmp_path, monkeypatch, capsys):
    (tmp_path / "priced.py").write_text(PRICED)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "priced", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert {"kind", "lane"} == {*asked_tags(load_plan("priced"))}
    words = ["priced", "--devices", "2", "--hours", "0.01", "--tag", "kind=car", "--tag", "lane=7"]
    assert run_command("simulate", "simulations.simulate.command", words) == Exit.FINE
    said = capsys.readouterr().out
    assert re.search(r"^([1-9]\d*) of \1 windows are what the oracle says$", said, re.MULTILINE)
    assert run_command("simulate", "simulations.simulate.command", ["priced", "--tag", "x"]) == 2
    assert "--tag NAME=VALUE is needed" in capsys.readouterr().err


def test_devices_have_the_names_that_a_program_looks_up(tmp_path, monkeypatch, capsys):
    (tmp_path / "floors.py").write_text(
        "from lasp_edge import Program, folds\nprogram = Program('floors')\n"
        "FLOOR = {'hall': '0', 'attic': '2', 'cellar': '-1'}\nwarm = program.event('warm')\n"
        "program.window('w', source=warm, fold=folds.count(), size_s=60,\n"
        "               key=lambda event: FLOOR[event.device])\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    words = ["floors", "--devices", "3", "--hours", "0.02"]
    assert run_command("simulate", "simulations.simulate.command", words) == Exit.FINE
    out = capsys.readouterr().out
    assert "6 of 6 windows are what the oracle says" in out
    assert "KeyError" not in out
    apart = run_command("simulate", "simulations.simulate.command", [*words, "--apart"])
    assert (apart, "KeyError" in capsys.readouterr().out) == (Exit.FINE, False)
