"""Reads, streams, invariants and laziness: all see every variable after a change, never half."""

import asyncio

import pytest

from crdts import Counter, GCounter, GSet, ORMap, ORSet
from lasp_edge.dataflow import Dataflow, News, Read, at_least, cardinality
from tests.lasp_edge.dataflow.histories import REPLICAS

ME, YOU, _ = REPLICAS


def counting():
    d = Dataflow(ME)
    d.declare(GCounter(), "count")
    d.declare(ORSet(), "left")
    d.declare(ORSet(), "right")
    return d


# Reads


def test_a_read_calls_back_once_at_once_or_later():
    d = counting()
    heard = []
    read = d.read("count", at_least(2))
    read.then(heard.append)
    with pytest.raises(LookupError, match="read 'count': not reached yet"):
        assert read.value
    for _ in range(3):
        d.update("count", "increment", 1)
    read.then(heard.append)
    assert heard == [2, 2]
    assert read.value == 2, "what it was when it was reached"
    assert repr(read) == "Read(read 'count': 2)"


def test_read_any_gives_the_first_that_is_reached_and_keeps_to_it():
    d = counting()
    d.declare(GSet(), "grown")
    read = d.read_any([("count", at_least(3)), ("grown", cardinality(1))])
    d.update("grown", "add", "x")
    d.update("count", "increment", 3)
    assert read.value == ("grown", {"x"})
    assert d.read_any([("count", at_least(3)), ("grown", None)]).value == ("count", 3)
    with pytest.raises(ValueError, match="at least one variable"):
        d.read_any([])
    with pytest.raises(ValueError, match=r"elements of 'left' \(ORSet\) can be removed"):
        d.read_any([("count", None), ("left", cardinality(1))])


def test_a_read_without_a_threshold_waits_for_the_first_write():
    d = counting()
    d.union("left", "right", "either")
    leaf, derived = d.read("left"), d.read("either")
    d.update("right", "add", 1)
    assert not leaf.ready
    assert derived.value == {1}


def test_a_read_can_be_awaited_by_what_runs_the_dataflow():
    d = counting()

    async def wait(read):
        answered = asyncio.get_running_loop().create_future()
        read.then(answered.set_result)
        return await answered

    async def run():
        waiting = asyncio.ensure_future(wait(d.read("count", at_least(1))))
        await asyncio.sleep(0)
        assert not waiting.done()
        d.update("count", "increment", 1)
        return await waiting

    assert asyncio.run(run()) == 1


# Streams


