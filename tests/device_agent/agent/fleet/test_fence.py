"""The fence on one device: whom it asks, whom it believes, what is doubtful, and clones."""

import pytest

from crdts import Replica
from device_agent.agent.fleet.fence import ASK_AGAIN_US, MOST_SUCCESSIONS
from device_agent.agent.notices import CLONED, CLONED_US
from lasp_edge import Program, folds
from lasp_edge.protocol.fencing import HelloFrame, SourceHigh, VouchFrame, source_id
from lasp_edge.protocol.frames import BeatFrame, PaneFrame, PresenceFrame, VariableFrame
from lasp_edge.protocol.limits import INCARNATIONS_AHEAD, INCARNATIONS_BELIEVED
from lasp_edge.units import SECOND_US
from simulations.world.lander import LANDER
from tests.device_agent.agents import NOW_US, Device, partial_of
from tests.device_agent.support_entries import PEER, entry

OTHER = Replica(4, 44, "pi-3")
KEEPER = LANDER
SOURCE = source_id("test")
WAIT_S = 5
TWICE = "fence: readings that may count twice"


@pytest.fixture
def device(tmp_path):
    return Device(tmp_path, fenced=True)


@pytest.fixture
def sure(tmp_path):
    """A device that has been told already that nobody knows an earlier life of it."""
    device = Device(tmp_path, fenced=True)
    told(device, Replica(0, 0, "pi-1"), voucher=KEEPER, keeps=True)
    device.tick(2)
    assert device.core.fence.state.value == "vouched"
    return device


def hello_of(device, seconds=0.0) -> HelloFrame:
    """Let time pass until the device asks, and return its hello."""
    for _ in range(60):
        hellos = device.frames(HelloFrame, device.tick(seconds))
        if hellos:
            return hellos[-1]
        seconds = 1.0
    raise AssertionError("it asks nobody")


def told(device, life, *highs, voucher=PEER, reporter=None, keeps=True, hello=None) -> None:
    """Answer the device's hello, as somebody who keeps what he hears unless told."""
    hello = hello or hello_of(device)
    known = (life, reporter or life, highs)
    device.hear(VouchFrame.of(voucher, 1, hello, *known, keeps=keeps))


def published_kinds(device, seconds=1.0) -> set:
    return {type(frame) for frame in device.frames(object, device.tick(seconds))}


# Whom it believes.


@pytest.mark.parametrize("witnesses", [1, 2])
def test_how_far_it_had_come_is_not_believed_of_one_peer_alone(sure, witnesses):
    """A member of a signed fleet lies; its store knows better."""
    sure.read([20.0, 21.0], [NOW_US, NOW_US + SECOND_US])
    sure.tick(2)
    ahead = SourceHigh(SOURCE, NOW_US + 500 * SECOND_US, 900)
    for liar in (PEER, OTHER)[:witnesses]:
        for _ in range(3):
            hello = VouchFrame.hint(liar, 1, "pi-1")
            sure.hear(hello)
            asked = hello_of(sure, 10)
            life = Replica(1, 99, "pi-1")
            told(sure, life, ahead, voucher=liar, keeps=False, hello=asked)
            if witnesses == len((PEER, OTHER)):
                told(sure, life, ahead, voucher=PEER, keeps=False, hello=asked)
            sure.tick(2)
    sure.read([22.0], [NOW_US + 90 * SECOND_US])
    sure.tick(2)
    assert sure.counted.get("doubtful", 0) == witnesses - 1


# What leaves, and when.


def test_nothing_but_hellos_leaves_before_somebody_has_answered(device):
    device.read([20.0])
    hello = hello_of(device)
    assert published_kinds(device) == {HelloFrame}
    assert not device.core.done
    assert device.core.report()["fence"] == "asking"
    told(device, Replica(4, 9, "pi-1"), hello=hello)
    assert published_kinds(device, 0.5) <= {HelloFrame}, "another may know of a later life"
    told(device, Replica(6, 9, "pi-1"), voucher=OTHER, hello=hello)
    kinds = published_kinds(device, 1.0) | published_kinds(device, 1.0)
    assert {VariableFrame, BeatFrame, PresenceFrame} <= kinds
    assert device.core.replica.incarnation == 7
    assert device.store.replica() == tuple(device.core.replica)


def test_where_nobody_answers_it_goes_on_alone_says_so_and_goes_on_asking(device):
    for _ in range(WAIT_S):
        assert published_kinds(device) == {HelloFrame}
    assert VariableFrame in published_kinds(device) | published_kinds(device)
    assert device.core.report()["fence"] == "alone"
    assert device.store.restored().counters["fence: started alone"] == 1
    hellos = [h for _ in range(100) for h in device.frames(HelloFrame, device.tick())]
    assert 3 <= len(hellos) <= 8, "politely"


