"""Who was retired, and what of it still counts."""

import itertools

import pytest

from crdts import Member, Membership, Replica, Version, decode, encode
from crdts.wire import CODES

KITCHEN, LATER = Replica(1, 7, "kitchen"), Replica(2, 3, "kitchen")
SIXTH, TENTH = Version.of(KITCHEN, 6), Version.of(KITCHEN, 10)


def test_a_device_of_which_nobody_spoke_counts():
    assert Membership().retired == {}
    assert Membership().admits("kitchen", TENTH)


def test_what_a_retired_device_wrote_before_counts_for_ever_and_nothing_after():
    retired = Membership().retire("kitchen", SIXTH)
    seqs = [seq for seq in range(1, 11) if retired.admits("kitchen", Version.of(KITCHEN, seq))]
    assert seqs == [1, 2, 3, 4, 5, 6]
    assert not retired.admits("kitchen", Version.of(LATER, 1)), "a later life is after it"
    assert retired.admits("cellar", Version.of(LATER, 1))


def test_an_admitted_device_counts_again_and_can_be_retired_again():
    state = Membership()
    for retires in (True, False, True):
        state |= state.retire("kitchen", SIXTH) if retires else state.admit("kitchen")
        assert ("kitchen" in state.retired) is retires
    assert state.entries["kitchen"].control == 3
    assert (state | state.admit("kitchen")).entries["kitchen"].version == SIXTH, "its last life"


def test_the_words_of_one_operator_arrive_in_any_order():
    state, words = Membership(), []
    for retires in (True, False, True, False):
        words.append(state.retire("kitchen", SIXTH) if retires else state.admit("kitchen"))
        state |= words[-1]
    for order in itertools.permutations(words):
        heard = Membership()
        for word in order:
            heard |= word
        assert heard == state
        assert heard.retired == {}


def test_a_retirement_wins_over_an_admission_under_the_same_number():
    base = Membership().retire("kitchen", SIXTH)
    here, there = base | base.admit("kitchen"), base | base.retire("kitchen", TENTH)
    assert (here | there).retired == (there | here).retired == {"kitchen": TENTH}


def test_of_two_retirements_under_one_number_the_one_that_lets_more_count_wins():
    here = Membership().retire("kitchen", Version.of(KITCHEN, 9))
    there = Membership().retire("kitchen", TENTH)
    assert (here | there).retired == (there | here).retired == {"kitchen": TENTH}


def test_while_a_device_stays_retired_its_version_never_sinks():
    state = Membership()
    state |= state.retire("kitchen", TENTH)
    state |= state.retire("kitchen", SIXTH)
    assert state.retired == {"kitchen": TENTH}


def test_after_an_admission_the_next_retirement_says_anew_up_to_where():
    """It was away, so all of its life counted; it came back in that life, and is retired now."""
    state = Membership().retire("kitchen", Version.of(KITCHEN, 2**40 - 1))
    state |= state.admit("kitchen")
    state |= state.retire("kitchen", SIXTH)
    assert state.retired == {"kitchen": SIXTH}
    assert not state.admits("kitchen", TENTH)


def test_the_retired_are_told_in_the_order_of_their_names():
    state = Membership()
    for device in ("pi-2", "pi-10", "größe"):
        state |= state.retire(device, SIXTH)
    assert list(state.retired) == list(state.value) == ["größe", "pi-10", "pi-2"]


@pytest.mark.parametrize("device", ["x" * 256, "a\nb", "\ud800", 5])
def test_what_is_no_device_name_is_refused(device):
    with pytest.raises(ValueError, match="a device name needs"):
        Membership().retire(device, SIXTH)
    with pytest.raises(ValueError, match="a device name needs"):
        Membership().admit(device)


def test_control_never_leaves_its_range():
    last = Membership({"kitchen": Member(2**40 - 1, retired=False, version=SIXTH)})
    with pytest.raises(ValueError, match="a control needs an integer from 1 to"):
        last.retire("kitchen", SIXTH)


class Forged(Membership):
    """Says on the wire what it is told to."""

    def __init__(self, plain):
        super().__init__()
        self.plain = plain

    def to_plain(self):
        return self.plain


@pytest.mark.parametrize(
    ("plain", "reason"),
    [
        ([1], "a membership needs a map by device, got tuple"),
        ({"d": [1, True, 1, 2]}, "a member needs a list of 5, got 4 items"),
        ({"d": [1, 1, 1, 2, 3]}, "a member needs True or False for retired, got 1"),
        ({"d": [0, True, 1, 2, 3]}, "a control needs an integer from 1 to"),
        ({"d": [True, True, 1, 2, 3]}, "a control needs an integer from 1 to"),
        ({"d": [1, True, 2**30, 2, 3]}, "an incarnation needs an integer from 0 to"),
        ({"d": [1, True, 1, 2, 2**40]}, "a seq needs an integer from 0 to"),
        ({"d" * 256: [1, True, 1, 2, 3]}, "a device name needs text of at most 255"),
        ({"e": [1, True, 1, 2, 3], "d": [1, True, 1, 2, 3]}, "its canonical encoding"),
    ],
)
def test_a_strangers_membership_is_refused_with_a_reason(plain, reason, monkeypatch):
    monkeypatch.setitem(CODES, Forged, CODES[Membership])
    with pytest.raises(ValueError, match=reason):
        decode(encode(Forged(plain)))
