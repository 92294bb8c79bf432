"""Parts of synchronised scans: all rows are those of one order, whatever befalls the exchange.

Each rule of the exchange is broken once, and a run finds it.
"""

from functools import cache

import pytest

from lasp_edge.event import Event
from lasp_edge.ordered.answers import without
from lasp_edge.ordered.gathering import Gathering
from lasp_edge.ordered.parted import FAILED, FIRST, SHARE, RootScan
from lasp_edge.ordered.runs import ROW
from tests.lasp_edge.ordered.support_answering import Device
from tests.lasp_edge.ordered.support_parted import Exchange, Sink
from tests.lasp_edge.scans.support_synchronised import SCANS, Epochs, ValueBarrier

FAULTS = ["", "late", "away", "new", "gateway dies", "one instant", "lies"]


CASES = {
    (kind, FAULTS[(n + more) % len(FAULTS)]) for n, kind in enumerate(SCANS) for more in (0, 2, 4)
}
CASES |= {(kind, "lies") for kind in SCANS}
CASES |= {(Epochs, fault) for fault in FAULTS}  # it shows what was made of two shares


@pytest.mark.parametrize(("kind", "fault"), sorted(CASES, key=str))
def test_rows_are_those_of_one_order_whatever_befalls(kind, fault):
    keys = 1 + 2 * (FAULTS.index(fault) % 2)
    assert Exchange(kind(), seed=7, fault=fault, keys=keys, count=60).run() is None


@cache
def sound(kind, seed, keys):
    """Return what a run finds in the code as it is."""
    return Exchange(kind(), seed, keys=keys).run()


def always(*_):
    return True


def is_there(given, _basis):
    return given is not None


def nothing(*_):
    return []


def by_the_frontier(_gathering, frontier_us):
    return frontier_us


PLANTED = {
    "a part of any share is joined": (
        [(RootScan, "joins", staticmethod(always)), (Gathering, "counts", staticmethod(is_there))],
        Epochs,
        4,
        3,
    ),
    "a part counts by its arrival": (
        [(Sink, "is_newer", staticmethod(always))],
        ValueBarrier,
        0,
        1,
    ),
    "what lies before the frontier is final": (
        [(Gathering, "settled_us", by_the_frontier)],
        Epochs,
        0,
        1,
    ),
    "a promise before events and answers have arrived": (
        [(Device, "owed", nothing)],
        Epochs,
        0,
        1,
    ),
    "shares count by their arrival": ([(Device, "is_newer", always)], ValueBarrier, 10, 1),
}
"""Bug -> what is put in place of what; a scan, a seed and a number of keys whose run finds it."""


SHOWS = {"a part of any share is joined": "torn at"}
"""Items carry the share that they were stepped under, so a row of two shares shows that itself."""


@pytest.mark.parametrize("bug", PLANTED)
def test_a_broken_rule_is_found(bug, monkeypatch):
    patches, kind, seed, keys = PLANTED[bug]
    assert sound(kind, seed, keys) is None
    for patch in patches:
        monkeypatch.setattr(*patch)
    found = Exchange(kind(), seed, keys=keys).run()
    assert found is not None
    assert SHOWS.get(bug, "") in found


PARTS = {
    "a text": ("x",),
    "nothing": (None,),
    "two parts": (1, 2),
    "a part of another share": (1 << 70, 5),
    "a pair": ((1, 2),),
    "too much": ((1 << 63) - 1,),
}


def arrived(value, answers=(), basis=FIRST):
    """Return an event in order that is whole with some answers."""
    place = (value, "desk", ("b", "", value), (1,))
    return Event("b", (float(value), tuple(answers), basis, place), value, "desk", {}, "")


@pytest.mark.parametrize("made", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("kind", [ValueBarrier, Epochs])
def test_a_part_that_cannot_be_joined_is_refused_and_the_others_are_joined(kind, made):
    scan = kind()
    root, share = RootScan(scan), scan.share(scan.zero)
    part, _ = scan.step(share, Event("a", 7.0, 5, "d0", {}))
    right = (part,) if scan.is_share_constant else without(part, share)
    first, false, last = (
        (name, FIRST, what, b"", 1, 1)
        for name, what in (("d0", right), ("d1", made), ("d2", right))
    )
    state, values = root.step(root.zero, arrived(10, [first, last]))
    with_it = root.step(root.zero, arrived(10, [first, false, last]))
    assert with_it[0] == state
    *others, (what, device, why) = with_it[1]
    assert others == values
    assert (what, device) == (FAILED, "d1")
    assert "Error" in why or "StopIteration" in why


class Failing(ValueBarrier):
    """Its step, or the share behind it, fails at one event in order."""

    fails = "step"

    def step(self, state, event):
        if self.fails == "step" and event.value == 1:
            raise ZeroDivisionError
        return (8 if event.value == 1 else state), [state]

    def share(self, state):
        return 0 if state != 8 else 1 // 0


@pytest.mark.parametrize("fails", ["step", "share"])
def test_a_step_that_fails_gives_nothing_and_the_scan_goes_on(fails):
    scan = Failing()
    scan.fails = fails
    root = RootScan(scan)
    state, values = root.step(root.zero, arrived(1))
    assert [value[0] for value in values] == [SHARE, FAILED]
    assert values[1][1] == ""
    assert "ZeroDivisionError" in values[1][2]
    _, values = root.step(state, arrived(2, basis=state[1]))
    assert [value[0] for value in values] == [ROW, SHARE]
