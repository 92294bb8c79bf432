"""The other devices, as one device knows them from beats and presences."""

import random

from crdts import Replica
from device_agent.agent.fleet.agreement import Peers
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame, VariableReport

LOST, PRESENT = Replica(1, 900, "pi-1"), Replica(1, 100, "pi-1")
REPORT = VariableReport("average", 1, 77, None)


def beat(sender, number=1):
    return BeatFrame(sender, number, (), done=False, reports=(REPORT,))


def test_a_life_that_was_lost_before_its_first_beat_does_not_hide_the_next_one():
    peers = Peers(["average"])
    peers.take_presence(PresenceFrame(LOST, 1, online=True), 0)
    peers.take_presence(PresenceFrame(LOST, 2, online=False), 1)
    assert peers.take_beat(beat(PRESENT), 2) == [REPORT]
    assert peers.agreement("average", 77, ["pi-1"]) == (True, ())


def test_a_late_beat_of_a_former_life_changes_nothing():
    peers = Peers(["average"])
    later = Replica(2, 5, "pi-1")
    assert peers.take_beat(beat(later), 0) == [REPORT]
    assert peers.take_beat(beat(PRESENT, 9), 1) == []


def test_a_beat_that_says_the_same_moves_nothing():
    peers = Peers(["average"])
    peers.take_beat(beat(PRESENT), 0)
    before = peers.moves
    peers.take_beat(beat(PRESENT, 2), 1)
    peers.expire(1, 10)
    assert peers.moves == before


def test_reports_and_connections_move_what_agreements_are_made_from():
    peers, seen = Peers(["average"]), [0]

    def moved():
        seen.append(peers.moves)
        return seen[-1] > seen[-2]

    peers.take_presence(PresenceFrame(PRESENT, 1, online=True), 0)
    assert moved()
    peers.take_beat(beat(PRESENT), 0)
    assert moved()
    peers.expire(100, 10)
    assert moved()
    peers.take_beat(beat(PRESENT, 2), 100)
    assert moved()
    peers.disconnect_all()
    assert moved()


def test_who_is_connected_is_who_was_heard_in_time_however_the_clock_is_set():
    for seed in range(40):
        drawn, peers, heard_us = random.Random(seed), Peers(["average"]), {}
        number = now_us = 0
        for _ in range(200):
            now_us += drawn.choice((0, 1, 1, 2, 5, 30, -20))
            if drawn.random() < 0.5:
                number += 1
                name = f"pi-{drawn.randint(1, 4)}"
                peers.take_beat(beat(Replica(1, 1, name), number), now_us)
                heard_us[name] = now_us
            if drawn.random() < 0.7:
                peers.expire(now_us, 10)
                heard_us = {name: at for name, at in heard_us.items() if abs(now_us - at) <= 10}
                assert peers.connected() == sorted(heard_us), f"seed {seed}"


def test_the_second_lack_of_a_reported_entry_in_a_row_counts():
    peers = Peers(["average"])
    peers.take_beat(beat(PRESENT), 0)
    lacks = (True, True, False, True, True)
    assert [peers.behind("pi-1", "average", lacking=lacking) for lacking in lacks] == [
        False,
        True,
        False,
        False,
        True,
    ]


def test_of_two_reports_of_a_variable_in_one_beat_the_last_counts():
    peers, later = Peers(["average"]), REPORT._replace(digest=78)
    twice = BeatFrame(PRESENT, 1, (), done=False, reports=(REPORT, later))
    peers.take_beat(twice, 0)
    assert peers.agreement("average", 78, ["pi-1"]) == (True, ())
