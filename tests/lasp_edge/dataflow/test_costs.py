"""One change costs what it changes, whatever the sets hold: counted, not timed."""

import pytest

from crdts import BoundedLWWSet, GSet, ORSet, TwoPSet
from lasp_edge import folds
from lasp_edge.dataflow import Dataflow
from tests.lasp_edge.dataflow.histories import REPLICAS

ME, YOU, _ = REPLICAS
SIZE = 10_000


def with_every_operator(size):
    """Return a dataflow over two sets of this size, and one of three."""
    d = Dataflow(ME)
    for name, elements in (("left", size), ("right", size), ("few", 3)):
        d.declare(ORSet(), name)
        d.update(name, ORSet.add_many, range(elements))
    d.map("left", lambda n: -n, "negative")
    d.filter("left", lambda n: n % 2, "odd")
    d.union("left", "right", "either")
    d.intersection("left", "right", "both")
    d.product("left", "few", "pairs")
    d.bind_to("again", "left")
    d.fold("left", folds.mean(), "mean")
    d.fold("both", folds.mean(), "mean of both")
    return d


def test_how_many_pairs_a_change_touches_does_not_depend_on_how_many_there_are():
    def touched(size):
        d = with_every_operator(size)
        before = d.touched
        d.update("left", "add", -7)
        d.update("left", "remove", 5)
        return d.touched - before

    assert touched(SIZE) == touched(10) < 40


@pytest.mark.parametrize("kind", [ORSet, GSet, TwoPSet])
def test_functions_are_asked_once_for_each_element(kind):
    d, asked = Dataflow(ME), []
    d.declare(kind(), "left")
    d.map("left", lambda n: asked.append(n) or n, "target")
    for element in (1, 2, 1, 3):
        d.update("left", "add", element)
    d.receive("left", d.state("left"))
    assert asked == [1, 2, 3]


def test_a_sample_that_leaves_a_window_is_taken_out_and_the_others_are_not_touched():
    d, lifted = Dataflow(ME), []
    d.declare_dynamic(BoundedLWWSet(bound=1000), "samples")
    d.fold("samples", folds.mean(), "mean", sample=lambda s: lifted.append(s) or s.value)
    for value in range(1500):
        d.update("samples", "add", value, value)
    assert len(lifted) == 1500
    assert d.query("mean") == (1000, sum(range(500, 1500)))


def test_of_a_dynamic_fold_only_the_device_that_changed_is_touched():
    d = Dataflow(ME)
    d.declare_dynamic(BoundedLWWSet(bound=2), "samples")
    d.fold("samples", folds.max(), "own")
    d.fold_dynamic("own", "all")
    for number in range(1000):
        peer = YOU._replace(device=f"pi-{number}")
        d.receive("own", d.state("own").bottom().put(peer, 1, (("", 1, (number,)),)))
    before = d.touched
    d.receive(
        "own", d.state("own").bottom().put(YOU._replace(device="pi-999"), 2, (("", 2, (5,)),))
    )
    assert d.query("all") == (998,)
    assert d.touched - before == 1
