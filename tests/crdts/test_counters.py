"""Counters count each write once, over restarts too."""

import pytest

from crdts import Counter, GCounter, PNCounter, Replica

ME, LATER = Replica(1, 7, "kitchen"), Replica(2, 3, "kitchen")


def test_resent_delta_counts_once():
    counter = GCounter()
    delta = counter.increment(ME, 3)
    counter |= delta
    counter |= delta
    assert counter.value == 3


def test_a_restored_total_that_is_continued_would_lose_a_write_and_a_new_life_loses_none():
    before = GCounter().increment(ME, 5)
    snapshot = before.copy()
    before |= before.increment(ME, 2)  # left the device, but is not in the snapshot
    continued = snapshot | snapshot.increment(ME, 1)
    assert (before | continued).value == 7, "the restored life's write drowned in the total of 7"
    frozen = snapshot | snapshot.increment(LATER, 1)
    assert (before | frozen).value == 8


def test_a_restored_pane_that_is_continued_would_double():
    """A pane has an entry a replica: what an earlier life counted stays under its name, frozen."""
    landed = GCounter().increment(ME, 60)
    restored = landed.copy()
    continued = GCounter().increment(LATER, restored.value + 1)
    assert (landed | continued).value == 121, "the history that this is about: 61 readings"
    frozen = restored | restored.increment(LATER, 1)
    assert (landed | frozen).value == 61
    assert (landed | frozen | restored).value == 61, "re-sent unchanged, it counts once"


def test_nothing_is_never_stored():
    assert GCounter().increment(ME, 0) == GCounter()
    assert PNCounter().decrement(ME, 0) == PNCounter()


def test_counter_is_the_name_in_programs():
    counter = Counter()
    counter |= counter.increment(ME, -2)
    counter |= counter.decrement(ME, -5)
    assert counter.value == 3
    assert counter == PNCounter(GCounter({ME: 5}), GCounter({ME: 2}))


@pytest.mark.parametrize("by", [-1, 1.0, True, 2**63, "1"])
def test_what_is_no_increment_is_refused(by):
    with pytest.raises(ValueError, match="an increment needs an integer"):
        GCounter().increment(ME, by)


def test_a_total_beyond_64_bits_is_refused():
    counter = GCounter().increment(ME, 2**63 - 1)
    with pytest.raises(ValueError, match="from 0 to 0, got 1"):
        counter.increment(ME)
