"""What is compared or stored though it can never be alike is named, and nothing else is."""

import pytest

from lasp_edge import Program, folds, scans
from lasp_edge.checking.unlike import half_pairs, unlike_texts
from lasp_edge.checking.whole import all_tried


def counting(where):
    """Return what is said of a window with a condition, and a parameter with choices."""
    program = Program("house")
    warm = program.event("warm", resolution="0.1")
    mode = program.parameter("mode", "day", choices=("day", "night"))
    window = {"source": warm, "fold": folds.count(), "size_s": 60}
    program.window("w", **window, where=where, uses=(mode,))
    return unlike_texts(program.plan())


CASES = {
    "a number": (lambda event, at: event.tags["floor"] == 3, "a tag is a text: write '3'"),
    "numbers": (lambda event, at: event.tags["floor"] in (3, 4), "a tag is a text: write '3'"),
    "letters": (lambda event, at: event.tags["room"] in ("attic"), "write ('attic',)"),
    "letters of a device": (lambda event, at: event.device in ("pi-1"), "write ('pi-1',)"),
    "one of two": (lambda event, at: event.tags["room"] in ("attic", "hall"), ""),
    "no choice": (lambda event, at: at["mode"] == "nigth", "mode is one of day, night"),
    "a text": (lambda event, at: event.tags["floor"] == "3" and at["mode"] == "night", ""),
    "a tag as a number": (lambda event, at: int(event.tags["floor"]) == 3 < event.value, ""),
    "a tag of that name": (lambda event, at: event.tags["mode"] == "nigth", ""),
}


@pytest.mark.parametrize("case", CASES)
def test_a_comparison_that_never_holds_is_named(case):
    where, said = CASES[case]
    found = counting(where)
    assert len(found) == bool(said)
    assert all(said in line for line in found)


@pytest.mark.parametrize(
    ("missing", "found"), [({"missing": None}, 1), ({"missing": 0}, 0), ({}, 0)]
)
def test_a_pair_with_a_half_that_may_be_none_is_named(missing, found):
    program = Program("house")
    warm, damp = program.event("warm", resolution="0.1"), program.event("damp", resolution="1")
    scan = scans.as_of(warm, damp, within_s=60, **missing)
    both = program.scan("both", source=[warm, damp], scan=scan, per_device=True)
    program.result(both, parts={"warm": "0.1", "damp": "1"})
    full = program.filter(both, lambda event: event.value[1] is not None, "full")
    program.result(full, parts={"warm": "0.1", "damp": "1"})
    assert [line.partition(":")[0] for line in half_pairs(program.plan())] == [
        "result both"
    ] * found


@pytest.mark.parametrize(("other", "found"), [("Room", 1), ("room ", 1), ("room", 0), ("flat", 0)])
def test_two_tags_of_an_event_that_differ_by_case_or_blanks_are_named(other, found):
    program = Program("house")
    warm = program.event("warm", resolution="0.1")
    window = {"source": warm, "fold": folds.count(), "size_s": 60}
    program.window("by_room", **window, key=lambda event: event.tags["room"])
    program.window("by_other", **window, key=lambda event: event.tags.get(other, ""))
    lines = [line for line in all_tried(program.plan()).doubts if "tags" in line]
    names = " and ".join(map(repr, sorted([other, "room"])))
    text = f"functions ask readings of warm for the tags {names}"
    assert [line.partition(",")[0] for line in lines] == [text] * found
