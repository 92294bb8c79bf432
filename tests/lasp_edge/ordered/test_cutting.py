"""When an engine cuts, and where."""

from lasp_edge.ordered.cells import CELL_US, CellId, Item
from lasp_edge.ordered.cutting import WAITING_TIMES, CutPolicy

LIVE = 16


def cells(count):
    """Return so many cells of one event, with an item a second."""
    return {
        CellId("x", "", at * CELL_US): {
            Item(at * CELL_US + second * 1_000_000, second, ""): 1 for second in range(10)
        }
        for at in range(count)
    }


def cut_at(policy, count):
    return policy.at_us(cells(count), 10 * count, count * CELL_US)


def test_it_cuts_as_far_as_the_frontier_where_no_event_in_order_is_expected():
    assert cut_at(CutPolicy(LIVE, None), 8) == 7 * CELL_US


def test_it_does_not_cut_behind_the_last_event_in_order_that_is_known():
    policy = CutPolicy(LIVE, None)
    policy.know(0)
    assert cut_at(policy, 8) == 0
    policy.know(5 * CELL_US)
    assert cut_at(policy, 8) == 4 * CELL_US


def test_it_tries_again_at_once_when_another_event_in_order_is_known():
    policy = CutPolicy(LIVE, None)
    policy.know(0)
    assert cut_at(policy, 8) == 0
    policy.know(0)
    assert cut_at(policy, 8) == 0  # not before some more items
    policy.know(5 * CELL_US)
    assert cut_at(policy, 8) == 4 * CELL_US


def test_it_cuts_wherever_that_is_once_very_many_items_wait():
    policy, count = CutPolicy(LIVE, None), LIVE * WAITING_TIMES // 10 + 1
    policy.know(0)
    assert cut_at(policy, count) == (count - 1) * CELL_US
