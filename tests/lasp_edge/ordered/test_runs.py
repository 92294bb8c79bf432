"""The log of runs against the log that keeps a state for each event."""

from random import Random

import pytest

from lasp_edge import Event, scans
from lasp_edge.ordered import runs
from lasp_edge.ordered.calling import Failures
from lasp_edge.ordered.log import ScanLog
from lasp_edge.ordered.outputs import LogName
from lasp_edge.ordered.parted import LeafScan, basis_of
from lasp_edge.ordered.runs import SHARED, RunLog

WAITS = "not known"


class Fussy(scans.Synchronised):
    """Adds up; gives a row of each third value; fails at 7, and is not plain at 8."""

    name, zero = "fussy", (0, 0)
    depends = (("end", "made"), ("end", "end"))

    def step(self, state, event):
        count, total = state
        if event.value == 7:
            raise ZeroDivisionError
        if event.value == 8:
            return (count, [total]), []
        if event.value == 9:
            return (count, total), [[]]
        if event.value == 5:
            return state, ["as it was"]
        return (count + 1, total + event.value), [total, count] if event.value % 3 == 0 else []

    def share(self, state):
        return (0, state[1] % 4)

    def join(self, state, part):
        return state[0] + part[0], state[1] + part[1]


class OfNothing(Fussy):
    empty = (0, 0)
    share = scans.Synchronised.share


def placed(random, time_us):
    """Return a place, and what may stand there: a local event, or one in order."""
    if random.random() < 0.3:
        place = (time_us, "desk", ("end", "", time_us), (1,))
        share = random.choice([WAITS, (0, 0), (0, 2), [1]])
        known = share is not WAITS
        value = (known, share if known else None, basis_of(place, share if known != [1] else None))
        return place, Event(SHARED, value, time_us, "", {}, "k")
    value = random.randrange(12)
    place = (time_us, "machine", ("made", "", value), (0,))
    return place, Event("made", value, time_us, "machine", {})


class Both:
    """A log of runs and one of all states, which take the same."""

    def __init__(self, random, scan):
        half = LeafScan(scan)
        self.random, self.failures = random, (Failures(), Failures())
        self.runs = RunLog(half, half.stepper, "k", self.failures[0])
        self.each = ScanLog(half, LogName("", "k", "machine"), self.failures[1])
        self.here, self.floor_us, self.high_us = {}, 0, 1

    def change(self):
        """Return a place, and what stands there from now on."""
        random = self.random
        if random.random() < 0.6:
            self.high_us += 1
            return placed(random, self.high_us)
        if self.here and random.random() < 0.5:
            place = random.choice(sorted(self.here))
            fresh = placed(random, place[0])[1]
            return place, fresh if fresh.name == SHARED == self.here[place].name else None
        return placed(random, random.randrange(self.floor_us, self.high_us + 1))

    def inserted(self, changes):
        """Insert the local events that are new, some at a time; return the other changes."""
        new = [
            (place, event)
            for place, event in sorted(changes.items(), key=lambda one: one[0])
            if place not in self.here and event is not None and event.name != SHARED
        ]
        half = self.random.randrange(len(new) + 1)
        for part in (new[:half], new[half:]) if self.random.random() < 0.5 else (new,):
            self.runs.insert([place for place, _ in part], [event for _, event in part])
        return {place: each for place, each in changes.items() if place not in dict(new)}

    def take(self):
        changes = dict(self.change() for _ in range(self.random.choice([1, 2, 12])))
        rest = self.inserted(changes) if self.random.random() < 0.5 else changes
        self.here |= changes
        self.here = {at: event for at, event in self.here.items() if event is not None}
        batch, others = (sorted(each.items(), key=lambda one: one[0]) for each in (changes, rest))
        assert self.runs.apply(others) == self.each.apply(batch, None)
        assert self.failures[0].places == self.failures[1].places
        assert len(self.runs) == len(self.each) == len(self.here)

    def cut(self):
        self.floor_us = random_us = self.random.randrange(self.floor_us, self.high_us + 1)
        for failures in self.failures:
            failures.cut(random_us)
        assert self.runs.cut(random_us) == self.each.cut(random_us)
        self.here = {at: event for at, event in self.here.items() if at[0] >= random_us}


@pytest.mark.parametrize("scan", [Fussy, OfNothing])
@pytest.mark.parametrize("seed", range(30))
def test_it_gives_what_the_log_of_all_states_gives(monkeypatch, seed, scan):
    random = Random(seed)
    monkeypatch.setattr(runs, "MOST", random.choice([1, 2, 3, 7, 256]))
    both = Both(random, scan())
    for _ in range(40):
        both.take()
        if random.random() < 0.15:
            both.cut()


def test_what_comes_in_order_is_stepped_once_and_what_is_late_steps_its_run(monkeypatch):
    monkeypatch.setattr(runs, "MOST", 4)
    half = LeafScan(OfNothing())
    log = RunLog(half, half.stepper, "k", Failures())

    def made(time_us, value=1):
        return (time_us, "m", ("made", "", value), (0,)), Event("made", value, time_us, "m", {})

    log.apply([made(at) for at in range(10, 20)])
    assert log.steps == 10
    place = (13, "desk", ("end", "", 1), (1,))
    end = Event(SHARED, (True, (0, 0), basis_of(place, (0, 0))), 13, "", {}, "k")
    log.apply([(place, end)])
    again = log.steps
    log.apply([made(11, 2)])
    # 10, 11, 11, 12; and the run behind the event in order, whose state is what it was
    assert log.steps == again + 4 + 2
