"""What stands still, and what only looks like it."""

from dataclasses import dataclass

from device_agent.agent.watching.health import STILL_US, Health, Vitals
from lasp_edge.units import SECOND_US

WELL = Vitals(
    held_since_us=None, waits_for_room=False, connected=True, attempts=1, in_flight=0, confirmed=7
)
LATER_US = STILL_US + SECOND_US


@dataclass
class Watched:
    """An agent that is looked at every ten minutes."""

    health: Health
    now_us: int = 0

    def after(self, hours, vitals):
        """Return what is wrong at the end of so many hours in which nothing changes."""
        found = self.health.problems(vitals, self.now_us)
        for _ in range(6 * hours):
            self.now_us += 600 * SECOND_US
            found = self.health.problems(vitals, self.now_us)
        return found


def test_an_idle_agent_is_well():
    assert Watched(Health(SECOND_US)).after(5, WELL) == []


def test_an_agent_without_a_network_is_well_as_long_as_it_tries():
    watched = Watched(Health(SECOND_US))
    for attempts in range(100):
        away = WELL._replace(connected=False, attempts=attempts)
        assert watched.health.problems(away, watched.now_us) == []
        watched.now_us += 600 * SECOND_US


def test_a_link_that_tries_no_more_is_ill():
    watched = Watched(Health(SECOND_US))
    assert watched.after(2, WELL._replace(connected=False)) == [
        "the link has not tried to connect for 7200 s"
    ]
    assert watched.health.problems(WELL, watched.now_us) == []


def test_a_queue_of_which_nothing_is_confirmed_is_ill():
    watched = Watched(Health(SECOND_US))
    full = WELL._replace(in_flight=20)
    assert watched.after(2, full) == ["the broker has confirmed nothing for 7200 s"]
    assert watched.health.problems(full._replace(confirmed=8), watched.now_us) == []


def test_confirmations_that_take_minutes_are_no_illness():
    watched = Watched(Health(SECOND_US))
    for confirmed in range(50):
        slow = WELL._replace(in_flight=20, confirmed=confirmed)
        assert watched.health.problems(slow, watched.now_us) == []
        watched.now_us += 1_200 * SECOND_US


def test_readings_that_wait_too_long_for_their_commit_are_an_illness():
    health = Health(60 * SECOND_US)
    held = WELL._replace(held_since_us=0)
    assert health.problems(held, 180 * SECOND_US) == []
    assert health.problems(held, 181 * SECOND_US) == ["readings have waited 181 s for a commit"]


def test_a_full_disk_is_no_illness_for_a_new_process_would_lose_what_waits():
    full = WELL._replace(held_since_us=0, waits_for_room=True)
    assert Watched(Health(SECOND_US)).after(5, full) == []


def test_a_clock_that_was_set_back_is_no_illness():
    health = Health(SECOND_US)
    assert health.problems(WELL._replace(in_flight=1), LATER_US) == []
    assert health.problems(WELL._replace(in_flight=1), 0) == []
    assert health.problems(WELL._replace(in_flight=1), STILL_US) == []
