"""Which events in order are settled, by whose answers, and which are published again."""

import pytest

from lasp_edge.event import Event
from lasp_edge.ordered.answers import OVER, GoneOn, PartAnswer
from lasp_edge.ordered.gathering import Gathering, OrderedRecord, Promised, Waited
from lasp_edge.ordered.parted import FIRST, basis_of
from tests.lasp_edge.scans.support_synchronised import Epochs, ValueBarrier

FIRST_END = (10, "desk", ("b", "", 1), (1,))
LAST_END = (20, "desk", ("b", "", 2), (1,))
DEVICES = ("d1", "d2")
PLACE = (10, "a", ("b", "", 1), (0,))


def asked(kind, promised_us, *, goes_on=True, beats=4, stated_after=3):
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
    answers = {
        each: PartAnswer(each, bases[1], (), incarnation=1, beats=3).stating(
            GoneOn(given[each], 1, stated_after)
        )
        for each in DEVICES
    }
    gathering = Gathering(scan, records, {LAST_END: answers})
    promises = {each: Promised(1, beats, promised_us) for each in DEVICES}
    assert gathering.marks(Waited(promises), frontier_us=30) == {}
    return gathering.asked(), gathering.settled_us(30)


@pytest.mark.parametrize("promised_us", [25, 30])
def test_who_has_answered_and_gone_on_lacks_no_share_whatever_it_still_promises(promised_us):
    settled_us = 30 if promised_us == 30 else 20
    assert asked(Epochs, promised_us) == (set(), settled_us)


def test_the_promise_before_an_answer_says_nothing_of_what_came_with_it():
    """The answer is after the third beat of its life."""
    assert asked(Epochs, 30, beats=3) == (set(), 20)


def test_the_promise_before_a_statement_says_nothing_of_what_came_with_it():
    """It went on from the share after the fourth beat: rows behind it may be on their way."""
    assert asked(Epochs, 30, stated_after=4) == (set(), 20)
    assert asked(Epochs, 30, beats=5, stated_after=4) == (set(), 30)


def test_who_has_not_gone_on_may_lack_that_share_and_the_one_before():
    assert asked(Epochs, 30, goes_on=False) == ({FIRST_END, LAST_END}, 20)


def test_where_the_share_is_always_the_same_an_answer_shows_that_nothing_is_lacking():
    assert asked(ValueBarrier, 25) == (set(), 20)


def answer(device):
    return PartAnswer(device, FIRST, (), incarnation=1, beats=0)


def settled_us(gathering, frontier_us, *devices):
    """Return what is settled where these devices count, and all have promised up to a time."""
    gathering.marks(Waited(dict.fromkeys(devices, Promised(1, 1, frontier_us))), frontier_us)
    return gathering.settled_us(frontier_us)


def test_who_counts_before_the_frontier_passes_an_event_in_order_has_to_answer_it():
    """It was off, and no promise of it counted, when the other one answered."""
    record = OrderedRecord("", known=True, share=0, mark=FIRST)
    gathering = Gathering(ValueBarrier(), {PLACE: record}, {PLACE: {"a": answer("a")}})
    assert settled_us(gathering, 5, "a") == 5
    assert settled_us(gathering, 10, "a") == 10
    assert not gathering.asked()
    assert settled_us(gathering, 15, "a", "b") == 10
    assert gathering.asked() == {PLACE}
    answers = tuple(map(answer, "ab"))
    event = Event("b", (1.0, answers, FIRST, PLACE), 10, "a", {}, "")
    gathering.take({PLACE: (None, event)}, {})
    assert settled_us(gathering, 15, "a", "b") == 15
    assert gathering.records[PLACE].answered


def test_an_event_in_order_is_settled_with_the_frontier_that_passes_it():
    record = OrderedRecord("", known=True, share=0, mark=FIRST)
    gathering = Gathering(ValueBarrier(), {PLACE: record}, {PLACE: {"a": answer("a")}})
    assert settled_us(gathering, 10, "a") == 10
    assert settled_us(gathering, 11, "a") == 11
    assert settled_us(gathering, 12, "a", "b") == 12  # who counts later does not open it


