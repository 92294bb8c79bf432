"""What forgets must forget right: sets, registers, flags and maps on dots and contexts."""

import pickle
import random
import subprocess
import sys
import tracemalloc

import pytest

from crdts import (
    CausalContext,
    DWFlag,
    EWFlag,
    GCounter,
    GSet,
    MVRegister,
    ORMap,
    ORSet,
    Pair,
    PNCounter,
    Replica,
    TwoPSet,
    decode,
    encode,
)
from crdts.causal_context import MAX_CLOUD, index_of, pack, unpack

KITCHEN, LATER, CELLAR = Replica(1, 7, "kitchen"), Replica(2, 3, "kitchen"), Replica(1, 9, "cellar")


def test_an_add_that_was_not_observed_survives_the_removal():
    here = ORSet().add(KITCHEN, "milk")
    there = here.copy()
    here |= here.remove(KITCHEN, "milk")
    there |= there.add(CELLAR, "milk")
    assert (here | there).value == {"milk"}


def test_partial_delta_with_a_full_context_would_delete_data_and_a_deltas_own_dots_do_not():
    sender = ORSet()
    sender |= sender.add(KITCHEN, "a")
    delta = sender.add(KITCHEN, "b")
    sender |= delta
    receiver = ORSet().add(KITCHEN, "a")
    wrong = delta.part(dict(delta.dots), sender.context.copy())
    assert (receiver | wrong).value == {"b"}, "the history that this is about"
    assert (receiver | delta).value == {"a", "b"}
    assert (ORSet() | delta).value == {"b"}
    assert set(delta.context) == set(delta.dots)


def test_a_set_that_was_emptied_shrinks_to_its_vector():
    state = ORSet()
    for number in range(1_000):
        state |= state.add(KITCHEN, number)
    for number in range(1_000):
        state |= state.remove(KITCHEN, number)
    assert (state.dots, state.labels, state.context.cloud) == ({}, {}, set())
    assert len(state.context.vector) == 1
    assert len(encode(state)) < 30


def test_adding_again_leaves_one_dot():
    state = ORSet()
    for _ in range(100):
        state |= state.add(KITCHEN, "milk")
        state |= state.add(CELLAR, "milk")
    assert len(state.dots) == 1


def test_two_payloads_of_one_dot_join_alike_everywhere():
    one, other = ORSet().add(KITCHEN, "a"), ORSet().add(KITCHEN, "b")
    assert one | other == other | one
    assert (one | other).value == {"b"}


def test_restart_with_an_old_snapshot_is_a_new_replica_and_loses_nothing_of_either_life():
    snapshot = ORSet().add(KITCHEN, "before")
    first_life = snapshot | snapshot.add(KITCHEN, "unsaved")
    second_life = snapshot | snapshot.add(LATER, "after")
    assert (first_life | second_life).value == {"before", "unsaved", "after"}
    continued = snapshot | snapshot.add(KITCHEN, "after")
    assert len((first_life | continued).value) == 2, "why a dot's replica is never used again"


def moved(state, delta):
    """Return what a join moves: the elements that went live and those that went, by token."""
    moved = list(state.join_tokens(delta))
    return [e for _, e, weight in moved if weight > 0], [e for _, e, weight in moved if weight < 0]


def test_a_join_tells_which_writes_came_and_which_went():
    state = ORSet()
    assert moved(state, state.add_many(KITCHEN, ["a", "b"])) == (["a", "b"], [])
    assert moved(state, state.add(CELLAR, "a")) == (["a"], ["a"]), "one write in place of another"
    concurrent = ORSet().add(LATER, "b")
    assert moved(state, concurrent) == (["b"], [])
    assert moved(state, concurrent) == ([], [])
    assert moved(state, state.remove(KITCHEN, "b")) == ([], ["b", "b"])
    assert moved(state, state.clear(KITCHEN)) == ([], ["a"])


def test_a_two_phase_join_does_not_tell_of_what_was_never_in():
    state = TwoPSet()
    assert moved(state, state.remove(KITCHEN, 1)) == ([], [])
    assert moved(state, state.add(KITCHEN, 1) | state.add(KITCHEN, 2)) == ([2], [])
    assert moved(state, state.remove(KITCHEN, 2)) == ([], [2])
    assert moved(state, state.add(KITCHEN, 3) | state.remove(KITCHEN, 3)) == ([], [])
    assert moved(GSet(), GSet({1})) == ([1], [])


def test_add_many_is_the_same_as_its_elements_one_by_one():
    batch = ORSet().add(CELLAR, 3)
    single = batch.copy()
    batch |= batch.add_many(KITCHEN, [1, 2, 3, 1])
    for element in (1, 2, 3):
        single |= single.add(KITCHEN, element)
    assert batch == single


