"""Registers, single assignment and extrema."""

import pytest

from crdts import IVar, LWWRegister, Max, Min, Replica
from crdts.ivar import conflict

KITCHEN, CELLAR = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")


def test_ties_commute():
    here, there = LWWRegister().write(KITCHEN, "x", 5), LWWRegister().write(CELLAR, "y", 5)
    assert here | there == there | here
    assert (here | there).value == "y", "the later replica's, on every device alike"


def test_a_clones_two_writes_under_one_stamp_commute():
    one, other = LWWRegister().write(KITCHEN, 0, 5), LWWRegister().write(KITCHEN, 0.0, 5)
    assert repr(one | other) == repr(other | one)


def test_an_older_write_changes_nothing():
    register = LWWRegister().write(KITCHEN, "new", 6)
    assert register | LWWRegister().write(CELLAR, "old", 5) == register


def test_none_can_be_written_and_bound():
    assert LWWRegister().write(KITCHEN, None, 1) != LWWRegister()
    assert IVar().bind(KITCHEN, None).is_bound


def test_two_bindings_are_a_conflict_and_join_all_the_same():
    one, other = IVar().bind(KITCHEN, 1), IVar().bind(CELLAR, 1.0)
    assert conflict(one, other)
    assert repr(one | other) == repr(other | one)
    assert not conflict(one, IVar())


def test_a_bound_variable_takes_its_value_only():
    bound = IVar().bind(KITCHEN, 1)
    assert bound.bind(CELLAR, 1) == bound
    with pytest.raises(ValueError, match=r"its value again, 1, got 1\.0"):
        bound.bind(CELLAR, 1.0)


def test_extrema_start_below_everything():
    assert (Max().value, Min().value) == (None, None)
    assert (Max() | Max().record(KITCHEN, -5)).value == -5
    with pytest.raises(ValueError, match="an extremum needs an integer"):
        Min().record(KITCHEN, 1.5)