def test_the_last_event_in_order_of_a_key_outlives_all_before_a_time():
    """The basis of the next one names it."""
    places = [(at, "desk", ("b", "", at), (1,)) for at in (10, 20)]
    known = OrderedRecord("", known=True, share=0, mark=FIRST, answered=True)
    gathering = Gathering(Epochs(), dict.fromkeys(places, known))
    gathering.forget(30)
    assert list(gathering.records) == places[1:]
    later = (40, "desk", ("b", "", 40), (1,))
    gathering.take({later: (None, Event("b", (1.0, (), b"", later), 40, "desk", {}, ""))}, {})
    assert gathering.basis(later) == basis_of(places[1], 0)


def test_the_first_event_in_order_is_unanswered_until_any_device_has_answered_any():
    places = (FIRST_END, LAST_END)
    records = {place: OrderedRecord("") for place in places}
    unanswered = Gathering(Epochs(), records)
    assert unanswered.unanswered_us == FIRST_END[0]
    assert Gathering(Epochs()).unanswered_us is None
    answers = {LAST_END: {"d1": PartAnswer("d1", FIRST, (), incarnation=1, beats=3)}}
    assert Gathering(Epochs(), records, answers).unanswered_us is None
    records[LAST_END] = OrderedRecord("", mark=FIRST)
    assert Gathering(Epochs(), records).unanswered_us is None


def gathered(*given, basis=FIRST):
    """Return how what is gathered at a place changes, once some have answered it."""
    event = Event("b", (1.0, given, basis, PLACE), 10, "a", {}, "")
    return {PLACE: (None, event)}


def lacks(gathering, devices, absent=(), lost_us=None):
    """Return whom the place lacks where these devices count, without those that are absent."""
    promises = dict.fromkeys(devices, Promised(1, 1, 20))
    gathering.marks(Waited(promises, None, frozenset(absent), lost_us or {}), 20)
    return gathering.records[PLACE].lacks


def test_a_place_lacks_a_device_that_counts_until_it_has_answered_by_the_basis_that_counts():
    record = OrderedRecord("", known=True, share=0, mark=FIRST)
    gathering = Gathering(ValueBarrier(), {PLACE: record}, {PLACE: {"a": answer("a")}})
    assert lacks(gathering, "a", "bc") == ("b", "c")
    assert gathering.records[PLACE].answered
    assert not gathering.completed_us
    assert lacks(gathering, "abc") == ("b", "c"), "it counts, and has not answered yet"
    gathering.take(gathered(answer("a"), answer("b"), answer("c")._replace(basis=b"other")), {})
    assert lacks(gathering, "ab", "c") == ("c",)
    assert gathering.completed_us == {PLACE[0]}
    gathering.take(gathered(*map(answer, "abc")), {})
    assert lacks(gathering, "ab") == ()


@pytest.mark.parametrize("basis", [b"", b"other"])
def test_who_retains_nothing_there_any_more_is_waited_for_no_longer_and_named(basis):
    """Without an answer, and with one by a share that counts no more."""
    record = OrderedRecord("", known=True, share=0)
    gathering = Gathering(Epochs(), {PLACE: record}, {PLACE: {}})
    gone_on = GoneOn(basis_of(PLACE, 0), 1, 0)
    gathering.take(gathered(answer("a").stating(gone_on), basis=b""), {})
    promises = dict.fromkeys("ab", Promised(1, 9, 20))
    assert gathering.marks(Waited(promises), 20) == {}
    over = PartAnswer("b", basis, (), incarnation=1).stating(GoneOn(OVER, 1, 3))
    gathering.take(gathered(answer("a").stating(gone_on), over, basis=b""), {})
    assert gathering.marks(Waited(promises), 20) == {PLACE: FIRST}
    gathering.take(gathered(answer("a").stating(gone_on), over), {})
    assert gathering.marks(Waited(promises), 20) == {}
    assert gathering.records[PLACE].lacks == ("b",)


