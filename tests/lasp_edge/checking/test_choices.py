"""Choices of events in order: all are shown, and a recording tells which one costs the least."""

import csv
import json
import re

import pytest

from lasp_edge import Program, scans
from lasp_edge.checking.choices import choices
from lasp_edge.checking.recordings import recording_of
from lasp_edge.checking.ties import RecordFields
from lasp_edge.errors import NotFound, UsageError
from lasp_edge.event import Event
from lasp_edge.ordered.cells import PRESENT, Item, packed
from lasp_edge.tool.command_line import main
from tests.lasp_edge.checking.test_synchronised import NoSelf, WholeShare
from tests.lasp_edge.scans.support_synchronised import Outliers, ValueBarrier, house_of, program_of

SECONDS = 1_200


def recorded(path, every_s, devices=3):
    """Write a reading a second of each device, and an event in order every so often."""
    records = [
        {"ts": second, "a": 100 + second * 7 % 13, "device": f"d{n}", "house": "oak"}
        for second in range(SECONDS)
        for n in range(devices)
    ]
    marks = range(every_s - 1, SECONDS, every_s)
    records += [{"ts": at + 0.5, "b": 1, "device": "desk", "house": "oak"} for at in marks]
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def shown(kind, path=None, **options):
    """Return the lines of a program's scan: choice -> bytes a day, or whatever is said of it."""
    plan = program_of(kind, names=("a", "b"), **options).plan()
    lines = (re.fullmatch(r"  (.* local)[:;]?(.*)", line) for line in choices(plan, path, FIELDS))
    return {line[1]: line[2].strip().replace(",", "") for line in lines if line}


FIELDS = RecordFields()
LOCAL, ALL = "b in order, a local", "a and b in order, nothing local"


@pytest.mark.parametrize("kind", [ValueBarrier, Outliers])
def test_seldom_events_are_waited_for_and_frequent_ones_are_not(kind, tmp_path):
    seldom = shown(kind, recorded(tmp_path / "s.jsonl", 600))
    assert list(seldom) == [LOCAL, ALL]
    assert "<- the least" in seldom[LOCAL]
    assert "<- the least" not in seldom[ALL]
    often = shown(kind, recorded(tmp_path / "o.jsonl", 2))
    assert "<- the least" in often[ALL]
    assert int(often[LOCAL].split()[0]) > 50 * int(seldom[LOCAL].split()[0])


def test_readings_that_are_all_sent_cost_their_cells_and_little_more(tmp_path):
    shown_bytes = int(shown(ValueBarrier, recorded(tmp_path / "s.jsonl", 600))[ALL].split()[0])
    cells = 0
    for at in range(0, SECONDS, 10):
        seconds = range(at, at + 10)
        cell = {Item(s * 1_000_000, 100 + s * 7 % 13, '{"house":"oak"}'): PRESENT for s in seconds}
        cells += 3 * len(packed(cell))
    span_s, frames = SECONDS - 1, 3 * SECONDS // 60
    assert cells < shown_bytes * span_s / 86_400 < cells + 300 * (frames + 3) + 3 * 120 * 12


def test_readings_that_leave_sooner_cost_more(tmp_path):
    recording, sizes = recorded(tmp_path / "s.jsonl", 600), []
    for leave_s in (600, None, 60, 10, 2):
        program = Program("barrier")
        events = [program.event(name, resolution="1", leave_s=leave_s) for name in ("a", "b")]
        program.result(program.scan("found", source=events, scan=ValueBarrier, key=house_of))
        lines = list(choices(program.plan(), recording, FIELDS))
        (line,) = (each for each in lines if ALL in each)
        sizes.append(int(re.search(r"([\d,]+) bytes", line)[1].replace(",", "")))
    assert sizes[1] == sizes[2], "a minute is what is counted with"
    assert sizes[0] < sizes[1] < sizes[3] < sizes[4]
    # A frame and its acknowledgement a cell, in place of one for six of them.
    frames = 3 * 86_400 // 10 * 5 // 6
    assert 40 * frames < sizes[3] - sizes[2] < 300 * frames


def test_what_messages_of_json_would_take_stands_beside_it(tmp_path):
    plan = program_of(ValueBarrier).plan()
    *_, line = choices(plan, recorded(tmp_path / "s.jsonl", 600), FIELDS)
    message = len('{"time":1700000000.123,"value":21.37}') + len(
        "value_barrier/a-device/temperature"
    )
    readings, span_s = 3 * SECONDS + 2, SECONDS - 0.5
    a_day = readings * (message + 6) * 86_400 / span_s
    shown_bytes = int(line.removesuffix(" bytes a day").split()[-1].replace(",", ""))
    assert line.startswith("  for comparison, each reading as a message of JSON: ")
    assert abs(shown_bytes - a_day) < 1


