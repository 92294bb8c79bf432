"""Thresholds: every pair of a variable and a threshold that is monotone is allowed, and no other.

A threshold that is allowed stays met, whatever is written and heard of later: that is tried too.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crdts import (
    BoundedLWWSet,
    EWFlag,
    GCounter,
    GSet,
    IVar,
    LWWRegister,
    Max,
    Membership,
    Min,
    MVRegister,
    ORMap,
    ORSet,
    OwnedMap,
    Pair,
    PNCounter,
    TwoPSet,
)
from lasp_edge import folds
from lasp_edge.dataflow import Dataflow, at_least, at_most, cardinality, strict
from tests.crdts.states import KINDS as TYPES
from tests.lasp_edge.dataflow.histories import REPLICAS

ME, YOU, _ = REPLICAS
SHRINKING = {kind.__name__: kind for kind in (TwoPSet, ORSet)} | {
    "ORMap": lambda: ORMap(ORSet()),
    "BoundedLWWSet": lambda: BoundedLWWSet(bound=2),
}
NO_SETS = {
    kind.__name__: kind
    for kind in (
        GCounter,
        PNCounter,
        Max,
        Min,
        IVar,
        LWWRegister,
        MVRegister,
        EWFlag,
        OwnedMap,
        Membership,
    )
} | {"Pair": lambda: Pair(GCounter(), GCounter())}
LEAVES = SHRINKING | NO_SETS | {"GSet": GSet}
RISING = {"GCounter", "Max"}
OPERATORS = {
    "map": lambda d: d.map("leaf", lambda element: element, "target"),
    "filter": lambda d: d.filter("leaf", bool, "target"),
    "union": lambda d: d.union("leaf", "grown", "target"),
    "intersection": lambda d: d.intersection("grown", "leaf", "target"),
    "product": lambda d: d.product("leaf", "grown", "target"),
}


def allowed(dataflow, name, threshold):
    """Return whether a read of `name` with this threshold is allowed."""
    try:
        dataflow.read(name, threshold)
    except ValueError:
        return False
    return True


def holding(bottom):
    dataflow = Dataflow(ME)
    dataflow.declare(bottom(), "leaf")
    dataflow.declare(GSet(), "grown")
    return dataflow


@pytest.mark.parametrize("kind", LEAVES)
def test_table_of_leaves(kind):
    d = holding(LEAVES[kind])
    d.bind_to("again", "leaf")
    for name in ("leaf", "again"):
        assert allowed(d, name, None)
        assert allowed(d, name, LEAVES[kind]())
        assert allowed(d, name, strict(LEAVES[kind]()))
        assert not allowed(d, name, GSet() if kind != "GSet" else ORSet())
        assert allowed(d, name, at_least(1)) == (kind in RISING)
        assert allowed(d, name, at_most(1)) == (kind == "Min")
        assert allowed(d, name, cardinality(1)) == (kind == "GSet")


@pytest.mark.parametrize("operator", OPERATORS)
def test_table_of_derived_sets(operator):
    for kind in [*SHRINKING, "GSet"]:
        d = holding(LEAVES[kind])
        OPERATORS[operator](d)
        grows = kind == "GSet"
        assert allowed(d, "target", None)
        assert allowed(d, "target", GSet({1})) == grows
        assert allowed(d, "target", strict(GSet({1}))) == grows
        assert allowed(d, "target", cardinality(1)) == grows
        assert not allowed(d, "target", at_least(1))
        assert not allowed(d, "target", at_most(1))
        assert not allowed(d, "target", ORSet())


def test_table_of_folds():
    d = holding(GSet)
    d.fold("leaf", folds.max(), "greatest")
    d.fold_dynamic("greatest", "of_all")
    for name in ("greatest", "of_all"):
        assert allowed(d, name, None)
        for threshold in (GSet(), strict(GSet()), at_least(1), at_most(1), cardinality(1)):
            assert not allowed(d, name, threshold)


def test_a_threshold_on_a_derived_variable_that_can_shrink_is_refused_and_told_why():
    d = holding(ORSet)
    d.map("leaf", lambda n: n, "images")
    d.union("grown", "images", "either")
    d.bind_to("same", "either")
    d.fold("either", folds.count(), "how_many")
    why = (
        r"read 'same' for cardinality\(3\): 'same' is bound to 'either', and 'either' is a union "
        r"of 'images', and 'images' is a map of 'leaf', and elements of 'leaf' \(ORSet\) can be "
        "removed"
    )
    with pytest.raises(ValueError, match=why):
        d.read("same", cardinality(3))
    with pytest.raises(ValueError, match="'how_many' is assigned by a fold"):
        d.read("how_many", at_least(3))
    with pytest.raises(ValueError, match=r"the value of 'c' \(PNCounter\) can fall again"):
        d.read(d.declare(PNCounter(), "c"), at_least(3))
    with pytest.raises(ValueError, match=r"a threshold needs a state, strict\(state\), at_least"):
        d.read("leaf", 3)
    with pytest.raises(ValueError, match="cardinality needs an integer from 0"):
        cardinality(-1)


def test_a_read_is_settled_when_its_threshold_is_reached_and_not_before():
    d = holding(GCounter)
    five, strictly = d.read("leaf", at_least(5)), d.read("leaf", strict(GCounter({ME: 6})))
    d.update("leaf", "increment", 4)
    assert not five.ready
    d.receive("leaf", GCounter({YOU: 1}))
    assert five.ready
    assert five.value == 5
    d.update("leaf", "increment", 1)
    assert not strictly.ready
    d.update("leaf", "increment", 1)
    assert strictly.value == 7, "more is known than that I counted 6"


def test_a_strict_threshold_is_not_met_by_the_same():
    d = holding(Max)
    plain, strictly = d.read("leaf", Max(3)), d.read("leaf", strict(Max(3)))
    d.update("leaf", "record", 3)
    assert (plain.ready, strictly.ready) == (True, False)
    d.update("leaf", "record", 4)
    assert (plain.value, strictly.value) == (3, 4)


def test_an_ivar_is_waited_for_until_it_is_bound_and_cannot_be_bound_twice():
    d = holding(IVar)
    bound = d.read("leaf")
    assert not bound.ready
    d.bind("leaf", 21)
    d.bind("leaf", 21)
    assert bound.value == 21
    with pytest.raises(ValueError, match="a bound variable needs its value again, 21, got 22"):
        d.bind("leaf", 22)


def test_the_lattice_order_of_a_set_is_not_undone_by_removing():
    d = holding(ORSet)
    d.update("leaf", "add", 1)
    heard = d.state("leaf")
    d.update("leaf", "remove", 1)
    assert d.read("leaf", heard).value == frozenset()


def test_growing_derived_sets_compare_with_growing_sets():
    d = holding(GSet)
    d.map("leaf", lambda n: n * n, "squares")
    has, more, three = (
        d.read("squares", threshold)
        for threshold in (GSet({1, 4}), strict(GSet({1, 4})), cardinality(3))
    )
    for element, ready in [(1, (False,) * 3), (-2, (True, False, False)), (3, (True,) * 3)]:
        d.update("leaf", "add", element)
        assert (has.ready, more.ready, three.ready) == ready


@settings(max_examples=settings().max_examples // 2, suppress_health_check=list(HealthCheck))
@given(st.data(), st.sampled_from([GCounter, PNCounter, Max, Min, GSet, ORSet, TwoPSet, OwnedMap]))
def test_what_is_allowed_stays_met(data, kind):
    """The definition of monotone, tried over random writes for every threshold at once."""
    d = holding(kind)
    if isinstance(kind(), GSet | ORSet | TwoPSet):
        d.map("leaf", lambda element: len(repr(element)), "image")
        d.product("image", "leaf", "pairs")
    numbers = st.integers(0, 4)
    thresholds = [at_least(data.draw(numbers)), at_most(data.draw(numbers))]
    thresholds += [cardinality(data.draw(numbers)), None, GSet({data.draw(numbers)})]
    thresholds += [strict(GSet({3})), data.draw(TYPES[kind].states)]
    asked = [
        (name, threshold)
        for name in ["leaf", *d.definitions]
        for threshold in thresholds
        if allowed(d, name, threshold)
    ]
    met = set()
    for delta in data.draw(st.lists(TYPES[kind].states, min_size=1, max_size=6)):
        d.receive("leaf", delta)
        now = {at for at, (name, threshold) in enumerate(asked) if d.read(name, threshold).ready}
        assert met <= now
        met = now
