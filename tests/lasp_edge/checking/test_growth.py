"""`check` measures what grows with every reading, before a month does."""

from itertools import count, islice

import pytest

from crdts import BoundedLWWSet, Counter, GSet
from lasp_edge import Event, Program, scans
from lasp_edge.checking.growth import HALF, growing, kept_by_value
from lasp_edge.examples import greenhouse, hothouse, machines, talk
from lasp_edge.ordered.plain import PLAIN_BYTES, encoded
from tests.lasp_edge.scans.support_synchronised import SCANS, ValueBarrier, program_of


def scanned(scan):
    program = Program("growing")
    x = program.event("x", resolution="1")
    program.scan("s", source=x, scan=scan, per_device=True)
    return growing(program.plan())


def test_a_state_that_keeps_all_readings_is_measured():
    (line,) = scanned(scans.running(lambda state, event: (*state, event.value), ()))
    half, whole = (len(encoded((1.5,) * n)) for n in (HALF, 2 * HALF))
    assert f"scan s: its state grows with every reading: {half:,} bytes after {HALF}, " in line
    assert f"{whole:,} after {2 * HALF}; beyond 65,536 bytes, after about 7,281 readings" in line
    (line,) = scanned(scans.running(lambda state, event: state + f" {event.value}", ""))
    assert "grows with every reading" in line


def by_value(state, event):
    return tuple(sorted({*state, event.value}))


def since_midnight(state, event):
    day = event.time_us // 86_400_000_000
    return (*(each for each in state if each[0] == day), (day, event.value))


@pytest.mark.parametrize(
    "scan",
    [
        scans.running(by_value, ()),
        scans.running(since_midnight, ()),
        scans.running(lambda state, event: (state[0] + 1, state[1] + event.value), (0, 0.0)),
        scans.sessions(gap_s=60),
        scans.last(20),
    ],
)
def test_what_forgets_or_keeps_by_value_does_not_grow(scan):
    assert scanned(scan) == []


class Median(ValueBarrier):
    """Keeps all values of a slice."""

    name, zero, empty = "median", (), ()

    def step(self, state, event):
        if event.name == "b":
            return (), [state[len(state) // 2]] if state else []
        return tuple(sorted((*state, round(event.value)))), []

    def join(self, state, part):
        return tuple(sorted((*state, *part)))


def test_a_part_that_keeps_all_readings_of_a_slice_is_measured():
    (line,) = growing(program_of(Median).plan())
    assert "scan found: a part of a slice grows with every reading: " in line
    assert "a device's part of more than 16,384 bytes" in line


@pytest.mark.parametrize("kind", SCANS)
def test_parts_that_count_do_not_grow(kind):
    assert growing(program_of(kind).plan()) == []


def collected(bottom, key):
    program = Program("keys")
    x = program.event("x", resolution="1")
    samples = program.declare_dynamic(bottom, "samples", key=key)
    program.collect(x, into=samples)
    return growing(program.plan())


def test_a_new_key_for_each_reading_needs_an_age():
    (line,) = collected(BoundedLWWSet(bound=3), lambda event: str(event.time_us))
    assert line.startswith("key of variable samples: 300 readings have 300 keys, and each is kept")
    aged = BoundedLWWSet(bound=3, max_age_s=3_600)
    assert collected(aged, lambda event: str(event.time_us)) == []
    assert collected(BoundedLWWSet(bound=3), lambda event: event.tags["room"]) == []
    assert collected(BoundedLWWSet(bound=3), lambda event: str(event.value)) == []


TICKETS, NAMES = {"least": -50, "most": 9_000}, {"text": True}


def come_and_gone(within_s):
    return scans.pattern(lambda e: e.value >= 0, lambda e: e.value < 0, within_s=within_s)


@pytest.mark.parametrize(
    ("event", "scan", "grows"),
    [
        (TICKETS, scans.distinct(within_s=86_400), True),
        (NAMES, scans.distinct(within_s=86_400), True),
        (NAMES, scans.distinct(within_s=60), False),
        (TICKETS, come_and_gone(86_400), True),
        (TICKETS, come_and_gone(60), False),
        (TICKETS, scans.last(9), False),
    ],
    ids=str,
)
def test_a_state_of_each_other_value_is_named(event, scan, grows):
    program = Program("kept")
    program.scan("s", source=program.event("seen", **event), scan=scan, per_device=True)
    lines = kept_by_value(program.plan())
    assert [line.partition(":")[0] for line in lines] == ["scan s"] * grows


def test_as_many_other_values_fit_as_it_says():
    program, scan = Program("kept"), scans.distinct(within_s=86_400)
    program.scan("s", source=program.event("seen", **TICKETS), scan=scan, per_device=True)
    (line,) = kept_by_value(program.plan())
    told = int(line.partition("some ")[2].partition(" of them")[0].replace(",", ""))
    state, numbers = scan.zero, count()
    while len(encoded(state)) <= PLAIN_BYTES:
        for number in islice(numbers, 50):  # encoding it takes longest
            event = Event("seen", float(number), number * 1_000_000, "pi-1", {})
            state, _ = scan.step(state, event)
    assert told == pytest.approx(number, rel=0.3)


def handled(bottom, change):
    program = Program("handled")
    x = program.event("x", resolution="1")
    shared = program.declare(bottom, "shared")
    program.on_event(x)(lambda event, update: change(shared, event, update))
    return growing(program.plan())


def test_a_shared_set_of_every_reading_is_measured():
    (line,) = handled(GSet(), lambda s, e, update: update(s, GSet.add, f"{e.time_us} {e.value}"))
    assert line.startswith("handlers of event x: shared grows with every reading: ")
    assert handled(GSet(), lambda s, e, update: update(s, GSet.add, e.tags["room"])) == []
    assert handled(Counter(), lambda s, e, update: update(s, Counter.increment, 1)) == []


@pytest.mark.parametrize("example", [greenhouse, hothouse, machines, talk])
def test_sound_programs_are_silent(example):
    assert growing(example.program.plan()) == []
