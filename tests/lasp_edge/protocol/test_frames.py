"""Frames: what was encoded is decoded."""

import pytest
from hypothesis import given

from crdts import Replica, Version
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.commands import CommandFrame, CommandLog
from lasp_edge.protocol.frames import (
    AskFrame,
    PaneFrame,
    PresenceFrame,
    VariableFrame,
)
from lasp_edge.protocol.kinds import FRAME_KINDS, decode
from tests.lasp_edge.protocol.support_strategies import BLOCK, FRAMES, ME
from tests.support_commands import member_command


def test_every_kind_of_frame_is_tested():
    assert {row.frame for row in FRAME_KINDS.values()} == set(FRAMES)


@pytest.mark.parametrize("kind", FRAMES, ids=lambda kind: kind.__name__)
def test_decoding_undoes_encoding(kind):
    @given(FRAMES[kind])
    def check(frame):
        again = decode(frame.encode())
        assert again == frame
        assert type(again) is kind

    check()


def test_frames_of_two_kinds_are_never_equal():
    assert AskFrame(ME, 1, "pi-2", "x") != PresenceFrame(ME, 1, "x")


def test_version_of_a_variable_frame_is_its_replicas():
    assert VariableFrame(ME, 9, "x", 5, 0, ("",), (4,), ((1,),)).version == Version(1, 7, 9)


def test_more_columns_than_a_frame_takes_are_our_own_mistake():
    with pytest.raises(ValueError, match="at most 64 columns"):
        PaneFrame(ME, 1, (BLOCK._replace(columns=((1, 2),) * 65),)).encode()


def test_a_word_on_a_member_is_the_memberships_and_back():
    frame = member_command(ME, 9, "pi-2", 3, retired=True, version=Version(1, 7, 60))
    membership = frame.commands().membership
    assert membership.retired == {"pi-2": Version(1, 7, 60)}
    assert CommandFrame.of(ME, 9, ("pi-2",), CommandLog(membership)) == frame


@pytest.mark.parametrize("name", ["a\x1fb", "a\nb", "\x00"])
def test_control_characters_in_names_and_keys_are_refused(name):
    me = Replica(1, 7, "pi-1")
    entries = PaneEntries(5, 10, 1, 7, ((3,),), (name,), (120,), (9,))
    with pytest.raises(FrameError, match="control character"):
        decode(PaneFrame(me, 1, (entries,)).encode())
    with pytest.raises(FrameError, match="bad replica"):
        decode(PresenceFrame(Replica(1, 7, name), 1, online=True).encode())
