"""Dataflow in a program: what is wrong is refused at once, and nothing is declared then."""

import subprocess
import sys

import pytest

from crdts import BoundedLWWSet, Counter, GCounter, GSet, ORMap, ORSet, Pair, Replica
from lasp_edge import Program, Update, folds
from lasp_edge.checking.texts import texts_of
from lasp_edge.dataflow import at_least, cardinality
from lasp_edge.language.derivations import dataflow_of

ME = Replica(1, 7, "kitchen")


def house():
    program = Program("house")
    program.event("knock")
    return program, program.declare(ORSet(), "doors"), program.declare(GSet(), "seen")


def test_every_operator_runs_as_it_was_declared():
    program, doors, seen = house()
    odd = program.filter(doors, lambda n: n % 2, "odd")
    half = program.map(odd, lambda n: n // 2, "half", version=2)
    program.union(half, seen, "either")
    both = program.intersection(doors, seen, "both")
    program.product(both, half, "pairs")
    program.bind_to("again", half)
    flow = dataflow_of(program.plan(), ME)
    flow.receive("doors", ORSet().add_many(ME, [2, 3, 5]))
    flow.receive("seen", GSet({2, 5}))
    assert {name: flow.query(name) for name in program.plan().derivations} == {
        "odd": {3, 5},
        "half": {1, 2},
        "either": {1, 2, 5},
        "both": {2, 5},
        "pairs": {(2, 1), (2, 2), (5, 1), (5, 2)},
        "again": {1, 2},
    }
    assert program.plan().derivations["half"].version == 2
    assert program.plan().followed == ("doors", "seen")


def test_devices_have_dataflows_of_their_own():
    program, doors, _ = house()
    program.map(doors, lambda n: n, "same")
    one, other = dataflow_of(program.plan(), ME), dataflow_of(program.plan(), ME)
    one.receive("doors", ORSet().add(ME, 1))
    assert (one.query("same"), other.query("same")) == ({1}, frozenset())


def test_what_is_derived_is_neither_shared_nor_updated_nor_folded_into():
    program, doors, _ = house()
    odd = program.filter(doors, lambda n: n % 2, "odd")
    samples = program.declare_dynamic(BoundedLWWSet(bound=2), "samples")
    assert set(program.plan().shared_variables) == {"doors", "seen"}
    with pytest.raises(ValueError, match="'odd' is derived by filter of 'doors' and cannot be"):
        Update(program.plan())(odd, ORSet.add, 1)
    for target in (odd, doors):
        with pytest.raises(ValueError, match=f"'{target.name}' cannot be a fold's target"):
            program.fold(samples, folds.mean(), target)
    for name in ("odd", "doors"):
        with pytest.raises(ValueError, match=f"map: the name '{name}' is taken"):
            program.map(doors, lambda n: n, name)
    with pytest.raises(ValueError, match="window 'odd': the name is taken"):
        program.window("odd", source="knock", fold=folds.count(), size_s=1)
    program.plan()


def test_what_belongs_to_each_device_alone_is_no_source():
    program, _, _ = house()
    samples = program.declare_dynamic(BoundedLWWSet(bound=2), "samples")
    average = program.declare(Pair(Counter(), Counter()), "average")
    program.fold(samples, folds.mean(), average)
    for variable in (samples, average):
        with pytest.raises(ValueError, match=f"'{variable.name}' belongs to each device alone"):
            program.bind_to("other", variable)
        with pytest.raises(ValueError, match=f"'{variable.name}' belongs to each device alone"):
            program.on_threshold(variable)
    assert "other" not in program.plan().variables


def test_definitions_that_do_not_fit_are_refused():
    program, doors, seen = house()
    count = program.declare(GCounter(), "count")
    stranger = house()[1]
    for wrong, reason in [
        (lambda: program.map(count, abs, "x"), "map: 'count' must be a set"),
        (lambda: program.map(doors, 5, "x"), "map 'x': a function is needed, not 5"),
        (lambda: program.map(doors, abs, "x", version=0), "version must be a whole number"),
        (lambda: program.map(doors, abs, ""), "variable: a printable name"),
        (lambda: program.map(stranger, abs, "x"), "is not a variable of program 'house'"),
        (lambda: program.union(doors, "seen?", "x"), "None is not a variable of program"),
        (lambda: program.on_threshold(doors, cardinality(1)), r"elements of 'doors' \(ORSet\) can"),
        (
            lambda: program.on_threshold(count, GSet()),
            "'count' is compared with a state of its own type, GCounter",
        ),
        (lambda: program.on_threshold(seen)(5), r"on_threshold: a function \(value, update\)"),
    ]:
        with pytest.raises(ValueError, match=reason):
            wrong()
    assert set(program.plan().variables) == {"doors", "seen", "count"}
    assert not program.plan().derivations
    assert not program.plan().awaited


def test_handlers_wait_for_what_cannot_be_undone():
    program, _, seen = house()
    rooms = program.declare(ORMap(ORSet()), "rooms")
    floors = program.map(seen, lambda n: n // 100, "floors")

    @program.on_threshold(floors, cardinality(2))
    @program.on_threshold(rooms)
    @program.on_threshold("seen", GSet({101}))
    def reached(value, update):
        """Stay what it was: a function."""

    assert [awaited.variable for awaited in program.plan().awaited] == ["seen", "rooms", "floors"]
    assert program.plan().functions.reached == (reached,) * 3
    assert program.plan().followed == ("seen", "rooms")
    with pytest.raises(ValueError, match="can fall again"):
        program.on_threshold(program.declare(Counter(), "balance"), at_least(3))


def test_the_text_of_a_function_is_remembered_with_its_version():
    program, doors, seen = house()
    program.map(doors, lambda n: n + 1, "next", version=3)
    program.union(doors, seen, "either")
    (source,) = texts_of(program.plan())
    assert (source.name, source.version) == ("variable next, function", "3")
    assert source.remedy == "version= of next"


IMPORTED = """
import sys
import device_agent.agent.core
from lasp_edge.examples.greenhouse import program

program.plan()
print([name for name in sys.modules if name.startswith("lasp_edge.dataflow")])
"""


def test_a_program_without_sets_does_not_import_the_dataflow():
    assert subprocess.check_output([sys.executable, "-c", IMPORTED], text=True) == "[]\n"
