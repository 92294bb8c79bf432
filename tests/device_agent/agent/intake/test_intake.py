"""A reading is accepted whole or refused whole, and every outcome is counted."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crdts import BoundedLWWSet, Counter
from device_agent.agent.changes import Changes, Facts
from device_agent.agent.intake.batch import Batch
from device_agent.agent.intake.identities import tags_text
from device_agent.agent.intake.routes import first_us
from device_agent.agent.state.counters import KEPT_NAMES, Counters
from lasp_edge import Program, folds
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import LIMIT
from lasp_edge.protocol.limits import EARLIEST_PANE_US
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import DAY_US, NOW_US, Device, greenhouse


class AwkwardError(Exception):
    """An error that cannot even say what it is."""

    def __str__(self):
        raise RuntimeError


def raises(event, update, program):
    raise ZeroDivisionError("no reading")


def cannot_say(event, update, program):
    raise AwkwardError


def asks(variable, *change):
    """Return a handler that asks for one change."""
    return lambda event, update, program: update(program.variables[variable], *change)


def changes_its_tags(event, update, program):
    event.tags["handler"] = "nothing"


HANDLER_FAULTS = {
    "raises": raises,
    "cannot say": cannot_say,
    "changes its tags": changes_its_tags,
    "derives": asks("local_average", "add", 1, 2),
    "no mutator": asks("samples", "explode", 1),
    "no number": asks("samples", BoundedLWWSet.add, "warm", 1),
    "no time": asks("samples", BoundedLWWSet.add, 1.0, "noon"),
    "endless time": asks("samples", BoundedLWWSet.add, 1.0, 2**70),
    "half an increment": asks("total", Counter.increment, 0.5),
    "too much": asks("total", Counter.increment, 2**63),
}
KEY_FAULTS = {"none": None, "number": 7, "long": "x" * 256, "surrogate": "\ud800"}


def faulty():
    """Return a program whose second handler and whose key fail on some readings."""
    program = Program("faulty")
    temperature = program.event("temperature", resolution="0.01")
    samples = program.declare_dynamic(BoundedLWWSet(bound=100), "samples")
    total = program.declare(Counter(), "total")

    @program.on_event(temperature)
    def sampled(event, update):
        update(samples, BoundedLWWSet.add, event.value, event.time_us)
        update(total, Counter.increment, 1)

    @program.on_event(temperature)
    def fails(event, update):
        fault = HANDLER_FAULTS.get(event.tags.get("handler"))
        if fault:
            fault(event, update, program)

    def key(event):
        fault = event.tags.get("key")
        return event.tags["room"] if fault == "missing" else KEY_FAULTS.get(fault, "")

    local = program.fold(samples, folds.mean(), "local_average")
    program.fold_dynamic(local, "global_average")
    shape = folds.struct(count=folds.count(), total=folds.sum(), low=folds.min())
    program.window("by_room", source=temperature, fold=shape, size_s=60, slide_s=10, key=key)
    return program.plan()


def everything(device):
    """Return all that a reading can change."""
    device.tick(0)
    return (
        device.core.results.local(),
        device.core.variables.shared(),
        {pane: row.partial for pane, row in device.rows()},
        device.core.intake.progress.high_us,
        list(device.store.readings()),
        device.store.database.execute("SELECT * FROM identity").fetchall(),
    )


@pytest.mark.parametrize("fault", HANDLER_FAULTS)
def test_a_handler_that_fails_refuses_its_reading_whole_and_no_other(tmp_path, fault):
    device = Device(tmp_path, faulty())
    device.read([20.0], [NOW_US - 1])
    before = everything(device)
    device.read([21.0], [NOW_US], {"handler": fault})
    assert everything(device) == before
    good: dict = {}
    device.take(
        [22.0, 23.0, 24.0], [NOW_US + n for n in range(3)], [good, {"handler": fault}, good]
    )
    assert device.core.variables.shared() == {"total": 3}
    assert device.stored_panes()["", NOW_US] == (2, 4600, 2200)
    assert device.counted["accepted"] == 3
    assert device.counted["refused"] == 2
    device.read([21.0], [NOW_US], {"handler": fault})  # it is no repeat: it never counted
    assert "repeated" not in device.counted


@pytest.mark.parametrize("fault", [*KEY_FAULTS, "missing"])
def test_a_key_that_fails_refuses_its_reading_whole(tmp_path, fault):
    device = Device(tmp_path, faulty())
    device.read([20.0], [NOW_US - 1])
    before = everything(device)
    device.read([21.0], [NOW_US], {"key": fault})
    assert everything(device) == before
    assert device.counted["refused"] == 1


class Squares(Fold):
    """A fold of a user's own: it fails on 13, and its second column leaves its range soon."""

    name, parts = "squares", ("squares",)
    columns = (Column("n", Op.SUM, 2**31), Column("squares_q", Op.SUM, 1_000_000))

    def lift(self, value, time_us=0):
        if value == 1300:
            raise ZeroDivisionError
        return (1, value * value if value != 1400 else "rubbish")

    def lower(self, partial, resolution):
        return {"squares": float(partial[1])}


