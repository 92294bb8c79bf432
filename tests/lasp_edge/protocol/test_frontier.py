import pytest
from hypothesis import given
from hypothesis import strategies as st

from crdts import Frontier, Member, Membership, Version
from crdts.frontier import BOTTOM_US, Promise
from lasp_edge.protocol.frontier import (
    NOTHING_HEARD,
    Listening,
    Liveness,
    Tick,
    advance,
    awaited,
    is_listening,
)

DEAD = 60


def said(low, heard, *, seq=1, done=False):
    return Promise(Version(1, 7, seq), low, done, heard)


def heard(now, since, **promises):
    return Liveness(Frontier(promises), {"lander": Tick(1, Listening(now, since))})


def newer(one, other):
    """Return which of two promises of a device counts once both were heard."""
    joined = Liveness(Frontier({"a": one})).joined(Liveness(Frontier({"a": other})))
    return joined.promises.entries["a"]


def frontier(before, known, roster=None):
    return advance(before, known, roster, DEAD).frontier


def excluded(before, known, roster=None):
    return advance(before, known, roster, DEAD).excluded


YEAR = 365 * 86_400 * 1_000_000
"""In microseconds."""


def two_landers(host_us, *, other=1_000, **promises):
    """Return what is known where a lander's clock was once a year ahead."""
    clocks = {"good": Listening(other, 0), "ahead": Listening(YEAR, 0)}
    ticks = {name: Tick(1, clock) for name, clock in clocks.items()}
    return Liveness(Frontier(promises), ticks, host_us=host_us)


def test_a_clock_that_nobody_bears_out_makes_no_device_look_dead():
    known = two_landers(1_000, a=said(500, 990), b=said(400, 995))
    assert frontier(None, known) == 400
    assert excluded(None, known) == ()
    assert excluded(None, known._replace(host_us=None)) == ("a", "b")


@pytest.mark.parametrize("host_us", [-YEAR, 1_000])
def test_a_host_whose_clock_is_behind_keeps_no_lander_from_being_believed(host_us):
    """It is believed as far as a device has promised, and as far as all clocks may differ."""
    known = two_landers(host_us, a=said(500, 990), b=said(400, 900))
    assert known.listening == Listening(1_000, 0)
    alone = known._replace(ticks={"ahead": Tick(1, Listening(YEAR, 0))})
    assert alone.listening == Listening(max(500, host_us), 0)


def test_a_void_promise_leaves_known_how_far_its_device_had_come_before_a_late_reading():
    known = Liveness(Frontier({"a": said(50, 90)}))
    after = Frontier({"a": said(40, 95, seq=2)})
    spoken = known._replace(promises=after, furthest_us=known.furthest_with(after, after.entries))
    assert spoken.voided().former_us == {"a": 50}
    assert spoken.voided().voided().former_us == {"a": 50}, "a second entry tells nothing new"


def test_landers_do_not_bear_each_other_out():
    """A lander that starts without its log is another one, with the same clock."""
    ticks = {name: Tick(1, Listening(YEAR, 0)) for name in ("first", "second")}
    assert Liveness(ticks=ticks, host_us=1_000).listening == Listening(1_000, 0)


def test_a_lander_that_listens_since_a_time_nobody_bears_out_does_not_count():
    clock = Listening(YEAR + 20, YEAR)
    known = Liveness(Frontier({"a": said(5, 9)}), {"ahead": Tick(1, clock)}, host_us=1_000)
    assert known.listening is None
    assert frontier(3, known) == 3


def test_a_device_that_reported_to_such_a_lander_alone_is_silent_since_its_promise():
    known = two_landers(1_000, a=said(990, YEAR), b=said(800, YEAR))
    assert excluded(None, known) == ("b",)


def test_a_retired_lander_does_not_count():
    members = Membership({"ahead": Member(1, retired=True, version=Version(0, 0, 0))})
    known = two_landers(None, a=said(500, 990))
    assert known._replace(membership=members).listening == Listening(1_000, 0)


def test_frontier_is_the_least_promise_of_the_live():
    assert frontier(None, heard(100, 0, a=said(50, 90), b=said(40, 95))) == 40


def test_frontier_never_falls():
    assert frontier(45, heard(100, 0, a=said(50, 90), b=said(40, 95))) == 45


def test_dead_device_is_not_waited_for_and_is_named():
    known = heard(200, 0, a=said(50, 190), b=said(40, 139))
    assert frontier(None, known) == 50
    assert excluded(None, known) == ("b",)


def test_device_is_live_for_exactly_as_long_as_was_said():
    assert frontier(None, heard(200, 0, a=said(50, 190), b=said(40, 140))) == 40


def test_without_roster_bottom_lasts_until_everybody_had_time_to_speak():
    assert frontier(None, heard(60, 0, a=said(50, 59))) is None
    assert frontier(None, heard(61, 0, a=said(50, 59))) == 50