def test_a_batch_never_spends_a_dot_that_was_heard_of_beyond_a_gap():
    """A writer that lost a delta of its own, and then hears of what it wrote after that."""
    state = ORSet().add(KITCHEN, "first")
    state |= (state | state.add(KITCHEN, "lost")).add(KITCHEN, "third")
    assert len(state.context.cloud) == 1
    batch = state.add_many(KITCHEN, ["a", "b", "c"])
    assert not state.dots.keys() & batch.dots.keys()
    assert (state | batch).value == {"first", "third", "a", "b", "c"}


def defined_add(state, me, element):
    """The delta of an add, as `Causal.written` and `Labelled.part` define it."""
    dot, replaced = state.context.next_dot(me), state.dots_of(element)
    return state.part({dot: element}, CausalContext.of((dot, *replaced)))


@pytest.mark.parametrize("seed", range(100))
def test_a_single_add_is_made_and_joined_as_the_definition_says(seed):
    """Twins of three replicas: one takes the fast path, one the definition; deltas come late."""
    draw = random.Random(f"single adds {seed}")
    writers = (KITCHEN, LATER, CELLAR)
    fast, slow = ([ORSet() for _ in writers] for _ in range(2))
    deltas = []
    for _ in range(60):
        at, element = draw.randrange(3), draw.randrange(4)
        if draw.random() < 0.7:
            deltas.append(fast[at].add(writers[at], element))
            assert deltas[-1] == defined_add(slow[at], writers[at], element)
            assert deltas[-1].labels == {element: next(iter(deltas[-1].dots))}
        else:
            deltas.append(fast[at].remove(None, element))
        for hearer, heard in ((at, deltas[-1]), (draw.randrange(3), draw.choice(deltas))):
            fast[hearer] |= heard
            slow[hearer].join_dots(heard)
            assert fast[hearer] == slow[hearer]
            assert fast[hearer].labels == slow[hearer].labels
    assert any(state.context.cloud for state in fast), "gaps were met"


def test_concurrent_values_are_kept_until_somebody_settles_them():
    one, other = MVRegister().write(KITCHEN, 1), MVRegister().write(CELLAR, 2)
    both = one | other
    assert both.value == (1, 2)
    assert (both | both.write(KITCHEN, 3)).value == (3,)


@pytest.mark.parametrize(("flag", "winner"), [(EWFlag, True), (DWFlag, False)])
def test_in_a_conflict_the_flags_name_says_who_wins(flag, winner):
    base = flag()
    base |= base.enable(KITCHEN)
    base |= base.disable(KITCHEN)
    base |= base.enable(CELLAR)
    assert (base | base.enable(KITCHEN) | base.disable(CELLAR)).value is winner
    assert (base | base.disable(KITCHEN)).value is False
    assert (base | base.disable(KITCHEN) | base.enable(CELLAR)).value is winner


def test_a_key_that_comes_back_starts_anew():
    state = ORMap(ORSet())
    state |= state.update(KITCHEN, "market", ORSet.add, "milk")
    state |= state.remove(KITCHEN, "market")
    assert (state.value, "market" in state, state["market"].value) == ({}, False, frozenset())
    state |= state.update(KITCHEN, "market", ORSet.add, "bread")
    assert state.value == {"market": {"bread"}}


def test_a_removed_set_and_its_successor_never_share_a_dot():
    mine = ORMap(ORSet()).update(KITCHEN, "k", ORSet.add, "a")
    theirs = mine | mine.update(CELLAR, "k", ORSet.remove, "a")
    mine |= mine.remove(KITCHEN, "k")
    mine |= mine.update(KITCHEN, "k", ORSet.add, "b")
    assert (mine | theirs).value == {"k": {"b"}}


def test_a_map_of_maps_of_sets_is_one_flat_state():
    def put(inner, me, room, element):
        return inner.update(me, room, ORSet.add, element)

    state = ORMap(ORMap(ORSet()))
    state |= state.update(KITCHEN, "house", put, "hall", "coat")
    state |= state.update(CELLAR, "house", put, "hall", "hat")
    state |= state.update(CELLAR, "house", ORMap.remove, "attic")
    assert state.value == {"house": {"hall": {"coat", "hat"}}}
    assert decode(encode(state)) == state
    assert min(state.dots.values()) == ("house", ("hall", "coat"))


def test_a_map_of_counters_counts_on_and_forgets_what_was_removed():
    state = ORMap(PNCounter())
    for _ in range(3):
        state |= state.update(KITCHEN, "visits", PNCounter.increment, 2)
    state |= state.update(CELLAR, "visits", PNCounter.decrement, 1)
    assert (state.value, len(state.dots)) == ({"visits": 5}, 2)
    removal = state.remove(CELLAR, "visits")
    concurrent = state.update(KITCHEN, "visits", PNCounter.increment, 1)
    assert (state | removal).value == {}
    assert (state | removal | concurrent).value == {"visits": 7}, "what its writer counted survives"
    state |= removal
    state |= state.update(KITCHEN, "visits", PNCounter.increment, 1)
    assert state.value == {"visits": 1}