def squares():
    program = Program("squares")
    temperature = program.event("temperature", resolution="0.01")
    samples = program.declare_dynamic(BoundedLWWSet(bound=3), "samples")

    @program.on_event(temperature)
    def sampled(event, update):
        update(samples, BoundedLWWSet.add, event.value, event.time_us)

    program.fold_dynamic(program.fold(samples, Squares(), "here"), "everywhere")
    program.window("by_room", source=temperature, fold=Squares(), size_s=60, slide_s=10)
    return program.plan()


def test_a_fold_that_fails_refuses_the_reading_and_a_full_pane_costs_its_window_alone(tmp_path):
    device = Device(tmp_path, squares())
    device.read([5.0, 13.0, 14.0, 8.0, 4.0, 10.0], [NOW_US + n for n in range(6)])
    # 500^2 + 800^2 = 890,000: another 160,000 would leave the range of the pane, and of no sample;
    # 1,000^2 leaves it alone.
    assert device.stored_panes()["", NOW_US] == (2, 890_000)
    assert (device.counted["accepted"], device.counted["refused"]) == (3, 3)
    device.read([4.0], [NOW_US + 7])
    assert device.stored_panes()["", NOW_US] == (2, 890_000)
    device.read([3.0], [NOW_US + 8])
    assert device.stored_panes()["", NOW_US] == (3, 980_000)


def test_a_local_fold_that_leaves_its_range_keeps_its_last_value_and_says_so(tmp_path):
    device = Device(tmp_path, squares())
    device.read([5.0], [NOW_US])
    device.tick()
    device.read([9.0], [NOW_US + 20 * SECOND_US])
    device.tick(20)
    assert device.core.results.local()["here"][""].partial == (1, 250_000)
    (reason,) = device.core.agent.guard.reasons
    assert reason.startswith("failed: fold here: ")
    assert device.store.restored().counters[reason] == 1


def test_a_pane_that_is_nearly_full_takes_what_fits_and_its_window_lacks_the_rest(tmp_path):
    device = Device(tmp_path)
    device.read([20.0], [NOW_US])
    (entry,) = device.core.panes.memory.entries.values()
    entry.partial = (2**31 - 3, 2000, 2000)
    device.read([20.0] * 4, [NOW_US + n for n in range(1, 5)])
    assert device.stored_panes()["", NOW_US][0] == 2**31 - 1
    assert device.counted["accepted"] == 5
    (lacking,) = [total for name, total in device.counted.items() if "out of range" in name]
    assert lacking == 2


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, False, "21.5", float("nan"), float("inf"), -float("inf"), 2**31, 1e300),
        *([], {}, ..., b"21", LIMIT / 100, Decimal("NaN")),
    ],
    ids=str,
)
def test_a_value_that_is_no_number_in_range_is_refused_and_counted(tmp_path, value):
    device = Device(tmp_path)
    device.read([value, 20.0], [NOW_US, NOW_US])
    assert (device.counted["accepted"], device.counted["refused"]) == (1, 1)
    assert sum(total for name, total in device.counted.items() if ": " in name) == 1


@pytest.mark.parametrize("value", [Decimal("21.5"), Fraction(43, 2), 21, 21.5], ids=repr)
def test_every_kind_of_number_is_kept(tmp_path, value):
    device = Device(tmp_path)
    device.read([value], [NOW_US])
    assert len(list(device.store.readings())) == 1


def test_an_unknown_event_is_refused(tmp_path):
    device = Device(tmp_path)
    batch = Batch("test", ["pressure", "temperature", "\ud800"], [NOW_US] * 3, [1.0] * 3, [{}] * 3)
    device.durable.read(batch, NOW_US)
    assert device.counted == {"accepted": 1, "refused": 2, "refused: unknown event": 2}


def test_what_a_source_refused_is_counted(tmp_path):
    device = Device(tmp_path)
    device.read([], refused={"no time": 3})
    assert device.counted == {"refused": 3, "refused: no time": 3}


def test_tags_without_a_utf_8_are_taken(tmp_path):
    device = Device(tmp_path, greenhouse())
    for _ in range(2):
        device.read([20.0], [NOW_US], {"room": "\ud83d"})
        device.restart()
    assert (device.counted["accepted"], device.counted["repeated"]) == (1, 1)


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=4))
def test_the_text_of_tags_is_ascii_and_tells_them_apart(tags):
    text = tags_text(tags)
    assert text.isascii()
    assert text == tags_text(dict(reversed(tags.items())))
    assert text != tags_text(tags | {"another": "one"}) or tags.get("another") == "one"


FIRST_US = EARLIEST_PANE_US  # a multiple of the program's pane length, as of a day


