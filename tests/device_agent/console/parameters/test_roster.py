"""What an operator's command hears of parameters, and of who knows them."""

import itertools

from crdts import ControlLog, Membership, Replica, Version
from device_agent.console.parameters.roster import ParameterRoster
from lasp_edge.protocol.commands import CommandFrame, CommandLog
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame
from lasp_edge.protocol.topics import Topics, topic_of
from tests.support_commands import schedule_command

TOPICS = Topics("greenhouse")
OPERATOR, FIRST, SECOND = Replica(1, 5, "operator"), Replica(1, 7, "attic"), Replica(2, 3, "attic")
LOG = ControlLog().say("offset", "", 600, "3", "ann")
MORE = LOG | LOG.say("offset", "", 900, "4", "ann")


def beat(replica, number=1, control=0, floor_us=None):
    return BeatFrame(replica, number, (), False, (), control=control, floor_us=floor_us)  # noqa: FBT003


def heard(*frames):
    roster = ParameterRoster(TOPICS, nonce=1, parameters={"offset"})
    for frame in frames:
        roster.hear(topic_of(frame, TOPICS), frame.encode())
    return roster


def said(log, parameter="offset"):
    return schedule_command(OPERATOR, 1, parameter, "", log)


def test_who_told_the_same_log_knows_it():
    roster = heard(said(LOG), beat(FIRST, control=LOG.fingerprint()))
    assert roster.knows("attic")
    roster.hear(topic_of(said(MORE), TOPICS), said(MORE).encode())
    assert roster.missing == ["attic"]


def test_who_told_nothing_knows_a_fleet_of_which_nothing_was_said():
    assert heard(beat(FIRST)).knows("attic")
    assert not heard(PresenceFrame(FIRST, 1, online=True)).knows("attic")


def test_the_newest_beat_of_the_newest_life_counts_in_whatever_order_they_came():
    frames = [beat(FIRST, 9, 5, 70), beat(SECOND, 1, 6, 50), beat(SECOND, 2, 7, 60)]
    for order in itertools.permutations(frames):
        roster = heard(*order)
        assert roster.floors_us == {"attic": 60}
        roster.commands |= CommandLog(control=LOG)
        assert not roster.knows("attic")


def test_who_is_retired_need_not_know():
    member = Membership().retire("attic", Version.of(FIRST, 9))
    frame = CommandFrame.of(OPERATOR, 1, ("attic",), CommandLog(member))
    roster = heard(said(LOG), beat(FIRST, floor_us=60), frame)
    assert (roster.counting, roster.missing, roster.floors_us) == ([], [], {})


def test_who_is_connected_and_sent_no_beat_is_awaited():
    online = PresenceFrame(FIRST, 1, online=True)
    assert heard(online).awaited == ["attic"]
    assert heard(online, beat(FIRST)).awaited == []
    assert heard(PresenceFrame(FIRST, 1, online=False)).awaited == []


def test_parameters_that_the_program_does_not_have_count_for_nobody():
    log = ControlLog().say("former", "", 600, "3", "ann")
    roster = heard(said(log, "former"), beat(FIRST))
    assert roster.control == ControlLog()
    assert roster.knows("attic")


def test_a_command_stands_until_more_is_heard():
    roster = heard(said(LOG))
    frame = roster.command(("offset", ""))
    assert frame.commands().control == LOG
    assert roster.stands(frame)
    roster.hear(topic_of(said(MORE), TOPICS), said(MORE).encode())
    assert not roster.stands(frame)
    assert roster.stands(roster.admitting("attic"))
