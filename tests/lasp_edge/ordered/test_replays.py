"""A block is replayed once for each change of it."""

from lasp_edge.event import Event
from lasp_edge.ordered.cells import CellId
from lasp_edge.ordered.deltas import Delta
from lasp_edge.ordered.graph import StreamGraph, StreamNode
from lasp_edge.ordered.item_store import Cut
from lasp_edge.ordered.places import reading_place
from lasp_edge.ordered.replays import BlockItems, BlockReplays
from lasp_edge.ordered.stages import MapStage

BLOCK = Cut(0, None, 10)


def _items(value: float) -> dict[str, Delta]:
    event = Event("litres", value, 3, "m", {})
    return {"litres": {reading_place("litres", "", 7, 3): (None, event)}}


def _replayed(*values: float, block: Cut = BLOCK) -> tuple[list[object], int]:
    """Return what a stream says after each value in one block, and how often it was replayed."""
    made: list[StreamGraph] = []

    def graph() -> StreamGraph:
        node = StreamNode("shown", MapStage(lambda event: str(event.value)), ("litres",))
        made.append(StreamGraph([node]))
        return made[-1]

    replays, shown = BlockReplays(), []
    for number, value in enumerate(values):
        at = block._replace(end_us=block.end_us + number) if block is not BLOCK else block
        (change,) = replays.replayed(graph, at, _items(value)).given["shown"].values()
        shown.append(change[1].value)
    return shown, len(made)


def test_what_is_as_it_was_is_not_replayed_again():
    assert _replayed(1, 1, 2, 2, 1) == (["1", "1", "2", "2", "1"], 3)


def test_equal_values_of_another_type_are_replayed():
    assert _replayed(1, 1.0, 1) == (["1", "1.0", "1"], 3)


def test_another_block_is_replayed():
    assert _replayed(1, 1, block=Cut(0, None, 20)) == (["1", "1"], 2)


def test_a_block_is_read_once_while_nobody_else_changes_the_store():
    replays, read = BlockReplays(), []

    def cells_in(least_us, end_us):
        read.append((least_us, end_us))
        return {}

    def content(block):
        return replays.read(block, {}, cells_in)

    with replays.reading_once():
        first = content(BLOCK)
        now = BlockItems({CellId("litres", "pi-1", 0): {}}, {"litres": {}})
        replays.changed(BLOCK, now)
        assert (first, content(BLOCK)) == (BlockItems({}, {}), now)
        assert content(BLOCK._replace(end_us=20)) == BlockItems({}, {}), "another block"
    assert read == [(0, 10), (0, 20)]

    assert content(BLOCK) == BlockItems({}, {}), "it may be another by now"
    replays.changed(BLOCK, now)
    assert content(BLOCK) == BlockItems({}, {})
    assert read == [(0, 10), (0, 20), (0, 10), (0, 10)]
