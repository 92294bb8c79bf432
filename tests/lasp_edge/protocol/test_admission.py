"""Rules of admission: the limits that all readers of a frame share, at their edges."""

import pytest

from crdts import Membership, Replica, Version
from lasp_edge.protocol.admission import (
    Known,
    counts,
    is_too_far_ahead,
    sender_refusal,
)
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.frames import PresenceFrame
from lasp_edge.protocol.limits import INCARNATIONS_AHEAD

OPERATOR = Replica(1, 5, "operator")
UP_TO = Version(3, 7, 60)
BLOCK = PaneEntries(5, 10, 3, 7, ((1, 2, 3),), ("a", "b", "c"), (0, 10, 20), (4, 60, 61))


def test_an_incarnation_may_be_ahead_by_the_limit_and_no_further():
    assert not is_too_far_ahead(3 + INCARNATIONS_AHEAD, 3)
    assert is_too_far_ahead(3 + INCARNATIONS_AHEAD + 1, 3)
    assert not is_too_far_ahead(2**30 - 1, None), "a device that was never heard may be old"


def test_a_frame_of_a_device_is_refused_for_its_senders_incarnation():
    frame = PresenceFrame(Replica(3 + INCARNATIONS_AHEAD + 1, 7, "attic"), 1, online=True)
    assert sender_refusal(frame, Known(3)) == "incarnation too far ahead"
    assert sender_refusal(frame, Known(4)) is None


def test_all_panes_count_but_those_of_a_retired_device_above_its_version():
    retired = Membership().retire("attic", Version(3, 7, 60))
    assert all(counts(BLOCK, "attic", Membership()))
    assert all(counts(BLOCK, "cellar", retired))
    assert counts(BLOCK, "attic", retired) == [seq <= 60 for seq in BLOCK.seqs]
    assert all(counts(BLOCK, "attic", retired | retired.admit("attic")))


@pytest.mark.parametrize("life", [(2, 99), (3, 6), (3, 7), (3, 8), (4, 0)])
def test_counting_by_column_is_what_the_membership_admits(life):
    retired = Membership().retire("attic", Version(3, 7, 60))
    block = BLOCK._replace(incarnation=life[0], nonce=life[1])
    admitted = [retired.admits("attic", Version(*life, seq)) for seq in block.seqs]
    assert counts(block, "attic", retired) == admitted
