"""A source that raises rests, longer each time, and is asked again; it ends nothing."""

import pytest

from device_agent.agent.intake.batch import Batch
from device_agent.agent.sources.guarded import FIRST_REST_US, LONGEST_REST_US, GuardedSource
from device_agent.agent.state.counters import Counters, Guard
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import NOW_US


class Breaking:
    """A source that raises in every method while it is broken."""

    name = "breaking"
    replayable = True

    def __init__(self):
        self.broken, self.asked, self.opened = True, 0, []

    def _maybe(self):
        self.asked += 1
        if self.broken:
            raise SystemExit(1)

    def open(self, cursor):
        self._maybe()
        self.opened.append(cursor)

    def poll(self, now_us):
        self._maybe()
        return Batch(self.name, ["temperature"], [now_us], [20.0], [{}], cursor="1")

    def due_us(self, now_us):
        self._maybe()
        return now_us

    def acknowledge(self, cursor):
        self._maybe()

    def close(self):
        self._maybe()


def test_a_source_that_breaks_rests_longer_and_longer_and_comes_back():
    guard, source = Guard(Counters({})), Breaking()
    guarded = GuardedSource(source, guard)
    guarded.open("7")
    now_us, rests = NOW_US, []
    for _ in range(9):
        assert guarded.poll(now_us) is None
        asked = source.asked
        due_us = guarded.due_us(now_us)
        assert guarded.poll(due_us - 1) is None
        assert source.asked == asked, "it rests"
        rests.append(due_us - now_us)
        now_us = due_us
    assert rests[:3] == [FIRST_REST_US, 2 * FIRST_REST_US, 4 * FIRST_REST_US]
    assert rests[-1] == LONGEST_REST_US
    source.broken = False
    assert len(guarded.poll(now_us)) == 1
    assert source.opened == ["7"]
    assert guarded.due_us(now_us) == now_us
    source.broken = True
    guarded.acknowledge("1")
    guarded.close()
    assert [reason.partition(" (")[0] for reason in guard.reasons] == [
        "failed: source breaking: SystemExit: 1"
    ]


def test_a_source_that_sleeps_is_asked_again_where_the_clock_was_set_back():
    source = Breaking()
    guarded = GuardedSource(source, Guard(Counters({})))
    source.broken = False
    guarded.open(None)
    source.broken = True
    guarded.poll(NOW_US)
    source.broken = False
    assert guarded.poll(NOW_US - 3_600 * SECOND_US) is not None


def test_a_source_that_cannot_be_read_as_it_was_asked_for_is_the_users_mistake():
    class Missing(Breaking):
        def open(self, cursor):
            raise ValueError("no such file")

    with pytest.raises(ValueError, match="no such file"):
        GuardedSource(Missing(), Guard(Counters({}))).open(None)


def test_what_a_source_found_wrong_when_it_was_opened_is_counted():
    class Other(Breaking):
        news = "it is another file than before"

    guard, source = Guard(Counters({})), Other()
    source.broken = False
    GuardedSource(source, guard).open(None)
    assert guard.reasons == ["failed: source breaking: it is another file than before"]
