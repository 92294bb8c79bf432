"""What the clocks of others agree on."""

import random

import pytest

from device_agent.agent.timing.witnesses import (
    KEPT_US,
    LIVE_US,
    LONE_WEIGHT,
    NAMED_US,
    SLOW_US,
    WITNESS_WEIGHT,
    WITNESSES,
    Witnesses,
)
from lasp_edge.units import SECOND_US

NEAR_US = 300_000_000
TRUE_US = 10**15


def told(*offs_us: int) -> Witnesses:
    witnesses = Witnesses()
    for number, off_us in enumerate(offs_us):
        witnesses.hear(f"pi-{number}", (1,), TRUE_US + off_us, monotonic_us=0)
    return witnesses


def test_nobody_says_nothing():
    assert Witnesses().verdict(0, NEAR_US) is None


def test_two_that_disagree_say_nothing():
    assert told(0, 2 * NEAR_US).verdict(0, NEAR_US) is None


def test_one_device_alone_weighs_less_than_an_own_clock():
    assert told(5).verdict(0, NEAR_US) == (TRUE_US + 5, LONE_WEIGHT, ())


def test_a_minority_of_liars_never_moves_the_verdict_out_of_the_honest_ones():
    drawn = random.Random(5)
    for _ in range(300):
        honest = [drawn.randint(-NEAR_US // 2, NEAR_US // 2) for _ in range(drawn.randint(2, 9))]
        liars = [drawn.randint(-(10**14), 10**14) for _ in range(drawn.randrange(len(honest)))]
        both = honest + liars
        drawn.shuffle(both)
        verdict = told(*both).verdict(0, NEAR_US)
        assert verdict is not None
        assert min(honest) <= verdict.offset_us - TRUE_US <= max(honest)


def test_a_message_that_was_long_under_way_does_not_set_a_clock_back():
    witnesses = told(0)
    witnesses.hear("pi-0", (2,), TRUE_US, monotonic_us=SLOW_US - 1)
    assert witnesses.verdict(SLOW_US, NEAR_US) == (TRUE_US, LONE_WEIGHT, ())


def test_a_clock_that_was_put_right_is_believed_after_a_minute():
    witnesses = told(10**12)
    witnesses.hear("pi-0", (2,), TRUE_US + SLOW_US, monotonic_us=SLOW_US)
    assert witnesses.verdict(SLOW_US, NEAR_US) == (TRUE_US, LONE_WEIGHT, ())


def test_an_earlier_message_and_one_that_comes_again_change_nothing():
    witnesses = told(0)
    witnesses.hear("pi-0", (1,), TRUE_US + 10**12, monotonic_us=0)
    witnesses.hear("pi-0", (0,), TRUE_US + 10**12, monotonic_us=0)
    assert witnesses.verdict(0, NEAR_US) == (TRUE_US, LONE_WEIGHT, ())


@pytest.mark.parametrize("nonce", [3, 9])
def test_what_a_lander_says_after_a_restart_counts_whatever_its_nonce(nonce):
    witnesses = Witnesses()
    witnesses.hear("lander", (1, 5, 70), TRUE_US + 10**12, monotonic_us=0)
    witnesses.hear("lander", (1, nonce, 1), TRUE_US + SLOW_US, monotonic_us=SLOW_US)
    for number in (71, 72):  # and what the one before had sent changes nothing any more
        witnesses.hear("lander", (1, 5, number), TRUE_US + 10**12, monotonic_us=2 * SLOW_US)
    assert witnesses.verdict(SLOW_US, NEAR_US) == (TRUE_US, LONE_WEIGHT, ())


def test_a_restart_within_a_minute_sets_a_clock_back_after_that_minute():
    witnesses = Witnesses()
    witnesses.hear("lander", (1, 5, 70), TRUE_US + 10**12, monotonic_us=0)
    witnesses.hear("lander", (1, 3, 1), TRUE_US + 1, monotonic_us=1)
    witnesses.hear("lander", (1, 5, 71), TRUE_US + 10**12, monotonic_us=2)
    witnesses.hear("lander", (1, 3, 2), TRUE_US + SLOW_US, monotonic_us=SLOW_US)
    assert witnesses.verdict(SLOW_US, NEAR_US) == (TRUE_US, LONE_WEIGHT, ())


def test_who_was_not_heard_for_an_hour_counts_no_more():
    assert told(0, 1, 2).verdict(KEPT_US, NEAR_US) is None


def test_many_invented_witnesses_do_not_push_out_the_known_ones():
    witnesses = told(*[0] * WITNESSES)
    for number in range(10_000):
        witnesses.hear(f"x-{number}", (1,), 7, monotonic_us=1)
    assert witnesses.verdict(1, NEAR_US) == (TRUE_US, WITNESSES * WITNESS_WEIGHT, ())
    witnesses.hear("late", (1,), 7, monotonic_us=KEPT_US)
    assert witnesses.verdict(KEPT_US, NEAR_US) == (7 - KEPT_US, LONE_WEIGHT, ())


def test_a_verdict_stands_until_a_witness_counts_no_more():
    witnesses = told(0, 5)
    witnesses.hear("pi-0", (2,), TRUE_US + SLOW_US, monotonic_us=SLOW_US)
    asked_us = (SLOW_US, KEPT_US - 1, KEPT_US, KEPT_US + SLOW_US - 1, KEPT_US + SLOW_US)
    weights = [
        claim and claim.weight for at in asked_us for claim in [witnesses.verdict(at, NEAR_US)]
    ]
    alone = LONE_WEIGHT
    assert weights == [2 * WITNESS_WEIGHT, 2 * WITNESS_WEIGHT, alone, alone, None]


def test_where_many_are_known_a_further_one_is_heard_once_another_counts_no_more():
    witnesses = told(*range(WITNESSES))
    for at_us in (0, KEPT_US - 1):
        witnesses.hear("late", (1,), TRUE_US, monotonic_us=at_us)
        assert witnesses.verdict(at_us, NEAR_US) == told(*range(WITNESSES)).verdict(at_us, NEAR_US)
    witnesses.hear("late", (1,), TRUE_US + KEPT_US, monotonic_us=KEPT_US)
    assert witnesses.verdict(KEPT_US, NEAR_US) == (TRUE_US, LONE_WEIGHT, ())


def test_a_clock_that_is_behind_counts_once_it_has_gone_on():
    witnesses = Witnesses()
    for number in range(100):  # a beat every 15 seconds: the broker gave them all in one
        late_us = TRUE_US - 3_600 * SECOND_US + number * 15 * SECOND_US
        witnesses.hear("pi-0", (number,), late_us, monotonic_us=0)
        assert witnesses.verdict(0, NEAR_US, TRUE_US) is None
    for second in range(1, 20):
        now_us = second * SECOND_US
        witnesses.hear("pi-0", (100 + second,), late_us + now_us, monotonic_us=now_us)
        verdict = witnesses.verdict(now_us, NEAR_US, TRUE_US)
        assert (verdict is None) == (now_us < LIVE_US)


def test_a_clock_that_is_ahead_counts_at_once():
    assert told(NEAR_US + 1).verdict(0, NEAR_US, TRUE_US) == (
        TRUE_US + NEAR_US + 1,
        LONE_WEIGHT,
        (),
    )


def test_a_clock_is_called_wrong_for_as_long_as_it_is_heard():
    witnesses = Witnesses()
    witnesses.hear("gateway", (1, 1), 3_600 * SECOND_US, monotonic_us=0)
    near_us = 60 * SECOND_US
    assert witnesses.apart(0, NAMED_US - 1, near_us) == {"gateway": 3_600 * SECOND_US}
    assert witnesses.apart(0, NAMED_US, near_us) == {}
    witnesses.hear("gateway", (1, 2), 3_600 * SECOND_US + NAMED_US, monotonic_us=NAMED_US)
    assert witnesses.apart(0, NAMED_US, near_us) == {"gateway": 3_600 * SECOND_US}