def test_a_stream_tells_what_is_there_and_then_every_change():
    d = counting()
    d.update("left", "add_many", [2, 3])
    d.map("left", lambda n: n // 2, "half")
    news = []
    for name in ("left", "half", "count"):
        d.stream(name, news.append)
    assert news == [News("left", (2, 3), ()), News("half", (1,), ()), News("count", (0,), ())]
    del news[:]
    d.update("left", "remove", 2)
    assert news == [News("left", (), (2,))], "half of 3 is 1 as well"
    del news[:]
    d.receive("left", ORSet().add(YOU, 9) | d.state("left").remove(ME, 3))
    d.update("count", "increment", 2)
    assert news == [
        News("left", (9,), (3,)),
        News("half", (4,), (1,)),
        News("count", (2,), (0,)),
    ]


def test_what_is_known_already_is_not_told():
    d = counting()
    news = []
    d.update("left", "add", 1)
    d.stream("left", news.append)
    del news[:]
    assert not d.receive("left", d.state("left"))
    assert d.receive("left", ORSet().add(YOU, 1))
    d.update("left", "add", 1)
    d.update("count", "increment", 0)
    assert news == []


def test_a_map_of_states_is_followed_by_its_keys():
    d = Dataflow(ME)
    d.declare(ORMap(ORSet()), "rooms")
    d.map("rooms", str.upper, "names")
    news = []
    d.stream("names", news.append)
    d.update("rooms", ORMap.update, "attic", ORSet.add, 1)
    d.update("rooms", ORMap.update, "attic", ORSet.add, 2)
    d.update("rooms", ORMap.remove, "attic")
    assert news == [News("names", ("ATTIC",), ()), News("names", (), ("ATTIC",))]


def test_a_diamond_is_updated_once_and_never_seen_half_changed():
    d = counting()
    d.map("left", lambda n: n, "same")
    d.map("same", lambda n: n, "later")
    d.intersection("left", "later", "both")
    d.product("both", "same", "pairs")
    seen = []

    def look(news):
        held = d.query("left")
        seen.append(news.variable)
        assert d.query("same") == d.query("later") == d.query("both") == held
        assert d.query("pairs") == {(a, b) for a in held for b in held}

    for name in ("left", "same", "later", "both", "pairs"):
        d.stream(name, look)
    d.update("left", "add", 1)
    d.update("left", "remove", 1)
    assert seen == ["left", "same", "later", "both", "pairs"] * 2


def test_a_callback_may_write_and_the_others_see_both():
    d = counting()
    order = []
    d.stream("left", lambda news: d.update("right", "add_many", list(news.added)))
    d.stream("left", lambda news: order.append(("left", news.added, d.query("right"))))
    d.stream("right", lambda news: order.append(("right", news.added, d.query("right"))))
    d.update("left", "add", 1)
    assert order == [("left", (1,), {1}), ("right", (1,), {1})]


def test_an_exception_of_a_callback_keeps_nobody_else_from_being_called():
    d = counting()
    news = []

    def broken(_news):
        raise RuntimeError("not today")

    d.stream("left", broken)
    d.stream("left", news.append)
    with pytest.raises(RuntimeError, match="not today"):
        d.update("left", "add", 1)
    assert news == [News("left", (1,), ())]
    assert d.query("left") == {1}


# Laziness


def test_wait_needed_waits_until_somebody_reads_what_is_made_from_it():
    d = counting()
    d.map("left", lambda n: n + 1, "more")
    threshold = GSet()
    needed, not_needed = d.wait_needed("left"), d.wait_needed("right")
    d.query("more")
    d.update("left", "add", 1)
    assert not needed.ready, "a query wants nothing"
    d.read("more", None)
    assert needed.ready
    assert not not_needed.ready
    assert d.wait_needed("left").ready, "it is wanted already"
    assert threshold == GSet()


@pytest.mark.parametrize("want", ["read", "read_any", "stream", "invariant"])
def test_what_is_wanted_can_be_made_just_then(want):
    d = counting()
    d.wait_needed("left").then(lambda _: d.update("left", "add", 7))
    news = []
    if want == "read":
        assert d.read("left").value == {7}
    elif want == "read_any":
        assert d.read_any([("left", None)]).value == ("left", {7})
    elif want == "stream":
        d.stream("left", news.append)
        assert news == [News("left", (7,), ())]
    else:
        d.invariant("left", lambda held: not held, news.append)
        assert news == [{7}]


# Invariants


def test_an_invariant_is_enforced_whenever_it_is_broken():
    d = Dataflow(ME)
    d.declare(Counter(), "stock")
    broken = []

    def restock(value):
        broken.append(value)
        d.update("stock", "increment", 5)

    d.invariant("stock", lambda value: value >= 0, restock)
    assert broken == []
    d.update("stock", "decrement", 2)
    assert (broken, d.query("stock")) == ([-2], 3)
    d.receive("stock", Counter().decrement(YOU, 4))
    assert (broken, d.query("stock")) == ([-2, -1], 4)


def test_an_invariant_that_is_broken_already_is_enforced_at_once_and_once():
    d = counting()
    d.update("left", "add", 1)
    d.bind_to("again", "left")
    broken = []
    d.invariant("again", lambda held: len(held) < 1, broken.append)
    d.update("left", "add", 2)
    assert broken == [{1}], "it has not held in between"


def test_a_second_answer_changes_nothing():
    read = Read("who?")
    read.settle(1)
    read.settle(2)
    assert read.value == 1
