"""Folds: assigned from what a set holds now, and combined over the devices that count."""

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crdts import BoundedLWWSet, GSet, Membership, ORSet, OwnedMap, Pair, PNCounter, Version
from lasp_edge import folds
from lasp_edge.dataflow import Dataflow, Oracle
from lasp_edge.folds.numbers import Resolution
from tests.lasp_edge.dataflow.histories import REPLICAS, lawful

ME, YOU, _ = REPLICAS
DEVICES = [replica.device for replica in REPLICAS]
MADE = {
    "mean": folds.mean,
    "max": folds.max,
    "struct": lambda: folds.struct(n=folds.count(), least=folds.min()),
}


def fleet_of(fold, bound=2):
    """Return a dataflow for each replica: a window, its fold, and the fleet's."""
    dataflows = []
    for replica in REPLICAS:
        d = Dataflow(replica)
        d.declare_dynamic(BoundedLWWSet(bound=bound), "samples")
        d.declare(Membership(), "members")
        d.fold("samples", fold, "own")
        d.fold_dynamic("own", "all", members="members")
        dataflows.append(d)
    return dataflows


def test_windows_of_a_fold_are_assigned_and_never_joined():
    d = Dataflow(ME)
    d.declare_dynamic(BoundedLWWSet(bound=2), "samples")
    d.fold("samples", folds.sum(), "total")
    streamed = []
    d.stream("total", lambda news: streamed.extend(partial for (partial,) in news.added))
    for value in (5, 6, 1, 2):
        d.update("samples", "add", value, 7)
    assert streamed == [0, 5, 11, 7, 3], "joined they would climb to 11 and stay there"


def test_a_declared_target_of_a_fold_is_derived_all_the_same():
    d = Dataflow(ME)
    d.declare_dynamic(BoundedLWWSet(bound=2), "samples")
    target = d.declare(Pair(PNCounter(), PNCounter()), "average")
    assert d.fold("samples", folds.mean, target) is target
    d.update("samples", ("add", 4, 7))
    assert d.query(target) == (1, 4)
    assert d.fold("samples", folds.mean(), target) is target
    assert d.take_deltas() == {}, "no fold_dynamic reads it"
    with pytest.raises(ValueError, match="'average' belongs to each device alone"):
        d.receive(target, OwnedMap())
    with pytest.raises(ValueError, match="update: 'average' is derived, by fold of 'samples'"):
        d.update(target, "increment", 1)


def test_equal_samples_count_each_and_equal_elements_once():
    d = Dataflow(ME)
    d.declare_dynamic(BoundedLWWSet(bound=9), "samples")
    d.declare(GSet(), "elements")
    for _ in range(2):
        d.update("samples", "add", 5, 7)
        d.update("elements", "add", 5)
    d.filter("samples", lambda sample: sample.value > 1, "high")
    for name in ("samples", "high", "elements"):
        d.fold(name, folds.count(), f"count of {name}")
    assert [d.query(f"count of {name}") for name in ("samples", "high", "elements")] == [
        (2,),
        (2,),
        (1,),
    ]


def test_a_window_with_a_hole_is_not_folded_until_it_is_whole():
    window = BoundedLWWSet(bound=3)
    deltas = []
    for value in (1, 2, 4, 8):
        deltas.append(window.add(ME, value, 7))
        window |= deltas[-1]
    d = Dataflow(YOU)
    d.declare(BoundedLWWSet(bound=3), "theirs")
    d.filter("theirs", lambda _: True, "same")
    d.fold("same", folds.sum(), "total")
    totals = []
    for at in (0, 2, 1, 3):
        d.receive("theirs", deltas[at])
        totals.append(d.query("total"))
    assert totals == [(1,), (1,), (7,), (14,)]


def test_what_a_fold_cannot_take_is_left_aside():
    d = Dataflow(ME)
    d.declare(GSet(), "elements")
    d.fold("elements", folds.sum(), "total")
    for element in (3, "x", ("y", 4), 2**40, 5):
        d.update("elements", "add", element)
    assert d.query("total") == (3 + 2**40 + 5,)
    assert d.left_aside == {"total": 2}
    d.fold("elements", folds.max(), "greatest", sample=lambda e: e[1] if type(e) is tuple else e)
    assert d.query("greatest") == (5,)
    assert d.left_aside["greatest"] == 2, "a text, and a value out of range"


