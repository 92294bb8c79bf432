"""What may be declared, derived, written and read, and how the rest is refused."""

import pytest

from crdts import GCounter, GSet, ORSet
from lasp_edge.dataflow import Dataflow, cardinality
from tests.lasp_edge.dataflow.histories import (
    FOLDS,
    ME,
    SET_OPERATORS,
    YOU,
    sets,
)


def test_declaring_again_changes_nothing():
    d = sets(1)
    assert d.declare(ORSet(), "left") is d.declare(ORSet(), "left")
    assert d.query("left") == {1}
    with pytest.raises(ValueError, match="'left' is declared twice, differently"):
        d.declare(GSet(), "left")
    with pytest.raises(ValueError, match="'left' is declared twice, differently"):
        d.declare_dynamic(ORSet(), "left")


def test_deriving_again_in_the_same_way_changes_nothing():
    d = sets(1)

    def same(n):
        return n

    assert d.map("left", same, "target") is d.map("left", same, "target")
    with pytest.raises(ValueError, match="'target' is derived already, by map of 'left'"):
        d.map("right", same, "target")


@pytest.mark.parametrize("operator", [*SET_OPERATORS, *FOLDS])
def test_a_derived_variable_refuses_to_be_written(operator):
    d = sets(1)
    (SET_OPERATORS | FOLDS)[operator](d, "target")
    refusal = f"'target' is derived, by {operator.split()[0]} of 'left'"
    with pytest.raises(ValueError, match=f"update: {refusal}"):
        d.update("target", "add", 5)
    with pytest.raises(ValueError, match=f"bind: {refusal}"):
        d.bind("target", ORSet().add(ME, 5))
    if operator.split()[0] != "fold":
        with pytest.raises(ValueError, match=f"receive: {refusal}"):
            d.receive("target", ORSet().add(ME, 5))


def test_a_declared_target_is_derived_all_the_same():
    d = sets(1)
    target = d.declare(ORSet(), "target")
    later = d.map(target, lambda n: n + 1, "later")
    assert d.filter("left", bool, target) is target
    d.update("left", "add", 2)
    assert d.query(later) == {2, 3}
    assert "target" not in d.take_deltas()
    with pytest.raises(ValueError, match="'target' is derived, by filter of 'left'"):
        d.update(target, "add", 5)


def test_what_reads_a_declared_target_reads_what_it_is_derived_from():
    d = sets()
    d.declare(GSet(), "target")
    d.declare_dynamic(ORSet(), "own")
    for operator in ("intersection", "product", "union"):
        getattr(d, operator)("right", "target", operator)
    d.bind_to("again", "target")
    d.map("own", lambda n: n, "target")
    d.update("own", "add", 1)
    d.update("right", "add_many", [1, 2])
    assert d.query("intersection") == d.query("again") == {1}
    assert d.query("product") == {(1, 1), (2, 1)}
    with pytest.raises(ValueError, match=r"elements of 'own' \(ORSet\) can be removed"):
        d.read("again", cardinality(1))


def test_a_cycle_is_refused_and_spelled_out():
    d = Dataflow(ME)
    for name in "abc":
        d.declare(ORSet(), name)
    d.bind_to("b", "a")
    d.map("b", lambda n: n, "c")
    with pytest.raises(ValueError, match="made from itself, as in a -> b -> c -> a"):
        d.filter("c", bool, "a")
    with pytest.raises(ValueError, match="made from itself, as in a -> b -> a"):
        d.union("b", "b", "a")
    d.update("a", "add", 1)
    assert d.query("c") == {1}, "what was refused has changed nothing"


def test_a_variable_cannot_be_bound_to_itself():
    d = sets()
    with pytest.raises(ValueError, match="made from itself, as in left -> left"):
        d.bind_to("left", "left")
    with pytest.raises(ValueError, match="has no variable 'new'"):
        d.bind_to("new", "new")


def test_targets_that_are_taken_are_refused():
    d = sets(1)
    d.declare(GCounter(), "count")
    with pytest.raises(ValueError, match="'left' was written, and cannot be derived"):
        d.map("right", lambda n: n, "left")
    with pytest.raises(ValueError, match=r"'count' was declared as GCounter\(entries={}\)"):
        d.map("left", lambda n: n, "count")
    with pytest.raises(ValueError, match="map: 'count' must be a set"):
        d.map("count", lambda n: n, "target")
    with pytest.raises(ValueError, match="this dataflow has no variable 'target'"):
        d.query("target")
    stranger = Dataflow(YOU).declare(ORSet(), "stranger")
    with pytest.raises(ValueError, match="this dataflow has no variable 'stranger'"):
        d.map("left", lambda n: n, stranger)
    d.read("right", ORSet().add(ME, 5))
    with pytest.raises(ValueError, match="'right': a read waits for 'right'; derive it before"):
        d.map("left", lambda n: n, "right")


def test_writes_that_do_not_fit_are_refused():
    d = sets()
    with pytest.raises(ValueError, match=r"'left' \(ORSet\) has no mutator 'increment'"):
        d.update("left", "increment", 1)
    with pytest.raises(ValueError, match="'left' needs a state like ORSet"):
        d.receive("left", GSet({1}))
    with pytest.raises(ValueError, match="a CRDT's bottom value is needed"):
        d.declare(GSet({1}), "other")
