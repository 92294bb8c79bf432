"""Owned entries and promises: the newest word of each device, and who said two under one number."""

import pytest

from crdts import Frontier, OwnedMap, Replica
from crdts.owned_map import clashes

KITCHEN, LATER, CELLAR = Replica(1, 7, "kitchen"), Replica(2, 3, "kitchen"), Replica(1, 9, "cellar")


def test_count_and_total_travel_in_one_payload_and_are_never_torn():
    one, two = OwnedMap().put(KITCHEN, 1, (1, 10)), OwnedMap().put(KITCHEN, 2, (2, 30))
    assert (one | two).value == (two | one).value == {"kitchen": (2, 30)}


def test_a_new_life_replaces_the_earlier_one_whatever_that_had_counted_to():
    old, new = OwnedMap().put(KITCHEN, 10**6, "old"), OwnedMap().put(LATER, 1, "new")
    assert (old | new).value == {"kitchen": "new"}


def test_a_cloned_devices_entries_join_alike_everywhere_and_are_reported():
    one, other = OwnedMap().put(KITCHEN, 1, (1, 10)), OwnedMap().put(KITCHEN, 1, (1, 9))
    assert one | other == other | one
    assert clashes(one, other) == clashes(other, one) == ["kitchen"]
    assert clashes(one, one | OwnedMap().put(CELLAR, 1, 5)) == []


@pytest.mark.parametrize("payload", [[1], {1: 2}, {1}, object(), float("nan"), 2**63, "\ud800"])
def test_a_payload_that_is_no_plain_value_is_refused(payload):
    with pytest.raises(ValueError, match="a value needs"):
        OwnedMap().put(KITCHEN, 1, payload)


@pytest.mark.parametrize("seq", [0, -1, 2**40, 1.0])
def test_a_seq_out_of_range_is_refused(seq):
    with pytest.raises(ValueError, match="a seq needs an integer from 1 to"):
        OwnedMap().put(KITCHEN, seq, 0)


def test_the_frontier_waits_for_every_device_that_counts():
    frontier = Frontier().promise(KITCHEN, 1, 60)
    assert frontier.low(["kitchen"]) == 60
    assert frontier.low(["kitchen", "cellar"]) is None
    assert frontier.low([]) is None
    frontier |= frontier.promise(CELLAR, 1, 50)
    assert frontier.low(["kitchen", "cellar"]) == 50
    assert frontier.value == {"cellar": 50, "kitchen": 60}


def test_a_promise_is_never_taken_back():
    frontier = Frontier().promise(KITCHEN, 1, 60)
    frontier |= frontier.promise(KITCHEN, 2, 40)
    frontier |= frontier.promise(LATER, 1, 50)
    assert frontier.low(["kitchen"]) == 60


def test_doubled_and_reordered_promises_leave_the_frontier_where_it_is():
    promises = [Frontier().promise(KITCHEN, seq, seq * 10) for seq in (1, 2, 3)]
    frontier = Frontier()
    for promise in [promises[2], promises[0], promises[2], promises[1], promises[0]]:
        frontier |= promise
        assert frontier.low(["kitchen"]) == 30