def test_a_place_lacks_who_had_answered_the_one_behind_and_is_gone():
    record, behind = OrderedRecord("", known=True, share=0), (15, "a", ("b", "", 1), (0,))
    both = {PLACE: record, behind: record._replace(mark=basis_of(PLACE, 0))}
    answers = {PLACE: {"a": answer("a")}, behind: {"gone": answer("gone")}}
    assert lacks(Gathering(ValueBarrier(), both, answers), "a") == ("gone",)


def test_a_mark_that_is_set_once_a_store_was_lost_lacks_its_device_for_ever():
    answers = {PLACE: {"a": answer("a")}}
    known = OrderedRecord("", known=True, share=0, mark=FIRST)
    assert lacks(Gathering(ValueBarrier(), {PLACE: known}, answers), "a", (), {"a": (0, 11)}) == ()
    gathering = Gathering(ValueBarrier(), {PLACE: known._replace(mark=b"")}, answers)
    assert lacks(gathering, "a", (), {"a": (11, 20)}) == (), "it had promised past the place"
    gathering = Gathering(ValueBarrier(), {PLACE: known._replace(mark=b"")}, answers)
    assert lacks(gathering, "a", (), {"a": (0, 11)}) == ("a",)
    gathering.take(gathered(answer("a")), {})
    assert lacks(gathering, "a", (), {"a": (0, 11)}) == ("a",)
    first = (4, "a", ("b", "", 1), (0,))
    both = {first: known, PLACE: known._replace(mark=b"")}
    by_basis = {PLACE: {"a": answer("a")._replace(basis=basis_of(first, 0))}}
    assert lacks(Gathering(ValueBarrier(), both, by_basis), "a", (), {"a": (0, 5)}) == ("a",)
    assert lacks(Gathering(ValueBarrier(), both, by_basis), "a", (), {"a": (0, 4)}) == ()


def test_who_answers_by_another_share_may_not_know_the_place_before_which_is_published_again():
    """Its store was lost, and so was the message with that place."""
    record, behind = OrderedRecord("", known=True, share=0), (15, "a", ("b", "", 1), (0,))
    records = {PLACE: record._replace(mark=FIRST, answered=True), behind: record}
    right = answer("a")._replace(basis=basis_of(PLACE, ValueBarrier().empty))
    for given, asked_for in ((right, {behind}), (answer("a"), {PLACE, behind})):
        gathering = Gathering(ValueBarrier(), records, {behind: {"a": given}})
        gathering.marks(Waited(dict.fromkeys("ab", Promised(1, 1, 20))), 20)
        assert gathering.asked() == asked_for


def test_a_place_is_stored_as_open_once_another_one_comes_before_it():
    """A process that ends now looks at it again: its basis is another one."""
    known = OrderedRecord("", known=True, share=0, mark=FIRST, answered=True)
    gathering = Gathering(Epochs(), {LAST_END: known})
    event = Event("b", (1.0, (), b"", FIRST_END), 10, "desk", {}, "")
    gathering.take({FIRST_END: (None, event)}, {})
    assert not gathering.records[LAST_END].answered
    assert LAST_END in gathering.changed


def test_nobody_is_waited_for_at_places_at_which_no_answer_is_taken_any_more():
    """One was away for longer than late readings are taken, and is back."""
    behind = (15, "a", ("b", "", 1), (0,))
    records = {
        PLACE: OrderedRecord("", known=True, share=0, mark=FIRST),
        behind: OrderedRecord("", known=True, share=0),
    }
    gathering = Gathering(ValueBarrier(), records, {PLACE: {"a": answer("a")}})
    promises = dict.fromkeys("ab", Promised(1, 1, 20))
    assert gathering.marks(Waited(promises, floor_us=10), 20) == {}
    assert gathering.settled_us(20) == 10
    assert gathering.marks(Waited(promises, floor_us=15), 20) == {}
    assert gathering.settled_us(20) == 15
    assert gathering.asked() == {behind}
    found = gathering.records[PLACE]
    assert (found.answered, found.lacks) == (True, ("b",))
    basis = basis_of(PLACE, ValueBarrier().empty)
    assert gathering.marks(Waited(promises, floor_us=20), 20) == {behind: basis}
