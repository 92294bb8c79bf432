"""What an earlier life had sent comes too late once a later one has spoken."""

from crdts import Membership, Replica, Version
from lasp_edge.protocol import witness
from lasp_edge.protocol.acceptance import OF_AN_EARLIER_LIFE
from lasp_edge.protocol.fencing import HelloFrame, SourceHigh
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.lives import KEPT_LIVES, SILENT_US, Lives
from tests.lasp_edge.protocol.support_frames import (
    LANDER,
    ME,
    OPERATOR,
    acceptance,
    panes,
    record,
    rooms,
)
from tests.support_commands import member_command
from tests.support_sizes import most_held

PLAN = rooms()
LATER = ME._replace(incarnation=ME.incarnation + 1, nonce=8)


def life(incarnation, nonce):
    return Replica(incarnation, nonce, "attic")


def hello(replica, challenge=77):
    return HelloFrame(replica, 1, replica.device, challenge, 1)


def reasons(accepted):
    return [reason for _, reason in accepted.refused]


# Which lives are heard.


def test_an_earlier_life_is_not_heard_after_a_later_one_and_may_never_have_been():
    lives = Lives()
    assert lives.delivers(life(3, 7))
    assert lives.delivers(life(4, 8))
    assert not lives.delivers(life(3, 7))
    assert not lives.delivers(life(2, 6))
    assert lives.delivers(life(4, 8))


def test_two_copies_that_are_alive_are_both_heard_once_each_is_later_than_the_other_was():
    lives = Lives()
    lives.delivers(life(1, 7))
    lives.delivers(life(2, 8))
    assert lives.delivers(life(3, 7)), "it took a later incarnation"
    assert lives.delivers(life(2, 8))
    assert lives.delivers(life(3, 7))


def test_a_life_that_said_hello_alone_ends_the_one_of_which_a_frame_came_between():
    lives = Lives()
    assert lives.announces(life(1, 8), 0)
    assert lives.delivers(life(2, 7), 1), "held up by the network"
    assert lives.announces(life(3, 8), 2), "it was told of that one"
    assert not lives.delivers(life(2, 7), 3)
    assert lives.delivers(life(3, 8), 3)
    assert lives.delivers(life(4, 7), 4), "it is a copy, and alive"
    assert lives.delivers(life(3, 8), 5)


def test_of_two_lives_of_one_incarnation_the_one_that_came_first_is_heard():
    lives = Lives()
    heard = [lives.delivers(life(1, nonce)) for nonce in (7, 8, 7, 8)]
    assert heard == [True, False, True, False]
    assert lives.delivers(life(2, 8))
    assert not lives.delivers(life(1, 7))


def test_devices_do_not_concern_each_other():
    lives = Lives()
    assert lives.delivers(life(9, 7))
    assert lives.delivers(Replica(1, 8, "cellar"))


def test_some_lives_of_a_device_are_remembered_and_no_forgotten_one_is_heard():
    lives = Lives()
    for incarnation in range(1, 100):
        assert lives.delivers(life(incarnation, incarnation))
    assert not any(lives.delivers(life(n, n)) for n in range(1, 99))
    assert most_held(lives) == KEPT_LIVES


def test_what_was_heard_before_a_restart_of_the_lander_counts():
    lives = Lives()
    assert not lives.delivers(life(3, 7), 0, witness.Testimony(life(4, 8)))
    assert lives.delivers(life(4, 8), 0, witness.Testimony(life(4, 8)))


def test_where_only_the_incarnation_is_known_a_life_that_has_it_is_heard():
    assert Lives().delivers(life(4, 8), 0, witness.Testimony(life(4, 0)))
    assert not Lives().delivers(life(3, 8), 0, witness.Testimony(life(4, 0)))


# A hello alone.


def test_a_life_that_says_nothing_after_its_hello_ends_others_for_a_while_only():
    lives = Lives()
    assert lives.delivers(life(3, 7), 0)
    assert lives.announces(life(4, 8), 1)
    assert not lives.delivers(life(3, 7), SILENT_US)
    assert lives.delivers(life(3, 7), 1 + SILENT_US)
    assert not lives.delivers(life(2, 6), 1 + SILENT_US)
    assert lives.delivers(life(4, 8), 2 + SILENT_US), "it was alive after all"
    assert not lives.delivers(life(3, 7), 2 + 2 * SILENT_US)


