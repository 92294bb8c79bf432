"""Shared variables are held against what the readings of all devices mean."""

import pytest

from crdts import (
    Counter,
    DWFlag,
    EWFlag,
    GCounter,
    GSet,
    LWWRegister,
    Max,
    Min,
    MVRegister,
    ORMap,
    ORSet,
    Replica,
    TwoPSet,
)
from lasp_edge import Program
from lasp_edge.dataflow import cardinality
from lasp_edge.testing import replay
from simulations.fleet import Fleet
from simulations.oracle import Reading
from simulations.oracle.shared import (
    NoDefinitionError,
    SharedUpdate,
    content_of,
    shared_content,
)
from simulations.shared_contents import shared_contents

START_S = 1_764_028_800


KINDS = {
    "out": ORSet(),
    "ever": GSet(),
    "gone": TwoPSet(),
    "balance": Counter(),
    "loans": GCounter(),
    "newest": LWWRegister(),
    "busy": EWFlag(),
    "idle": DWFlag(),
    "most": Max(),
    "least": Min(),
    "seen": MVRegister(),
    "shelves": ORMap(ORSet()),
    "counts": ORMap(Counter()),
    "notes": GSet(),
}


def library():
    """Return a program with a shared variable of each kind."""
    program = Program("library")
    loan = program.event("loan", resolution="1")
    named = {name: program.declare(bottom, name) for name, bottom in KINDS.items()}

    @program.on_event(loan)
    def lent(event, update):
        book, number = event.tags["book"], int(event.value)
        update(named["newest"], LWWRegister.write, book, event.time_us)
        update(named["most"], Max.record, number)
        update(named["least"], Min.record, number)
        update(named["seen"], MVRegister.write, book)
        update(named["counts"], ORMap.update, book[0], Counter.increment, number)
        if number > 0:
            update(named["out"], ORSet.add, book)
            update(named["ever"], GSet.add, book)
            update(named["gone"], TwoPSet.add, book)
            update(named["balance"], Counter.increment, by=2)
            update(named["loans"], GCounter.increment)
            update(named["busy"], EWFlag.enable)
            update(named["idle"], DWFlag.disable)
            update(named["shelves"], ORMap.update, book[0], ORSet.add, book)
        else:
            update(named["out"], ORSet.remove, book)
            update(named["gone"], TwoPSet.remove, book)
            update(named["balance"], Counter.decrement, 1)

    note_letters(program, named["ever"], named["notes"])
    return program


def note_letters(program, ever, notes):
    """Have a threshold's handler write a set."""
    letters = program.map(ever, lambda book: book[0], "letters")

    @program.on_threshold(letters, cardinality(2))
    def two(seen, update):
        update(notes, GSet.add, "two letters")


LOANS = [("a", 1, "xa"), ("b", 1, "ya"), ("a", -1, "xa"), ("a", 2, "xb"), ("a", -1, "ya")]


@pytest.mark.parametrize("faults", [(), "rough"])
def test_a_replay_compares_each_kind_that_has_a_definition(faults):
    given = [
        (device, "loan", number, START_S + n, {"book": book})
        for n, (device, number, book) in enumerate(LOANS)
    ]
    found = replay(library(), given, faults=faults)
    assert found.failures == []
    # out 1, ever 3, gone 1, shelves and counts 2 each, and 7 values, on two devices
    assert "32 of 32 parts of shared variables are what the oracle says" in found.compared
    left_out = [line for line in found.compared if line.startswith("not compared: ")]
    assert left_out == [
        "not compared: shared out: 1 of it: a device takes out what it knows of",
        "not compared: shared seen: nobody recomputes a MVRegister",
        "not compared: shared notes: on_threshold writes it",
    ]


def test_an_update_that_a_device_lacks_is_found():
    fleet = Fleet(library().plan(), size=2, seed=1)
    start_us = fleet.now_us - 10 * len(LOANS) * 10**6
    known = [
        Reading(f"pi-{'ab'.index(device)}", "loan", number, start_us + n * 10**6, {"book": book})
        for n, (device, number, book) in enumerate(LOANS)
    ]
    for each in known:
        fleet.read(each.device, each.event, each.value, each.tags, each.time_us)
    fleet.settle()
    more = Reading("pi-0", "loan", 3, start_us, {"book": "za"})
    for readings, differ in ((known, set()), ([*known, more], DIFFER)):
        found = list(shared_contents(fleet.world, readings, ""))
        assert {each.name for each in found if each.held != each.truth} == differ
    assert {each.left_out for each in shared_contents(fleet.world, known, "lost")} == {"lost"}
    fleet.close()


DIFFER = {"out", "ever", "gone", "balance", "loans", "most", "shelves", "counts"}
"""What one loan more changes: it is not the newest, nor the least."""


def said(*updates):
    return [SharedUpdate(device, mutator, arguments) for device, mutator, *arguments in updates]


@pytest.mark.parametrize(
    ("bottom", "updates", "why"),
    [
        (EWFlag(), [("a", "enable"), ("b", "disable")], "turns back what it knew of alone"),
        (DWFlag(), [("a", "enable"), ("b", "disable")], "turns back what it knew of alone"),
        (ORSet(), [("a", "add", 1), ("a", "clear")], "clears what it knew of alone"),
        (ORMap(GSet()), [("a", "remove", 1)], "removes the keys that it knew of alone"),
        (LWWRegister(), [("a", "write", 1, 5), ("b", "write", 2, 5)], "at one time"),
    ],
)
def test_what_depends_on_what_a_device_knew_has_no_definition(bottom, updates, why):
    with pytest.raises(NoDefinitionError, match=why):
        shared_content(bottom, said(*updates))


@pytest.mark.parametrize(
    ("bottom", "updates"),
    [
        (EWFlag(), [("a", "enable"), ("a", "disable"), ("a", "enable")]),
        (EWFlag(), [("a", "enable"), ("a", "disable")]),
        (DWFlag(), [("a", "disable"), ("a", "enable")]),
        (DWFlag(), []),
        (Max(), []),
        (LWWRegister(), []),
        (LWWRegister(), [("a", "write", "x", 5), ("b", "write", "y", 7), ("b", "write", "z", 6)]),
        (ORSet(), [("a", "add", 1), ("a", "remove", 1), ("a", "add", 1), ("b", "add", 2)]),
        (TwoPSet(), [("a", "remove", 1), ("b", "add", 1), ("b", "add", 2)]),
        (Counter(), [("a", "increment"), ("b", "decrement", 5), ("b", "increment", 2)]),
    ],
    ids=str,
)
def test_a_definition_is_what_the_join_of_all_updates_gives(bottom, updates):
    states = {}
    for device, mutator, *arguments in updates:
        state = states.get(device, bottom.bottom())
        replica = Replica(1, sorted({each[0] for each in updates}).index(device) + 1, device)
        states[device] = state | getattr(state, mutator)(replica, *arguments)
    whole = bottom.bottom()
    for state in states.values():
        whole |= state
    found = shared_content(bottom, said(*updates))
    assert (found.known, found.unknown) == (content_of(whole.value), frozenset())
