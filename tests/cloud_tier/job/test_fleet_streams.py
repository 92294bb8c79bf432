"""Streams over the whole fleet in a lake: a gateway's rows, which are the oracle's."""

from random import Random

import pytest
from deltalake import DeltaTable, write_deltalake

from cloud_tier.job import streams as streams_module
from cloud_tier.job.maintenance import compact
from cloud_tier.job.opened import OpenTables
from cloud_tier.job.run import Run
from cloud_tier.lake.checkpoint import mend
from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.deletion import forget, retain
from cloud_tier.lake.lake import Lake
from cloud_tier.lake.matching import Wanted
from device_agent.gateway.core import WaitingTerms
from lasp_edge import Program, scans
from lasp_edge.errors import UsageError
from lasp_edge.language.streaming import FLEET, graph_of, plain_parts
from lasp_edge.ordered.cells import PRESENT, RETRACTED, Item, cell_of, packed
from lasp_edge.ordered.oracle import outputs_of
from lasp_edge.ordered.places import place_text
from lasp_edge.protocol.limits import NEVER_US
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import row, table, tick
from tests.device_agent.gateway.support_gateway import GatewayUnderTest

pytestmark = pytest.mark.spark

FIRST_US = 1_700_000_000_000_000
SECOND_US = 1_000_000
DEVICES = ("pi-0", "pi-1", "pi-2")
TERMS = WaitingTerms(DEVICES, dead_after_us=10**13, retain_us=3_600 * SECOND_US)


def doors(version=1, least=0):
    """Return a program of one scan over all doors, one by room, and one of halves by a filter."""
    program = Program("doors")
    door = program.event("door")
    program.result(
        program.scan("all", source=door, scan=scans.differences(), version=version),
        parts={"difference": "3"},  # coarser than what the scan gives
    )
    opened = program.filter(door, lambda event: event.value > least, "opened", version=least + 1)
    by_room = program.scan(
        "by_room",
        source=opened,
        key=lambda event: event.tags["room"],
        scan=scans.sessions(gap_s=30),
    )
    program.result(by_room)
    return program.plan()


class Fleet:
    """Devices whose cells of items land in a lake and at a gateway, in the same batches.

    Attributes:
        items: (device, item) -> its state.
    """

    def __init__(self, spark, root, plan=None, terms=TERMS):
        self.plan, self.items, self.terms = plan or doors(), {}, terms
        self._spark, self._root = spark, root
        self.gateway = GatewayUnderTest(self.plan, terms=terms)
        self._open()
        self._seq, self._ticks = 0, 0
        self.now_us = FIRST_US + 86_400 * SECOND_US

    def _open(self):
        self.lake = LakeUnderTest(
            self._spark,
            self.plan,
            self._root,
            roster=DEVICES,
            dead_after_us=self.terms.dead_after_us,
            retain_us=self.terms.retain_us,
            tentative_after_us=self.terms.tentative_after_us,
        )
        prepare(self.plan, self.lake.lake)

    def restart(self, plan=None):
        """Begin the processes of both again, perhaps with another release of the program."""
        if plan is not None:
            self.plan = self.gateway.plan = plan
            self._open()
        self.gateway.restart()
        self.lake.restart()

    def reads(self, device, at_s, value, room="hall", state=PRESENT, **life):
        """Let a device read something, or take it back; return the entry that it sends."""
        item = Item(FIRST_US + round(at_s * SECOND_US), value, f'{{"room":"{room}"}}')
        self.items[device, item] = max(state, self.items.get((device, item), 0))
        cell_us = cell_of(item.time_us)
        own = {each: state for (of, each), state in self.items.items() if of == device}
        cell = {each: state for each, state in own.items() if cell_of(each.time_us) == cell_us}
        return self.entry(device, cell_us, cell, **life)

    def entry(self, device, cell_us, cell, life=1):
        """Return a cell as it lands."""
        self._seq += 1
        where = {"stream": self.plan.item_streams["door"].stream, "pane_us": cell_us}
        cell = {"items": packed(cell), "received_us": self.now_us}
        return row("pane", device, life, 7, self._seq, **where, **cell)

    def promises(self, promised_s, *, done=False):
        """Return what all devices promise."""
        self._seq += 1
        low_us = FIRST_US + round(promised_s * SECOND_US)
        low = {"low_us": low_us, "done": done, "received_us": self.now_us}
        return [row("promise", device, 1, 7, self._seq, **low) for device in DEVICES]

    def land(self, entries=(), promised_s=None, *, done=False):
        """Let entries land, and all devices promise, at the gateway and in the lake."""
        self.gateway.step(self.batch(entries, promised_s, done=done))
        return self.lake.step(self.last)

    def batch(self, entries, promised_s=None, *, done=False):
        """Return the rows of a batch."""
        self._ticks += 1
        said = [] if promised_s is None else self.promises(promised_s, done=done)
        self.last = [*entries, *said, tick(self._ticks, self.now_us, FIRST_US)]
        return self.last

    def rows(self, name):
        """Return place -> key, parts in steps and status, as the lake says them."""
        columns = self.plan.fleet_results[name].columns
        table = Lake(self.lake.lake.root).results(name).current().to_pylist()
        assert {each["device"] for each in table} <= {""}
        return {
            each["place"]: (each["key"], tuple(each[c] for c in columns), each["status"])
            for each in table
        }

    def of_gateway(self, name):
        """Return the same of the gateway."""
        result = self.plan.fleet_results[name]
        return {
            place_text(place): (row.event.key, plain_parts(result, row.event.value), row.status)
            for place, row in self.gateway.core.streams.stored(name)
            if row.event is not None
        }

    def truth(self, name, frontier_s=None):
        """Return place -> key and parts, as the oracle makes them of all items."""
        resolution, result = self.plan.events["door"].resolution, self.plan.fleet_results[name]
        content = {
            item.place("door", device): item.event("door", device, resolution)
            for (device, item), state in self.items.items()
            if state == PRESENT
        }
        frontier_us = self.gateway.core.streams.frontier_us
        if frontier_s is not None:
            frontier_us = FIRST_US + frontier_s * SECOND_US
        found = outputs_of(graph_of(self.plan, FLEET).nodes, {"door": content}, frontier_us)[name]
        return {
            place_text(at): (each.key, plain_parts(result, each.value))
            for at, each in found.items()
        }

    def check(self, *, statuses=True):
        """Compare the lake with the gateway, and both with the oracle."""
        for name in self.plan.fleet_results:
            found = self.rows(name)
            if statuses:
                assert found == self.of_gateway(name), name
            assert {at: each[:2] for at, each in found.items()} == self.truth(name), name


