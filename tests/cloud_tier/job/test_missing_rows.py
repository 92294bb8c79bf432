"""Rows over the whole fleet name the devices that are missing, in a lake as at the gateway."""

import pytest

from cloud_tier.job import fleet_history as history_module
from cloud_tier.job import results as results_module
from cloud_tier.job import streams as streams_module
from cloud_tier.job.maintenance import compact
from cloud_tier.job.opened import OpenTables
from cloud_tier.lake.coverage import liveness_of
from cloud_tier.lake.lake import Lake
from lasp_edge.protocol.limits import NEVER_US
from tests.cloud_tier.job.support_doors import DEVICES, FIRST_US, SECOND_US, TERMS, Fleet, dies

pytestmark = pytest.mark.spark

MINUTE_US = 60 * SECOND_US
SILENT = TERMS._replace(dead_after_us=MINUTE_US)
HERE, AWAY = DEVICES[:2], DEVICES[2]


@pytest.fixture(params=[50_000, 4], ids=["in memory", "behind cuts"])
def fleet(request, spark, tmp_path, monkeypatch):
    """Return a fleet whose last device has promised 20 s, and fell silent; the rows are final."""
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", request.param)
    made = Fleet(spark, tmp_path, terms=SILENT)
    made.land([made.reads(device, 5 + n, n, "a") for n, device in enumerate(DEVICES)], 20)
    falls_silent(made)
    return made


def falls_silent(fleet):
    fleet.now_us += 2 * MINUTE_US
    entries = [fleet.reads(HERE[n % 2], 10 * n, n, "b") for n in range(1, 9)]
    fleet.land(entries, dict.fromkeys(HERE, 100))


def revisions(fleet, name="all"):
    """Return time in seconds -> (revision, status, names) of each revision of its row."""
    found = {}
    for each in Lake(fleet.lake.lake.root).results(name).revisions().to_pylist():
        at_s = (each["time_us"] - FIRST_US) // SECOND_US
        found.setdefault(at_s, []).append((each["revision"], each["status"], each["excluded"]))
    return found


def names(fleet, name="all"):
    """Return time in seconds -> the names in its newest row."""
    return {at_s: several[-1][2] for at_s, several in revisions(fleet, name).items()}


def test_a_silent_device_is_named_from_what_it_had_promised_on_until_it_has_sent_all(fleet):
    fleet.check()
    assert names(fleet) == {
        **dict.fromkeys((6, 7, 10), ""),
        **dict.fromkeys((20, 30, 40, 50, 60, 70, 80), AWAY),
    }
    fleet.restart()
    fleet.land([fleet.reads("pi-1", 45, 3, "b")])
    fleet.check()
    assert revisions(fleet)[45] == [(0, "final", AWAY)]
    assert revisions(fleet)[50][-1] == (revisions(fleet)[50][-2][0] + 1, "revised", AWAY)
    before = revisions(fleet)
    fleet.land([], {AWAY: 46})
    fleet.check()
    after = revisions(fleet)
    for at_s in (20, 30, 40, 45):
        *_, (revision, _, _) = before[at_s]
        assert after[at_s] == [*before[at_s], (revision + 1, "revised", "")]
    assert {at_s: after[at_s] for at_s in (7, 50, 80)} == {n: before[n] for n in (7, 50, 80)}
    fleet.land([fleet.reads(AWAY, 55, 3, "b")], {AWAY: 200})
    fleet.check()
    assert {*names(fleet).values()} == {""}
    assert revisions(fleet)[80][-1][:2] == (before[80][-1][0] + 1, "revised")


def test_what_was_known_earlier_keeps_its_names(fleet):
    rows = Lake(fleet.lake.lake.root).results("all")
    fleet.land([], {AWAY: 110, **dict.fromkeys(HERE, 120)})
    assert {*rows.current().column("excluded").to_pylist()} == {""}
    known = rows.current(as_of=FIRST_US + 105 * SECOND_US)
    assert known.column("excluded").to_pylist().count(AWAY) == 7
    counts = [known.column(name).to_pylist() for name in ("devices_awaited", "devices_excluded")]
    assert [sum(each) for each in counts] == [0, 7]


def test_a_process_that_died_with_the_promise_that_says_so_is_made_up_for(fleet):
    """The promise was merged, and no row was written: the next process finds out which to write."""
    fleet.gateway.step(fleet.batch([], {AWAY: 90}))
    assert dies(fleet, 1)
    assert AWAY in names(fleet).values()
    fleet.land()
    fleet.check()
    assert {*names(fleet).values()} == {""}


