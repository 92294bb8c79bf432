"""Operators: equal to the oracle at every step, whatever was delivered, and on all replicas."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crdts import BoundedLWWSet, Counter, ORSet, TwoPSet
from lasp_edge.dataflow import Dataflow, Sample
from tests.crdts.states import KINDS as TYPES
from tests.lasp_edge.dataflow.histories import (
    FOLDS,
    KINDS,
    LEAVES,
    ME,
    OTHER,
    SET_OPERATORS,
    YOU,
    declared,
    lawful,
    oracle_of,
    run,
    sets,
)


def test_each_operator_by_example():
    d = sets(1, 2, 3)
    d.update("right", "add_many", [3, 4])
    d.map("left", lambda n: n * n, "squares")
    d.filter("left", lambda n: n > 1, "greater")
    d.union("left", "right", "either")
    d.intersection("left", "right", "both")
    d.product("both", "right", "pairs")
    d.bind_to("again", "both")
    assert d.query("squares") == {1, 4, 9}
    assert d.query("greater") == {2, 3}
    assert d.query("either") == {1, 2, 3, 4}
    assert d.query("both") == d.query("again") == {3}
    assert d.query("pairs") == {(3, 3), (3, 4)}
    d.update("right", ORSet.remove, 3)
    d.update("left", ("add", 4))
    assert d.query("either") == {1, 2, 3, 4}
    assert d.query("both") == d.query("again") == {4}
    assert d.query("pairs") == {(4, 4)}


@pytest.mark.parametrize("kind", KINDS)
def test_all_replicas_come_to_each_operator_of_the_joined_inputs(kind):
    operators = SET_OPERATORS | FOLDS

    def build(dataflow):
        for target, operator in operators.items():
            operator(dataflow, target)

    @lawful
    @given(st.data())
    def check(data):
        dataflows, converged = run(data, declared(KINDS[kind], build), KINDS[kind].writes)
        oracle = oracle_of(dataflows[0], converged)
        for dataflow in dataflows:
            for target in operators:
                assert dataflow.query(target) == oracle.value(target)
            assert {name: dataflow.state(name) for name in LEAVES} == converged

    check()


@st.composite
def graphs(draw):
    """A few operators, each over any variables before it: chains, diamonds, a set with itself."""
    names = list(LEAVES)
    made = []
    for at in range(draw(st.integers(1, 5))):
        operator = draw(st.sampled_from(["map", "filter", "union", "intersection", "product"]))
        sources = draw(st.tuples(st.sampled_from(names), st.sampled_from(names)))
        made.append((operator, sources, f"v{at}"))
        if operator != "product":  # products of products grow too fast to be drawn at random
            names.append(f"v{at}")
    return made


def image(element):
    return len(repr(element)) % 3 if isinstance(element, tuple) else (element * 7) % 3


def odd(element):
    return isinstance(element, tuple) or element % 2


def built(graph):
    def build(dataflow):
        for operator, (left, right), target in graph:
            if operator in ("map", "filter"):
                getattr(dataflow, operator)(left, image if operator == "map" else odd, target)
            else:
                getattr(dataflow, operator)(left, right, target)

    return build


@settings(lawful, max_examples=2 * settings().max_examples)
@given(st.data(), graphs(), st.sampled_from(["ORSet", "TwoPSet"]))
def test_any_graph_of_operators_equals_the_oracle_at_every_step(data, graph, kind):
    dataflows, converged = run(data, declared(KINDS[kind], built(graph)), KINDS[kind].writes)
    truth = oracle_of(dataflows[0], converged)
    for _, _, target in graph:
        assert {dataflow.query(target) for dataflow in dataflows} == {truth.value(target)}


@lawful
@given(st.data(), graphs())
def test_an_operator_declared_late_has_what_one_declared_early_has(data, graph):
    build = built(graph)
    dataflows, _ = run(data, declared(KINDS["ORSet"], build), KINDS["ORSet"].writes)
    late = Dataflow(OTHER)
    for name in LEAVES:
        late.declare(ORSet(), name)
        late.receive(name, dataflows[0].state(name))
    build(late)
    for _, _, target in graph:
        assert late.query(target) == dataflows[0].query(target)
        assert late.state(target) == dataflows[0].state(target)


@settings(lawful, max_examples=2 * settings().max_examples)
@given(st.data())
def test_what_cloned_devices_wrote_equals_the_oracle_too(data):
    """A dot of a clone may change its element, so an image may go and come in one step."""
    d = Dataflow(ME)
    for name in LEAVES:
        d.declare(ORSet(), name)
    as_numbers = {"cloned": lambda n: len(repr(n)) % 4, "one": lambda _: 1}
    for name, function in as_numbers.items():
        d.map("left", function, name)
    d.union("cloned", "one", "either")
    d.intersection("either", "cloned", "both")
    d.map("either", lambda n: n // 2, "half")
    for _ in range(data.draw(st.integers(1, 4))):
        d.receive(data.draw(st.sampled_from(LEAVES)), data.draw(TYPES[ORSet].cloned))
        oracle = oracle_of(d)
        for name in d.definitions:
            assert d.state(name).pairs == oracle.pairs(name)


def test_a_map_of_unequal_elements_to_one_image_unites_their_dots():
    d = sets(2, 3)
    d.map("left", lambda n: n // 2, "half")
    d.update("left", "remove", 2)
    assert d.query("half") == {1}, "3 still has that image"
    d.update("left", "remove", 3)
    assert d.query("half") == frozenset()


def test_concurrent_adds_of_two_elements_with_one_image_survive_the_removal_of_one():
    here, there = sets(2), sets()
    for d in (here, there):
        d.map("left", lambda n: n // 2, "half")
    there.receive("left", here.state("left"))
    removed = Dataflow(YOU)
    removed.declare(ORSet(), "left")
    removed.receive("left", here.state("left"))
    here.update("left", "add", 3)
    removed.update("left", "remove", 2)
    for delta in (removed.take_deltas()["left"], here.take_deltas()["left"]):
        there.receive("left", delta)
    assert there.query("half") == {1}


def test_a_map_that_changes_the_order_of_elements_sees_removals():
    d = sets(1, 2, 3)
    d.map("left", lambda n: -n, "negative")
    d.update("left", "remove", 2)
    d.update("left", "remove", 1)
    assert d.query("negative") == {-3}


@pytest.mark.parametrize("gone", LEAVES)
def test_intersection_and_product_hold_what_is_live_in_both_sides(gone):
    d = sets(1)
    d.update("right", "add", 1)
    d.intersection("left", "right", "both")
    d.product("left", "right", "pairs")
    d.update(gone, "remove", 1)
    assert d.query("both") == d.query("pairs") == frozenset()
    d.update(gone, "add", 1)
    assert d.query("both") == {1}
    assert d.query("pairs") == {(1, 1)}


def test_a_dynamic_variable_is_neither_sent_nor_received():
    d = Dataflow(ME)
    own = d.declare_dynamic(ORSet(), "own")
    shared = d.declare(ORSet(), "shared")
    either = d.union(own, shared, "either")
    d.update(own, "add", 1)
    d.update(shared, "add", 2)
    assert d.take_deltas() == {"shared": d.state(shared)}
    assert either.dynamic
    with pytest.raises(ValueError, match="'own' is dynamic: each device has its own"):
        d.receive(own, ORSet().add(YOU, 1))


def test_what_is_sent_is_what_was_written_here_and_no_more():
    d = sets(1, 2)
    known = d.state("left")
    assert d.take_deltas() == {"left": known}
    theirs = ORSet().add(YOU, 7)
    d.receive("left", theirs)
    d.bind("left", known | theirs | ORSet().add(OTHER, 8))
    assert d.query("left") == {1, 2, 7, 8}
    assert d.take_deltas() == {"left": ORSet().add(OTHER, 8)}
    d.update("left", "add", 3)
    d.update("left", "remove", 3)
    (delta,) = d.take_deltas().values()
    assert (known | delta).value == {1, 2}
    assert d.take_deltas() == {}


def test_what_a_function_fails_for_is_left_aside_and_counted():
    d = sets(0, 1, 2)
    d.map("left", lambda n: 2 // n, "inverse")
    d.filter("left", lambda n: 1 // n, "ones")
    d.map("left", lambda n: n / 2, "no element")
    assert d.query("inverse") == {1, 2}
    assert d.query("ones") == {1}
    assert d.left_aside == {"inverse": 1, "ones": 1, "no element": 3}
    for element in (0, 1, 2):
        d.update("left", "remove", element)
    assert d.query("inverse") == d.query("ones") == frozenset()


def test_a_function_that_changes_its_mind_does_no_harm():
    d = sets()
    answers = iter(range(100))
    d.map("left", lambda _: next(answers), "whims")
    for step in range(3):
        d.update("left", "add", "a")
        assert d.query("whims") == {0}, "it is asked once while the element is there"
        assert step < 3
    d.update("left", "remove", "a")
    assert d.query("whims") == frozenset()
    d.update("left", "add", "a")
    assert d.query("whims") == {1}, "and asked again when it comes back"


def test_a_function_of_an_operator_cannot_write():
    d = sets(1)
    d.map("left", lambda n: d.update("right", "add", n) or n, "target")
    d.map("left", lambda n: d.map("right", abs, "more").name, "other")
    d.update("left", "add", 2)
    assert d.query("target") == d.query("other") == frozenset(), "nor derive"
    assert d.left_aside == {"target": 2, "other": 2}
    assert d.query("right") == frozenset()


def test_a_counter_is_followed_under_another_name():
    d = Dataflow(ME)
    d.declare(Counter(), "doors")
    d.bind_to("entrances", "doors")
    d.update("doors", Counter.increment, 3)
    assert d.query("entrances") == 3
    assert d.state("entrances") == d.state("doors")


def test_samples_of_a_window_are_elements_and_equal_ones_are_two():
    d = Dataflow(ME)
    d.declare_dynamic(BoundedLWWSet(bound=2), "samples")
    d.filter("samples", lambda sample: sample.value > 4, "high")
    d.map("high", lambda sample: sample._replace(value=sample.value * 10), "tenfold")
    for value in (5, 5, 6, 1):
        d.update("samples", "add", value, 7)
        assert d.query("high") == oracle(d, "samples").value("high")
    assert d.query("high") == {Sample(3, 7, 6)}
    assert d.query("tenfold") == {Sample(3, 7, 60)}


@lawful
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), min_size=1, max_size=12))
def test_windows_equal_the_oracle_over_restarts_of_their_writer(history):
    d = Dataflow(ME)
    d.declare_dynamic(BoundedLWWSet(bound=3), "samples")
    d.filter("samples", lambda sample: sample.value % 2, "odd")
    for incarnation, value in history:
        held = d.state("samples")
        writer = ME._replace(incarnation=max(held.replica.incarnation, incarnation + 1))
        delta = held.add_many(writer, [value] * incarnation + [value], [value] * (incarnation + 1))
        d.bind("samples", delta)
        assert d.query("odd") == oracle(d, "samples").value("odd")
        assert d.state("odd").pairs == oracle(d, "samples").pairs("odd")


@settings(lawful, max_examples=2 * settings().max_examples)
@given(st.lists(TYPES[BoundedLWWSet].states, min_size=1, max_size=5))
def test_windows_equal_the_oracle_whatever_part_of_which_life_arrives(states):
    d = Dataflow(ME)
    d.declare(BoundedLWWSet(bound=2), "samples")
    d.filter("samples", lambda sample: sample.value != 1, "others")
    for state in states:
        d.receive("samples", state)
        assert d.query("others") == oracle(d, "samples").value("others")
        assert d.state("others").pairs == oracle(d, "samples").pairs("others")


def oracle(dataflow, *leaves):
    return oracle_of(dataflow, {name: dataflow.state(name) for name in leaves})


def test_a_two_phase_set_removed_before_it_was_added_shows_nothing():
    d = sets(bottom=TwoPSet)
    d.map("left", lambda n: n, "target")
    d.update("left", "remove", 1)
    d.update("left", "add", 1)
    assert d.query("target") == frozenset()
