"""What is published again of events in order: where a device may lack a share, nowhere else."""

import pytest

from lasp_edge.ordered.answers import PartAnswer
from lasp_edge.ordered.gathering import Gathering, OrderedRecord, Promised
from lasp_edge.ordered.parted import FIRST, basis_of
from tests.lasp_edge.scans.support_synchronised import Epochs, ValueBarrier

FIRST_END = (10, "desk", ("b", "", 1), (1,))
LAST_END = (20, "desk", ("b", "", 2), (1,))
DEVICES = ("d1", "d2")


def asked(kind, promised_us, *, goes_on=True):
    """Return what is asked for when both devices have answered, one with its last step."""
    scan = kind()
    share = scan.share(scan.zero)
    bases = [FIRST, basis_of(FIRST_END, share), basis_of(LAST_END, share)]
    records = {
        FIRST_END: OrderedRecord("", known=True, share=share, mark=bases[0], answered=True),
        LAST_END: OrderedRecord("", known=True, share=share, mark=bases[1]),
    }
    on = b"" if scan.is_share_constant else bases[2]
    given = {"d1": on, "d2": on if goes_on else b"other"}
    answers = {each: PartAnswer(each, bases[1], (), given[each], 1, 3) for each in DEVICES}
    gathering = Gathering(scan, records, {LAST_END: answers})
    promises = {each: Promised(1, 4, promised_us) for each in DEVICES}
    assert gathering.marks(promises, frontier_us=30) == {}
    return gathering.asked(), gathering.settled_us(30)


@pytest.mark.parametrize("promised_us", [25, 30])
def test_who_has_answered_and_gone_on_lacks_no_share_before_whatever_it_still_promises(promised_us):
    settled_us = 30 if promised_us == 30 else 20
    assert asked(Epochs, promised_us) == ({LAST_END}, settled_us)


def test_who_has_not_gone_on_may_lack_that_share_and_the_one_before():
    assert asked(Epochs, 30, goes_on=False) == ({FIRST_END, LAST_END}, 20)


def test_where_the_share_is_always_the_same_an_answer_shows_that_nothing_is_lacking():
    assert asked(ValueBarrier, 25) == (set(), 20)
