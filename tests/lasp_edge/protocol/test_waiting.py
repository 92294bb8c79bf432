"""Since when windows wait: a bounded stair of promises, in whatever order they come."""

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from crdts import Version
from crdts.frontier import Promise
from lasp_edge import Program, folds
from lasp_edge.protocol.limits import NEVER_US
from lasp_edge.protocol.waiting import (
    ALWAYS_US,
    DEAD_AFTER_US,
    LISTEN_US,
    Step,
    WindowWaiting,
    listen_us,
    stair,
    steps_of,
    waits_of,
)
from lasp_edge.units import SECOND_US

WAIT_US = 20
STEPS = st.lists(st.builds(Step, st.integers(0, 100), st.integers(0, 100)), max_size=12)


def due_at(steps, wait_us, now_us):
    """Return up to which end windows are due, by the definition."""
    ends = range(101)
    since = {end: [s.received_us for s in steps if s.lead_us >= end] for end in ends}
    due = [end for end in ends if since[end] and min(since[end]) + wait_us <= now_us]
    return max(due, default=None)


@given(STEPS, STEPS, st.integers(0, 150))
def test_due_is_what_the_definition_says_in_whatever_parts_promises_come(first, second, now_us):
    waiting = WindowWaiting.of([WAIT_US]).joined(second, None).joined(first, now_us)
    assert waiting.due_us(WAIT_US) == due_at(first + second, WAIT_US, now_us)
    assert waiting.joined(second, now_us) == waiting
    after = WindowWaiting.of([WAIT_US]).joined(waiting.steps, now_us)
    assert (after.due_us(WAIT_US), after.stairs) == (waiting.due_us(WAIT_US), waiting.stairs)


@example([Step(0, 5)], 5, 100)  # a promise has come just as far as the window's end
@given(STEPS, st.integers(0, 100), st.integers(0, 150))
def test_when_a_window_will_be_due_is_when_it_is(steps, end_us, now_us):
    waiting = WindowWaiting.of([WAIT_US]).joined(steps, None)
    at_us = waiting.due_at_us(WAIT_US, end_us)
    is_due = waiting.joined([], now_us).is_due(WAIT_US, end_us)
    assert is_due == (at_us is not None and at_us <= now_us)


def test_a_stair_is_bounded_and_never_early():
    wait_us, count = 10**9, 20_000
    steps = [Step(50_000 * n, n) for n in range(count)]
    kept = stair(steps, wait_us, steps[-1].received_us)
    assert len(kept) <= 4_097
    assert all(a.received_us < b.received_us and a.lead_us < b.lead_us for a, b in pairwise(kept))
    for end in (1, 777, count - 1):
        since_us = min(step.received_us for step in kept if step.lead_us >= end)
        assert 0 <= since_us - 50_000 * end < wait_us / 4_096
    assert len(stair(steps, wait_us, 3 * wait_us)) == 1, "what is old is one step"


def test_a_promise_counts_for_no_more_than_the_time_at_which_it_came():
    version = Version(1, 7, 1)
    promises = [Promise(version, low, done=False, heard_us=9) for low in (5, 7_200, None)]
    assert steps_of(promises) == [Step(9, 5), Step(9, 9)]


def test_without_x_everything_is_due_and_never_is_not_kept_at_all():
    waiting = WindowWaiting.of([0, NEVER_US]).joined([Step(5, 5)], 10**15)
    assert (waiting.stairs, waiting.steps) == ({}, frozenset())
    assert waiting.due_us(0) == ALWAYS_US
    assert waiting.due_us(NEVER_US) is None


def test_a_windows_own_x_goes_before_that_of_the_sink():
    program = Program("waits")
    event = program.event("temperature")
    sizes = {"source": event, "fold": folds.sum(), "size_s": 10}
    windows = [
        program.window("usual", **sizes),
        program.window("own", tentative_after_s=1.5, **sizes),
        program.window("sure", tentative_after_s="never", **sizes),
    ]
    waits = waits_of(windows, 15)
    assert waits == {"usual": 15, "own": 1_500_000, "sure": NEVER_US}
    assert listen_us(waits, DEAD_AFTER_US) == LISTEN_US
    assert listen_us({"usual": 0}, DEAD_AFTER_US) == DEAD_AFTER_US


def test_of_several_steps_that_have_waited_the_furthest_is_due():
    wait_us = 4_096 * SECOND_US  # steps within a second are one
    steps = [Step(10 * SECOND_US, 5 * SECOND_US), Step(12 * SECOND_US, 7 * SECOND_US)]
    waiting = WindowWaiting.of([wait_us]).joined(steps, wait_us + 12 * SECOND_US)
    assert waiting.due_us(wait_us) == 7 * SECOND_US


def test_what_was_due_stays_so_when_the_clock_goes_back():
    waiting = WindowWaiting.of([WAIT_US]).joined([Step(0, 0), Step(5, 4)], 5 + WAIT_US)
    assert waiting.due_us(WAIT_US) == 4
    assert waiting.joined([Step(1, 1)], 2 + WAIT_US).due_us(WAIT_US) == 4