def test_sources_with_own_times_wait_for_the_answer_or_the_time(device):
    device.core.handle_disconnected()
    device.tick(0)
    assert not device.core.fence.lets_read
    device.tick(WAIT_S)
    assert device.core.fence.lets_read
    assert device.core.fence.closed, "it has asked nobody yet"


def test_each_repetition_asks_more_peers_under_one_challenge(device):
    hellos = [h for _ in range(4) for h in device.frames(HelloFrame, device.tick())]
    assert [hello.attempt for hello in hellos] == [1, 2, 3, 4]
    assert len({hello.challenge for hello in hellos}) == 1
    device.core.handle_connected(device.now_us)
    assert hello_of(device).challenge != hellos[0].challenge


def test_a_peer_that_started_just_now_says_nothing_by_knowing_nothing(device):
    told(device, Replica(0, 0, "pi-1"), keeps=False)
    device.tick(2)
    assert device.core.report()["fence"] == "asking"
    told(device, Replica(0, 0, "pi-1"), voucher=KEEPER, keeps=True)
    device.tick(2)
    assert device.core.report()["fence"] == "vouched"
    assert device.core.replica.incarnation == 1


# Whom it believes.


@pytest.mark.parametrize("change", [1, -1], ids=["another's", "an old one's"])
def test_only_an_answer_to_its_own_hello_counts(sure, change):
    hello = sure.frames(HelloFrame)[-1]
    forged = VouchFrame(PEER, 1, "pi-1", hello.challenge + change, Replica(9, 9, "pi-1"), PEER, ())
    sure.hear(forged)
    sure.tick()
    assert sure.core.replica.incarnation == 1
    assert sure.counted["frame: a vouch that was not asked for"] == 1


def test_retained_frames_of_a_later_life_make_it_ask_and_nothing_more(sure):
    later = Replica(7, 77, "pi-1")
    sure.hear(entry(sure, later, 4, (5, 500)))
    sure.hear(PresenceFrame(later, 1, online=False))
    assert sure.core.replica.incarnation == 1
    told(sure, later, hello=hello_of(sure, ASK_AGAIN_US / SECOND_US))
    assert sure.core.replica.incarnation == 8


def test_one_process_takes_no_more_incarnations_than_are_plausible(sure):
    for jump in (INCARNATIONS_AHEAD + 2, INCARNATIONS_AHEAD + 1, 2**30 - 1):
        sure.core.handle_connected(sure.now_us)
        told(sure, Replica(jump, jump, "pi-1"))
    assert sure.core.replica.incarnation == INCARNATIONS_AHEAD + 2, "one more than the second"
    for number in range(12):  # forged answers by somebody who hears each hello
        sure.core.handle_connected(sure.now_us)
        known = sure.core.replica.incarnation
        told(sure, Replica(known + INCARNATIONS_AHEAD, 100 + number, "pi-1"))
    assert sure.core.replica.incarnation == INCARNATIONS_AHEAD + 2
    assert sure.counted["frame: own incarnation too far ahead"] >= 13


def rounds(device, life, seconds, voucher=KEEPER):
    """Let somebody vouch for a life in each round of hellos for so long."""
    began_us = device.now_us
    while device.now_us < began_us + seconds * SECOND_US:
        device.core.handle_connected(device.now_us)
        told(device, life, voucher=voucher)
        device.now_us += 5 * SECOND_US


def test_who_goes_on_to_vouch_for_a_life_too_far_ahead_is_to_hear_a_later_one(sure):
    """It has taken a stranger for this device, and refuses all that is older."""
    far = Replica(1 << 20, 77, "pi-1")
    rounds(sure, far, 115)
    assert sure.core.replica.incarnation == 1
    rounds(sure, far._replace(nonce=78), 60)  # others, none of whom would hold for two minutes
    rounds(sure, far, 60, voucher=OTHER)
    assert sure.core.replica.incarnation == 1
    rounds(sure, far, 130)
    assert sure.core.replica.incarnation == (1 << 20) + 1


def test_a_life_that_leaves_few_later_ones_is_never_believed(sure):
    rounds(sure, Replica(INCARNATIONS_BELIEVED, 77, "pi-1"), 140)
    assert sure.core.replica.incarnation == 1
    rounds(sure, Replica(INCARNATIONS_BELIEVED - 1, 77, "pi-1"), 140)
    assert sure.core.replica.incarnation == INCARNATIONS_BELIEVED