@pytest.mark.slow
def test_killed_between_any_two_commits_while_rows_go_on_to_name_nobody(
    spark, tmp_path, monkeypatch
):
    """They are read, and committed, a few at a time; each is written once."""
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", 4)
    for module in (results_module, history_module):
        monkeypatch.setattr(module, "MOST_ROWS", 2)
    fleet = Fleet(spark, tmp_path, terms=SILENT)
    fleet.land([fleet.reads(device, 5 + n, n, "a") for n, device in enumerate(DEVICES)], 20)
    falls_silent(fleet)
    before = revisions(fleet)
    fleet.gateway.step(fleet.batch([fleet.reads(AWAY, 25, 3, "b")], {AWAY: 90}))
    commits = 1
    while dies(fleet, commits):
        commits += 1
    assert commits > 3
    fleet.check()
    after = revisions(fleet)
    for at_s in range(40, 90, 10):
        *_, (revision, _, named) = before[at_s]
        assert named == AWAY
        assert after[at_s] == [*before[at_s], (revision + 1, "revised", "")]


def test_a_device_that_is_retired_stays_named_and_one_that_comes_back_beside_it_does_not(
    spark, tmp_path
):
    fleet = Fleet(spark, tmp_path, terms=SILENT)
    fleet.land([fleet.reads(device, 5 + n, n, "a") for n, device in enumerate(DEVICES)], 20)
    fleet.now_us += 2 * MINUTE_US
    fleet.land([fleet.reads("pi-0", 30, 4, "b"), fleet.reads("pi-0", 60, 4, "b")], {"pi-0": 100})
    assert names(fleet) == {**dict.fromkeys((6, 7), ""), **dict.fromkeys((30, 60), "pi-1,pi-2")}
    fleet.land([fleet.retired(AWAY)])
    fleet.restart()
    fleet.land()
    assert {*names(fleet).values()} == {"", "pi-1,pi-2"}
    fleet.land([], {"pi-1": 90})
    assert [revisions(fleet)[at_s][-1] for at_s in (30, 60)] == [(1, "revised", "")] * 2


def test_a_device_that_is_new_is_named_in_rows_that_become_final_before_it_has_sent_all(
    spark, tmp_path
):
    """Without a roster whoever speaks counts from then on; rows that are final stay as they are."""
    terms = SILENT._replace(roster=None)
    fleet = Fleet(spark, tmp_path, terms=terms)
    fleet.land([fleet.reads("pi-0", 5, 1), fleet.reads("pi-0", 15, 2)], {"pi-0": 60})
    fleet.now_us += MINUTE_US // 2
    fleet.land([fleet.reads("pi-0", 70, 3)], {"pi-0": 60, "pi-1": 30})
    fleet.check()
    assert {*names(fleet).values()} == {""}
    fleet.now_us += 2 * MINUTE_US
    fleet.land([fleet.reads("pi-0", 80, 3)], {"pi-0": 100})
    fleet.check()
    assert names(fleet) == {15: "", 70: "pi-1", 80: "pi-1"}
    fleet.land([], {"pi-1": 100})
    fleet.check()
    assert {*names(fleet).values()} == {""}


def test_a_device_whose_store_was_lost_is_named_once_it_is_silent(spark, tmp_path):
    """Its next life promises less: what it had promised before counts for as long as it speaks."""
    fleet = Fleet(spark, tmp_path, terms=SILENT)
    fleet.land([fleet.reads(device, 5 + n, n, "a") for n, device in enumerate(DEVICES)], 40)
    fleet.land([], {AWAY: 10}, life=2)
    fleet.land([fleet.reads("pi-0", 30, 4)], dict.fromkeys(HERE, 60))
    fleet.check()
    assert names(fleet)[30] == ""
    fleet.now_us += 2 * MINUTE_US
    fleet.land([fleet.reads("pi-0", 50, 4)], dict.fromkeys(HERE, 100))
    fleet.check()
    assert names(fleet)[50] == AWAY
    fleet.land([fleet.reads(AWAY, 45, 5, life=2)], {AWAY: 70}, life=2)
    fleet.check()
    assert {*names(fleet).values()} == {""}


@pytest.mark.parametrize("live", [50_000, 4], ids=["in memory", "behind cuts"])
def test_rows_of_a_stretch_that_a_lost_store_may_have_had_name_its_device(
    spark, tmp_path, monkeypatch, live
):
    """They are final by the promises of the next life, which knows of the lost one only then."""
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", live)
    fleet = Fleet(spark, tmp_path, terms=SILENT)
    entries = [fleet.reads("pi-0", at_s, n) for n, at_s in enumerate((30, 105, 120, 140))]
    fleet.land(entries, 100)
    fleet.land([], dict.fromkeys(HERE, 150))
    fleet.land([], {AWAY: 150}, life=2)
    fleet.check()
    assert {*names(fleet).values()} == {""}
    compact(spark, fleet.lake.job, ["1970-01-01"])
    fleet.restart()
    before = revisions(fleet)
    fleet.gateway.step(fleet.batch([], {AWAY: 150}, life=2, until_s=130))
    assert dies(fleet, 2), "the promise is merged, and no row is written"
    assert {*names(fleet).values()} == {""}
    fleet.land()
    fleet.check()
    *_, (revision, _, _) = before[120]
    assert revisions(fleet)[120] == [*before[120], (revision + 1, "revised", AWAY)]
    assert names(fleet) == {105: AWAY, 120: AWAY, 140: ""}
    fleet.restart()
    fleet.land([fleet.reads("pi-1", 110, 7)], {AWAY: 200}, life=2, until_s=130)
    fleet.check()
    assert names(fleet) == {105: AWAY, 110: AWAY, 120: AWAY, 140: ""}
    assert len(revisions(fleet)[105]) == len(before[105]) + 1, "it is written again once"