def test_listening_that_began_anew_gives_everybody_time_but_keeps_the_frontier():
    known = heard(1_000, 990, a=said(500, 995), b=said(40, 100))
    assert frontier(45, known) == 45  # b may have been heard by nobody
    assert excluded(45, known) == ()


@pytest.mark.parametrize("roster", [None, ["a", "b"]])
def test_retired_device_is_neither_waited_for_nor_expected(roster):
    membership = Membership().retire("b", Version(1, 7, 3))
    known = heard(100, 0, a=said(50, 90), b=said(40, 95))._replace(membership=membership)
    assert advance(None, known, roster, DEAD) == (50, ("a",), ())
    back = known._replace(membership=membership | membership.admit("b"))
    assert advance(None, back, roster, DEAD) == (40, ("a", "b"), ())


def test_frontier_stands_where_everybody_was_retired():
    membership = Membership().retire("a", Version(1, 7, 3))
    known = heard(100, 0, a=said(50, 90, done=True))._replace(membership=membership)
    assert advance(30, known, None, DEAD) == (30, (), ())


def test_membership_is_joined_with_what_was_heard():
    one = NOTHING_HEARD._replace(membership=Membership().retire("a", Version(1, 7, 3)))
    other = NOTHING_HEARD._replace(membership=Membership().retire("b", Version(1, 7, 3)))
    assert one.joined(other).membership.retired.keys() == {"a", "b"}
    assert NOTHING_HEARD.membership == Membership(), "nothing was joined into it"


def test_roster_waits_for_a_device_that_was_never_heard():
    known = heard(60, 0, a=said(50, 59))
    assert frontier(None, known, ["a", "b"]) is None
    assert frontier(None, known, ["a"]) == 50


def test_roster_waits_no_longer_than_for_a_silent_device():
    known = heard(61, 0, a=said(50, 59))
    assert frontier(None, known, ["a", "b"]) == 50
    assert excluded(None, known, ["a", "b"]) == ("b",)


def test_device_outside_the_roster_neither_holds_nor_counts():
    known = heard(61, 0, a=said(50, 59), stranger=said(1, 59))
    assert advance(None, known, ["a"], DEAD) == (50, ("a",), ())


def test_nobody_live_moves_nothing():
    assert frontier(None, heard(500, 0, a=said(50, 90))) is None
    assert frontier(10, heard(500, 0, a=said(50, 90))) == 10


def test_device_that_cannot_promise_holds_nobody_up_and_is_named():
    known = heard(100, 0, a=said(50, 90), b=said(None, 95))
    assert frontier(None, known) == 50
    assert excluded(None, known) == ("b",)


def test_only_devices_that_cannot_promise_move_nothing():
    assert frontier(None, heard(100, 0, b=said(None, 95))) is None


def test_finished_device_holds_nobody_up_and_is_not_missing():
    known = heard(500, 0, a=said(50, 90, done=True), b=said(400, 499))
    assert frontier(None, known) == 400
    assert excluded(None, known) == ()


def test_all_finished_makes_everything_final_that_any_promised():
    known = heard(500, 0, a=said(50, 90, done=True), b=said(80, 90, done=True))
    assert frontier(None, known, ["a", "b"]) == 80


def test_no_tick_yet_moves_nothing():
    assert frontier(None, Liveness(Frontier({"a": said(50, 90)}))) is None
    assert frontier(None, NOTHING_HEARD) is None


def test_repeat_is_no_sign_of_life():
    once, again = said(50, 90), said(50, 400)
    assert newer(once, again).heard_us == 90
    assert newer(again, once).heard_us == 90


def test_older_version_is_no_sign_of_life():
    assert newer(said(60, 100, seq=2), said(50, 400, seq=1)) == said(60, 100, seq=2)


def test_newer_life_of_a_device_wins_though_it_promises_less():
    later = Promise(Version(2, 1, 1), 10, done=False, heard_us=100)
    assert newer(said(50, 90, seq=9), later) == later


def test_latest_clock_counts_and_who_came_latest_must_be_waited_for():
    ticks = {"a": Tick(9, Listening(100, 0)), "b": Tick(2, Listening(90, 80))}
    assert Liveness(ticks=ticks).listening == Listening(100, 80)


PROMISES = st.builds(
    Promise,
    st.builds(Version, st.integers(1, 2), st.integers(0, 1), st.integers(1, 3)),
    st.none() | st.integers(0, 9),
    st.booleans(),
    st.integers(0, 9),
)
TICKS = st.builds(
    Tick, st.integers(1, 3), st.builds(Listening, st.integers(0, 9), st.integers(0, 9))
)
HEARD = st.builds(
    Liveness,
    st.dictionaries(st.sampled_from("abc"), PROMISES).map(Frontier),
    st.dictionaries(st.sampled_from("xy"), TICKS),
    st.just(Membership()),
)