def test_refusals():
    d = Dataflow(ME)
    d.declare(GSet(), "elements")
    d.declare(PNCounter(), "count")
    d.fold("elements", folds.sum(), "total")
    d.fold_dynamic("total", "all")
    for wrong, reason in [
        (lambda: d.fold("count", folds.sum(), "t"), "fold: 'count' must be a set"),
        (
            lambda: d.fold("elements", "sum", "t"),
            r"folds.mean\(\), or of a class that extends Fold, is needed",
        ),
        (lambda: d.fold_dynamic("elements", "t"), "'elements' must be the target of a fold"),
        (lambda: d.fold_dynamic("total", "t", members="count"), "'count' must hold a Membership"),
        (lambda: d.receive("total", GSet({1})), "'total' needs an OwnedMap of partials, got GSet"),
        (lambda: d.receive("total", OwnedMap().put(YOU, 1, (1, 2))), r"got \(1, 2\) of 'kitchen'"),
        (lambda: d.receive("total", OwnedMap().put(YOU, 1, 7)), "got 7 of 'kitchen'"),
        (lambda: d.fold("elements", folds.max(), "total"), "derived already, by fold of 'ele"),
        (lambda: d.receive("all", OwnedMap()), "'all' is derived, by fold_dynamic of 'total'"),
    ]:
        with pytest.raises(ValueError, match=reason):
            wrong()
    assert "t" not in d.definitions


def test_a_device_counts_from_the_first_and_its_newest_partial_does():
    here, there = fleet_of(folds.mean())[:2]
    here.update("samples", "add", 10, 7)
    old = here.take_deltas()["own"]
    here.update("samples", "add", 20, 7)
    new = here.take_deltas()["own"]
    for delta in (new, old, new):
        there.receive("own", delta)
    there.update("samples", "add", 60, 7)
    assert there.query("all") == (3, 90)
    assert there.take_deltas() == {"own": OwnedMap().put(YOU, 2, (("", 2, (1, 60)),))}, (
        "its own, and no other"
    )
    mean = folds.mean().lower(there.query("all"), Resolution("0.1"))
    assert mean == {"mean": 3.0}


def test_a_retired_device_does_not_count_until_it_is_admitted_again():
    here, there = fleet_of(folds.max())[:2]
    for d, value in ((here, 9), (there, 5)):
        d.update("samples", "add", value, 7)
    there.receive("own", here.take_deltas()["own"])
    assert there.query("all") == (9,)
    there.bind("members", there.state("members").retire(ME.device, Version.of(ME, 1)))
    assert there.query("all") == (5,)
    here.update("samples", "add", 11, 7)
    there.receive("own", here.take_deltas()["own"])
    assert there.query("all") == (5,)
    there.bind("members", there.state("members").admit(ME.device))
    assert there.query("all") == (11,)


@pytest.mark.parametrize("made", MADE)
def test_the_fleet_comes_to_the_combination_of_what_each_device_holds(made):
    fold = MADE[made]()

    @lawful
    @given(st.data())
    def check(data):
        fleet, sent = fleet_of(fold), []
        for _ in range(data.draw(st.integers(1, 15))):
            d = fleet[data.draw(st.integers(0, 2))]
            if data.draw(st.booleans()) or not sent:
                d.update("samples", "add", data.draw(st.integers(-5, 5)), 7)
                if data.draw(st.integers(0, 2)) == 0:
                    members, device = d.state("members"), data.draw(st.sampled_from(DEVICES))
                    retired = members.retire(device, Version(1, 1, 1))
                    d.bind("members", data.draw(st.sampled_from([retired, members.admit(device)])))
                sent += d.take_deltas().items()
            else:
                for name, delta in data.draw(st.lists(st.sampled_from(sent), max_size=4)):
                    d.receive(name, delta)
            assert d.query("own") == oracle(d).value("own")
            assert d.query("all") == oracle(d).value("all")
        sent += [news for d in fleet for news in d.take_deltas().items()]
        for d in fleet:
            for name, delta in data.draw(st.permutations(sent)):
                d.receive(name, delta)
        own = dict(zip(DEVICES, [d.query("own") for d in fleet], strict=True))
        counted = [own[device] for device in DEVICES if device not in fleet[0].query("members")]
        assert {d.query("all") for d in fleet} == {reduce(fold.combine, counted, fold.zero)}

    check()


def oracle(dataflow):
    names = ("samples", "members")
    states = {name: dataflow.state(name) for name in names}
    fleet = Oracle(dataflow.definitions, states | {"own": dataflow.state("own")})
    assert Oracle(dataflow.definitions, states).value("own") == fleet.value("own")
    return fleet


def test_a_fold_over_a_set_shared_by_all_needs_no_fold_dynamic():
    here, there = Dataflow(ME), Dataflow(YOU)
    for d in (here, there):
        d.declare(ORSet(), "readings")
        d.fold("readings", folds.sum(), "total", sample=lambda reading: reading[1])
    here.update("readings", "add", ("attic", 3))
    there.update("readings", "add", ("cellar", 3))
    here.receive("readings", there.take_deltas()["readings"])
    there.receive("readings", here.take_deltas()["readings"])
    assert here.query("total") == there.query("total") == (6,)