def test_a_new_store_believes_several_who_vouch_for_a_long_life(device):
    hello = hello_of(device)
    told(device, Replica(5_000, 9, "pi-1"), hello=hello)
    device.tick(0.5)
    assert device.core.replica.incarnation == 1
    told(device, Replica(5_001, 8, "pi-1"), voucher=OTHER, hello=hello)
    device.tick(1)
    assert device.core.replica.incarnation == 5_002


def test_one_who_vouches_for_a_long_life_is_not_enough(device):
    hello = hello_of(device)
    told(device, Replica(5_000, 9, "pi-1"), hello=hello)
    told(device, Replica(3, 9, "pi-1"), voucher=OTHER, hello=hello)
    device.tick(2)
    assert device.core.replica.incarnation == 4
    assert device.counted["frame: own incarnation too far ahead"] == 1


# What becomes of what it holds.


def test_its_own_entry_is_published_under_the_later_life(device):
    device.read([20.0])
    told(device, Replica(7, 77, "pi-1"))
    frames = device.frames(VariableFrame, [*device.tick(2), *device.tick(2)])
    (frame,) = [each for each in frames if each.stream]
    assert (frame.sender, partial_of(frame)) == (device.core.replica, (1, 2000))
    device.restart()
    assert device.core.replica.incarnation == 9


def test_an_entry_without_samples_takes_the_old_value_back(device):
    told(device, Replica(7, 77, "pi-1"))
    frames = device.frames(VariableFrame, [*device.tick(2), *device.tick(2)])
    (frame,) = [each for each in frames if each.stream]
    assert (frame.sender.incarnation, partial_of(frame)) == (8, (0, 0))


def test_a_device_of_windows_alone_becomes_later_too(tmp_path):
    program = Program("windows only")
    temperature = program.event("temperature")
    program.window("minute", source=temperature, fold=folds.mean(), size_s=60)
    device = Device(tmp_path, program.plan(), fenced=True)
    told(device, Replica(7, 77, "pi-1"))
    published = [*device.tick(2), *device.tick(2)]
    assert {f.sender.incarnation for f in device.frames(BeatFrame, published)} == {8}
    assert {f.sender.incarnation for f in device.frames(PresenceFrame, published)} == {8}


def test_pane_entries_of_before_stay_frozen_and_are_counted_beside_those_of_after(sure):
    sure.read([20.0], [NOW_US])
    flying = sure.tick(20)
    before = sure.core.replica
    sure.core.handle_connected(sure.now_us)
    told(sure, Replica(7, 77, "pi-1"))
    sure.read([21.0], [NOW_US + 1])
    panes = {pane.incarnation: row.partial for pane, row in sure.rows()}
    assert panes == {before.incarnation: (1, 2000, 2000), 8: (1, 2100, 2100)}
    sure.acknowledge(*sure.frames(PaneFrame, flying))  # of the old name, and still counted
    sure.settle()
    entries = {at[-2]: entry[1] for at, entry in sure.landed.panes.items()}
    assert entries[8] == (1, 2100, 2100)


def test_what_no_lander_took_of_an_earlier_life_is_sent_again_at_once_by_the_later_one(sure):
    """A lander takes nothing of a life that a later one has ended, and does not answer it."""
    sure.read([20.0], [NOW_US])
    flying = [p for _ in range(60) for p in sure.tick()]
    assert len(sure.frames(PaneFrame, flying)) > 1, "it waits longer each time"
    sure.hear(PresenceFrame(Replica(7, 77, "pi-1"), 1, online=False))
    told(sure, Replica(7, 77, "pi-1"), hello=hello_of(sure, ASK_AGAIN_US / SECOND_US))
    (again,) = sure.frames(PaneFrame, sure.tick(0))
    assert again.sender.incarnation == 8
    assert again.blocks == sure.frames(PaneFrame, flying)[0].blocks


# What is doubtful.


def test_readings_that_a_lost_store_had_accepted_are_doubtful_and_newer_ones_count(device):
    told(device, Replica(7, 77, "pi-1"), SourceHigh(SOURCE, NOW_US + 10, 11))
    device.tick(2)
    device.read([20.0] * 20, [NOW_US + n for n in range(20)])
    device.tick()
    assert (device.counted["doubtful"], device.counted["accepted"]) == (11, 9)
    assert sum(row.partial[0] for _, row in device.rows()) == 9
    device.restart()
    told(device, Replica(8, 5, "pi-1"))
    device.tick(2)
    device.take([21.0], [NOW_US + 5], [{}])
    device.take([22.0], [NOW_US + 5], [{}], source="another")
    device.tick()
    assert device.counted["doubtful"] == 12, "the doubt is durable, and of one source"
    assert device.counted["accepted"] == 10


