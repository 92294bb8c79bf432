"""An event in order that lacks a device is opened again once that one counts."""

from lasp_edge.ordered.answers import PartAnswer
from lasp_edge.ordered.gathering import Gathering, OrderedRecord
from lasp_edge.ordered.reopening import reopen
from tests.lasp_edge.scans.support_synchronised import Epochs

MARK, FORMER = b"mark", b"former"
PLACE, LATER, WHOLE = [(at, "desk", ("b", "", at), (1,)) for at in (10, 20, 30)]
STORED = {
    PLACE: {"d1": PartAnswer("d1", MARK, (1,)), "d3": PartAnswer("d3", FORMER, (2,))},
}


def gathered():
    known = {"known": True, "share": 0, "mark": MARK, "answered": True}
    lacks = {PLACE: ("d2",), LATER: ("d2", "d4"), WHOLE: ()}
    records = {place: OrderedRecord("", **known, lacks=of) for place, of in lacks.items()}
    return Gathering(Epochs(), records)


def test_each_event_that_lacks_any_device_which_counts_now_is_open_and_changed():
    gathering = gathered()
    reopen(gathering, {"d1", "d2", "d3"}, 0, lambda _cells: STORED)
    assert set(gathering.open) == {PLACE, LATER} == gathering.changed
    assert [record.answered for record in gathering.records.values()] == [False, False, True]


def test_of_stored_answers_those_count_by_the_basis_of_the_event():
    gathering = gathered()
    reopen(gathering, {"d1", "d2", "d3"}, 0, lambda _cells: STORED)
    assert gathering.open[PLACE] == {"d1": STORED[PLACE]["d1"]}
    assert gathering.open[LATER] == {}


def test_nothing_is_opened_where_nobody_comes_whom_it_lacks():
    gathering = gathered()
    reopen(gathering, {"d1", "d3"}, 0, lambda _cells: STORED)
    assert not gathering.open
    assert not gathering.changed


def test_an_event_at_which_no_answer_is_taken_any_more_stays_as_it_is():
    gathering = gathered()
    reopen(gathering, {"d1", "d2", "d3"}, LATER[0], lambda _cells: {})
    assert set(gathering.open) == {LATER} == gathering.changed