def test_a_retired_device_is_named_as_far_as_it_owes_readings_until_it_has_sent_them(
    spark, tmp_path
):
    fleet = Fleet(spark, tmp_path, terms=SILENT)
    fleet.land([fleet.reads(device, 5 + n, n, "a") for n, device in enumerate(DEVICES)], 20)
    fleet.gateway.acceptance.membership |= liveness_of([fleet.retired(AWAY)]).membership
    fleet.land([fleet.retired(AWAY, owed_s=60)])
    fleet.restart()
    fleet.land([fleet.reads("pi-0", at_s, at_s) for at_s in (30, 55, 90)], dict.fromkeys(HERE, 100))
    fleet.check()
    assert names(fleet) == {6: "", 7: "", 30: AWAY, 55: AWAY, 90: ""}
    fleet.land([], {AWAY: 60})
    fleet.check()
    assert {*names(fleet).values()} == {""}


def test_rows_that_time_brings_once_all_others_are_done_name_the_silent_one(spark, tmp_path):
    """They lie behind F: nobody who is waited for has anything left to send."""
    fleet = Fleet(spark, tmp_path, terms=SILENT)
    fleet.land([fleet.reads(device, 5, n, "a") for n, device in enumerate(DEVICES)], 20)
    fleet.now_us += 2 * MINUTE_US
    fleet.land([fleet.reads("pi-0", 40, 4, "b")], dict.fromkeys(HERE, 50), done=True)
    fleet.gateway.step(fleet.batch([]))
    assert fleet.rows("by_room") == fleet.of_gateway("by_room")
    assert names(fleet, "by_room") == {35: AWAY, 70: AWAY}
    fleet.land([], {AWAY: 60})
    assert fleet.rows("by_room") == fleet.of_gateway("by_room")
    assert names(fleet, "by_room") == {35: "", 70: AWAY}
    fleet.land([], {AWAY: 90})
    assert fleet.rows("by_room") == fleet.of_gateway("by_room")
    assert names(fleet, "by_room") == {35: "", 70: ""}


@pytest.mark.parametrize("wait_us", [0, 30 * SECOND_US, NEVER_US])
def test_tentative_rows_name_whom_they_wait_for_where_they_have_waited_for_x(
    spark, tmp_path, wait_us
):
    terms = TERMS._replace(tentative_after_us=wait_us)
    fleet = Fleet(spark, tmp_path, terms=terms)
    fleet.land([fleet.reads(device, 5 + n, n, "a") for n, device in enumerate(DEVICES)], 20)
    fleet.land([fleet.reads("pi-0", 30, 4), fleet.reads("pi-0", 50, 4)], dict.fromkeys(HERE, 60))
    fleet.now_us += MINUTE_US
    fleet.land([], dict.fromkeys(HERE, 70))
    assert fleet.rows("all") == fleet.of_gateway("all")
    found = fleet.missing("all")
    assert found[:2] == [("final", "")] * 2
    expected = {0: [("tentative", "")] * 2, 30 * SECOND_US: [("tentative", AWAY)] * 2, NEVER_US: []}
    assert found[2:] == expected[wait_us]
    fleet.land([], 100)
    fleet.check()
    assert fleet.missing("all") == [("final", "")] * 4


def test_only_a_device_that_comes_back_costs_a_query(spark, tmp_path, monkeypatch):
    """Not one that is away; once it is back, rows that name somebody are read, and no other."""
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", 4)
    fleet, queries, select = Fleet(spark, tmp_path, terms=SILENT), [], OpenTables.select
    fleet.land([fleet.reads(device, 5 + n, n, "a") for n, device in enumerate(DEVICES)], 20)
    falls_silent(fleet)

    def noted(tables, path, query):
        found = select(tables, path, query)
        if path == tables._lake.results:
            queries.append((query, found.num_rows))
        return found

    monkeypatch.setattr(OpenTables, "select", noted)
    fleet.land([fleet.reads("pi-0", 102, 4)], dict.fromkeys(HERE, 101))
    fleet.land([], dict.fromkeys(HERE, 110))
    assert not queries
    fleet.land([], {AWAY: 41})
    reads = [count for query, count in queries if "excluded <> ''" in query]
    assert len(reads) == len(queries) <= 4
    assert sum(reads) < 16
    fleet.check()
