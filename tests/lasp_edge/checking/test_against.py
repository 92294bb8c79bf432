"""What a changed program does with the data of its fleet: in words, before it is released."""

import pytest

from crdts import BoundedLWWSet, GSet
from lasp_edge import Program, folds, scans
from lasp_edge.checking.against import changes
from lasp_edge.language.summary import ProgramSummary
from lasp_edge.tool.command_line import main
from tests.lasp_edge.language.test_parting import plan_of
from tests.lasp_edge.scans.support_synchronised import EventWindow, ValueBarrier


def house(name="house", **changed):
    """Return a program; each argument changes one thing of it."""
    given = {"resolution": "0.1", "unit": "°C", "bound": 100, "size_s": 60, "version": 1} | changed
    program = Program(name)
    warm = program.event("warm", resolution=given["resolution"], unit=given["unit"])
    bounded = BoundedLWWSet(bound=given["bound"])
    samples = program.declare_dynamic(bounded, given.get("samples", "samples"))
    program.collect(warm, into=samples)
    here = program.fold(samples, given.get("fold", folds.mean()), "here")
    fleet = program.fold_dynamic(here, "fleet")
    program.alert("hot", fleet, above=given.get("above", 28))
    if given.get("window", True):
        fold = given.get("windowed", folds.max())
        version = given["version"]
        program.window("w", source=warm, fold=fold, size_s=given["size_s"], version=version)
    scan = scans.differences(reset=given.get("reset", False))
    risen = program.scan("risen", source=warm, scan=scan, per_device=True)
    program.result(risen)
    program.window("up", source=risen, fold=folds.sum(), size_s=60)
    if given.get("notes"):
        program.declare(GSet(), "notes")
    return ProgramSummary.of(program.plan())


AGAIN = (
    "value fleet is computed again from the samples that are there, and all devices send it again; "
    "as long as devices of both programs run they do not agree on it: each counts of a device of "
    "the other one what it sent last under its own program, if it did"
)
CHANGES = {
    "nothing": ({}, {}, []),
    "a unit": (
        {},
        {"unit": "°F"},
        ["event warm has another unit, °F after °C: what is stored is not converted"],
    ),
    "a bound": (
        {},
        {"bound": 50},
        ["variable samples keeps other samples: the last 100 before, the last 50 now"],
    ),
    "finer steps": (
        {},
        {"resolution": "0.05"},
        [
            "event warm has other steps, 0.1 to 0.05",
            "window w begins again: it means something else, and each device makes it again of",
            "window up begins again: it means something else, and it is made again of the readings",
            "variable samples is converted",
            AGAIN,
            "stream risen means something else: each device computes it again",
            "result risen: its rows are sent again",
        ],
    ),
    "another name of a variable": (
        {},
        {"samples": "last"},
        ["variable samples is gone: its samples are set aside", "variable last is new", "value fl"],
    ),
    "another fold": (
        {},
        {"fold": folds.max()},
        ["value fleet is computed again from the samples", "alert hot has another condition"],
    ),
    "a version": ({}, {"version": 2}, ["window w begins again"]),
    "a size over the same panes": (
        {"windowed": folds.sum()},
        {"windowed": folds.sum(), "size_s": 60.0},
        [],
    ),
    "a window is gone": ({}, {"window": False}, ["window w is gone: what devices have not deliv"]),
    "a window is new": (
        {"window": False},
        {},
        ["window w is new: each device makes it again of the readings with own times"],
    ),
    "a scan": (
        {},
        {"reset": True},
        ["window up begins again", "stream risen means something else", "result risen: its rows"],
    ),
    "an alert": ({}, {"above": 30}, ["alert hot has another condition"]),
    "a shared variable is gone": (
        {"notes": True},
        {},
        ["variable notes is gone: what the fleet holds of it is set aside on each device"],
    ),
    "another fleet": ({}, {"name": "barn"}, ["another fleet: the program was named house and is"]),
}


@pytest.mark.parametrize("case", CHANGES)
def test_each_change_is_named_and_nothing_else_is(case):
    before, after, expected = CHANGES[case]
    *found, kept = changes(house(**before), house(**after))
    if case == "another fleet":
        found, kept = [kept], ""
    starts = [line[: len(start)] for line, start in zip(found, expected, strict=False)]
    assert (len(found), starts) == (len(expected), [s[: len(s)] for s in expected]), found
    assert ("alert" not in kept) == (case != "alert")