@pytest.mark.parametrize("span_us", [1, 7, 10 * SECOND_US, 7 * SECOND_US, 400 * DAY_US])
def test_no_pane_of_an_accepted_reading_starts_before_what_a_lander_takes(span_us):
    start_us = first_us([span_us])
    assert start_us % span_us == 0
    assert EARLIEST_PANE_US <= start_us < EARLIEST_PANE_US + span_us


@pytest.mark.parametrize(
    "time_us", [0, -1, -DAY_US, FIRST_US, 1, NOW_US + 299 * SECOND_US], ids=str
)
def test_any_time_that_a_lander_takes_is_taken(tmp_path, time_us):
    device = Device(tmp_path)
    device.take([20.0], [time_us], [{}])
    assert device.counted == {"accepted": 1}
    device.settle()
    assert [pane[2] for pane in device.landed.panes] == [time_us // 10_000_000 * 10_000_000]
    device.restart()
    device.take([20.0], [time_us], [{}])
    assert device.counted["repeated"] == 1


@pytest.mark.parametrize(
    ("time_us", "outcome"),
    [
        (FIRST_US - 1, "too_late"),
        (-(2**80), "too_late"),
        (NOW_US + 300 * SECOND_US + 1, "in_the_future"),
        (2**80, "in_the_future"),
    ],
)
def test_other_times_are_counted_and_move_nothing(tmp_path, time_us, outcome):
    device = Device(tmp_path)
    device.read([20.0], [NOW_US])
    before = everything(device)
    device.take([21.0], [time_us], [{}])
    assert everything(device) == before
    assert device.counted[outcome] == 1


def test_a_reading_of_1970_does_not_stay_the_floor(tmp_path):
    device = Device(tmp_path)
    device.read([20.0, 20.0], [0, NOW_US])
    device.read([21.0], [0])
    assert (device.counted["accepted"], device.counted["too_late"]) == (2, 1)


def test_a_clock_that_is_set_back_stamps_by_its_new_time(tmp_path):
    device = Device(tmp_path)
    device.read([20.0])
    device.now_us -= 30 * DAY_US
    device.restart()
    device.read([21.0, 22.0])
    stamps = [reading["accepted_us"] for reading in device.store.readings()]
    assert stamps == [NOW_US, NOW_US - 30 * DAY_US, NOW_US - 30 * DAY_US + 1]


def test_a_stamped_reading_below_the_floor_is_too_late_too(tmp_path):
    device = Device(tmp_path)
    device.read([20.0], [NOW_US])
    device.store.commit(Changes(facts=Facts(stamp_us=0)))
    device.now_us -= 30 * DAY_US
    device.restart()
    device.read([21.0])
    assert device.counted["too_late"] == 1


def test_counted_names_are_bounded_whatever_strangers_say():
    counters = Counters({})
    for number in range(10_000):
        counters.add(f"refused: program: {number} \ud800")
    assert len(counters.totals) <= KEPT_NAMES + 1
    assert sum(counters.totals.values()) == 10_000
    assert all(name.isascii() for name in counters.totals)


def test_a_huge_batch_is_taken(tmp_path):
    device = Device(tmp_path)
    device.read([20.0] * 30_000, [NOW_US + n * 1_000 for n in range(30_000)])
    assert device.counted == {"accepted": 30_000}
    device.tick()
    assert device.core.results.local()["local_average"][""].partial == (100, 200_000)


def test_two_events_in_one_batch_go_their_own_ways(tmp_path):
    program = Program("two")
    warm, moist = program.event("temperature", resolution="0.1"), program.event("humidity")
    fold = folds.struct(count=folds.count(), total=folds.sum(), low=folds.min())
    program.window("by_room", source=warm, fold=fold, size_s=60, slide_s=10)
    program.window("moist", source=moist, fold=fold, size_s=60)
    program = program.plan()
    device = Device(tmp_path, program)
    names = ["temperature", "humidity"] * 3
    device.durable.read(
        Batch("test", names, [NOW_US + n for n in range(6)], [7.0] * 6, [{}] * 6), NOW_US
    )
    partials = {pane.stream: row.partial for pane, row in device.rows()}
    assert partials == {
        program.windows["by_room"].stream: (3, 210, 70),
        program.windows["moist"].stream: (3, 21, 7),
    }


@settings(max_examples=15)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_how_readings_come_in_batches_changes_nothing(sizes):
    count = sum(sizes)
    values = [20.0 + n % 5 for n in range(count)]
    times_us = [NOW_US + (n * 7 % 30) * SECOND_US for n in range(count)]
    found = []
    with TemporaryDirectory() as directory:
        for cut in (sizes, [count], [1] * count):
            device = Device(Path(directory, str(len(found))), greenhouse(bound=7))
            device.now_us = max(times_us)
            start = 0
            for size in cut:
                device.read(values[start : start + size], times_us[start : start + size])
                start += size
            local, shared, panes, high_us, _, identities = everything(device)
            partials = {(pane.pane_us, pane.key): partial for pane, partial in panes.items()}
            found.append((local, shared, partials, high_us, identities, device.counted))
            device.kill()
    assert found[0] == found[1] == found[2]
