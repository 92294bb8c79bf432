"""The one table of a window row's status."""

import itertools

import pytest

from lasp_edge.protocol.status import (
    FINAL,
    REVISED,
    STATUSES,
    TENTATIVE,
    status_after,
)

CASES = list(itertools.product((None, *STATUSES), (False, True), (False, True)))


@pytest.mark.parametrize(("before", "passed", "differs"), CASES)
def test_exactly_one_transition_applies_and_no_window_goes_back(before, passed, differs):
    after = status_after(before, passed=passed, differs=differs)
    order = (None, *STATUSES)
    assert order.index(after) >= order.index(before)


def test_a_window_is_final_once_the_frontier_has_passed_it_and_revised_for_ever_after():
    assert status_after(None, passed=False, differs=True) == TENTATIVE
    assert status_after(TENTATIVE, passed=False, differs=True) == TENTATIVE
    assert status_after(TENTATIVE, passed=True, differs=True) == FINAL
    assert status_after(None, passed=True, differs=True) == FINAL, "its first reading came late"
    assert status_after(FINAL, passed=True, differs=False) == FINAL
    assert status_after(FINAL, passed=True, differs=True) == REVISED
    assert status_after(REVISED, passed=True, differs=False) == REVISED
