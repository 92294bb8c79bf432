"""Windows that are not final: found when the frontier passes the end that they have now."""

import pytest

from device_agent.gateway.unfinished import UnfinishedWindows
from lasp_edge.protocol.waiting import Step, WindowWaiting
from lasp_edge.protocol.window_rows import WindowStart

AT = WindowStart("warm", "", 0)
X_US = 10


@pytest.mark.parametrize(("before_us", "end_us"), [(60, 30), (30, 60)], ids=["shorter", "longer"])
def test_a_window_without_a_row_that_an_operator_changes_ends_when_it_ends_now(before_us, end_us):
    unfinished = UnfinishedWindows({"warm": X_US})
    unfinished.wait(AT, before_us)
    unfinished.wait(AT, end_us)
    early, later = ([*unfinished.passed(at_us)] for at_us in (end_us - 1, end_us))
    assert (early, later) == ([], [AT])


@pytest.mark.parametrize(("before_us", "end_us"), [(60, 30), (30, 60)], ids=["shorter", "longer"])
def test_it_is_due_as_such_too(before_us, end_us):
    unfinished, known = UnfinishedWindows({"warm": X_US}), WindowWaiting.of([X_US])
    unfinished.wait(AT, before_us)
    unfinished.wait(AT, end_us)
    before = known.joined([Step(100, end_us - 1)], 100 + X_US)
    assert [*unfinished.due(before)] == []
    after = before.joined([Step(200, end_us)], 200 + X_US)
    assert [*unfinished.due(after)] == [AT]
    assert unfinished.due_at_us(after) is None
