"""Parts of synchronised scans: all rows are those of one order, whatever befalls the exchange.

Each rule of the exchange is broken once, and a run finds it.
"""

from functools import cache

import pytest

from lasp_edge.ordered.gathering import Gathering
from lasp_edge.ordered.parted import RootScan
from tests.lasp_edge.ordered.support_parted import Device, Exchange, Sink
from tests.lasp_edge.scans.support_synchronised import SCANS, Epochs, ValueBarrier

FAULTS = ["", "late", "away", "new", "gateway dies", "one instant"]


CASES = {
    (kind, FAULTS[(n + more) % len(FAULTS)]) for n, kind in enumerate(SCANS) for more in (0, 2, 4)
}
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