def test_a_map_refuses_a_product_with_a_causal_part():
    with pytest.raises(ValueError, match="embedded by themselves"):
        ORMap(Pair(GCounter(), Pair(ORSet(), GCounter())))


@pytest.mark.parametrize("element", [True, 1.5, [1], {1}, object(), 2**63, -(2**63) - 1, "\ud800"])
def test_what_is_no_element_is_refused(element):
    with pytest.raises(ValueError, match="an element needs"):
        ORSet().add(KITCHEN, element)
    with pytest.raises(ValueError, match="an element needs"):
        GSet().add(KITCHEN, element)


@pytest.mark.parametrize(
    "digest",
    [
        None,
        ({}, 0),
        ({}, 10**9, {"d": (1, 0, (0, 10**9))}),
        ({}, 1, {"d": (1, 0, (0, 2))}),
        ({"d": (1, 0, (5, 10**9))}, 0, {}),
        ({"d": (1, 0, ())}, 0, {}),
    ],
)
def test_a_peers_digest_is_checked_before_it_costs_anything(digest):
    with pytest.raises(ValueError, match="need"):
        ORSet().delta_against(digest)


def test_a_digest_brings_a_peer_up_to_date_without_the_elements_it_has():
    mine = ORSet()
    mine |= mine.add_many(KITCHEN, range(100))
    theirs = mine.copy()
    mine |= mine.add(KITCHEN, "new")
    mine |= mine.remove(KITCHEN, 5)
    delta = mine.delta_against(theirs.digest())
    assert (delta.value, len(delta.context)) == ({"new"}, 2)
    assert theirs | delta == mine


def test_a_context_closes_its_gaps_in_any_order():
    dots = [pack(KITCHEN, seq) for seq in (5, 3, 1, 4, 2, 7)]
    context = CausalContext()
    for dot in dots:
        context |= CausalContext.of([dot])
    assert context == CausalContext.of(dots)
    assert (len(context.vector), len(context.cloud), len(context)) == (1, 1, 6)
    assert context.to_plain() == {"kitchen": (1, 7, (0, 5, 1, 1))}
    assert CausalContext.from_plain(context.to_plain()) == context
    assert sorted(unpack(dot).seq for dot in context) == [1, 2, 3, 4, 5, 7]


def test_a_vector_that_overtakes_the_cloud_takes_it_in():
    context = CausalContext.of([pack(KITCHEN, seq) for seq in (3, 6, 7, 9)])
    context |= CausalContext.of([pack(KITCHEN, seq) for seq in range(1, 6)])
    assert context.to_plain() == {"kitchen": (1, 7, (0, 7, 1, 1))}


def test_a_state_means_the_same_in_another_process():
    state = ORSet().add(Replica(1, 1, "only here"), "first") | ORSet().add(KITCHEN, "second")
    there = (
        "import pickle, sys; from crdts import *; "
        "pack = ORSet().add(Replica(9, 9, 'another'), 'x'); "
        "state = pickle.loads(bytes.fromhex(sys.argv[1])); print(encode(state).hex())"
    )
    command = [sys.executable, "-c", there, pickle.dumps(state).hex()]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == encode(state).hex()


@pytest.mark.parametrize("writes", [MAX_CLOUD, 1 << 22, (1 << 23) + 5])
@pytest.mark.parametrize("live", [(), (1,), (1, 70_000, MAX_CLOUD)])
def test_writes_that_are_gone_are_not_listed_however_many_they_are(writes, live):
    """A few bytes may say of any number of writes that they were removed."""
    context = CausalContext({index_of(KITCHEN): writes})
    state = ORSet().part({pack(KITCHEN, seq): f"{seq}" for seq in live}, context)
    known = ORSet().add(CELLAR, "milk")
    known |= known.add(KITCHEN, "bread")
    tracemalloc.start()
    delta, missing = state - known, state.delta_against(known.digest())
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 1_000_000
    assert known | delta == known | missing == known | state
    assert state - (known | delta) == ORSet()


def test_what_a_device_asks_for_is_not_listed_write_by_write():
    blocks = tuple(range(1, 2 * MAX_CLOUD, 64))
    state = ORSet().part({}, CausalContext({index_of(KITCHEN): 1 << 39}))
    state |= state.add(CELLAR, "milk")
    asked = state.context.to_plain(), 12, {"kitchen": (1, 7, blocks, (1,) * len(blocks))}
    assert state.delta_against(asked) == state


def test_pieces_of_a_state_with_few_live_writes_among_many_that_are_gone_are_few():
    seqs = (1, 1 << 38, 1 << 39)
    context = CausalContext({index_of(KITCHEN): 1 << 39})
    state = ORSet().part({pack(KITCHEN, seq): f"{seq}" for seq in seqs}, context)
    for element in range(50):
        state |= state.add(CELLAR, element)
    pieces = list(state.pieces(100))
    assert 1 < len(pieces) < 50
    assert all(piece <= state for piece in pieces)
    joined = ORSet()
    for piece in reversed(pieces):
        joined |= piece
    assert joined == state
