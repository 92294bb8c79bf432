"""The laws of what is gathered, over drawn histories, whatever comes, goes and is answered.

- a process that starts now goes on the same: what is open is stored as not answered
- an event in order is closed once each device has promised after its answer, and not before
"""

from hypothesis import given
from hypothesis import strategies as st

from lasp_edge.event import Event
from lasp_edge.ordered.answers import GoneOn, PartAnswer
from lasp_edge.ordered.gathering import Gathering, Promised, Waited
from lasp_edge.ordered.parted import SHARE, basis_of
from tests.lasp_edge.scans.support_synchronised import Epochs, ValueBarrier

PLACES = [(at, "desk", ("b", "", at), (1,)) for at in (10, 20, 30)]
DEVICES = ("d1", "d2")
FRONTIERS = (None, 15, 40)
STEPS = st.tuples(
    st.sampled_from(("comes", "goes", "share", "answers", "promise", "turn", "settles")),
    st.sampled_from(PLACES),
    st.sampled_from((None, 0, 1)),
)


class Evaluator:
    """What is gathered of a scan, and the marks and answers that its streams have."""

    def __init__(self, scan):
        self.gathering = Gathering(scan)
        self.answers, self.marks, self.promises = {}, {}, 0
        self.promised_since = set()

    def take(self, place, root=None):
        answers, mark = self.answers.get(place, ()), self.marks.get(place, b"")
        event = Event("b", (1.0, answers, mark, place), place[0], "desk", {}, "")
        self.gathering.take({place: (None, event)}, root or {})

    def comes(self, place, _drawn):
        self.take(place)

    def goes(self, place, _drawn):
        self.answers.pop(place, None)
        self.marks.pop(place, None)
        self.gathering.take({place: (None, None)}, {})

    def share(self, place, drawn):
        """The share behind an event in order is known, or no more."""
        known = None if drawn is None else Event("", (SHARE, drawn), 0, "", {})
        unknown = Event("", (SHARE, 1), 0, "", {}) if drawn is None else None
        self.gathering.take({}, {(*place[:3], (*place[3], 0)): (unknown, known)})

    def answers_at(self, place, drawn):
        """All devices answer by the basis that counts, or only one does, and go on."""
        basis = self.gathering.basis(place)
        if basis is None:
            return
        gone_on = GoneOn(basis_of(place, self.gathering.records[place].share), 1, self.promises)
        given = [PartAnswer(each, basis, ()).stating(gone_on) for each in DEVICES]
        self.answers[place] = tuple(given[: 1 if drawn is None else 2])
        self.promised_since.discard(place)
        self.take(place)

    def promise(self, _place, _drawn):
        """All devices promise: what they have answered is out, with all that it revised."""
        self.promises += 1
        self.promised_since |= self.answers.keys()

    def turn(self, _place, drawn):
        """Set the marks that are due, until no others are."""
        waited = Waited(dict.fromkeys(DEVICES, Promised(1, self.promises, 50)))
        while marks := self.gathering.marks(waited, FRONTIERS[-1 if drawn is None else drawn]):
            for place, mark in marks.items():
                self.marks[place] = mark
                self.take(place)

    def settles(self, _place, _drawn):
        """All devices have answered everything, and the frontier has passed it."""
        for place in sorted(self.gathering.records):
            self.share(place, 0)
            self.turn(place, None)
            self.answers_at(place, 0)
            self.promise(place, None)
            self.turn(place, None)


def history(scan, steps):
    """Yield an evaluator after each step; a step that finds nothing to befall is none."""
    evaluator = Evaluator(scan)
    for what, place, drawn in steps:
        does = "answers_at" if what == "answers" else what
        if what in {"comes", "promise", "turn", "settles"} or place in evaluator.gathering.records:
            getattr(evaluator, does)(place, drawn)
        yield evaluator


HISTORIES = st.sampled_from((Epochs, ValueBarrier)), st.lists(STEPS, min_size=20, max_size=60)


@given(*HISTORIES)
def test_what_is_open_is_what_a_process_that_starts_now_opens(kind, steps):
    for evaluator in history(kind(), steps):
        now = evaluator.gathering
        then = Gathering(now.scan, now.records)
        assert now.open.keys() == then.open.keys()


@given(*HISTORIES)
def test_no_event_in_order_is_closed_before_all_have_promised_since_they_answered(kind, steps):
    for evaluator in history(kind(), steps):
        records = evaluator.gathering.records
        closed = {place for place, record in records.items() if record.answered}
        assert closed <= evaluator.promised_since
