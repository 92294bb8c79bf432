"""A step recomputes the windows that a pane came for, that F has passed and that are due."""

from hypothesis import given
from hypothesis import strategies as st

from cloud_tier.job.control import ControlState
from cloud_tier.job.job import Job
from cloud_tier.job.starts import StepBounds, spans_by_window, starts_of_step, too_late
from cloud_tier.lake.tables import LakeTables
from lasp_edge import Program, folds
from lasp_edge.protocol.spans import PassedFrontier

S = 1_000_000
EVERYWHERE = range(-700, 700, 20)
TIMES = st.none() | st.integers(-200, 200)


def odd(*, changes=False):
    """Return a job with a window whose size is no multiple of its slide, and perhaps changes."""
    program = Program("p")
    event = program.event("temperature")
    size_s = program.parameter("size_s", "50") if changes else 50
    program.window("odd", source=event, fold=folds.sum(), size_s=size_s, slide_s=20)
    return Job(program.plan(), LakeTables("nowhere"), retain_us=10_000 * S)


JOB = odd()
STATE = ControlState.of(JOB)
(WINDOW,) = JOB.windows


def scaled(time_s):
    return None if time_s is None else time_s * S


def recomputed(panes=(), before=None, after=None, due=(None, None), job=JOB):
    """Return the starts, in seconds."""
    panes_us = {WINDOW.stream: [pane * S for pane in panes], 5: [0]}
    at = PassedFrontier(scaled(before)), scaled(after), None, {"odd": tuple(map(scaled, due))}
    found = starts_of_step(job, ControlState.of(job), panes_us, {}, StepBounds(*at))
    spans = spans_by_window(found).get("odd", ())
    return {s for s in EVERYWHERE if any(a <= s * S <= b for a, b in spans)}


@given(st.lists(st.integers(-50, 50).map(lambda n: 10 * n), max_size=20))
def test_touched_windows_are_those_that_hold_a_touched_pane(panes):
    truth = {s for s in EVERYWHERE if any(s <= pane < s + 50 for pane in panes)}
    found = recomputed(panes)
    assert truth <= found
    # Nearer spans are joined, so some windows between two panes may be recomputed in vain.
    assert all(any(abs(s - pane) <= 60 for pane in panes) for s in found)


@given(TIMES, st.integers(-200, 200))
def test_passed_windows_are_those_whose_end_lies_between_the_frontiers(before, after):
    if before is not None and before > after:
        return
    truth = {s for s in EVERYWHERE if (before is None or before < s + 50) and s + 50 <= after}
    assert recomputed(before=before, after=after) == truth


@given(TIMES, st.integers(-200, 200), st.sampled_from([10, 20, 50]))
def test_a_window_that_operators_made_shorter_is_passed_where_its_row_ends(before, after, size):
    if before is not None and before > after:
        return
    truth = {s for s in EVERYWHERE if (before is None or before < s + size) and s + size <= after}
    assert truth <= recomputed(before=before, after=after, job=odd(changes=True))


@given(TIMES, TIMES, TIMES)
def test_windows_become_due_once_and_not_below_the_frontier(frontier, before, after):
    least = max((each for each in (frontier, before) if each is not None), default=-(10**9))
    truth = {s for s in EVERYWHERE if after is not None and least < s + 50 <= after}
    assert recomputed(before=frontier, after=frontier, due=(before, after)) == truth


def test_a_pane_is_too_late_whose_first_window_is_below_the_floor():
    rows = {WINDOW.stream: {-10_050 * S: 3, -10_000 * S: 4, 0: 1}, 5: {0: 9}}
    assert too_late(JOB, STATE.regimes, rows, None) == 0
    assert too_late(JOB, STATE.regimes, rows, 0) == 3