def drawn(fleet, rng, n):
    """Return the entries of a batch: some late, some taken back."""
    at_s = 4 * n + rng.choice([0, 1, 2, -rng.random() * 4 * n])
    entries = [fleet.reads(rng.choice(DEVICES), at_s, rng.randrange(9), rng.choice("ab"))]
    if n % 4 == 3:
        device, item = rng.choice(sorted(fleet.items))
        seconds, room = (item.time_us - FIRST_US) / SECOND_US, item.tags[9]
        entries.append(fleet.reads(device, seconds, item.value, room, RETRACTED))
    return entries


@pytest.mark.parametrize("live", [50_000, 12])
def test_late_repeated_and_restarted_gives_what_gateway_and_oracle_say(
    spark, tmp_path, monkeypatch, live
):
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", live)
    rng, fleet = Random(live), Fleet(spark, tmp_path)
    sent = []
    for n in range(10):
        entries = [entry for at in range(9) for entry in drawn(fleet, rng, 9 * n + at)]
        sent += entries
        entries += [rng.choice(sent), rng.choice(sent)]  # they come once more
        rng.shuffle(entries)
        fleet.land(entries, 36 * n if n % 2 == 0 else None)
        if n % 3 == 2:
            fleet.check()
            fleet.restart()
    fleet.land([], 1_000)
    fleet.check()
    cuts = [each for each in fleet.lake.rows(fleet.lake.lake.lattice) if each["kind"] == "cut"]
    assert bool(cuts) is (live < 100)
    assert {each[2] for each in fleet.rows("all").values()} == {"final", "revised"}


class KilledError(Exception):
    """The process ends here."""


def dies(fleet, commits):
    """Let the process of a batch die after so many commits; False if it merged it all before."""
    append, left = OpenTables.append, [commits]

    def counted(tables, path, rows, *frontier):
        before = tables.table(path).version()
        append(tables, path, rows, *frontier)
        left[0] -= tables.table(path).version() > before
        if left[0] == 0:
            raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OpenTables, "append", counted)
        try:
            fleet.lake.step(fleet.last)
        except KilledError:
            return True
        finally:
            fleet.lake.restart()
    return False


