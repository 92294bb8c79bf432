"""The log: how far a change is replayed, timers, failures, and what was let go."""

import pytest

from lasp_edge import Event, scans
from lasp_edge.ordered.calling import Failures
from lasp_edge.ordered.deltas import applied, netted
from lasp_edge.ordered.graph import StreamNode
from lasp_edge.ordered.log import ScanLog
from lasp_edge.ordered.oracle import outputs_of
from lasp_edge.ordered.outputs import LogName
from lasp_edge.ordered.scan import MOST_RINGS
from lasp_edge.ordered.stages import ScanStage
from tests.lasp_edge.ordered.support_streams import SCANS, drawn_event, seeded


def item(time_us, value, device="pi-1"):
    return (time_us, device, (), ()), Event("x", value, time_us, device, {})


class Recorded:
    """A log, and what it says."""

    def __init__(self, scan):
        self.failures = Failures()
        self.log = ScanLog(scan, LogName("said", "k", "pi-1"), self.failures)
        self.content = {}

    def take(self, *items, frontier_us=None):
        delta = self.log.apply(sorted(items), frontier_us)
        self.content = applied(delta, self.content)
        return delta

    def advance(self, frontier_us):
        self.content = applied(self.log.advance(frontier_us), self.content)

    @property
    def values(self):
        return [self.content[place].value for place in sorted(self.content)]


@pytest.mark.parametrize(
    ("scan", "steps", "revised"),
    [
        (scans.differences(), 2, 2),
        (scans.last(4), 4, 4),
        (scans.every(3, len), 500, 333),
        (scans.running(lambda total, event: total + event.value, 0), 500, 500),
    ],
    ids=["differences", "last", "every", "running"],
)
def test_a_late_item_is_replayed_until_the_state_agrees(scan, steps, revised):
    recorded = Recorded(scan)
    recorded.take(*[item(n, n * n) for n in range(1, 1000) if n != 500])
    before = recorded.log.steps
    delta = recorded.take(item(500, 500 * 500))
    assert recorded.log.steps - before == steps
    assert len(delta) == revised


def test_what_repeats_changes_nothing():
    recorded = Recorded(scans.differences())
    recorded.take(item(1, 5), item(2, 7))
    steps = recorded.log.steps
    assert recorded.take(item(2, 7)) == {}
    assert recorded.take((item(9, 0)[0], None)) == {}
    assert recorded.log.steps == steps


def test_one_and_one_point_zero_are_not_the_same_item():
    recorded = Recorded(scans.changes())
    recorded.take(item(1, 1), item(2, 5))
    recorded.take(item(1, 1.0))
    assert [type(value) for value in recorded.values] == [float, int]


class Kinds(scans.Scan):
    """Says what it saw before: a state that is equal, and not the same, shows."""

    name, zero = "kinds", None

    def step(self, state, event):
        return event.value, [repr(state)]


def test_a_state_agrees_only_where_its_encoding_does():
    recorded = Recorded(Kinds())
    recorded.take(item(1, 1), item(2, 5), item(3, 6))
    recorded.take(item(1, 1.0))
    assert recorded.values == ["None", "1.0", "5"]


def test_a_session_ends_by_time_alone():
    recorded = Recorded(scans.sessions(gap_s=1e-5))
    recorded.take(item(1, 0), item(5, 0), frontier_us=None)
    recorded.advance(15)
    assert recorded.values == []
    recorded.advance(16)
    assert recorded.values == [(1, 5, 2)]
    assert list(recorded.content) == [(15, "", ("said", "k"), (0,))]


def test_what_timers_said_after_the_last_item_goes_with_it():
    recorded = Recorded(scans.sessions(gap_s=1e-5))
    recorded.take(item(1, 0), item(50, 0), frontier_us=100)
    assert recorded.values == [(1, 1, 1), (50, 50, 1)]
    recorded.take((item(50, 0)[0], None), frontier_us=100)
    assert recorded.values == [(1, 1, 1)]
    recorded.take((item(1, 0)[0], None), frontier_us=100)
    assert recorded.values == []


def test_a_late_item_joins_two_sessions():
    recorded = Recorded(scans.sessions(gap_s=1e-5))
    recorded.take(item(1, 0), item(19, 0), frontier_us=100)
    delta = recorded.take(item(10, 0), frontier_us=100)
    assert recorded.values == [(1, 19, 3)]
    assert sorted(new is not None for _, new in delta.values()) == [False, True]


class Ticking(scans.Scan):
    """Sets its timer again and again, not later than it rang."""

    name, zero = "ticking", None

    def step(self, state, event):
        return event.time_us, ()

    def due(self, state):
        return state

    def ring(self, state, at_us):
        return state, [at_us]


def test_a_timer_rings_behind_what_set_it_and_not_for_ever():
    recorded = Recorded(Ticking())
    recorded.take(item(1, 0), item(4, 0), frontier_us=6)
    assert recorded.values == [2, 3, 4, 5]
    recorded.advance(10 * MOST_RINGS)
    assert len(recorded.values) == 2 + 1 + MOST_RINGS
    assert [why for why in recorded.failures.places.values() if "timers" in why]
    assert recorded.log.due_us is None
    recorded.take(item(20 * MOST_RINGS, 0), frontier_us=20 * MOST_RINGS)
    assert recorded.log.due_us == 20 * MOST_RINGS + 1


class Fragile(scans.Scan):
    """Fails where it is told to."""

    name, zero = "fragile", 0

    def step(self, state, event):
        if event.value == "raise":
            raise RuntimeError("as it was told")
        if event.value == "list":
            return [state], ()
        if event.value == "large":
            return "x" * 70_000, ()
        return state + 1, [state + 1]