def test_a_filter_decides_what_would_be_sent(tmp_path):
    path = recorded(tmp_path / "s.jsonl", 600)

    def total(least):
        program = Program("p")
        much = program.filter(program.event("a"), lambda event: event.value > least, "much")
        program.result(program.scan("found", source=[much, program.event("b")], scan=ValueBarrier))
        (line,) = [each for each in choices(program.plan(), path, FIELDS) if ALL in each]
        return int(re.search("([0-9,]+) bytes", line)[1].replace(",", ""))

    assert total(110) < total(0)


def test_a_choice_that_breaks_a_law_is_no_choice(tmp_path):
    found = shown(WholeShare, recorded(tmp_path / "s.jsonl", 600))
    assert found[LOCAL].endswith("it breaks C2 see `lasp-edge check`")
    assert "<- the least" in found[ALL]
    found = shown(NoSelf)
    assert list(found) == ["a in order, b local", LOCAL, ALL]
    assert ["C3" in text for text in found.values()] == [True, True, False]


def test_without_a_recording_the_fewest_in_order_are_named():
    found = shown(ValueBarrier)
    assert found == {LOCAL: "<- the fewest in order; --recording FILE gives bytes", ALL: ""}


class TwoSides(scans.Synchronised):
    """Neither event depends on itself: each of them may be the one in order."""

    name, zero, empty, depends, parts = "two", 0, 0, (("a", "b"),), {"none": "1"}

    def step(self, state, event):
        return state, []

    def join(self, state, part):
        return state


def test_the_cheapest_of_two_is_the_one_of_the_seldom_event(tmp_path):
    found = shown(TwoSides, recorded(tmp_path / "s.jsonl", 600))
    assert list(found) == ["a in order, b local", LOCAL, ALL]
    assert "<- the least" in found[LOCAL]


@pytest.mark.parametrize("between", [",", ";"])
def test_a_recording_is_read_from_csv_with_times_of_people(tmp_path, between):
    path = tmp_path / "r.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file, delimiter=between)
        rows.writerow(["at", "who", "a", "b", "house"])
        rows.writerow(["2025-01-01T00:00:00", "pi-1", "5", "", "oak"])
        rows.writerow(["1735689601.5", "pi-2", "", "2", "elm"])
        rows.writerow(["", "pi-2", "", "2", "elm"])
        rows.writerow(["1735689609", "pi-2", "much", "", "elm"])
    found = recording_of(program_of(ValueBarrier).plan(), path, RecordFields("at", "who"))
    assert found.items == {
        "a": {"pi-1": [Item(1_735_689_600_000_000, 5, '{"house":"oak"}')]},
        "b": {"pi-2": [Item(1_735_689_601_500_000, 2, '{"house":"elm"}')]},
    }
    assert (found.devices, found.span_us) == ({"pi-1", "pi-2"}, 1_500_000)
    changes = found.changes(program_of(ValueBarrier).plan())
    ((_, event),) = changes["b"].values()
    assert event == Event("b", 2.0, 1_735_689_601_500_000, "pi-2", {"house": "elm"})


def test_an_event_s_field_may_have_another_name_also_within_an_object(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text('{"at": 1, "data": {"of_a": 5}, "who": "pi-1", "house": "oak"}\n')
    fields = RecordFields("at", "who", {"a": "data.of_a"})
    found = recording_of(program_of(ValueBarrier).plan(), path, fields)
    assert found.items == {"a": {"pi-1": [Item(1_000_000, 5, '{"house":"oak"}')]}}


def test_a_recording_without_the_program_s_events_is_refused(tmp_path):
    plan = program_of(ValueBarrier).plan()
    (tmp_path / "r.jsonl").write_text('{"ts": 1, "x": 5}\n')
    with pytest.raises(
        UsageError, match="no record has b, a; name the field of an event by --event b=FIELD: ts, x"
    ):
        recording_of(plan, tmp_path / "r.jsonl", RecordFields())
    with pytest.raises(NotFound, match="cannot be read"):
        recording_of(plan, tmp_path / "away.jsonl", RecordFields())


def test_the_command_prints_choices_and_no_prints_of_the_program(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "chosen_program.py").write_text(
        "from tests.lasp_edge.scans.support_synchronised import ValueBarrier, program_of\n"
        "program = program_of(ValueBarrier, key=lambda event: print(5) or '')\n"
    )
    path = recorded(tmp_path / "s.jsonl", 600)
    assert main(["check", "chosen_program:program", "--plan", "--recording", str(path)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("scan found: events in order across devices, and local ones")
    assert [line.partition(":")[0] for line in printed[1:3]] == [f"  {LOCAL}", f"  {ALL}"]
    assert len(printed) == 4


def test_more_events_than_can_be_weighed_are_refused():
    class Many(TwoSides):
        depends = tuple(("m", f"e{n}") for n in range(12))

    with pytest.raises(ValueError, match=r"depends names 13 events, and choices .* for 12 at most"):
        program_of(Many)
