"""Who is silent, and for how long a gateway has listened, whatever happens to its wall clock."""

import pytest

from crdts import Membership, Replica, Version
from device_agent.gateway.core import WaitingTerms
from device_agent.gateway.line import clocks_apart, line_of
from lasp_edge.protocol.acceptance import Record
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame
from lasp_edge.protocol.listening import ListeningClock
from lasp_edge.protocol.sinks import SinkLow, store_tag
from lasp_edge.protocol.topics import topic_of
from lasp_edge.units import SECOND_US
from simulations.oracle import Reading
from tests.cloud_tier.support_devices import BEGIN_US, Device, rooms
from tests.device_agent.gateway.support_gateway import GatewayUnderTest, accepted_of

PLAN = rooms()
MINUTE_US, HOUR_US, YEAR_US = 60 * SECOND_US, 3_600 * SECOND_US, 31_536_000 * SECOND_US


class Gateway(GatewayUnderTest):
    """A core on a machine whose wall clock is off; it looks once a second, as its process does."""

    def __init__(self, *, off_us=0, **terms):
        super().__init__(PLAN, terms=WaitingTerms(None, 10 * MINUTE_US, **terms))
        self.passed_us, self.off_us = 0, off_us
        self.clock = ListeningClock(
            MINUTE_US, lambda: BEGIN_US + self.passed_us + self.off_us, lambda: self.passed_us
        )
        self.clock.begin()
        self.devices = {}

    def goes_on(self, time_us, *speaking, runs=True):
        """Let time pass, in which some devices send a reading and a promise every ten seconds."""
        for second in range(time_us // SECOND_US):
            self.passed_us += SECOND_US
            if not runs:
                continue
            self.clock.look()
            if second % 10 == 0:
                self.hear(*speaking)

    def hear(self, *speaking):
        """Take what devices, whose clocks are right, send now."""
        accepted, true_us = [], BEGIN_US + self.passed_us
        for name in speaking:
            device = self.devices.setdefault(name, Device(PLAN, name))
            accepted += device.accept([Reading(name, "temperature", 20.0, true_us, {"room": "a"})])
            accepted.append(device.promise(true_us, self.clock.now_us))
        turn = self.core.join(accepted_of(PLAN, accepted)[0], self.clock.listening)
        self.keeper.commit(turn.changes)

    @property
    def behind_us(self):
        """How far F is behind true time; None while it is at bottom."""
        frontier_us = self.core.coverage.frontier
        return None if frontier_us is None else BEGIN_US + self.passed_us - frontier_us


@pytest.mark.parametrize("off_us", [-BEGIN_US, -2 * HOUR_US, 2 * HOUR_US])
def test_a_clock_that_is_set_right_after_the_start_shortens_no_listening(off_us):
    gateway = Gateway(off_us=off_us)
    gateway.goes_on(20 * SECOND_US, "a")
    gateway.off_us = 0
    gateway.goes_on(10 * MINUTE_US, "a", "b")
    assert gateway.behind_us is None
    gateway.goes_on(20 * SECOND_US, "a", "b")
    assert gateway.behind_us <= 10 * SECOND_US


@pytest.mark.parametrize("off_us", [-YEAR_US, -HOUR_US, HOUR_US, YEAR_US])
def test_a_step_of_the_clock_makes_nobody_silent_and_lets_nobody_be_silent_for_longer(off_us):
    gateway = Gateway()
    gateway.goes_on(11 * MINUTE_US, "a", "b")
    gateway.off_us = off_us
    gateway.goes_on(9 * MINUTE_US, "b")
    assert gateway.core.coverage.excluded == ()
    assert gateway.behind_us > 9 * MINUTE_US, "it waits for the one that is silent"
    gateway.goes_on(2 * MINUTE_US, "b")
    assert gateway.core.coverage.excluded == ("a",)
    gateway.off_us = 0
    gateway.goes_on(MINUTE_US, "a", "b")
    assert gateway.core.coverage.excluded == ()


def test_whoever_spoke_while_the_gateway_was_stopped_is_not_silent():
    gateway = Gateway()
    gateway.goes_on(11 * MINUTE_US, "a", "b")
    gateway.goes_on(HOUR_US, runs=False)
    gateway.clock.look()
    gateway.hear("a")
    assert gateway.core.coverage.excluded == ()
    gateway.goes_on(11 * MINUTE_US, "a")
    assert gateway.core.coverage.excluded == ("b",)


def test_what_is_committed_before_the_next_look_has_not_listened_for_longer():
    gateway = Gateway(off_us=-BEGIN_US)
    gateway.goes_on(20 * SECOND_US, "a")
    gateway.off_us = 0
    assert gateway.clock.listening.lasted_us == 0
    assert [gateway.clock.look(), gateway.clock.look()] == [True, False]


@pytest.mark.parametrize("outage_us", [20 * SECOND_US, 2 * MINUTE_US])
def test_a_broker_that_is_back_soon_does_not_let_a_gateway_begin_again(outage_us):
    gateway = Gateway()
    for _ in range(3):
        gateway.goes_on(4 * MINUTE_US, "a", "b")
        gateway.clock.end()
        gateway.goes_on(outage_us)
        gateway.clock.begin()
    gateway.goes_on(20 * SECOND_US, "a", "b")
    assert (gateway.behind_us is not None) == (outage_us < MINUTE_US)


def test_a_clock_that_runs_somewhat_fast_is_followed():
    gateway = Gateway()
    for _ in range(12):
        gateway.goes_on(MINUTE_US, "a")
        gateway.off_us += MINUTE_US * 200 // 1_000_000
    assert gateway.behind_us <= 10 * SECOND_US


def test_the_line_names_until_when_it_listens_and_then_for_whom_it_waits():
    gateway = Gateway()
    gateway.goes_on(MINUTE_US, "a", "b")
    assert shown(gateway).endswith(" UTC (for less long with --roster or --tentative-after)")
    given = Gateway(tentative_after_us=SECOND_US)
    given.goes_on(MINUTE_US, "a", "b")
    assert "--tentative-after" not in shown(given)
    gateway.goes_on(11 * MINUTE_US, "a", "b")
    assert ", final up to " in shown(gateway)
    assert "waiting" not in shown(gateway)
    gateway.goes_on(8 * MINUTE_US, "a")
    assert shown(gateway).endswith(", waiting for b")
    gateway.acceptance.held_by["b"] = "mqtt:meter"
    assert shown(gateway).endswith(", waiting for b (its source mqtt:meter is silent)")
    known = ("gateway", gateway.core, {"entries": 1, "rows": 2, "late": 0}, {}, "it refuses us")
    assert line_of(*known).endswith(", no connection (it refuses us)")
    assert line_of(*known, connected=True).endswith(", connected (it refuses us)")


def test_the_line_names_at_once_who_is_known_to_be_away():
    gateway = Gateway()
    gateway.goes_on(11 * MINUTE_US, "a", "b")
    for online in (False, True):
        frame = PresenceFrame(Replica(9, 7, "b"), 1, online=online)
        topic = topic_of(frame, gateway.acceptance.topics)
        record = Record(gateway.clock.now_us, topic, retained=False, payload=frame.encode())
        gateway.core.take([record], gateway.clock.listening)
        gateway.goes_on(20 * SECOND_US, "a")
        assert shown(gateway).endswith(", waiting for b") == (not online)


def test_the_line_names_who_delivers_to_another_gateway_of_the_name():
    gateway = Gateway()
    gateway.goes_on(11 * MINUTE_US, "a", "b")
    name, store = gateway.acceptance.sink
    gateway.acceptance.ancestors = frozenset([store_tag("before")])
    for number, at in enumerate(["other", store, "before", "", "other"], start=100):
        low = SinkLow(name, store_tag(at), None)
        frame = BeatFrame(Replica(9, 7, "b"), number, (low,), done=False, reports=())
        topic = topic_of(frame, gateway.acceptance.topics)
        record = Record(gateway.clock.now_us, topic, retained=False, payload=frame.encode())
        gateway.core.take([record], gateway.clock.listening)
        assert (", b delivers to another gateway" in shown(gateway)) == (at == "other")
    assert shown(gateway).endswith("silent for 10 minutes: give one of the two another --name")
    gateway.acceptance.membership |= Membership().retire("b", Version(9, 7, 1))
    assert "another" not in shown(gateway)


def test_whose_clocks_contradict_the_gateways_is_told_from_five_minutes_on():
    gateway = Gateway()
    told = [
        ("a", HOUR_US, 0),
        ("b", -400 * SECOND_US, 0),
        ("c", MINUTE_US, 0),
        ("d", None, HOUR_US),
    ]
    for number, (name, ahead_us, before_us) in enumerate(told, start=1):
        for of, us in ((2 * number, before_us), (2 * number + 1, ahead_us)):
            now_us = gateway.clock.now_us
            clock_s = None if us is None else (now_us + us) // SECOND_US
            sender = Replica(9, 7, name)
            frame = BeatFrame(sender, of, (), done=False, reports=(), clock_s=clock_s)
            topic = topic_of(frame, gateway.acceptance.topics)
            record = Record(now_us, topic, retained=False, payload=frame.encode())
            gateway.core.take([record], gateway.clock.listening)
    ahead_us = gateway.acceptance.ahead_us
    assert clocks_apart({"c": ahead_us["c"]}) == ""
    assert clocks_apart({each: ahead_us[each] for each in "ac"}) == (
        "the clock of a is 1.0 hours ahead of this machine's: type timedatectl there and here"
    )
    assert clocks_apart(ahead_us).startswith(
        "THIS MACHINE'S CLOCK is 0.1 hours ahead of those of 2"
    )
    assert clocks_apart({"a": HOUR_US}).startswith("the clock of a is 1.0 hours ahead")


def shown(gateway):
    return line_of("gateway", gateway.core, {"entries": 1, "rows": 2, "late": 0}, {}, "")


@pytest.mark.parametrize("outage_us", [SECOND_US, MINUTE_US])
def test_a_short_outage_is_no_part_of_how_long_a_gateway_has_listened(outage_us):
    gateway = Gateway()
    gateway.goes_on(4 * MINUTE_US, "a")
    gateway.clock.end()
    gateway.goes_on(outage_us)
    gateway.clock.begin()
    assert gateway.clock.listening.lasted_us == 4 * MINUTE_US