def test_what_the_store_knows_is_a_repeat_and_no_doubt(sure):
    sure.read([20.0, 21.0], [NOW_US, NOW_US + 1])
    sure.restart()
    told(sure, Replica(7, 77, "pi-1"), SourceHigh(SOURCE, NOW_US + 10, 11))
    sure.tick(2)
    sure.read([20.0, 21.0, 22.0], [NOW_US, NOW_US + 1, NOW_US + 2])
    sure.tick()
    assert (sure.counted["repeated"], sure.counted["doubtful"]) == (2, 1)


def test_a_store_that_knows_all_that_was_told_doubts_nothing(sure):
    sure.read([20.0, 21.0], [NOW_US, NOW_US + 10])
    sure.tick(5)
    (high,) = sure.frames(BeatFrame)[-1].highs
    assert high == SourceHigh(SOURCE, NOW_US + 10, 2)
    life = sure.core.replica
    sure.restart()
    told(sure, life, high)
    sure.tick(2)
    sure.read([20.5], [NOW_US + 5])
    sure.tick()
    assert sure.counted["accepted"] == 3, "late, and not doubtful"
    assert "doubtful" not in sure.counted


def test_an_older_image_of_a_known_life_doubts_what_it_lacks(sure):
    sure.read([20.0, 21.0], [NOW_US, NOW_US + 10])
    life = sure.core.replica
    sure.restart()
    told(sure, life, SourceHigh(SOURCE, NOW_US + 10, 3))
    sure.tick(2)
    sure.read([20.5], [NOW_US + 5])
    sure.tick()
    assert sure.counted["doubtful"] == 1


def test_a_high_in_the_far_future_is_bounded_by_the_clock(device):
    told(device, Replica(7, 77, "pi-1"), SourceHigh(SOURCE, 2**57, 11))
    device.tick(2)
    skew_us = device.settings.max_skew_us
    assert device.core.intake.progress.high_us <= device.now_us + skew_us
    device.now_us += 2 * skew_us
    device.read([20.0], [device.now_us])
    device.tick()
    assert device.counted["accepted"] == 1


def test_readings_of_which_all_are_doubtful_still_have_a_promise(device):
    told(device, Replica(7, 77, "pi-1"), SourceHigh(SOURCE, NOW_US + 10, 11))
    device.tick(2)
    device.read([20.0], [NOW_US + 1], done=True)
    device.tick(5)
    device.settle()
    assert device.low_us is not None


def test_what_was_accepted_alone_and_may_count_twice_is_counted(device):
    device.tick(0)
    device.tick(WAIT_S + 1)
    device.read([20.0, 21.0], [NOW_US, NOW_US + 1])
    device.restart()
    told(device, Replica(7, 77, "pi-1"), SourceHigh(SOURCE, NOW_US + 10, 11))
    device.tick(2)
    assert device.counted[TWICE] == 2


# Clones.


def test_two_living_clones_raise_the_alarm_and_end_their_race(tmp_path):
    a, b = Device(tmp_path / "a", fenced=True), Device(tmp_path / "b", fenced=True)
    for device in (a, b):
        device.read([20.0])
    for _ in range(120):
        for here, there in ((a, b), (b, a)):
            for frame in here.frames(object, here.tick()):
                there.hear(frame)
    assert a.counted["clone_alarms"] >= 1
    assert b.counted["clone_alarms"] >= 1
    most = 2 * (MOST_SUCCESSIONS + 1) + 2  # one more each in two minutes
    assert max(a.core.replica.incarnation, b.core.replica.incarnation) <= most


def test_a_beat_of_an_earlier_life_that_comes_late_is_no_clone(sure):
    late = sure.frames(BeatFrame)
    sure.restart()
    told(sure, late[0].sender)
    sure.tick(2)
    for frame in late:
        sure.hear(frame)
    assert "clone_alarms" not in sure.counted


def test_a_living_clone_of_the_same_incarnation_raises_the_alarm(sure):
    other = sure.core.replica._replace(nonce=5)
    sure.hear(BeatFrame(other, 3, (), False, ()))  # noqa: FBT003
    sure.tick(20)
    assert sure.store.restored().counters["clone_alarms"] == 1
    assert sure.core.report()["alarms"] == [CLONED] == sure.store.restored().facts.notices
    sure.tick(CLONED_US // SECOND_US + 20)
    assert sure.core.report()["alarms"] == []
    assert CLONED not in sure.store.restored().facts.notices
