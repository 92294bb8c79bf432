"""Windows that nobody waits for any more name a device that still owes them readings."""

import pytest

from crdts import Member, Membership, Replica, Version
from crdts.frontier import BOTTOM_US
from crdts.membership import NEVER
from device_agent.gateway.core import WaitingTerms
from lasp_edge.protocol.acceptance import Record
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.owed import owed_until
from lasp_edge.protocol.sinks import SinkLow
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.topics import topic_of
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, Device, rooms, row, tick
from tests.device_agent.gateway.support_gateway import GatewayUnderTest
from tests.device_agent.gateway.test_core import START_US, read

PLAN = rooms()
ROOM, OTHER_ROOM, SLOW = "attic", "cellar", ("slow",)


def at(seconds):
    return START_US + seconds * SECOND_US


class Site:
    """A gateway, a device that goes on, and a slow one.

    Of the latter three minutes of readings were accepted, and the first has come here.
    """

    def __init__(self, **terms):
        terms = {"roster": ["slow", "well"]} | terms
        self.gateway = GatewayUnderTest(PLAN, terms=WaitingTerms(**terms))
        self.well, self.slow = Device(PLAN, "well"), Device(PLAN, "slow")
        self.ticks, self.now_s = 0, 0
        self.owed = [each for at_s in range(60, 180, 10) for each in self.reads(self.slow, at_s)]
        rows = [each for at_s in range(0, 60, 10) for each in self.reads(self.slow, at_s)]
        self.goes_on(180, *rows, self.slow.promise(at(60), BEGIN_US))

    def reads(self, device, at_s):
        return read(device, 20.0, at_s, ROOM if device is self.well else OTHER_ROOM)

    def goes_on(self, to_s, *rows):
        """Let the well device go on, and take some rows besides."""
        well = [
            each for at_s in range(self.now_s, to_s, 10) for each in self.reads(self.well, at_s)
        ]
        self.now_s, self.ticks = to_s, self.ticks + 1
        promise = self.well.promise(at(to_s), BEGIN_US + to_s * SECOND_US)
        return self.step(*well, promise, tick(self.ticks, BEGIN_US + to_s * SECOND_US), *rows)

    def step(self, *rows):
        return self.gateway.step(rows).changes.rows

    def decides(self, control, *, retired, version=(1, 1, 900)):
        """Retire the slow device, or admit it."""
        decided = Membership({"slow": Member(control, retired, Version(*version))})
        acceptance = self.gateway.acceptance
        acceptance.membership |= decided
        self.ticks += 1
        until_us = owed_until(decided, at(self.now_s), acceptance.reached_us)
        columns = {"control": control, "retired": retired, "low_us": until_us.get("slow")}
        member = {**row("member", "slow", *version), **columns}
        self.step(member, tick(self.ticks, at(self.now_s)))

    def retires_unheard(self, at_s, **version):
        """Let the gateway, which was down, hear that the slow device was retired at a time."""
        self.gateway.restart()
        self.decides(at(at_s) // SECOND_US, retired=True, **version)

    def catches_up(self):
        """Let what the slow device owed come, and its promise."""
        self.step(*self.owed)
        self.step(self.slow.promise(at(self.now_s), BEGIN_US + self.now_s * SECOND_US))

    def named(self, first_s, last_s):
        """Return whom the current final rows of the well device's room name, by their ends."""
        rows = {each.at: each for each in self.gateway.rows}
        return {
            each.excluded
            for each in rows.values()
            if each.at.window == "by_room" and each.at.key == ROOM and each.status != TENTATIVE
            if at(first_s) <= each.end_us <= at(last_s)
        }


def test_a_retired_device_is_named_where_it_had_promised_to_another_gateway_until_it_has_sent():
    site = Site()
    site.gateway.acceptance.reached_us["slow"] = at(180)
    site.decides(1, retired=True)
    site.gateway.acceptance.reached_us["slow"] = at(900)  # it goes on to run
    site.goes_on(360)
    assert site.named(0, 60) == {()}
    assert site.named(61, 180) == {SLOW}
    assert site.named(250, 360) == {()}
    site.gateway.restart()
    site.step(*site.reads(site.well, 100))  # late
    assert site.named(101, 160) == {SLOW}
    site.catches_up()
    assert site.named(0, 360) == {()}


def test_a_device_that_is_admitted_again_is_named_until_it_has_sent():
    site = Site()
    site.gateway.acceptance.reached_us["slow"] = at(180)
    site.decides(1, retired=True)
    site.goes_on(360)
    site.decides(2, retired=False)
    site.step(*site.reads(site.well, 100))
    assert site.named(101, 160) == {SLOW}
    site.catches_up()
    assert site.named(0, 360) == {()}


def test_a_device_that_had_sent_all_when_it_was_retired_is_not_named():
    site = Site()
    site.gateway.acceptance.reached_us["slow"] = at(60)
    site.decides(1, retired=True)
    site.goes_on(360)
    assert site.named(0, 360) == {()}


def test_a_device_that_was_retired_while_the_gateway_was_down_is_named_up_to_then():
    site = Site()
    site.retires_unheard(170)
    site.goes_on(360)
    assert site.named(0, 60) == {()}
    assert site.named(61, 230) == {SLOW}
    assert site.named(240, 360) == {()}
    site.gateway.restart()
    site.step(*site.reads(site.well, 100))  # late
    assert site.named(101, 160) == {SLOW}
    site.catches_up()
    assert site.named(0, 360) == {()}


def test_an_operator_whose_clock_is_ahead_has_a_retired_device_named_no_longer_than_now():
    site = Site()
    site.retires_unheard(9_000)
    site.goes_on(360)
    assert site.named(61, 230) == {SLOW}
    assert site.named(240, 360) == {()}


def test_a_device_of_which_nothing_counts_owes_nothing():
    site = Site()
    site.retires_unheard(170, version=NEVER)
    site.goes_on(360)
    assert site.named(0, 360) == {()}


def test_a_silent_device_that_is_retired_is_named_in_rows_that_were_final_without_it():
    site = Site(dead_after_us=100 * SECOND_US)
    site.gateway.acceptance.reached_us["slow"] = at(60)
    site.goes_on(360)
    site.decides(1, retired=True)
    site.step(*site.reads(site.well, 100))  # late
    assert site.named(61, 360) == {SLOW}
    site.goes_on(600)
    assert site.named(430, 600) == {()}
    site.catches_up()
    assert site.named(0, 600) == {()}


def test_a_device_that_is_retired_again_owes_what_it_had_promised_by_then():
    site = Site()
    site.gateway.acceptance.reached_us["slow"] = at(120)
    site.decides(1, retired=True)
    site.decides(2, retired=False)
    site.gateway.acceptance.reached_us["slow"] = at(180)
    site.decides(3, retired=True)
    site.goes_on(360)
    assert site.named(190, 230) == {SLOW}


def test_a_device_that_was_silent_and_is_back_is_named_until_it_has_sent():
    site = Site(dead_after_us=100 * SECOND_US)
    site.goes_on(360)
    assert site.named(61, 360) == {SLOW}
    heard_us = BEGIN_US + 361 * SECOND_US
    site.step(site.slow.promise(at(61), heard_us))
    site.step(*site.reads(site.well, 100))  # late
    assert site.named(101, 160) == {SLOW}
    site.step(*site.owed)
    site.step(site.slow.promise(at(361), heard_us))
    assert site.named(0, 360) == {()}


@pytest.mark.parametrize("is_restarted", [False, True])
def test_rows_go_on_to_name_a_silent_device_that_is_waited_for_anew(is_restarted):
    """After a restart of the gateway, a longer outage of the broker or a step of the clock."""
    site = Site(dead_after_us=100 * SECOND_US)
    site.goes_on(360)
    if is_restarted:
        site.gateway.restart()
    now_us = BEGIN_US + 361 * SECOND_US
    site.step(tick(site.ticks + 1, now_us, since_us=now_us))
    assert site.gateway.core.coverage.excluded == ()
    site.step(*site.reads(site.well, 100))  # late
    assert {row.status for row in site.gateway.rows[-1:]} == {"revised"}
    assert site.named(61, 360) == {SLOW}
    assert site.named(0, 60) == {()}
    site.step(*site.owed)
    site.step(site.slow.promise(at(361), now_us))
    assert site.named(0, 360) == {()}


def test_a_device_that_promises_less_as_a_late_reading_of_it_is_on_its_way_is_not_named():
    """It had sent all, and its reading revises a row once."""
    site = Site()
    site.catches_up()
    site.goes_on(240)
    site.step(site.well.promise(at(99), at(240)), *site.reads(site.slow, 90))
    site.step(*site.reads(site.well, 100))
    rows = len(site.gateway.rows)
    site.step(site.well.promise(at(240), at(241)))
    assert len(site.gateway.rows) == rows
    assert site.named(0, 180) == {()}


def test_a_device_whose_next_life_promises_less_is_not_named_for_that_silent_or_not():
    """What it had promised in the life before is here."""
    site = Site(dead_after_us=100 * SECOND_US)
    site.catches_up()
    site.slow.start()
    site.step(site.slow.promise(at(100), BEGIN_US + 180 * SECOND_US))
    site.goes_on(400)
    for late_s in (130, 150):
        site.step(*site.reads(site.well, late_s))
        assert {row.status for row in site.gateway.rows[-1:]} == {"revised"}
        assert site.named(0, 180) == {()}
        assert site.named(181, 400) == {SLOW}
        site.step(site.slow.promise(at(110), BEGIN_US + 400 * SECOND_US))


def test_a_beat_tells_how_far_its_device_has_promised_to_whichever_sink():
    acceptance = GatewayUnderTest(PLAN).acceptance
    beats = [
        ((at(5), at(60)), at(60)),
        ((None, at(70)), at(70)),
        ((at(90), None), at(90)),
        ((at(200_000),), at(90)),  # from the far future, or this machine's clock is wrong
        ((), BOTTOM_US),
    ]
    for number, (lows_us, reached_us) in enumerate(beats, start=1):
        lows = tuple([SinkLow(f"sink-{n}", 7, low_us) for n, low_us in enumerate(lows_us)])
        beat = BeatFrame(Replica(1, 7, "slow"), number, lows, done=False, reports=())
        topic = topic_of(beat, acceptance.topics)
        taken = acceptance.take([Record(at(100), topic, retained=False, payload=beat.encode())])
        assert not taken.refused
        assert acceptance.reached_us == {"slow": reached_us}
    acceptance.connected(at(200))  # it may have gone on meanwhile
    assert acceptance.reached_us == {}
