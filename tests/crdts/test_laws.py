"""Every law for every type of the wire, over the table in `tests.crdts.states`."""

from functools import reduce
from operator import or_

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crdts import IncrementalSet
from crdts.wire import TYPES
from tests.crdts.states import KINDS, REPLICAS, compositions
from tests.laws import INCREMENTAL_LAWS, LATTICE_LAWS, digest_stands_for_a_state

# A type has some twenty laws, and some take long: half the examples of the profile in force.
lawful = settings(
    max_examples=settings().max_examples // 2, suppress_health_check=list(HealthCheck)
)


def named(thing):
    return thing.__name__


by_name = pytest.mark.parametrize("kind", TYPES, ids=named)


def test_no_type_escapes_the_laws():
    assert set(KINDS) == set(TYPES)


def try_laws(laws, states):
    """Try laws of three states, all of them with the same: drawing takes longer than most laws."""

    @lawful
    @given(*[states] * 3)
    def check(a, b, c):
        for law in laws:
            law(a, b, c)

    check()


@by_name
def test_laws_of_lattices(kind):
    try_laws(LATTICE_LAWS, KINDS[kind].states)


@pytest.mark.parametrize(
    "kind", [kind for kind in TYPES if issubclass(kind, IncrementalSet)], ids=named
)
def test_laws_of_incremental_sets(kind):
    states = KINDS[kind].states if KINDS[kind].cloned is None else KINDS[kind].cloned
    try_laws(INCREMENTAL_LAWS, states)


@pytest.mark.parametrize(
    "kind", [kind for kind in TYPES if KINDS[kind].cloned is not None], ids=named
)
def test_laws_hold_for_cloned_devices(kind):
    """A digest names dots, so it cannot tell what was written twice under one: no law for it."""
    laws = [law for law in LATTICE_LAWS if law is not digest_stands_for_a_state]
    try_laws(laws, KINDS[kind].cloned)


def test_laws_hold_for_compositions():
    @lawful
    @given(st.data())
    def check(data):
        states = data.draw(histories(data.draw(compositions())))[0]
        for law in LATTICE_LAWS:
            law(*states)

    check()


@st.composite
def histories(draw, kind):
    """Three replicas that write and hear of each other; every delta that was ever made."""
    states = [kind.bottom() for _ in REPLICAS]
    deltas = []
    for _ in range(draw(st.integers(1, 8))):
        writer, hearer = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
        if draw(st.booleans()):
            states[hearer] |= states[writer]
        delta = draw(kind.writes)(states[writer], REPLICAS[writer])
        states[writer] |= delta
        deltas.append(delta)
    return states, deltas


def come_to_the_full_states(states, deltas, network):
    """Lose, double, cut and shuffle deltas, and repair what was lost; all must agree then."""
    truth = reduce(or_, states)
    parts = [part for delta in deltas for part in delta.irreducibles()]
    sent = deltas + parts + network.sample(deltas, len(deltas) // 2)
    network.shuffle(sent)
    bottom = truth.bottom()
    for state in states:
        heard = [delta for delta in sent if network.random() < 0.5]
        reduce(or_, heard, state)  # a replica that hears only some of it must cope, too
        for delta in heard:
            state |= delta  # noqa: PLW2901  # in place
            assert state <= truth
    by_delta, by_digest, by_state = states
    by_delta |= truth - by_delta
    by_digest |= truth.delta_against(by_digest.digest())
    by_state |= truth
    assert by_delta == by_digest == by_state == truth
    assert reduce(or_, sent, bottom) == truth


@by_name
def test_deltas_lost_doubled_cut_and_shuffled_come_to_the_full_states(kind):
    @lawful
    @given(histories(KINDS[kind]), st.randoms(use_true_random=False))
    def check(history, network):
        come_to_the_full_states(*history, network)

    check()


def test_deltas_of_compositions_lost_doubled_cut_and_shuffled_come_to_the_full_states():
    @lawful
    @given(st.data(), st.randoms(use_true_random=False))
    def check(data, network):
        come_to_the_full_states(*data.draw(histories(data.draw(compositions()))), network)

    check()


@by_name
def test_mutators_change_nothing_themselves(kind):
    @lawful
    @given(histories(KINDS[kind]), KINDS[kind].writes)
    def check(history, write):
        state = history[0][2]
        before = state.copy()
        write(state, REPLICAS[2])
        assert state == before

    check()