@pytest.mark.slow
def test_killed_between_any_two_commits_of_a_batch(spark, tmp_path, monkeypatch):
    """Each batch dies after each number of its commits, and is done again by a new process."""
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", 12)
    rng, fleet = Random(3), Fleet(spark, tmp_path)
    deaths = 0
    for n in range(6):
        entries = [entry for at in range(10) for entry in drawn(fleet, rng, 10 * n + at)]
        fleet.gateway.step(fleet.batch(entries, 40 * n - 20))
        commits = 1 if n % 3 else 100
        while dies(fleet, commits):
            deaths, commits = deaths + 1, commits + 1
        fleet.check(statuses=False)
    assert deaths > 10
    fleet.land([], 1_000)
    fleet.check(statuses=False)


def test_a_table_that_somebody_restored_is_filled_again_from_landing(spark, tmp_path, monkeypatch):
    """A merge of it is lost, with its items, rows and cuts; late items lie before and behind it."""
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", 12)
    rng, fleet = Random(5), Fleet(spark, tmp_path)
    tables, versions, names = fleet.lake.lake, [], ("lattice", "results")
    for n, name in enumerate(("", "", "lattice", "", "results")):
        entries = [entry for at in range(9) for entry in drawn(fleet, rng, 9 * n + at)]
        batch, lines = fleet.batch(entries, 36 * n), []
        fleet.gateway.step(batch)
        write_deltalake(
            tables.landing, table(fleet.plan, batch), mode="append", schema_mode="merge"
        )
        if name:
            DeltaTable(f"{tables.root}/{name}").restore(versions[n - 2][name])
        mend(tables)
        fleet.lake.restart()
        told = {"trigger_s": 0.05, "until_idle_s": 0.1, "say": lines.append}
        Run(spark, fleet.lake.job, None, **told).run()
        versions.append({at: fleet.lake.version(f"{tables.root}/{at}") for at in names})
        restored = [line for line in lines if "is an earlier one" in line]
        assert [f"the table {name} is" in line for line in restored] == [True] * bool(name)
        fleet.check(statuses=False)


def test_several_lives_are_united_and_another_order_of_landing_gives_the_same(spark, tmp_path):
    """A store was lost, and the file was read again from its middle: the newest cell has less."""
    fleet = Fleet(spark, tmp_path)
    first, second = (Item(FIRST_US + n, n, '{"room":"a"}') for n in (5, 9))
    fleet.items |= {("pi-0", first): PRESENT, ("pi-0", second): RETRACTED}
    at_us = cell_of(FIRST_US)
    fleet.land([fleet.entry("pi-0", at_us, {first: PRESENT, second: PRESENT})], 20)
    fleet.land([fleet.entry("pi-0", at_us, {second: RETRACTED}, life=2)])
    fleet.check()
    fleet.restart()
    fleet.land([fleet.reads("pi-1", 3, 4, "a")], 100)
    fleet.check()
    fleet.restart()
    fleet.land([fleet.reads("pi-2", 2, 7, "a")])
    fleet.check()
    statuses = sorted(each[2] for each in fleet.rows("all").values())
    assert statuses == ["final", "revised"]


