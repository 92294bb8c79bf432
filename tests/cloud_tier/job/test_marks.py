"""Marks of scans with local events: they go when they are old, and what is needed of them stays.

The job's own evaluation runs over real tables, beside a gateway that keeps all; without Spark.
"""

from random import Random

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cloud_tier.job.opened import OpenTables
from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.deletion import forget, retain
from cloud_tier.lake.matching import Wanted
from cloud_tier.lake.tables import LakeTables
from device_agent.gateway.core import WaitingTerms
from lasp_edge import Program
from lasp_edge.errors import UsageError
from lasp_edge.units import SECOND_US
from simulations.fleet import Fleet
from simulations.lake_parted import DEVICES, LakeBeside
from simulations.world.fleet_streamed import TIMED, Epochs, Since
from simulations.world.streamed import METERED
from tests.cloud_tier.support_devices import row

RETAIN_US = 10 * SECOND_US


class RealTables(OpenTables):
    """The tables of a lake, with rows of devices that come without a lander."""

    def __init__(self, root, plan):
        self.lake = LakeTables(root)
        prepare(plan, self.lake)
        super().__init__(self.lake)
        self.left, self.read = None, set()

    def select(self, path, query):
        """Return what a query gives, and remember the cells of the marks that it reads."""
        found = super().select(path, query)
        if "kind = 'mark'" in query:
            self.read |= set(found.column("pane_us").to_pylist())
        return found

    def put(self, path, rows):
        schema = pa.schema(DeltaTable(path).schema().to_arrow())
        there = [{name: each.get(name) for name in schema.names} for each in rows]
        write_deltalake(path, pa.Table.from_pylist(there, schema=schema), mode="append")

    def marks(self):
        """Return the cells of all marks, each once."""
        rows = DeltaTable(self.lake.lattice).to_pyarrow_table().to_pylist()
        return sorted({each["pane_us"] for each in rows if each["kind"] == "mark"})


def plan_of(scan):
    program = Program("rooms")
    metered = program.event(METERED, resolution="1")
    timed = program.event(TIMED, resolution="1")
    program.result(
        program.scan(
            "made",
            source=[metered, timed],
            scan=scan,
            local=timed,
            key=lambda event: event.tags["room"],
        )
    )
    return program.plan()


class Rooms:
    """A fleet whose gateway keeps all, a lake beside it, and what devices have read."""

    def __init__(self, root, scan, seed=1):
        self.plan, self.random = plan_of(scan), Random(seed)
        terms = WaitingTerms(roster=DEVICES, dead_after_us=10**13)
        self.fleet = Fleet(self.plan, size=3, seed=seed, terms=terms, names=DEVICES)
        self.tables = RealTables(root, self.plan)
        self.lake = LakeBeside(self.fleet, self.random, self.tables, RETAIN_US)
        self.readings, self.ordered = [], DEVICES

    def reads(self, device, event, room, value=1):
        at_us = self.fleet.now_us
        self.readings.append((at_us, device, event, room, value))
        self.fleet.read(device, event, value, {"room": room}, at_us)

    def runs(self, seconds, rooms="a"):
        """Let devices read something each second, and land it every ten."""
        for n in range(seconds):
            device, room = DEVICES[n % 3], self.random.choice("ab")
            self.reads(device, TIMED, room, self.random.randrange(9))
            if n % 5 == 4:
                self.reads(self.random.choice(self.ordered), METERED, self.random.choice(rooms))
            self.fleet.step()
            if n % 10 == 9:
                self.fleet.settle()
                self.lake.batch()

    def rows(self):
        """Return the time, key, parts and status of the current rows."""
        newest = {}
        table = DeltaTable(self.tables.lake.results).to_pyarrow_table().to_pylist()
        for each in sorted(table, key=lambda each: each["revision"]):
            newest[each["place"]] = each
        columns = self.plan.fleet_results["made"].columns
        return sorted(
            (each["time_us"], each["key"], tuple(each[c] for c in columns), each["status"])
            for each in newest.values()
            if each["present"]
        )


