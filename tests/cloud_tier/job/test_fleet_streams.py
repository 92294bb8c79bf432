"""Streams over the whole fleet in a lake: a gateway's rows, which are the oracle's."""

from random import Random

import pytest
from deltalake import DeltaTable, write_deltalake

from cloud_tier.job import streams as streams_module
from cloud_tier.job.maintenance import compact
from cloud_tier.job.run import Run
from cloud_tier.lake.checkpoint import mend
from cloud_tier.lake.deletion import forget, retain
from cloud_tier.lake.matching import Wanted
from lasp_edge.errors import UsageError
from lasp_edge.ordered.cells import PRESENT, RETRACTED, Item, cell_of
from lasp_edge.protocol.limits import NEVER_US
from tests.cloud_tier.job.support_doors import (
    DEVICES,
    FIRST_US,
    SECOND_US,
    TERMS,
    Fleet,
    dies,
    doors,
)
from tests.cloud_tier.support_devices import table

pytestmark = pytest.mark.spark


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
    ((key, parts, status, *_),) = fleet.rows("by_room").values()
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
