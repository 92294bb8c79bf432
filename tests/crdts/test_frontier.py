"""Promises: the newest of each device, and when it was first heard."""

import itertools

import pytest

from crdts import Frontier, Promise, Replica, Version, decode, encode
from crdts.wire import CODES

KITCHEN, LATER, CELLAR = Replica(1, 7, "kitchen"), Replica(2, 3, "kitchen"), Replica(1, 9, "cellar")


def test_the_newest_promise_of_each_device_stands():
    frontier = Frontier().promise(KITCHEN, 2, 60, heard_us=70)
    frontier |= frontier.promise(CELLAR, 1, 50, heard_us=70)
    frontier |= frontier.promise(KITCHEN, 1, 90, heard_us=71)
    assert frontier.value == {"cellar": 50, "kitchen": 60}
    frontier |= frontier.promise(LATER, 1, None, heard_us=72)
    assert frontier.value == {"cellar": 50, "kitchen": None}


def test_a_promise_that_came_again_was_heard_when_it_first_came():
    first, again = (Frontier().promise(KITCHEN, 1, 60, heard_us=us) for us in (70, 90))
    assert first | again == again | first == first


def test_of_two_promises_of_one_version_the_greater_stands_in_any_order():
    words = [
        Frontier().promise(KITCHEN, 1, low, heard_us=70, done=done)
        for low, done in ((None, False), (None, True), (-5, True), (60, False), (60, True))
    ]
    for order in itertools.permutations(words):
        heard = Frontier()
        for word in order:
            heard |= word
        assert heard == words[-1]


def test_doubled_and_reordered_promises_leave_the_frontier_where_it_is():
    promises = [Frontier().promise(KITCHEN, seq, seq * 10, heard_us=seq) for seq in (1, 2, 3)]
    frontier = Frontier()
    for promise in [promises[2], promises[0], promises[2], promises[1], promises[0]]:
        frontier |= promise
        assert frontier.value == {"kitchen": 30}


@pytest.mark.parametrize(
    ("low_us", "heard_us", "reason"),
    [
        (1.5, 0, "a low watermark needs an integer from"),
        (2**63, 0, "a low watermark needs an integer from"),
        (-(2**63), 0, "a low watermark needs an integer from"),
        (0, 2**63, "a time needs an integer from"),
        (0, None, "a time needs an integer from"),
    ],
)
def test_a_time_out_of_range_is_refused(low_us, heard_us, reason):
    with pytest.raises(ValueError, match=reason):
        Frontier().promise(KITCHEN, 1, low_us, heard_us)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ((1, 7, 1, 60), "a promise needs a list of 6, got 4 items"),
        ((1, 7, 1, 60, 1, 70), "a promise needs True or False for done, got 1"),
        ((2**30, 7, 1, 60, False, 70), "an incarnation needs an integer from 0 to"),
    ],
)
def test_a_strangers_promise_is_refused_with_a_reason(row, reason, monkeypatch):
    class Forged(Frontier):
        @staticmethod
        def row(_value):
            return row

    monkeypatch.setitem(CODES, Forged, CODES[Frontier])
    forged = Forged({"kitchen": Promise(Version(1, 7, 1), 60, done=False, heard_us=70)})
    with pytest.raises(ValueError, match=reason):
        decode(encode(forged))
