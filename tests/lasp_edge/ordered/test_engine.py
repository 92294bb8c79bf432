"""The engine over a store in memory, against the oracle: batches, late items, cuts, restarts."""

import pytest

from lasp_edge.event import StreamItem
from lasp_edge.folds.numbers import Resolution
from lasp_edge.ordered.cells import CELL_US
from lasp_edge.ordered.deltas import applied
from lasp_edge.ordered.engine import StreamEngine, StreamPlan
from lasp_edge.ordered.inputs import in_cells
from lasp_edge.ordered.item_store import ItemStore
from lasp_edge.ordered.oracle import outputs_of
from tests.lasp_edge.ordered.support_items import (
    SECOND_US,
    MemoryItems,
    drawn_items,
    present_items,
)
from tests.lasp_edge.ordered.support_streams import STAGES, as_bytes, graph_of, nodes_of, seeded

STEP = Resolution("1")
LIVE = 20


def engine_of(name, store=None, live_most=LIVE):
    plan = StreamPlan(lambda: graph_of([name]), {"x": STEP}, ((name, "1"),))
    store = MemoryItems() if store is None else store
    port: ItemStore = store
    return StreamEngine(plan, port, live_most)


def truth(name, items, frontier_us):
    content = {
        item.place("x", device): item.event("x", device, STEP)
        for item, device in present_items(items)
    }
    return as_bytes(outputs_of(nodes_of([name]), {"x": content}, frontier_us)["0"])


def evaluated(name, items, batch, *, restarts=False):
    """Return what the last stream says, and where the engine was cut last."""
    store, said = MemoryItems(), {}
    engine = engine_of(name, store)
    for first in range(0, len(items), batch):
        taken = items[first : first + batch]
        frontier_us = max(each.time_us for each in items[: first + batch]) - 30 * SECOND_US
        changes = engine.take(in_cells(taken), frontier_us)
        said = applied(changes.deltas.get("0", {}), said)
        if restarts:
            engine = engine_of(name, store)
            assert engine.begin() is None
    said = applied(engine.take([], 200 * SECOND_US).deltas.get("0", {}), said)
    return as_bytes(said), engine.since_us


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("batch", [1, 7, 200])
def test_batches_of_items_of_two_devices_give_what_the_oracle_says(name, batch):
    for seed in range(3):
        items = drawn_items(seeded(seed), 200)
        said, _ = evaluated(name, items, batch)
        assert said == truth(name, items, 200 * SECOND_US), f"seed {seed}"


@pytest.mark.parametrize("name", STAGES)
def test_an_engine_that_begins_again_goes_on_from_its_store(name):
    items = drawn_items(seeded(11), 200)
    said, since_us = evaluated(name, items, 9, restarts=True)
    assert since_us > 0, "late items were replayed by blocks"
    assert said == truth(name, items, 200 * SECOND_US)


def test_a_batch_changes_the_event_as_its_items_one_by_one_do():
    for seed in range(20):
        items = drawn_items(seeded(seed), 120)
        one_by_one, in_one = (
            engine_of("keyed", live_most=10**6),
            engine_of("keyed", live_most=10**6),
        )
        said, read, retracted = {}, {}, []
        for each in items:
            changes = one_by_one.take(in_cells([each]), None)
            said = applied(changes.deltas.get("0", {}), said)
            read = applied(changes.deltas.get("x", {}), read)
            retracted += changes.retracted
        whole = in_one.take(in_cells(items), None)
        assert whole.deltas.get("x", {}) == {place: (None, event) for place, event in read.items()}
        assert as_bytes(applied(whole.deltas.get("0", {}), {})) == as_bytes(said)
        assert whole.retracted == retracted


def test_an_item_that_comes_with_what_takes_it_back_changes_nothing():
    engine = engine_of("keyed")
    (item,) = drawn_items(seeded(1), 1)
    item = item._replace(retracted=False)
    changes = engine.take(in_cells([item, item._replace(retracted=True), item]), None)
    assert not changes.deltas.get("x")
    assert changes.retracted == [item._replace(retracted=True)]


class CountedCells(dict):
    """Cells that count how many of them are looked at."""

    looks = 0

    def __iter__(self):
        for each in super().__iter__():
            self.looks += 1
            yield each


@pytest.mark.parametrize("count", [200, 800])
def test_a_cell_that_begins_makes_nobody_look_at_all_others(count):
    engine = engine_of(next(iter(STAGES)), live_most=10_000)
    engine._cells = CountedCells()
    for n in range(count):
        engine.take(in_cells([StreamItem("x", n * CELL_US, n % 7, "", "pi-1")]), None)
    assert len(engine._cells) == count
    assert engine._cells.looks <= count