@given(HEARD, HEARD, HEARD)
def test_what_was_heard_is_a_lattice(a, b, c):
    assert a.joined(b) == b.joined(a)
    assert a.joined(b).joined(c) == a.joined(b.joined(c))
    assert a.joined(a) == a
    assert a.joined(NOTHING_HEARD) == a


@pytest.mark.parametrize("before", [None, 3])
@given(known=HEARD)
def test_frontier_is_never_below_what_it_was(before, known):
    after = advance(before, known, None, DEAD).frontier
    assert before is None or (after is not None and after >= before)


def test_windows_wait_for_live_devices_that_have_not_promised_past_their_end():
    known = heard(
        200, 0, a=said(150, 190), b=said(40, 195), gone=said(10, 100), ready=said(60, 70, done=True)
    )
    missing = awaited(known, ["a", "b", "gone", "new", "ready"], DEAD + 150)
    assert missing.before(150) == ("b", "gone", "new")
    assert missing.before(40) == ("gone", "new")
    assert missing.before(151) == (), "nobody is done with it"
    assert awaited(known, None, DEAD).before(150) == ("b",), "who is gone is not waited for"
    assert awaited(NOTHING_HEARD, ["a"], DEAD).before(0) == ()


def test_without_a_clock_nobody_is_silent_and_windows_wait_for_all():
    known = heard(
        900, 0, a=said(150, 190), b=said(40, 195), mute=said(None, 9), ready=said(9, 70, done=True)
    )._replace(ticks={})
    missing = awaited(known, ["a", "b", "mute", "new", "ready"], DEAD)
    assert missing.before(150) == ("b", "new")
    assert {name for name, _ in missing.behind(150)} == {"b", "mute", "new"}


def test_who_holds_the_frontier_far_behind_another_is_named_last_one_first():
    minute = 60_000_000
    late, later = said(4 * minute, 10 * minute), said(3 * minute, 10 * minute)
    near = said(9 * minute, 10 * minute)
    known = heard(10 * minute, 0, a=late, b=later, c=said(10 * minute, 10 * minute), d=near)
    assert awaited(known, None, 10 * minute).far_behind == ("b", "a")


def test_who_was_behind_before_all_promises_were_void_is_missing():
    told = heard(200, 0, a=said(160, 190), b=said(90, 195), ready=said(60, 70, done=True))
    known = told.voided()
    assert {each.low_us for each in known.promises.entries.values()} == {BOTTOM_US}
    missing = awaited(known, None, 2 * DEAD)
    assert missing.before(150) == (), "nobody leads"
    led = missing.led_by(None, 150)
    assert led.before(150) == ("b",)
    assert led.before(90) == ("a", "b"), "all were done with it, and are to promise anew"
    assert led.before(151) == ()
    again = known.voided().joined(heard(201, 0, b=said(155, 200, seq=2)))
    assert awaited(again, None, 2 * DEAD).led_by(160).before(160) == ("b",)
    assert awaited(again, None, 2 * DEAD).led_by(155).before(155) == ("a",)


def test_a_device_that_promises_less_than_before_its_promise_was_void_is_missing():
    known = heard(200, 0, a=said(160, 190)).voided().joined(heard(201, 0, a=said(90, 200, seq=2)))
    assert awaited(known, None, DEAD).led_by(150).before(150) == ("a",)
    again = known.voided()
    assert awaited(again, None, DEAD).led_by(150).before(150) == ("a",)
    assert again.voided().former_us == again.former_us == {"a": 90}, "a void one says nothing"


def test_nobody_leads_by_a_clock_that_is_fast():
    known = heard(200, 0, fast=said(7_200, 190), b=said(40, 195))
    assert awaited(known, None, DEAD).lead_us == 190


def test_a_sink_may_listen_for_less_than_a_silent_device_is_waited_for():
    known = heard(61, 0, a=said(50, 59))
    assert advance(None, known, None, 86_400, 60).frontier == 50
    assert advance(None, known, None, 86_400).frontier is None
    assert is_listening(None, heard(60, 0), None, 60)
    assert not is_listening(None, heard(60, 0), ["a"], 60)
    assert not is_listening(40, heard(60, 0), None, 60)


def test_who_goes_back_twice_had_come_as_far_as_before_both_times():
    """Two late readings one after the other: all up to the first promise has been sent."""
    known, furthest = heard(100, 0, a=said(50, 50)), []
    for seq, low in enumerate((40, 30, 45, 50), start=2):
        spoke = Frontier({"a": said(low, 60, seq=seq)})
        after = known.promises | spoke
        furthest_us = known.furthest_with(after, spoke.entries)
        known = known._replace(promises=after, furthest_us=furthest_us)
        furthest.append(dict(known.furthest_us))
    assert furthest == [{"a": 50}, {"a": 50}, {"a": 50}, {}]
