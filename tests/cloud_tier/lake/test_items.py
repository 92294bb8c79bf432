"""The items of a lake: those of all lives of a device, united, and of a lake that had none."""

from functools import partial

import pytest
from deltalake import DeltaTable, write_deltalake

from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.items import cells_of
from cloud_tier.lake.query import selected
from cloud_tier.lake.tables import LakeTables
from cloud_tier.lander.columns import LandedColumns
from lasp_edge import Program, scans
from lasp_edge.ordered.cells import CELL_US, PRESENT, RETRACTED, CellId, Item, packed
from lasp_edge.protocol.acceptance import Acceptance, Record
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.envelope import Replica
from lasp_edge.protocol.frames import PaneFrame
from lasp_edge.protocol.frontier import Listening, Tick
from lasp_edge.protocol.spans import Span
from lasp_edge.protocol.topics import Topics, topic_of

BEGIN_US = 1_700_000_000_000_000


def doors():
    program = Program("doors")
    door, bell = program.event("door"), program.event("bell", text=True)
    program.result(program.scan("all", source=door, scan=scans.differences()))
    program.result(program.scan("rung", source=bell, scan=scans.changes()), parts={"of": "text"})
    return program.plan()


PLAN = doors()


def item(second, value=1):
    return Item(BEGIN_US + second * 1_000_000, value, "")


@pytest.fixture
def lake(tmp_path):
    made = LakeTables(tmp_path / "lake")
    prepare(PLAN, made)
    return made


def land(lake, device, *cells, life=1, event="door"):
    """Let cells land as a lander's process writes them: decoded from a frame."""
    replica, numbers = Replica(life, 7, device), range(1, len(cells) + 1)
    starts = tuple(min(cell).time_us // CELL_US * CELL_US for cell in cells)
    keys = tuple("" if n == 1 else str(n) for n in numbers)
    columns = (tuple(map(packed, cells)),)
    stream = PLAN.item_streams[event].stream
    block = PaneEntries(stream, CELL_US, life, 7, columns, keys, starts, tuple(numbers))
    frame, topics = PaneFrame(replica, 1, (block,)), Topics("doors")
    acceptance = Acceptance(PLAN.sent_streams, (), topics, ("lake", "id"))
    now_us = BEGIN_US + 3_600_000_000
    record = Record(now_us, topic_of(frame, topics), retained=False, payload=frame.encode())
    accepted = acceptance.take([record])
    assert not accepted.refused
    rows = LandedColumns(PLAN).table(accepted, "lander", Tick(1, Listening(now_us, 0)))
    write_deltalake(lake.landing, rows, mode="append", schema_mode="merge")


def cells(lake, event="door", first_s=0, last_s=100):
    select = partial(selected, lake.table(lake.landing))
    span = Span(BEGIN_US + first_s * 1_000_000, BEGIN_US + last_s * 1_000_000)
    return dict(cells_of(select, PLAN, event, [span]))


def test_the_cells_of_all_lives_and_parts_are_united(lake):
    """A store was lost, and the file was read again from its middle: the newest cell has less."""
    land(lake, "pi-0", {item(1): PRESENT, item(2): PRESENT}, {item(3): PRESENT})
    land(lake, "pi-0", {item(2): RETRACTED, item(4): PRESENT}, life=2)
    land(lake, "pi-1", {item(1, 5): PRESENT})
    land(lake, "pi-1", {item(12): PRESENT})
    assert cells(lake) == {
        CellId("door", "pi-0", BEGIN_US): {
            item(1): PRESENT,
            item(2): RETRACTED,
            item(3): PRESENT,
            item(4): PRESENT,
        },
        CellId("door", "pi-1", BEGIN_US): {item(1, 5): PRESENT},
        CellId("door", "pi-1", BEGIN_US + CELL_US): {item(12): PRESENT},
    }
    assert set(cells(lake, first_s=5)) == {CellId("door", "pi-1", BEGIN_US + CELL_US)}


def test_events_are_told_apart_and_others_have_none(lake):
    land(lake, "pi-0", {item(1, "ding"): PRESENT}, event="bell")
    assert cells(lake) == cells(lake, "none") == {}
    assert cells(lake, "bell") == {CellId("bell", "pi-0", BEGIN_US): {item(1, "ding"): PRESENT}}


def test_a_lake_of_a_release_without_items_is_widened(tmp_path):
    lake, before = LakeTables(tmp_path / "lake"), Program("doors")
    door = before.event("door")
    before.result(before.scan("own", source=door, scan=scans.differences(), per_device=True))
    prepare(before.plan(), lake)
    named = [{field.name for field in DeltaTable(lake.landing).schema().fields}]
    prepare(PLAN, lake)
    named += [
        {field.name for field in DeltaTable(path).schema().fields}
        for path in (lake.landing, lake.lattice)
    ]
    assert ["items" in each for each in named] == [False, True, True]
    land(lake, "pi-0", {item(1): PRESENT})
    assert cells(lake) == {CellId("door", "pi-0", BEGIN_US): {item(1): PRESENT}}