@pytest.mark.slow
def test_compaction_keeps_of_each_cut_the_newest(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", 10)
    rng, fleet = Random(1), Fleet(spark, tmp_path)
    for n in range(4):
        fleet.land([e for at in range(10) for e in drawn(fleet, rng, 10 * n + at)], 40 * n)
    named = ("stream", "pane_us")

    def cuts():
        rows = [each for each in fleet.lake.rows(fleet.lake.lake.lattice) if each["kind"] == "cut"]
        return [(*(each[name] for name in named), each["seq"], each["said"]) for each in rows]

    before = cuts()
    newest = {each[:2]: each for each in sorted(before)}
    compact(spark, fleet.lake.job, ["1970-01-01", "2023-11-14"])
    assert sorted(cuts()) == sorted(newest.values())
    assert len(newest) < len(before)
    fleet.restart()
    fleet.land([fleet.reads("pi-1", 1, 4, "a")], 1_000)
    fleet.check()


def test_another_release_of_a_scan_and_of_a_filter_is_made_of_what_is_there(spark, tmp_path):
    """With the filter the stream of items has another id: devices send those again under it."""
    fleet = Fleet(spark, tmp_path)
    fleet.land([fleet.reads(d, 3 * n, n, "ab"[n % 2]) for n in range(9) for d in DEVICES], 10)
    fleet.check()
    fleet.restart(doors(version=2))
    fleet.land([fleet.reads("pi-0", 31, 3, "a")], 30)
    fleet.check()


def test_all_devices_done_ring_the_timers_that_are_left(spark, tmp_path):
    fleet = Fleet(spark, tmp_path)
    fleet.land([fleet.reads("pi-0", 3, 5, "a"), fleet.reads("pi-1", 4, 5, "a")], 5, done=True)
    fleet.gateway.step(fleet.batch([]))
    ((key, parts, status),) = fleet.rows("by_room").values()
    assert (key, parts[2], status) == ("a", 2, "final")
    fleet.check()


def test_a_session_that_becomes_longer_is_another_row(spark, tmp_path):
    fleet = Fleet(spark, tmp_path)
    fleet.land([fleet.reads("pi-0", 1, 5, "a"), fleet.reads("pi-1", 20, 5, "a")], 100)
    fleet.land([fleet.reads("pi-2", 41, 5, "a")])
    shown = ("key", "present", "count_q", "status", "revision")
    rows = [e for e in fleet.lake.rows(fleet.lake.lake.results) if e["result"] == "by_room"]
    assert sorted(tuple(each[name] for name in shown) for each in rows) == [
        *[("a", False, None, "revised", 1), ("a", True, 2, "final", 0), ("a", True, 3, "final", 0)]
    ]
    fleet.check()


def test_where_rows_wait_for_all_devices_none_is_tentative(spark, tmp_path):
    fleet = Fleet(spark, tmp_path, terms=TERMS._replace(tentative_after_us=NEVER_US))
    fleet.land([fleet.reads("pi-0", 1, 5, "a"), fleet.reads("pi-1", 3, 8, "a")], 2)
    assert not fleet.rows("all")
    fleet.restart()
    fleet.land([fleet.reads("pi-2", 2, 7, "a"), fleet.reads("pi-0", 30, 7, "a")], 20)
    assert fleet.rows("all") == fleet.of_gateway("all")
    assert {each[2] for each in fleet.rows("all").values()} == {"final"}
    fleet.land([], 100)
    fleet.check()


def test_what_is_below_the_floor_is_counted_and_changes_nothing(spark, tmp_path):
    fleet = Fleet(spark, tmp_path)
    fleet.land([fleet.reads("pi-0", 9_000, 5, "a"), fleet.reads("pi-1", 9_010, 8, "a")], 9_100)
    before = fleet.rows("all")
    late = fleet.reads("pi-2", 8, 1, "a")
    assert fleet.land([late]).too_late == 1
    assert fleet.rows("all") == before == fleet.of_gateway("all")


def test_a_device_that_is_forgotten_leaves_the_rows_of_the_others(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", 10)
    rng, fleet = Random(2), Fleet(spark, tmp_path)
    fleet.land([fleet.reads("pi-0", n, n, "a") for n in range(20)], 30)
    for n in range(8, 14):
        fleet.land([e for at in range(4) for e in drawn(fleet, rng, 4 * n + at)], 16 * n)
    with pytest.raises(UsageError, match="--key a: the lake has readings of an order over the"):
        forget(fleet.lake.lake, Wanted(key="a"))
    forget(fleet.lake.lake, Wanted(device="pi-1"))
    assert not [r for r in fleet.lake.rows(fleet.lake.lake.lattice) if r["device"] == "pi-1"]
    fleet.items = {at: state for at, state in fleet.items.items() if at[0] != "pi-1"}
    fleet.lake.restart()
    fleet.lake.step(fleet.batch([], 300))
    for name in fleet.plan.fleet_results:
        assert {at: each[:2] for at, each in fleet.rows(name).items()} == fleet.truth(name, 300)


def test_what_is_old_goes_but_for_what_later_rows_are_made_of(spark, tmp_path):
    """Few items come, four a day, and those of ten days go all the same."""
    fleet, day_s = Fleet(spark, tmp_path, terms=TERMS._replace(retain_us=10**12)), 86_400
    for n in range(0, 40, 4):
        times_s = [at * day_s // 4 for at in range(n, n + 4)]
        reads = zip(DEVICES * 2, times_s, (0, 1, 2, 3), strict=False)
        fleet.land([fleet.reads(*each, "a") for each in reads], times_s[-1])
    before = fleet.rows("all")
    retain(fleet.lake.lake, 8)
    items = [r for r in fleet.lake.rows(fleet.lake.lake.lattice) if r["items"] is not None]
    assert 32 <= len(items) < 40
    fleet.restart()
    fleet.land([fleet.reads("pi-0", 10 * day_s, 9, "a")], 11 * day_s)
    found = fleet.rows("all")
    left = {at for at in before if at in found}
    assert len(left) >= 31
    assert {at: found[at][:2] for at in left} == {at: before[at][:2] for at in left}
    assert found.items() <= fleet.of_gateway("all").items()
