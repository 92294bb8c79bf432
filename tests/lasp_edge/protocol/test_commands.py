"""Commands: which are refused, and the frame of one subject."""

import pytest

from crdts import ControlLog, Member, Membership, Replica, Version
from lasp_edge.protocol import commands
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.commands import CommandLog, command_refusal
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.limits import CLOCK_NUMBERS, CONTROLS_AHEAD, INCARNATIONS_AHEAD
from lasp_edge.protocol.topics import Topics, topic_of
from tests.support_commands import member_command, schedule_command

OPERATOR = Replica(1, 5, "operator")
UP_TO = Version(3, 7, 60)
LOG = ControlLog().set("above", "", 600, "30", "ann")


def command(control, *, version=UP_TO, device="attic"):
    return member_command(OPERATOR, 1, device, control, retired=True, version=version)


def schedule(scope="", parameter="above", log=LOG):
    return schedule_command(OPERATOR, 1, parameter, scope, log)


def refusal(frame, known=None, incarnation=None):
    return command_refusal(frame, known or CommandLog(), {"above"}, incarnation)


def test_a_control_may_be_ahead_by_the_limit_and_no_further():
    member = Member(CLOCK_NUMBERS + 9, retired=False, version=Version(0, 0, 0))
    known, most = CommandLog(Membership({"attic": member})), CLOCK_NUMBERS + CONTROLS_AHEAD
    assert refusal(command(most + 9), known) is None
    assert refusal(command(most + 10), known) == "control too far ahead"
    assert refusal(command(most)) is None
    assert refusal(command(most + 1)) == "control too far ahead"


def test_commands_on_more_devices_than_the_limit_are_refused(monkeypatch):
    monkeypatch.setattr(commands, "MEMBERS", 1)
    known = CommandLog(Membership().retire("attic", UP_TO), LOG)
    assert refusal(command(1, device="cellar"), known) == "too many members"
    assert refusal(command(2), known) is None, "one that is known already costs nothing"
    there = LOG.set("above", "cellar", 600, "30", "ann")
    assert refusal(schedule("cellar", log=there), known) == "too many devices"
    assert refusal(schedule(), known) is None


def test_a_command_speaks_of_no_far_incarnation():
    far = Version(3 + INCARNATIONS_AHEAD + 1, 7, 0)
    assert refusal(command(1, version=far), incarnation=3) == "incarnation too far ahead"


def test_a_schedule_has_so_many_places_and_no_more(monkeypatch):
    monkeypatch.setattr(commands, "MOST_PLACES", 1)
    assert refusal(schedule(), CommandLog(control=LOG)) is None
    more = LOG.set("above", "", 700, "31", "ann")
    assert refusal(schedule(log=more), CommandLog(control=LOG)) == "too many places"


def test_a_parameter_and_a_device_of_one_name_have_topics_of_their_own():
    topics = Topics("greenhouse")
    frames = [command(1, device="above"), schedule(), schedule("above", log=_at("above"))]
    assert len({topic_of(frame, topics) for frame in frames}) == len(frames)
    assert [topics.address(topic_of(frame, topics)).device for frame in frames] == ["above"] * 3


def _at(scope):
    return ControlLog().set("above", scope, 600, "30", "ann")


@pytest.mark.parametrize(
    "rows", [(), ((9, 2, "ann", "3"), (5, 1, "ann", "3")), ((5, 1, "ann", "3"), (5, 2, "ann", "4"))]
)
def test_places_that_are_none_or_out_of_order_are_refused(rows):
    frame = commands.CommandFrame(OPERATOR, 1, "above", "", rows)
    with pytest.raises(FrameError):
        decode(frame.encode())


def test_a_frame_of_a_device_has_one_row():
    row = (1, True, 3, 7, 60)
    for rows in ((), (row, row)):
        with pytest.raises(FrameError):
            decode(commands.CommandFrame(OPERATOR, 1, "attic", None, rows).encode())