@pytest.mark.parametrize("bad", ["raise", "list", "large"])
def test_a_step_that_fails_says_nothing_and_leaves_the_state(bad):
    recorded = Recorded(Fragile())
    recorded.take(item(1, 0), item(2, bad), item(3, 0))
    assert recorded.values == [1, 2]
    assert list(recorded.failures.places) == [item(2, bad)[0]]
    recorded.take((item(2, bad)[0], None))
    assert not recorded.failures.places
    assert recorded.values == [1, 2]


def test_what_was_let_go_lives_on_in_the_state():
    recorded = Recorded(scans.differences())
    recorded.take(*[item(n, n * n) for n in range(1, 10)])
    assert recorded.log.cut(6).state == 25
    assert len(recorded.log) == 4
    recorded.take(item(10, 100))
    recorded.take((item(6, 36)[0], None))
    assert recorded.values[-4:] == [49 - 25, 15, 17, 19]


@pytest.mark.parametrize("cut_us", [1, 5, 9, 14, 18, 19, 30, 31, 41])
@pytest.mark.parametrize(
    "scan",
    [scans.sessions(gap_s=1e-5), scans.last(2), Ticking(), scans.pattern(bool, absent_s=3e-6)],
    ids=["sessions", "last", "ticking", "pattern"],
)
def test_a_log_goes_on_from_where_another_was_cut(scan, cut_us):
    whole, items = Recorded(scan), [item(n, 1) for n in (1, 4, 8, 30, 40)]
    whole.take(*items, frontier_us=60)
    first = Recorded(scan)
    first.take(*[each for each in items if each[0][0] < cut_us + 5])
    first.advance(cut_us)
    base = first.log.cut(cut_us)
    log = ScanLog(scan, LogName("said", "k", "pi-1"), Failures(), base)
    delta = log.apply([each for each in items if each[0][0] >= cut_us], 60) | log.advance(60)
    expected = {place: e for place, e in whole.content.items() if place[0] >= cut_us}
    assert applied(delta, {}) == expected
    assert log.cut(60) == whole.log.cut(60)


def test_what_a_cut_log_said_before_is_not_taken_back():
    recorded = Recorded(scans.sessions(gap_s=1e-5))
    recorded.take(item(1, 0), item(50, 0), frontier_us=60)
    recorded.log.cut(20)
    assert recorded.take(item(45, 0), frontier_us=60) == {}
    recorded.advance(70)
    assert recorded.values == [(1, 1, 1), (45, 50, 2)]


def test_what_a_timer_said_before_a_cut_behind_which_nothing_is_stays_too():
    recorded = Recorded(scans.sessions(gap_s=1e-5))
    recorded.take(item(1, 0), frontier_us=20)
    assert recorded.values == [(1, 1, 1)]
    recorded.log.cut(20)
    recorded.take(item(50, 0), frontier_us=30)
    recorded.take(item(45, 0), frontier_us=100)
    assert recorded.values == [(1, 1, 1), (45, 50, 2)]


class Fractional(scans.Scan):
    """Sets its timer between two microseconds."""

    name, zero = "fractional", None

    def step(self, state, event):
        return event.time_us, ()

    def due(self, state):
        return None if state is None else state + 1.5

    def ring(self, state, at_us):
        return None, [at_us]


def test_a_timer_between_two_microseconds_never_rings_for_the_oracle_either():
    recorded = Recorded(Fractional())
    recorded.take(item(1, 0), item(5, 0), frontier_us=20)
    content = dict([item(1, 0), item(5, 0)])
    stage = ScanStage(Fractional(), "said")
    truth = outputs_of([StreamNode("said", stage, ("x",))], {"x": content}, 20)["said"]
    assert recorded.values == list(truth.values()) == []
    assert any("whole microseconds" in why for why in recorded.failures.places.values())


@pytest.mark.parametrize("name", SCANS)
def test_what_comes_at_the_end_is_taken_as_if_it_had_come_late(name, monkeypatch):
    """The shorter way and the replay: the same outputs, states, steps and failures."""
    rng, changes, at_us = seeded(11), [], 0
    for _ in range(60):
        at_us += rng.choice((0, 1, 2, 7)) * 1_000_000
        event = drawn_event(rng, (at_us, rng.choice("ab")))
        if not changes or (at_us, event.device) > changes[-1][0][:2]:
            changes.append(((at_us, event.device, (), ()), event))
    short, long = Recorded(SCANS[name]), Recorded(SCANS[name])
    appended = []
    while changes:
        batch, changes = changes[:4], changes[4:]
        frontier_us = batch[-1][0][0] - rng.choice((0, 3_000_000, 30_000_000))
        for recorded in (short, long):
            recorded.advance(frontier_us)
        found = short.take(*batch, frontier_us=frontier_us)
        with monkeypatch.context() as slowly:
            slowly.setattr(ScanLog, "append", lambda *_: appended.append(1) or long_way(*_))
            assert long.take(*batch, frontier_us=frontier_us) == found
    assert appended
    assert short.content == long.content
    assert short.log.steps == long.log.steps
    assert (short.log.state, short.log.due_us) == (long.log.state, long.log.due_us)
    assert short.failures.places == long.failures.places


def long_way(log, changes, frontier_us=None):
    """Take changes as `apply` takes what comes late."""
    gone, come = {}, {}
    dirty = log._put(changes, gone)
    log._replay(dirty, gone, come, frontier_us)
    return netted(gone, come)