def test_many_hellos_do_not_make_that_longer():
    lives = Lives()
    assert lives.delivers(life(1, 7), 0)
    for second in range(SILENT_US // 1_000_000):
        assert lives.announces(life(2 + second, 1_000 + second), second * 1_000_000)
        assert not lives.delivers(life(1, 7), second * 1_000_000)
    assert lives.delivers(life(1, 7), SILENT_US)


def test_a_life_that_has_spoken_ends_others_for_ever_however_often_it_asks_again():
    lives = Lives()
    assert lives.delivers(life(3, 7), 0)
    assert lives.announces(life(4, 8), 1)
    assert lives.delivers(life(4, 8), 2)
    assert lives.announces(life(4, 8), 3)
    assert not lives.delivers(life(3, 7), 4 + SILENT_US)
    assert lives.announces(life(5, 8), 5 + SILENT_US), "it has become later"
    assert not lives.delivers(life(3, 7), 9 + 3 * SILENT_US)


# What a lander takes.


def test_late_panes_of_an_earlier_life_are_refused_and_those_that_the_new_one_sends_are_taken():
    lander = acceptance(PLAN)
    lander.take([record(panes(PLAN, 1)), record(panes(PLAN, 1, replica=LATER))])
    late = lander.take([record(panes(PLAN, 2, first_seq=3))])
    assert (late.rows, late.answers, late.overtaken) == ([], {}, {ME.device})
    assert reasons(late) == [OF_AN_EARLIER_LIFE]
    again = panes(PLAN, 2, replica=LATER, first_seq=3, incarnation=ME.incarnation, nonce=ME.nonce)
    taken = lander.take([record(again)])
    assert [row.block.seqs for row in taken.rows] == [(3, 4)]
    assert list(taken.answers[ME.device].taken) == [ME[:2]]


def test_what_a_device_was_told_holds_from_its_hello_on():
    lander = acceptance(PLAN)
    lander.take([record(panes(PLAN, 1)), record(hello(LATER))])
    late = lander.take([record(panes(PLAN, 2, first_seq=3))])
    assert reasons(late) == [OF_AN_EARLIER_LIFE]


def test_the_first_hello_of_a_device_that_was_never_heard_holds_too():
    lander = acceptance(PLAN)
    lander.take([record(hello(LATER))])
    assert reasons(lander.take([record(panes(PLAN, 1))])) == [OF_AN_EARLIER_LIFE]
    assert lander.take([record(panes(PLAN, 1, replica=LATER))]).rows


def test_a_hello_that_comes_late_of_others_or_was_kept_by_the_broker_puts_an_end_to_nothing():
    lander = acceptance(PLAN)
    lander.take([record(panes(PLAN, 1))])
    earlier, later = ME._replace(incarnation=2, nonce=4), ME._replace(incarnation=9, nonce=4)
    about_me = HelloFrame(OPERATOR._replace(incarnation=9), 1, ME.device, 77, 1)
    far = ME._replace(incarnation=ME.incarnation + 5_000, nonce=4)
    kept = record(hello(later), retained=True)
    lander.take([record(hello(earlier)), record(about_me), record(hello(far)), kept])
    assert lander.take([record(panes(PLAN, 2, first_seq=3))]).rows


def test_who_is_not_heard_is_told_by_whom_it_was_overtaken():
    lander = acceptance(PLAN)
    same = ME._replace(nonce=ME.nonce + 1)
    lander.take([record(panes(PLAN, 1)), record(hello(same))])
    assert lander.take([record(panes(PLAN, 1, replica=same))]).overtaken == {ME.device}
    assert lander.witness.vouch(LANDER, 1, hello(same)).subject == ME
    later = same._replace(incarnation=ME.incarnation + 1)
    lander.take([record(hello(later))])
    assert lander.witness.vouch(LANDER, 1, hello(later)).subject == later
    assert lander.take([record(panes(PLAN, 2, replica=later))]).rows


def test_a_late_beat_tells_nothing_of_panes_that_land_no_more():
    lander = acceptance(PLAN)
    high = SourceHigh(1, 60, 10)
    lander.take([record(panes(PLAN, 1)), record(panes(PLAN, 1, replica=LATER))])
    lander.take([record(BeatFrame(ME, 9, (), False, (), highs=(high,)))])  # noqa: FBT003
    assert lander.witness.of(ME.device).highs == ()
    lander.take([record(BeatFrame(LATER, 1, (), False, (), highs=(high,)))])  # noqa: FBT003
    assert lander.witness.of(ME.device).highs == (high,)


def test_panes_of_a_retired_life_count_whichever_later_one_sends_them():
    retired = member_command(OPERATOR, 1, ME.device, 1, True, Version.of(ME, 4))  # noqa: FBT003
    lander = acceptance(PLAN, Membership() | retired.commands().membership)
    lander.take([record(panes(PLAN, 1, first_seq=1)), record(hello(LATER))])
    sent = panes(PLAN, 1, replica=LATER, first_seq=3, incarnation=ME.incarnation, nonce=ME.nonce)
    assert [row.block.seqs for row in lander.take([record(sent)]).rows] == [(3, 4)]


def test_a_new_lake_takes_everything_of_the_life_that_is_there():
    lander = acceptance(PLAN)
    frozen = panes(PLAN, 1, replica=LATER, incarnation=ME.incarnation, nonce=ME.nonce)
    assert lander.take([record(frozen)]).rows
    assert lander.take([record(panes(PLAN, 2, replica=LATER, first_seq=9))]).rows
