"""What the tests of the dataflow share: kinds of leaves, operators, and three replicas at work.

A history is what Hypothesis draws: replicas write, and now and then one of them hears parts of what
was written, in any order, doubled or never. After each step a replica's variables are compared with
the oracle's, and the news of their streams with their values.
"""

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from crdts import BoundedLWWSet, GSet, Lattice, ORMap, ORSet, Replica, TwoPSet
from lasp_edge import folds
from lasp_edge.dataflow import Dataflow, Oracle

REPLICAS = ME, YOU, OTHER = (
    Replica(1, 7, "cellar"),
    Replica(1, 9, "kitchen"),
    Replica(2, 3, "attic"),
)
numbers = st.integers(0, 4)
lawful = settings(
    max_examples=settings().max_examples // 2, suppress_health_check=list(HealthCheck)
)


def change(mutator, *arguments):
    return st.tuples(*arguments).map(lambda drawn: (mutator, *drawn))


class Kind(NamedTuple):
    bottom: Callable[[], Lattice]
    writes: st.SearchStrategy[tuple[Any, ...]]


KINDS = {
    "ORSet": Kind(
        ORSet,
        change("add", numbers) | change("add_many", st.lists(numbers)) | change("remove", numbers),
    ),
    "TwoPSet": Kind(TwoPSet, change("add", numbers) | change("remove", numbers)),
    "GSet": Kind(GSet, change("add", numbers)),
    "ORMap": Kind(
        lambda: ORMap(ORSet()),
        change("update", numbers, st.just(ORSet.add), numbers)
        | change("update", numbers, st.just(ORSet.remove), numbers)
        | change("remove", numbers),
    ),
}
LEAVES = ("left", "right")
SET_OPERATORS = {
    "map": lambda d, target: d.map("left", lambda n: n // 2, target),
    "filter": lambda d, target: d.filter("left", lambda n: n % 2, target),
    "union": lambda d, target: d.union("left", "right", target),
    "intersection": lambda d, target: d.intersection("left", "right", target),
    "product": lambda d, target: d.product("left", "right", target),
    "bind_to": lambda d, target: d.bind_to(target, "left"),
}


def fold_over(fold):
    return lambda d, target: d.fold("left", fold, target, sample=lambda n: (n * 10, n))


FOLDS = {
    f"fold {name}": fold_over(fold)
    for name, fold in {
        "mean": folds.mean(),
        "max": folds.max(),
        "struct": folds.struct(n=folds.count(), least=folds.min()),
    }.items()
}


def declared(kind, build):
    """Return a function that makes a replica's dataflow."""

    def make(replica):
        dataflow = Dataflow(replica)
        for name in LEAVES:
            dataflow.declare(kind.bottom(), name)
        build(dataflow)
        return dataflow

    return make


class StreamedNews:
    """The news of a dataflow's derived variables, added up."""

    def __init__(self, dataflow):
        self.held = {}
        for name in dataflow.definitions:
            dataflow.stream(name, self.hear)

    def hear(self, news):
        held = self.held.setdefault(news.variable, set())
        assert not held & set(news.added)
        assert held >= set(news.removed)
        assert not set(news.added) & set(news.removed)
        held.difference_update(news.removed)
        held.update(news.added)


def oracle_of(dataflow, states=None):
    """Return the oracle over the leaves of a dataflow, or over other states of them."""
    if states is None:
        states = {name: dataflow.state(name) for name in LEAVES}
    return Oracle(dataflow.definitions, states)


def check(dataflow, streamed):
    """Compare everything incremental with the oracle."""
    oracle = oracle_of(dataflow)
    for name, definition in dataflow.definitions.items():
        assert dataflow.query(name) == oracle.value(name), name
        if definition.operator == "fold":
            assert streamed.held[name] == {oracle.value(name)}
        else:
            assert streamed.held.get(name, set()) == set(oracle.value(name))
            if definition.operator != "bind_to":
                assert dataflow.state(name).pairs == oracle.pairs(name)


def run(data, make, writes, *, deliver_all=True):
    """Let three replicas work, hear of each other in part, and at last of everything if wanted.

    Returns:
        The dataflows, and the joined leaves.
    """
    dataflows = [make(replica) for replica in REPLICAS]
    streamed = [StreamedNews(dataflow) for dataflow in dataflows]
    sent = []
    for _ in range(data.draw(st.integers(1, 12))):
        at = data.draw(st.integers(0, 2))
        if data.draw(st.booleans()) or not sent:
            dataflows[at].update(data.draw(st.sampled_from(LEAVES)), data.draw(writes))
            for name, delta in dataflows[at].take_deltas().items():
                sent += [(name, delta), *((name, part) for part in delta.irreducibles())]
        else:
            for name, delta in data.draw(st.lists(st.sampled_from(sent), max_size=4)):
                dataflows[at].receive(name, delta)
        check(dataflows[at], streamed[at])
    for dataflow, heard in zip(dataflows, streamed, strict=True):
        for name, delta in data.draw(st.permutations(sent)) if deliver_all else ():
            dataflow.receive(name, delta)
        check(dataflow, heard)
    bottoms = {name: dataflows[0].state(name).bottom() for name in LEAVES}
    converged = {
        name: reduce(or_, [delta for at, delta in sent if at == name], bottom)
        for name, bottom in bottoms.items()
    }
    return dataflows, converged


def window(*values):
    """Return a window that holds these values of one writer."""
    made = BoundedLWWSet(bound=2)
    for at, value in enumerate(values):
        made |= made.add(REPLICAS[0], value, at)
    return made


def sets(*elements, bottom=ORSet):
    """Return a dataflow of mine with two sets, of which the left one has these elements."""
    dataflow = Dataflow(ME)
    for name in LEAVES:
        dataflow.declare(bottom(), name)
    for element in elements:
        dataflow.update("left", "add", element)
    return dataflow
