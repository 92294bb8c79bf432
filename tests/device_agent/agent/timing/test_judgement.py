"""Histories of one machine's clocks, on virtual time, and which of them is trusted."""

from typing import NamedTuple

import pytest

from device_agent.agent.clock import ClockReading
from device_agent.agent.timing.judgement import ALONE_US, RELEASED_US, Judgement
from device_agent.agent.timing.witnesses import Witnesses
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import DAY_US, HOUR_US, MINUTE_US

TRUE_US = RELEASED_US + 300 * DAY_US
NEAR_US, WAIT_US = 5 * MINUTE_US, 15 * MINUTE_US


class Kept(NamedTuple):
    """What a store keeps of the time."""

    past_us: int | None = None
    boots: dict[str, int] | None = None


NOTHING = Kept()


class Machine:
    """A machine whose wall clock is off by `off_us`; true time and the monotonic clock go on."""

    def __init__(self, kept: Kept = NOTHING, boot: str = "boot-1", off_us: int = 0) -> None:
        self.true_us, self.monotonic_us, self.boot = TRUE_US, 100 * SECOND_US, boot
        self.off_us, self.synchronised = off_us, False
        self.witnesses = Witnesses()
        self.judgement = Judgement(near_us=NEAR_US, wait_us=WAIT_US, **kept._asdict())
        self.said = self.look()

    def look(self) -> str:
        reading = ClockReading(
            self.true_us + self.off_us, self.monotonic_us, self.boot, self.synchronised
        )
        verdict = self.witnesses.verdict(self.monotonic_us, NEAR_US)
        self.said = self.judgement.judge(reading, verdict)
        return self.said

    def goes_on(self, time_us: int, step_us: int = 10 * SECOND_US) -> set[str]:
        """Let time pass; return all that was said of the clock."""
        said = set()
        for _ in range(time_us // step_us):
            self.true_us += step_us
            self.monotonic_us += step_us
            said.add(self.look())
        return said

    def hears(self, **off_us: int) -> None:
        """Hear the clocks of others, which are off by so much."""
        for name, off in off_us.items():
            self.witnesses.hear(
                name,
                (self.monotonic_us,),
                self.true_us + off,
                monotonic_us=self.monotonic_us,
            )

    @property
    def error_us(self) -> int | None:
        """How far the trusted time is off."""
        offset_us = self.judgement.offset_us
        return None if offset_us is None else offset_us + self.monotonic_us - self.true_us


def test_a_plausible_clock_is_trusted_at_once_by_a_device_alone():
    machine = Machine()
    assert (machine.said, machine.error_us) == ("trusted", 0)


def test_a_clock_of_1970_waits_until_it_is_set():
    machine = Machine(off_us=-TRUE_US)
    assert machine.goes_on(HOUR_US) == {"waiting"}
    assert machine.error_us is None
    machine.off_us = 0
    assert (machine.look(), machine.error_us) == ("trusted", 0)


def test_a_clock_of_1970_is_replaced_by_that_of_a_single_other():
    machine = Machine(off_us=-TRUE_US)
    machine.hears(other=0)
    assert (machine.look(), machine.error_us) == ("waiting", None)
    assert machine.goes_on(ALONE_US - SECOND_US, SECOND_US) == {"waiting"}
    assert machine.goes_on(SECOND_US, SECOND_US) == {"behind"}
    assert machine.error_us == 0


@pytest.mark.parametrize("peers", [1, 2])
def test_a_clock_of_1970_does_not_follow_a_wrong_gateway_before_the_devices_have_spoken(peers):
    machine = Machine(off_us=-TRUE_US)
    machine.hears(gateway=HOUR_US)
    seen = {machine.look()} | machine.goes_on(5 * SECOND_US, SECOND_US)
    machine.hears(**dict.fromkeys(("a", "b")[:peers], 0))
    seen |= machine.goes_on(5 * SECOND_US, SECOND_US)
    assert seen == ({"waiting"} if peers == 1 else {"waiting", "behind"})
    assert machine.error_us == (None if peers == 1 else 0), "one against one: neither is right"


def test_each_boot_waits_anew_for_a_second_clock():
    machine = Machine(off_us=-TRUE_US)
    machine.hears(gateway=HOUR_US)
    machine.goes_on(ALONE_US - SECOND_US, SECOND_US)
    machine.boot = "boot-2"
    assert machine.goes_on(ALONE_US, SECOND_US) == {"waiting"}


@pytest.mark.parametrize("off_us", [2 * DAY_US, 2 * HOUR_US, -2 * HOUR_US])
def test_a_jump_for_ten_minutes_never_moves_the_time_of_a_device_alone(off_us):
    machine = Machine()
    machine.off_us = off_us
    assert machine.goes_on(10 * MINUTE_US) == {"waiting"}
    assert machine.error_us == 0
    machine.off_us = 0
    assert (machine.look(), machine.error_us) == ("trusted", 0)


def test_a_jump_that_lasts_is_trusted_in_the_end_and_so_is_the_way_back():
    machine = Machine()
    for off_us in (2 * HOUR_US, 0):
        machine.off_us = off_us
        assert machine.goes_on(WAIT_US) == {"waiting"}
        assert machine.goes_on(MINUTE_US) == {"trusted"}
        assert machine.error_us == off_us


def test_a_clock_that_keeps_jumping_is_not_trusted():
    machine = Machine()
    for hours in range(1, 6):
        machine.off_us = hours * HOUR_US
        assert machine.goes_on(10 * MINUTE_US) == {"waiting"}
    assert machine.error_us == 0


@pytest.mark.parametrize("off_us", [2 * DAY_US, -2 * HOUR_US])
def test_a_jump_is_not_followed_where_one_other_device_tells_the_time(off_us):
    machine = Machine()
    machine.hears(pi=0)
    machine.off_us = off_us
    assert machine.goes_on(10 * MINUTE_US) == {"ahead" if off_us > 0 else "behind"}
    assert machine.error_us == 0


@pytest.mark.parametrize("percent", [-100, -5, 5])
def test_a_clock_that_stands_still_or_runs_far_too_fast_is_noticed(percent):
    machine = Machine()
    said = set()
    for _ in range(1_080):
        machine.off_us += 10 * SECOND_US * percent // 100
        said |= machine.goes_on(10 * SECOND_US)
        assert abs(machine.error_us) <= 2 * NEAR_US
    assert "waiting" in said
    machine.off_us = 0
    machine.goes_on(WAIT_US + MINUTE_US)
    assert (machine.said, machine.error_us) == ("trusted", 0)


def test_a_synchronised_clock_is_followed_at_once():
    machine = Machine(off_us=-3 * HOUR_US)  # restored at boot from the last shutdown
    machine.off_us, machine.synchronised = 0, True
    assert (machine.look(), machine.error_us) == ("trusted", 0)


def test_a_small_step_is_followed_at_once():
    machine = Machine()
    machine.off_us = 4 * MINUTE_US
    assert (machine.look(), machine.error_us) == ("trusted", 4 * MINUTE_US)


def test_a_clock_that_is_ahead_from_the_start_is_replaced_by_that_of_two_others():
    machine = Machine(off_us=2 * DAY_US)
    assert (machine.said, machine.error_us) == ("trusted", 2 * DAY_US)
    machine.hears(a=0, b=0)
    assert (machine.look(), machine.error_us) == ("ahead", 0)
    assert machine.goes_on(3 * HOUR_US) == {"ahead"}, "also when the others are gone"
    assert machine.error_us == 0
    machine.off_us = 0
    assert (machine.look(), machine.error_us) == ("trusted", 0)


@pytest.mark.parametrize("liar_us", [3 * DAY_US, -3 * DAY_US])
def test_one_liar_among_three_moves_nothing(liar_us):
    machine = Machine()
    machine.hears(a=0, b=liar_us, c=SECOND_US)
    assert machine.goes_on(HOUR_US // 2) == {"trusted"}
    assert machine.error_us == 0


@pytest.mark.parametrize("liar_us", [3 * DAY_US, -3 * DAY_US])
def test_two_of_three_are_right_where_the_third_lies_and_the_own_clock_is_wrong(liar_us):
    machine = Machine(off_us=2 * HOUR_US)
    machine.hears(a=0, b=liar_us, c=0)
    assert (machine.look(), machine.error_us) == ("ahead", 0)


def test_a_lone_peer_does_not_outweigh_the_own_clock():
    machine = Machine()
    machine.hears(a=DAY_US)
    assert (machine.look(), machine.error_us) == ("trusted", 0)


def test_three_others_do_not_outweigh_a_synchronised_clock():
    machine = Machine()
    machine.synchronised = True
    machine.hears(lander=DAY_US, a=DAY_US, b=DAY_US)
    assert (machine.look(), machine.error_us) == ("trusted", 0)


@pytest.mark.parametrize("off_us", [HOUR_US, -HOUR_US, 400 * SECOND_US])
@pytest.mark.parametrize("peers", [0, 1, 2, 9])
def test_a_clock_that_has_not_jumped_is_not_corrected_by_one_wrong_gateway(off_us, peers):
    machine = Machine()
    machine.hears(gateway=off_us, **{f"pi-{number}": 0 for number in range(peers)})
    assert machine.goes_on(HOUR_US // 2) == {"trusted"}
    assert machine.error_us == 0


@pytest.mark.parametrize("off_us", [HOUR_US, -HOUR_US, 400 * SECOND_US])
def test_six_forged_landers_beside_a_wrong_gateway_do_not_outweigh_ten_right_peers(off_us):
    machine = Machine()
    forged = {f"lander-{number}": off_us for number in range(6)}
    machine.hears(gateway=off_us, **forged, **{f"pi-{number}": 0 for number in range(10)})
    assert machine.goes_on(HOUR_US // 2) == {"trusted"}
    assert machine.error_us == 0


def test_others_that_bear_the_own_clock_out_are_counted_with_it():
    machine = Machine()
    machine.hears(a=0, b=0, **{f"lander-{number}": DAY_US for number in range(3)})
    assert (machine.look(), machine.error_us) == ("trusted", 0)
    machine.hears(c=DAY_US)
    assert (machine.look(), machine.error_us) == ("behind", DAY_US)


def test_one_other_clock_tells_which_way_a_jump_went():
    machine = Machine(off_us=-2 * DAY_US)  # restored at boot from the last shutdown
    machine.hears(gateway=0)
    assert (machine.look(), machine.error_us) == ("trusted", -2 * DAY_US)
    machine.off_us = 0  # a time server was reached
    assert (machine.look(), machine.error_us) == ("trusted", 0)


def kept_of(machine: Machine) -> Kept:
    offset_us = machine.judgement.offset_us
    assert offset_us is not None
    return Kept(offset_us + machine.monotonic_us, {machine.boot: offset_us})


def test_a_restart_in_the_same_boot_keeps_the_time_though_the_clock_is_wrong():
    kept = kept_of(Machine())
    again = Machine(kept, off_us=2 * DAY_US)
    assert (again.said, again.error_us) == ("waiting", 0)
    again.off_us = 0
    assert again.look() == "trusted"


def test_after_another_boot_a_clock_behind_the_last_trusted_time_must_stay_as_it_is():
    kept = kept_of(Machine())
    again = Machine(kept, "boot-2", off_us=-2 * HOUR_US)
    assert again.goes_on(WAIT_US - 10 * SECOND_US) == {"waiting"}
    assert again.goes_on(MINUTE_US) == {"trusted"}
    wrong = kept_of(Machine(off_us=2 * DAY_US))
    healed = Machine(wrong, "boot-2")
    assert healed.said == "waiting"
    healed.hears(a=0)
    assert (healed.look(), healed.error_us) == ("trusted", 0), "one other confirms it"


def test_after_another_boot_a_clock_of_1970_takes_the_time_of_a_lone_peer():
    again = Machine(kept_of(Machine()), "boot-2", off_us=-TRUE_US)
    again.hears(a=0)
    assert again.goes_on(ALONE_US, SECOND_US) == {"waiting"}
    assert again.goes_on(SECOND_US, SECOND_US) == {"behind"}
    assert again.error_us == 0


def test_a_sleep_is_no_jump():
    machine = Machine()
    machine.true_us += 8 * HOUR_US
    machine.monotonic_us += 8 * HOUR_US
    assert (machine.look(), machine.error_us) == ("trusted", 0)


def test_a_clock_that_is_told_to_be_right_is_trusted_whatever_speaks_against_it():
    judgement = Judgement(near_us=NEAR_US, wait_us=WAIT_US, past_us=TRUE_US)
    assert judgement.judge(ClockReading(7, 5, "boot-1"), None, trust=True) == "trusted"
    assert judgement.offset_us == 2


def test_a_clock_that_others_refuted_is_trusted_when_they_were_wrong():
    machine = Machine()
    machine.hears(lander=-2 * DAY_US, a=-2 * DAY_US)
    assert machine.look() == "ahead"
    assert machine.goes_on(MINUTE_US) == {"ahead"}
    machine.hears(lander=0, a=0)
    assert machine.look() == "trusted"
    assert machine.goes_on(2 * HOUR_US) == {"trusted"}
    assert machine.judgement.off_us == 0
