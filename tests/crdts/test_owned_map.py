"""Owned entries: the newest of each device stands."""

import pytest

from crdts import OwnedMap, Replica

KITCHEN, LATER, CELLAR = Replica(1, 7, "kitchen"), Replica(2, 3, "kitchen"), Replica(1, 9, "cellar")


def test_count_and_total_travel_in_one_payload_and_are_never_torn():
    one, two = OwnedMap().put(KITCHEN, 1, (1, 10)), OwnedMap().put(KITCHEN, 2, (2, 30))
    assert (one | two).value == (two | one).value == {"kitchen": (2, 30)}


def test_a_new_life_replaces_the_earlier_one_whatever_that_had_counted_to():
    old, new = OwnedMap().put(KITCHEN, 10**6, "old"), OwnedMap().put(LATER, 1, "new")
    assert (old | new).value == {"kitchen": "new"}


def test_a_cloned_devices_entries_join_alike_everywhere():
    one, other = OwnedMap().put(KITCHEN, 1, (1, 10)), OwnedMap().put(KITCHEN, 1, (1, 9))
    assert one | other == other | one
    assert (one | other).value == {"kitchen": (1, 9)}


@pytest.mark.parametrize("payload", [[1], {1: 2}, {1}, object(), float("nan"), 2**63, "\ud800"])
def test_a_payload_that_is_no_plain_value_is_refused(payload):
    with pytest.raises(ValueError, match="a value needs"):
        OwnedMap().put(KITCHEN, 1, payload)


@pytest.mark.parametrize("seq", [0, -1, 2**40, 1.0])
def test_a_seq_out_of_range_is_refused(seq):
    with pytest.raises(ValueError, match="a seq needs an integer from 1 to"):
        OwnedMap().put(KITCHEN, seq, 0)
