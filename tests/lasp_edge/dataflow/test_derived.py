"""Derived sets as states: joined they are what is derived from the joined inputs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crdts import BoundedLWWSet, ORSet, decode, encode
from lasp_edge import folds
from lasp_edge.dataflow import Dataflow
from tests.lasp_edge.dataflow.histories import (
    KINDS,
    LEAVES,
    REPLICAS,
    SET_OPERATORS,
    declared,
    lawful,
    oracle_of,
    run,
)

ME, YOU, _ = REPLICAS


@pytest.mark.parametrize("kind", ["ORSet", "TwoPSet", "GSet"])
def test_what_two_replicas_derived_joins_to_what_follows_from_their_joined_inputs(kind):
    def build(dataflow):
        for target, operator in SET_OPERATORS.items():
            operator(dataflow, target)

    make = declared(KINDS[kind], build)

    @lawful
    @given(st.data())
    def check(data):
        dataflows = run(data, make, KINDS[kind].writes, deliver_all=False)[0]
        both = make(ME)
        for dataflow in dataflows[:2]:
            for name in LEAVES:
                both.receive(name, dataflow.state(name))
        for target in SET_OPERATORS:
            joined = dataflows[0].state(target) | dataflows[1].state(target)
            truth = both.state(target)
            assert joined <= truth
            assert joined.value <= truth.value
            if target not in ("intersection", "product"):
                assert joined == truth
            assert joined | truth == truth

    check()


def test_a_missing_element_was_removed_or_is_news():
    """Without the whole context of the inputs both would look alike."""
    here, there = Dataflow(ME), Dataflow(YOU)
    for d in (here, there):
        d.declare(ORSet(), "left")
        d.filter("left", lambda n: n > 1, "target")
    here.update("left", "add_many", [1, 2, 3])
    there.receive("left", here.state("left"))
    there.update("left", "remove", 2)
    there.update("left", "add", 4)
    assert (here.state("target") | there.state("target")).value == {3, 4}


def test_a_pair_is_gone_when_one_half_was_removed_where_the_other_was_never_heard_of():
    here, there = Dataflow(ME), Dataflow(YOU)
    for d in (here, there):
        for name in LEAVES:
            d.declare(ORSet(), name)
        d.product("left", "right", "pairs")
    here.update("left", "add", 1)
    there.receive("left", here.state("left"))
    here.update("right", "add", 2)
    there.update("left", "remove", 1)
    assert here.state("pairs").value == {(1, 2)}
    assert (here.state("pairs") | there.state("pairs")).value == frozenset()


def test_states_of_windows_and_folds():
    d = Dataflow(ME)
    d.declare_dynamic(BoundedLWWSet(bound=2), "samples")
    d.filter("samples", lambda sample: sample.value > 1, "high")
    d.fold("high", folds.sum(), "total")
    d.fold_dynamic("total", "all")
    for value in (1, 2, 3):
        d.update("samples", "add", value, 7)
    high = d.state("high")
    assert decode(encode(high)) == high
    assert high.pairs == oracle_of(d, {"samples": d.state("samples")}).pairs("high")
    assert d.state("total").value == {"cellar": (("", 3, (5,)),)}
    with pytest.raises(ValueError, match="state: 'all' is assigned by a fold, never joined"):
        d.state("all")
