"""Cells that wait: in the end an engine says of them what one says that takes all at once."""

import pytest

from lasp_edge.event import StreamItem
from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.streaming import FLEET
from lasp_edge.ordered import waiting_cells
from lasp_edge.ordered.cells import CELL_US, cell_of
from lasp_edge.ordered.deltas import applied
from lasp_edge.ordered.engine import StreamEngine, StreamPlan
from lasp_edge.ordered.graph import StreamGraph, StreamNode
from lasp_edge.ordered.inputs import in_cells
from lasp_edge.ordered.parted import LeafStage, sent_at
from lasp_edge.ordered.sent_outputs import OutputItem
from tests.lasp_edge.ordered.support_items import SECOND_US, MemoryItems
from tests.lasp_edge.ordered.support_streams import seeded
from tests.lasp_edge.scans.support_synchronised import Epochs


class Rows(Epochs):
    """Each local event gives a row, too."""

    def step(self, state, event):
        after, rows = super().step(state, event)
        return after, rows if event.name == "b" else [after]


EVENTS = {"a": Resolution("1"), "c": Resolution("1"), "shares": None}
LIVE = 15


def parity(event):
    """Return one of two keys; one value has none."""
    if event.value == 5:
        raise ValueError("no key")
    return "01"[int(event.value) % 2]


def graph(key=None):
    leaf = LeafStage(Rows(), key, "pi", {"a": 0, "c": 1})
    return StreamGraph([StreamNode("leaf", leaf, ("a", "c", "shares"))])


def engine_of(store, key=None):
    plan = StreamPlan(lambda: graph(key), EVENTS, (("leaf", "1"),))
    return StreamEngine(plan, store, LIVE)


def drawn(rng, count, keys, names):
    """Return batches: readings of a device, and the places behind it, which come late."""
    time_us, batches, behind, number, known_us = 20 * SECOND_US, [], [], 0, 0
    for _ in range(count):
        batch = []
        for _ in range(rng.randrange(12)):
            time_us += rng.choice((0, 1, 1, 3)) * SECOND_US
            late_us = time_us - (rng.randrange(40) * SECOND_US if rng.random() < 0.05 else 0)
            batch.append(StreamItem(rng.choice(names), late_us, rng.randrange(9), "", "pi"))
        earlier = [each for former in batches[-4:] for each in former[0]]
        if earlier and rng.random() < 0.1:
            batch.append(rng.choice(earlier)._replace(retracted=True))
        if rng.random() < 0.5:
            behind.append((time_us, "x", ("b", "", number), ()))
            number += 1
        come = [each for each in behind if rng.random() < 0.3]
        behind = [each for each in behind if each not in come]
        known_us = max([known_us, *(cell_of(place[0]) for place in come)])
        contents = [
            ("shares", (True, (place[2][2], 0, 0)), keys[place[2][2] % len(keys)], "")
            for place in come
        ]
        placed = [
            OutputItem("shares", sent_at(place), FLEET, (1, 0, 0), content)
            for place, content in zip(come, contents, strict=True)
        ]
        batches.append((batch, placed, known_us))
    return batches


def outputs_after(seed, *, waits, restarts=False, key=None, names="a"):
    """Return the outputs in the end, and how often something waited."""
    store, found, waited, frontier_us = MemoryItems(), {}, 0, 0
    engine, choose = engine_of(store, key), seeded(seed + 1_000)
    for batch, come, known_us in drawn(seeded(seed), 60, "01" if key else [""], names):
        engine.cuts.know(known_us)
        engine.waiting.behind_us = known_us if waits and choose.random() < 0.9 else None
        frontier_us = max([frontier_us, *(each.time_us - 5 * SECOND_US for each in batch)])
        changes = engine.take([*in_cells(batch), *in_cells(come)], frontier_us)
        found = applied(changes.deltas.get("leaf", {}), found)
        first_us = engine.waiting.first_us
        waited += first_us is not None
        if restarts and choose.random() < 0.2:
            engine = engine_of(store, key)
            assert engine.begin() is None
            assert engine.waiting.first_us == first_us
    engine.waiting.behind_us = None
    found = applied(engine.take([], None).deltas.get("leaf", {}), found)
    assert engine.waiting.first_us is None
    return found, waited


@pytest.mark.parametrize("at_once", [1, 3, 40])
@pytest.mark.parametrize("seed", range(7))
@pytest.mark.parametrize(("key", "names"), [(None, "a"), (None, "ac"), (parity, "ac")])
def test_what_waited_is_taken_once_and_as_if_it_had_come_with_the_places(
    seed, at_once, key, names, monkeypatch
):
    monkeypatch.setattr(waiting_cells, "AT_ONCE", at_once)
    expected, none = outputs_after(seed, waits=False, key=key, names=names)
    for restarts in (False, True):
        found, waited = outputs_after(seed, waits=True, restarts=restarts, key=key, names=names)
        assert found == expected
        assert waited > none == 0


def test_a_reading_that_other_streams_are_made_of_never_waits():
    leaf = LeafStage(Rows(), None, "pi", {"a": 0})
    also = StreamNode("also", LeafStage(Rows(), None, "pi", {"a": 0}), ("a", "shares"))
    nodes = [StreamNode("leaf", leaf, ("a", "shares")), also]
    assert waiting_cells.WaitingCells(nodes, EVENTS, MemoryItems()).events == {"a"}
    also.stage.operator = "scan"
    assert not waiting_cells.WaitingCells(nodes, EVENTS, MemoryItems()).events


def test_more_cells_than_a_device_holds_wait_no_longer(monkeypatch):
    monkeypatch.setattr(waiting_cells, "MOST_CELLS", 3)
    engine = engine_of(MemoryItems())
    for cell in range(5):
        engine.waiting.behind_us = 0
        item = StreamItem("a", (cell + 1) * CELL_US, 1, "", "pi")
        engine.take(in_cells([item]), (cell + 1) * CELL_US)
        assert engine.waiting.first_us == (None if cell > 3 else CELL_US)