def test_another_unit_in_other_steps_is_not_added_up_and_another_bound_beside_it_is_named():
    lines = changes(house(), house(unit="°F", resolution="0.01", bound=50))
    assert lines[0].startswith(
        "event warm has another unit, °F after °C: no number is converted to it, and samples that "
        "are taken over in the new steps mix with those that come; as long as"
    )
    (of_samples,) = [line for line in lines if line.startswith("variable samples")]
    assert of_samples.startswith("variable samples is converted, ")
    assert of_samples.endswith(". It keeps other samples: the last 100 before, the last 50 now")


def doors(*, gap_s=60, kept=False):
    program = Program("doors")
    door = program.event("door", resolution="1")
    source = program.filter(door, lambda event: event.value > 0, "kept") if kept else door
    scan = scans.sessions(gap_s=gap_s, fold=folds.count())
    program.result(program.scan("visits", source=source, scan=scan))
    return ProgramSummary.from_text(ProgramSummary.of(program.plan()).text)


AGAIN = "gateways and lakes make it again of what devices have sent them"
BEGINS = "it begins with the readings that devices take in from then on"
NO_MORE = "result visits: its rows have another id; the former ones are shown no more"


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ({}, []),
        ({"gap_s": 40}, [f"stream visits means something else: {AGAIN}", NO_MORE]),
        (
            {"kept": True},
            [
                f"stream kept is new: {BEGINS}",
                f"stream visits means something else: {BEGINS}",
                NO_MORE,
            ],
        ),
    ],
)
def test_a_scan_of_the_fleet_is_made_of_what_was_sent_or_begins_later(after, expected):
    assert changes(doors(), doors(**after))[:-1] == expected
    noted_before = changes(doors()._replace(fleet={}), doors(gap_s=40))
    assert f"{AGAIN}, if nothing else leaves devices now; else it begins" in noted_before[0]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (("a", ValueBarrier), (None, ValueBarrier), "has no local events any more"),
        ((None, ValueBarrier), ("a", ValueBarrier), "has local events now"),
        (("a", ValueBarrier), ("a", EventWindow), "means something else"),
    ],
)
def test_streams_that_no_program_names_are_not_named(before, after, expected):
    old, new = (ProgramSummary.of(plan_of(*each)) for each in (before, after))
    first, *others = changes(old, new)
    assert first == f"stream found {expected}: {BEGINS}"
    assert [each.partition(":")[0] for each in others] == ["result found", "kept as it is"]
    assert changes(new, new) == ["kept as it is: event a, event b, stream found"]


def program_text(lift):
    return f"""
from lasp_edge import Column, Fold, Op, Program

class Mine(Fold):
    name, parts, columns = "mine", ("mine",), (Column("mine_q", Op.SUM),)

    def lift(self, value, time_us=0):
        return ({lift},)

    def lower(self, partial, resolution):
        return {{"mine": partial[0]}}

program = Program("house")
program.window("w", source=program.event("warm"), fold=Mine(), size_s=60)
"""


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """Return a function that runs the command: its exit code, and what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def run(*words):
        code = main(["check", *words, "--examples", "5"])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run


def test_a_function_that_is_repaired_is_no_changed_text(check, tmp_path):
    for name, lift, code, words in (
        ("broken_one", "__import__('random').randrange(99)", 1, "broken law"),
        ("repaired_one", "value + 1", 0, "Every law holds"),
        ("changed_one", "value + 2", 0, "its text changed, and version 1 did not"),
    ):
        (tmp_path / f"{name}.py").write_text(program_text(lift))
        found, printed = check(f"{name}:program", "--no-run")
        assert (found, words in printed) == (code, True), printed
        assert ("its text changed" in printed) == (name == "changed_one")


def test_a_former_file_of_the_same_name_is_another_program(check, tmp_path):
    (tmp_path / "former").mkdir()
    (tmp_path / "former" / "house_one.py").write_text(program_text("value"))
    (tmp_path / "house_one.py").write_text(program_text("value + 1"))
    code, printed = check("house_one:program", "--against", "former/house_one.py")
    assert code == 0
    assert "fold mine: its text is another one under the same version" in printed
    kept = "kept as it is, if the changed texts mean the same: event warm, window w"
    assert kept in printed
    code, printed = check("house_one:program", "--against", "not_there.py")
    assert (code != 0, "there is no file not_there.py" in printed) == (True, True)