def test_old_marks_go_but_for_the_last_one_of_each_key(tmp_path, monkeypatch):
    """Room b has an event in order at the beginning, and the next one after all others are gone."""
    monkeypatch.setattr("cloud_tier.lake.deletion.DAY_US", 10 * SECOND_US)
    rooms = Rooms(tmp_path, Epochs())
    rooms.runs(10, rooms="b")
    rooms.runs(70)
    before, marks = rooms.rows(), rooms.tables.marks()
    rooms.tables.read.clear()
    rooms.lake.begin()
    rooms.lake.batch()
    assert rooms.rows() == before
    assert marks[0] in rooms.tables.read < set(marks), "a start reads what is needed alone"
    retain(rooms.tables.lake, 2)
    kept = rooms.rows()
    assert 0 < len(kept) < len(before)
    assert set(kept) <= set(before)
    left = rooms.tables.marks()
    assert len(left) < len(marks) - 1
    assert left[0] < left[1] - 20 * SECOND_US, "the last one of room b is old, and there"
    rooms.lake.begin()
    rooms.runs(10, rooms="b")
    rooms.runs(30)
    assert not list(rooms.lake.wrong(is_settled=True, least_us=kept[0][0]))
    retain(rooms.tables.lake, 2)
    assert rooms.tables.marks()[0] > left[0], "room b has another one by now"
    rooms.fleet.close()


def true_rows(readings):
    """Return time, key and parts of the rows of `Since`: a loop over all readings in order."""
    states, found = {}, []
    for at_us, _device, event, room, value in sorted(readings):
        count, total = states.get(room, (0, 0))
        if event == METERED:
            found.append((at_us, room, (count, total)))
            states[room] = (0, 0)
        else:
            states[room] = (count + 1, total + value)
    return sorted(found)


def retired(device):
    return row("member", device, 1, 7, 1, control=1, retired=True)


def test_a_device_without_events_in_order_is_forgotten_and_the_rows_are_made_of_the_others(
    tmp_path,
):
    rooms = Rooms(tmp_path, Since())
    rooms.ordered = DEVICES[:2]
    rooms.runs(30, rooms="ab")
    assert [each[:3] for each in rooms.rows()] == true_rows(rooms.readings)
    wanted = Wanted(device="pi-2")
    with pytest.raises(UsageError, match="type `lasp-edge retire pi-2 --fleet rooms "):
        forget(rooms.tables.lake, wanted)
    rooms.tables.put(rooms.tables.lake.lattice, [retired("pi-2") | {"pane_date": None}])
    forget(rooms.tables.lake, wanted)
    assert rooms.rows() == []
    rooms.lake.begin()
    rooms.lake.retired = frozenset(["pi-2"])
    rooms.lake.batch()
    others = [each for each in rooms.readings if each[1] != "pi-2"]
    assert [each[:3] for each in rooms.rows()] == true_rows(others)
    rooms.fleet.close()


def test_a_device_that_others_have_answered_is_not_forgotten_in_part(tmp_path):
    """What they sent names its events or its part of a share: the rest gives no row any more."""
    for scan, why in ((Since(), "its events are in order"), (Epochs(), "a share depends on it")):
        rooms = Rooms(tmp_path / repr(scan), scan)
        rooms.ordered = DEVICES[1:] if isinstance(scan, Since) else DEVICES[:2]
        rooms.runs(30)
        rooms.tables.put(rooms.tables.lake.lattice, [retired("pi-2") | {"pane_date": None}])
        before = rooms.rows()
        with pytest.raises(UsageError, match=f"made again without it .{why}, and other devices"):
            forget(rooms.tables.lake, Wanted(device="pi-2"))
        assert rooms.rows() == before != []
        rooms.fleet.close()
