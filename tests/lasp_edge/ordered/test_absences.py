"""Who is missing in rows of results over the fleet."""

from crdts import Version
from crdts.frontier import Promise
from lasp_edge.event import Event
from lasp_edge.ordered.absences import RowAbsences
from lasp_edge.ordered.results import ResultRows
from lasp_edge.protocol.frontier import AwaitedDevice, AwaitedDevices


def place(time_us):
    return time_us, "pi-1", ("litres", "", 130), (0,)


def event(value, time_us):
    return Event("used", value, time_us, "pi-1", {}, "")


def inserted(*times_us):
    return {place(at): (None, event(at, at)) for at in times_us}


def absences(*promised, lacking=(), **more):
    devices = tuple(AwaitedDevice(name, at, at) for name, at in promised)
    promises = {
        name: Promise(Version(1, 7, 1), at, done=False, heard_us=0) for name, at in promised
    }
    return RowAbsences(lambda: AwaitedDevices(devices, 90, promised), promises, lacking, **more)


def named(rows):
    return {at[0]: (row.excluded, row.status, row.revision) for at, row in rows.take_changed()}


def test_a_final_row_names_who_has_not_promised_past_its_time():
    found = absences(("attic", 20), ("cellar", 30), ("shed", 90))
    of = {at: found.names(place(at), "final") for at in (19, 20, 29, 30, 89)}
    assert of == {
        19: (),
        20: ("attic",),
        29: ("attic",),
        30: ("attic", "cellar"),
        89: ("attic", "cellar"),
    }
    assert found.names(place(40), "revised") == ("attic", "cellar")


def test_a_row_in_a_stretch_that_may_lack_readings_names_its_device():
    found = absences(("attic", 90), lacking=[("cellar", (20, 30))])
    assert [found.names(place(at), "final") for at in (19, 20, 29, 30)] == [
        (),
        ("cellar",),
        ("cellar",),
        (),
    ]


def test_tentative_rows_name_somebody_only_where_they_are_due():
    at_once = absences(("attic", 20))
    assert at_once.names(place(25), "tentative") == ()
    waited = absences(("attic", 20), ("cellar", 30), tentative=(20, 40))
    assert waited.names(place(25), "tentative") == ("attic",)
    assert waited.names(place(39), "tentative") == ("attic", "cellar")
    assert waited.names(place(40), "tentative") == ()


def test_nobody_is_asked_for_the_names_of_rows_while_nobody_is_missing():
    found = absences(("attic", 50), ("cellar", 60))
    assert not found.any_before(50)
    assert found.any_before(51)
    assert not found.any_before(None)


def test_a_row_that_becomes_final_names_who_is_missing():
    rows = ResultRows()
    rows.push(inserted(10, 25), None)
    rows.advance(26)
    rows.name(absences(("attic", 20)), 26)
    assert named(rows) == {10: ((), "final", 1), 25: (("attic",), "final", 1)}


def test_a_final_row_that_is_revised_while_an_answer_before_it_is_open_names_who_is_missing():
    rows, change = ResultRows(), {place(25): (event(25, 25), event(26, 25))}
    rows.push(inserted(25), 40)
    rows.take_changed()
    rows.push(change, 10)
    rows.name(absences(("attic", 20)).at_answers((), 40), 10)
    assert named(rows) == {25: (("attic",), "revised", 1)}


def test_a_device_that_catches_up_revises_the_rows_that_name_it_once():
    rows = ResultRows()
    rows.push(inserted(10, 25, 35), 40)
    rows.name(absences(("attic", 20), ("cellar", 30)), 40)
    rows.take_changed()
    back = absences(("attic", 90), ("cellar", 30), caught_up=range(21, 41))
    rows.name(back, 40)
    assert named(rows) == {25: ((), "revised", 1), 35: (("cellar",), "revised", 1)}
    rows.name(back, 40)
    assert named(rows) == {}


def test_it_is_named_no_more_from_the_very_first_row_on_that_it_had_not_promised_past():
    rows = ResultRows()
    rows.push(inserted(19, 20, 39), 40)
    rows.name(absences(("attic", 20)), 40)
    assert named(rows) == {
        19: ((), "final", 0),
        20: (("attic",), "final", 0),
        39: (("attic",), "final", 0),
    }
    rows.name(absences(("attic", 90), caught_up=range(21, 41)), 40)
    assert named(rows) == {20: ((), "revised", 1), 39: ((), "revised", 1)}


def test_a_stretch_that_grows_revises_the_rows_in_it_once():
    rows, promised = ResultRows(), (("attic", 90), ("cellar", 90))
    rows.push(inserted(10, 25, 35), 40)
    rows.name(absences(*promised), 40)
    rows.take_changed()
    lost = [("cellar", (20, 30))]
    grown = absences(*promised, lacking=lost, lost=lost, grown=range(20, 30))
    rows.name(grown, 40)
    assert named(rows) == {25: (("cellar",), "revised", 1)}
    rows.name(grown, 40)
    assert named(rows) == {}


def test_a_device_that_counts_no_more_stays_named_until_another_one_catches_up():
    rows = ResultRows()
    rows.push(inserted(25), 40)
    rows.name(absences(("attic", 20), ("cellar", 20)), 40)
    rows.take_changed()
    rows.name(absences(("cellar", 20), caught_up=range(21, 41)), 40)
    assert named(rows) == {}
    rows.name(absences(("cellar", 30), caught_up=range(21, 31)), 40)
    assert named(rows) == {25: ((), "revised", 1)}


def test_a_row_below_the_floor_names_a_device_for_ever():
    rows = ResultRows()
    rows.push(inserted(25, 35), 40)
    rows.name(absences(("attic", 20)), 40)
    rows.take_changed()
    rows.name(absences(("attic", 90), caught_up=range(21, 41), floor_us=30), 40)
    assert named(rows) == {35: ((), "revised", 1)}


def test_a_late_reading_of_another_device_keeps_the_name_of_who_is_still_missing():
    rows = ResultRows()
    rows.push(inserted(25), 40)
    rows.name(absences(("attic", 20)), 40)
    rows.take_changed()
    rows.push({place(25): (event(25, 25), event(7, 25))}, 40)
    rows.name(absences(("attic", 20)), 40)
    assert named(rows) == {25: (("attic",), "revised", 1)}


def test_of_a_stored_row_the_first_eight_names_tell_who_has_caught_up():
    rows, silent = ResultRows(), [(f"pi-{number}", 20) for number in range(9)]
    rows.push(inserted(25), 40)
    rows.name(absences(*silent), 40)
    (row,) = rows.rows.values()
    assert len(row.excluded) == 9
    rows.take_changed()
    rows.name(absences(*silent[:8], ("pi-8", 90), caught_up=range(21, 41)), 40)
    assert named(rows) == {}, "a row that had been stored would not know of the ninth"
