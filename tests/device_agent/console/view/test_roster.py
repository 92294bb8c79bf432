"""What an operator hears of a fleet, and the words that come of it."""

import itertools

import pytest

from crdts import Member, Membership, Replica, Version
from crdts.membership import NEVER
from device_agent.console.command.members import _member, _words
from device_agent.console.view.roster import WHOLE_LIFE, Roster, Sighting
from lasp_edge.protocol.commands import CommandFrame, CommandLog
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame, VariableFrame
from lasp_edge.protocol.topics import Topics
from tests.support_commands import member_of

TOPICS = Topics("greenhouse")
OPERATOR = Replica(1, 5, "operator")
FIRST, SECOND = Replica(1, 7, "attic"), Replica(2, 3, "attic")


def beat(replica, seq, number=1):
    return TOPICS.of("beat", replica.device), BeatFrame(
        replica, number, (), done=False, reports=(), seq=seq
    ).encode()


def presence(replica, *, online):
    return TOPICS.of("presence", replica.device), PresenceFrame(replica, 1, online=online).encode()


def variable(replica):
    frame = VariableFrame(replica, 1, "local", 5, 0, ("",), (1,), ((1,), (2,)))
    return TOPICS.of("var", replica.device, "local", "00"), frame.encode()


def member(device, word):
    return TOPICS.of("command", device), CommandFrame.of(
        OPERATOR, 1, (device,), CommandLog(word)
    ).encode()


def heard(*messages):
    roster = Roster(TOPICS, nonce=1)
    for topic, payload in messages:
        roster.hear(topic, payload)
    return roster


def test_the_newest_life_counts_in_whatever_order_its_messages_came():
    messages = [presence(FIRST, online=True), beat(FIRST, 90), variable(SECOND), beat(SECOND, 5)]
    for order in itertools.permutations(messages):
        roster = heard(*order)
        assert roster.seen("attic") == Sighting(SECOND, online=True, seq=5)
        assert member_of(roster.retiring("attic")).version == Version.of(SECOND, 5)


def test_of_a_lifes_beats_the_greatest_seq_counts():
    for order in itertools.permutations([beat(FIRST, 5), beat(FIRST, 90, 2), beat(FIRST, 60, 3)]):
        assert member_of(heard(*order).retiring("attic")).version == Version.of(FIRST, 90)


@pytest.mark.parametrize("message", [presence(SECOND, online=False), variable(SECOND)])
def test_of_a_device_that_is_away_all_of_its_last_life_counts_and_nothing_later(message):
    roster = heard(beat(FIRST, 90), message)
    assert not roster.awaits_beat("attic"), "nobody is there to send one"
    word = roster.retiring("attic").commands().membership
    assert word.admits("attic", Version.of(SECOND, WHOLE_LIFE))
    assert not word.admits("attic", Version(3, 0, 1))


def test_a_beat_is_awaited_from_who_is_there_or_was_never_heard():
    assert heard().awaits_beat("attic")
    assert heard(presence(FIRST, online=True)).awaits_beat("attic")
    assert not heard(presence(FIRST, online=True), beat(FIRST, 0)).awaits_beat("attic")


def test_who_goes_while_one_listens_is_away():
    roster = heard(presence(FIRST, online=True), presence(FIRST, online=False), variable(FIRST))
    assert not roster.awaits_beat("attic")


def test_of_a_device_that_was_never_heard_nothing_counts():
    frame = heard().retiring("attic")
    assert (frame.about, member_of(frame).version, member_of(frame).control) == ("attic", NEVER, 1)
    assert not frame.commands().membership.admits("attic", Version.of(FIRST, 1))


def test_a_seq_that_is_said_decides():
    roster = heard(beat(FIRST, 90))
    assert member_of(roster.retiring("attic", 60)).version == Version.of(FIRST, 60)


def test_each_word_overrides_all_that_were_heard():
    known = Membership()
    for _ in range(3):
        known |= known.retire("attic", Version.of(FIRST, 10))
        known |= known.admit("attic")
    roster = heard(member("attic", known), beat(FIRST, 90))
    retired = roster.retiring("attic")
    assert member_of(retired)[:2] == (7, True)
    assert (known | retired.commands().membership).retired == {"attic": Version.of(FIRST, 90)}
    roster.hear(TOPICS.of("command", "attic"), retired.encode())
    admitted = roster.admitting("attic")
    assert member_of(admitted)[:2] == (8, False)
    assert (retired.commands().membership | admitted.commands().membership).retired == {}


def test_a_word_that_the_agents_leave_aside_does_not_number_the_next_one():
    forged = Membership({"attic": Member(10**9, retired=False, version=NEVER)})
    roster = heard(member("attic", forged), beat(FIRST, 90))
    assert member_of(roster.retiring("attic")).control == 1


@pytest.mark.parametrize(
    ("topic", "payload"),
    [
        (TOPICS.of("beat", "cellar"), beat(FIRST, 90)[1]),
        (TOPICS.of("beat", "attic").replace("greenhouse", "other"), beat(FIRST, 90)[1]),
        (TOPICS.of("beat", "attic"), b"\x00"),
        (TOPICS.of("beat", "attic"), b""),
    ],
)
def test_what_is_no_message_of_the_device_is_left_aside(topic, payload):
    assert heard((topic, payload)).devices == []


def test_who_runs_another_program_or_release_is_named():
    runs = {"attic": ("aa", "2"), "cellar": ("aa", "1"), "hall": ("aa", "2"), "shed": ("bb", "2")}
    roster = heard(
        *(
            (
                TOPICS.of("presence", name),
                PresenceFrame(
                    Replica(1, 7, name), 1, online=True, program=program, release=release
                ).encode(),
            )
            for name, (program, release) in runs.items()
        ),
        beat(Replica(1, 7, "porch"), 3),
    )

    def differing(own):
        return [name for name in roster.devices if _member(roster, name, own)["runs_another"]]

    assert differing(("bb", "2")) == ["attic", "cellar", "hall"]
    assert differing(None) == ["cellar", "shed"]
    said = _words(_member(roster, "shed", None))
    assert said == "connected  counts; RUNS ANOTHER PROGRAM OR RELEASE (bb, 2)"
