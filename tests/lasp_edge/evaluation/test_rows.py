"""The rows of a result, in memory since the last cut and in the store before it."""

from crdts import Version
from crdts.frontier import Promise
from lasp_edge import Program, scans
from lasp_edge.evaluation.packed_rows import packed_rows, rows_in
from lasp_edge.evaluation.rows import ResultBook
from lasp_edge.event import Event
from lasp_edge.ordered.absences import RowAbsences
from lasp_edge.ordered.cells import cell_of
from lasp_edge.ordered.log import BEFORE_ALL_US
from lasp_edge.ordered.plain import encoded
from lasp_edge.ordered.results import ResultRow
from lasp_edge.protocol.frontier import AwaitedDevices

CUT_US = 100_000_000
LATE_US = 40_000_000


class Store:
    """The rows of one result, packed by cell."""

    def __init__(self, result):
        self._result, self._cells, self.reads = result, {}, 0

    def rows(self, _name, least_us, end_us):
        self.reads += 1
        for cell_us in sorted(self._cells):
            if least_us <= cell_us < end_us:
                yield cell_us, rows_in(self._result, self._cells[cell_us])

    def naming(self, name, spans_us, *, every):
        del every
        for span_us in spans_us:
            yield dict(each for _, rows in self.rows(name, *span_us) for each in rows.items())

    def put_rows(self, _name, changed, rows):
        for cell_us in {cell_of(place[0]) for place, _ in changed}:
            here = {place: row for place, row in rows.items() if cell_of(place[0]) == cell_us}
            self._cells[cell_us] = packed_rows(here.items())

    def statuses(self):
        return [row.status for _, rows in self.rows("", 0, 2**62) for row in rows.values()]


def changes():
    program = Program("doors")
    room = program.scan("room", source=program.event("door"), scan=scans.changes())
    program.result(room, parts={"value": "1"})
    return program.plan().fleet_results["room"]


def test_a_late_row_behind_the_cut_becomes_final_once_its_place_is_settled():
    result = changes()
    store = Store(result)
    book = ResultBook(result, store)
    book.begin(CUT_US)
    place = (LATE_US, "pi-1", ("door", "", 1), ())
    event = Event("room", 1, LATE_US, "pi-1", {}, "")
    # Its place is not settled yet, though the cut has passed it: a device is still to answer there.
    assert list(book.take({place: (None, event)}, CUT_US, CUT_US, LATE_US)) == []
    assert store.statuses() == ["tentative"]
    store.reads = 0
    assert list(book.take({}, CUT_US, CUT_US, LATE_US)) == []
    assert store.reads == 0, "nothing is read while nothing can become final"
    ((at, row),) = book.take({}, CUT_US, CUT_US, CUT_US)
    assert (at, row.status) == (place, "final")
    assert store.statuses() == ["final"]


def test_a_row_that_has_another_key_now_is_the_newest_of_its_former_key_no_longer():
    book = ResultBook(changes(), Store(changes()))
    first, second = ((LATE_US + more, "pi-1", ("door", "", 1), ()) for more in (0, 1))
    events = {
        (place, key): Event("room", 1, place[0], "pi-1", {}, key)
        for place in (first, second)
        for key in ("attic", "cellar")
    }
    delta = {place: (None, events[place, "attic"]) for place in (first, second)}
    list(book.take(delta, BEFORE_ALL_US, BEFORE_ALL_US, None))
    assert book.newest["attic"].tentative[0] == second
    delta = {second: (events[second, "attic"], events[second, "cellar"])}
    list(book.take(delta, BEFORE_ALL_US, BEFORE_ALL_US, None))
    assert book.newest["attic"].tentative[0] == first
    assert book.newest["cellar"].tentative[0] == second
    delta = {first: (events[first, "attic"], events[first, "cellar"])}
    list(book.take(delta, BEFORE_ALL_US, BEFORE_ALL_US, None))
    assert book.newest["attic"].is_empty


def silent(promised_us, **more):
    promises = {"attic": Promise(Version(1, 7, 1), promised_us, done=False, heard_us=0)}
    devices = AwaitedDevices((), 2**40, (("attic", promised_us),))
    return RowAbsences(lambda: devices, promises, **more)


def test_a_row_behind_the_cut_is_written_again_once_the_device_that_it_names_has_caught_up():
    result = changes()
    store = Store(result)
    book = ResultBook(result, store)
    place = (LATE_US, "pi-1", ("door", "", 1), ())
    event = Event("room", 1, LATE_US, "pi-1", {}, "")
    delta = {place: (None, event)}
    book.take(delta, CUT_US, BEFORE_ALL_US, CUT_US, silent(LATE_US))
    stored = [row for _, rows in store.rows("", 0, 2**62) for row in rows.values()]
    assert [(row.excluded, row.revision) for row in stored] == [(("attic",), 0)]
    again = range(LATE_US + 1, CUT_US + 1)
    book.take({}, CUT_US, CUT_US, CUT_US, silent(CUT_US, caught_up=again))
    ((row,),) = [rows.values() for _, rows in store.rows("", 0, 2**62)]
    assert (row.excluded, row.status, row.revision) == ((), "revised", 1)
    assert book.newest[""].shown_final.excluded == ()


def test_rows_that_name_nobody_are_stored_as_they_always_were():
    place = (LATE_US, "pi-1", ("door", "", 1), ())
    row = ResultRow(Event("room", 1, LATE_US, "pi-1", {}, ""), "final", 3)
    former = encoded([(place, (1, "pi-1", ""), "final", 3)])
    assert packed_rows([(place, row)]) == former
    assert rows_in(changes(), former) == {place: row}
    names = tuple(f"pi-{number}" for number in range(10))
    named = rows_in(changes(), packed_rows([(place, row._replace(excluded=names))]))
    assert named[place].excluded == names[:8]
