"""A gateway's streams over the fleet: the oracle's rows, whatever comes late, twice or never."""

from contextlib import closing
from random import Random

import pytest

from crdts import ControlLog
from device_agent.gateway import fleet_history
from device_agent.gateway import streams as streams_module
from device_agent.gateway.fleet_history import GatewayHistory
from device_agent.gateway.result_table import found
from device_agent.gateway.store import PROGRAM, FleetStore
from device_agent.gateway.table import meaning_of
from lasp_edge import Program, scans
from lasp_edge.errors import NotFound
from lasp_edge.ordered.cells import CELL_US, PRESENT, RETRACTED, Item, cell_of
from lasp_edge.protocol.limits import NEVER_US
from lasp_edge.tool.printing import RowsWanted
from tests.device_agent.gateway.support_streams import (
    DEVICES,
    FIRST_US,
    SECOND_US,
    TERMS,
    Fleet,
    doors,
)
from tests.lasp_edge.scans.support_synchronised import ValueBarrier


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("live", [50_000, 20])
def test_shuffled_late_repeated_and_restarted_gives_what_the_oracle_says(
    keeper, monkeypatch, seed, live
):
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", live)
    monkeypatch.setattr(streams_module, "MOST_CELLS", 3 if seed % 2 else 20_000)
    monkeypatch.setattr(fleet_history, "MOST_KNOWN", 3 if seed % 2 else 2_000)
    monkeypatch.setattr(fleet_history, "MOST_PARTS", 64 if seed % 3 else 2)
    rng, fleet = Random(seed), Fleet(doors(), keeper)
    sent = []
    for n in range(120):
        promised_s = 4 * n if n % 5 == 0 else None
        at_s = 4 * n + rng.choice([0, 1, 2, -rng.random() * 4 * n])
        entries = [fleet.reads(rng.choice(DEVICES), at_s, rng.randrange(9), rng.choice("ab"))]
        if n % 9 == 0:
            device, item = rng.choice(sorted(fleet.items))
            seconds = (item.time_us - FIRST_US) / SECOND_US
            room = item.tags[9]
            entries.append(fleet.reads(device, seconds, item.value, room, RETRACTED))
        sent += entries
        entries.append(rng.choice(sent))  # it comes once more, perhaps an older one
        rng.shuffle(entries)
        fleet.land(entries, promised_s)
        if n % 17 == 0:
            fleet.restart()
            fleet.check()
    fleet.land([], 1_000)
    fleet.check()
    assert {status for status, _ in fleet.statuses("all").values()} <= {"final", "revised"}


def test_a_row_is_tentative_then_final_then_revised_by_what_comes_late(keeper):
    fleet = Fleet(doors(), keeper)
    fleet.land([fleet.reads("pi-0", 1, 5), fleet.reads("pi-1", 3, 8)])
    (row,) = fleet.stored("all").values()
    assert (row.event.value, row.status) == (3, "tentative")
    fleet.land([], 20)
    assert [status for status, _ in fleet.statuses("all").values()] == ["final"]
    fleet.restart()
    fleet.land([fleet.reads("pi-2", 2, 6)])
    found = sorted(
        (place[0] - FIRST_US, row.event.value, row.status)
        for place, row in fleet.stored("all").items()
    )
    assert found == [(2_000_000, 1, "final"), (3_000_000, 2, "revised")]


def test_what_is_final_does_not_change_without_something_late(keeper):
    fleet = Fleet(doors(), keeper)
    fleet.land([fleet.reads("pi-0", 1, 5), fleet.reads("pi-1", 3, 8)], 20)
    before = fleet.stored("all")
    fleet.restart()
    fleet.land([fleet.reads("pi-0", 25, 5)], 60)
    assert {at: fleet.stored("all")[at] for at in before} == before


def test_several_lives_of_a_device_are_united(keeper):
    """A store was lost, and the file was read again from its middle: the newest cell has less."""
    fleet = Fleet(doors(), keeper)
    first, second = Item(FIRST_US + 1, 5, ""), Item(FIRST_US + 2, 9, "")
    cell_us = cell_of(FIRST_US)
    fleet.items |= {("pi-0", first): PRESENT, ("pi-0", second): PRESENT}
    fleet.land([fleet.entry("pi-0", cell_us, {first: PRESENT})])
    fleet.land([fleet.entry("pi-0", cell_us, {second: PRESENT}, nonce=8)])
    fleet.restart()
    fleet.land([], 100)
    fleet.check()
    assert [row.event.value for row in fleet.stored("all").values()] == [4]


def test_an_older_version_of_a_cell_does_not_take_the_place_of_a_newer_one(keeper):
    fleet = Fleet(doors(), keeper)
    older = fleet.reads("pi-0", 1, 5)
    fleet.land([fleet.reads("pi-0", 2, 6)])
    fleet.restart()
    fleet.land([older])
    fleet.restart()
    fleet.land([], 100)
    fleet.check()
    assert len(fleet.rows("all")) == 1


def test_time_alone_ends_a_session_of_the_fleet(keeper):
    fleet = Fleet(doors(), keeper)
    fleet.land([fleet.reads("pi-0", 1, 5), fleet.reads("pi-1", 20, 5)], 25)
    assert not fleet.rows("by_room")
    fleet.land([], 60)
    ((_, parts),) = fleet.rows("by_room").values()
    assert parts[-1] == 2
    fleet.check()


def test_a_session_that_becomes_longer_is_another_row_and_the_old_one_is_taken_back(tmp_path):
    """A session stands a gap after its last reading: what falls within it revises its row."""
    with closing(FleetStore(tmp_path)) as store:
        fleet = Fleet(doors(), store)
        store.put_facts({PROGRAM: meaning_of(fleet.plan, ControlLog())})

        def history():
            names, rows, _ = found(str(tmp_path), RowsWanted("by_room", all_revisions=True))
            named = [dict(zip(names, each, strict=True)) for each in rows]
            first = ("key", "present", "count_q", "status", "revision")
            return [
                ((each["time_us"] - FIRST_US) // SECOND_US, *(each[name] for name in first))
                for each in named
            ]

        fleet.land([fleet.reads("pi-0", 1, 5), fleet.reads("pi-1", 20, 5)], 100)
        assert history() == [(50, "hall", True, 2, "final", 0)]
        fleet.land([fleet.reads("pi-2", 9, 5)])
        assert history() == [(50, "hall", True, 3, "revised", 1)]
        fleet.land([fleet.reads("pi-2", 41, 5)])
        longer = [(50, "hall", False, None, "revised", 2), (71, "hall", True, 4, "final", 0)]
        assert history() == longer
        fleet.restart()
        assert history() == longer
        fleet.land([fleet.reads("pi-2", 41, 5, state=RETRACTED)])
        again = [(50, "hall", True, 3, "revised", 3), (71, "hall", False, None, "revised", 1)]
        assert history() == again
        fleet.check()


def test_items_outside_of_their_cell_are_counted_and_nothing_else_is_lost(keeper):
    fleet = Fleet(doors(), keeper)
    strange = fleet.entry("pi-0", cell_of(FIRST_US) + CELL_US, {Item(FIRST_US, 5, ""): PRESENT})
    fleet.land([strange, fleet.reads("pi-1", 1, 2), fleet.reads("pi-1", 2, 3)], 30)
    fleet.check()
    assert fleet.gateway.core.failed == {"door: items outside of their cell, from pi-0": 1}


def test_what_is_older_than_late_items_are_taken_is_counted(keeper):
    fleet = Fleet(doors(), keeper)
    fleet.land([fleet.reads("pi-0", 1, 5), fleet.reads("pi-0", 2, 6)], 10_000)
    late = fleet.reads("pi-1", 1.5, 7)
    turn = fleet.land([late])
    assert turn.too_late == 1
    assert not turn.changes.entries
    assert len(fleet.rows("all")) == 1


class Broken(scans.Scan):
    name, parts = "broken", {"value": "1"}

    def step(self, state, event):
        return (), [1 // round(event.value)]


def test_a_function_that_raises_is_counted_and_the_gateway_goes_on(keeper):
    fleet = Fleet(doors(Broken()), keeper)
    fleet.land([fleet.reads("pi-0", 1, 0), fleet.reads("pi-0", 2, 1)], 20)
    assert len(fleet.rows("all")) == 1
    ((reason, times),) = fleet.gateway.core.failed.items()
    assert times == 1
    assert "ZeroDivisionError" in reason
    for n in range(3):  # each start evaluates the live items again, and they are counted once
        fleet.restart()
        assert fleet.gateway.core.failed == {reason: 1 + n}
        fleet.land([fleet.reads("pi-1", 3 + n, 0)], 21 + n)
        assert fleet.gateway.core.failed == {reason: 2 + n}
    fleet.gateway.plan = fleet.plan = doors(scans.changes(), version=2)
    for _ in range(2):
        fleet.restart()
        assert not fleet.gateway.core.failed, "the scan that failed is gone"
        fleet.land([fleet.reads("pi-1", 30, 1)], 60)


def test_a_function_that_fails_behind_the_last_cut_is_known_after_a_restart(keeper, monkeypatch):
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", 5)
    fleet = Fleet(doors(Broken()), keeper)
    for n in range(40):
        fleet.land([fleet.reads("pi-0", 30 * n, n)], 30 * n)
    ((reason, times),) = before = tuple(fleet.gateway.core.failed.items())
    fleet.restart()
    assert tuple(fleet.gateway.core.failed.items()) == before
    assert (reason.startswith("all: ZeroDivisionError: "), times) == (True, 1)


def test_another_release_of_one_scan_is_made_of_what_is_there(keeper):
    fleet = Fleet(doors(), keeper)
    fleet.land([fleet.reads(d, n, n) for n in range(20) for d in DEVICES], 30)
    kept = fleet.stored("by_room")
    fleet.gateway.plan = fleet.plan = doors(scans.changes(), version=2)
    fleet.restart()
    fleet.land([fleet.reads("pi-0", 40, 3)], 300)
    fleet.check()
    assert {at: row for at, row in fleet.stored("by_room").items() if at in kept} == kept


def test_what_is_forgotten_is_not_needed_for_a_late_item(keeper, monkeypatch):
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", 40)
    fleet = Fleet(doors(), keeper)
    for n in range(300):
        fleet.land([fleet.reads(DEVICES[n % 3], 60 * n, n % 7)], 60 * n)
    since_us = fleet.gateway.core.coverage.frontier - TERMS.retain_us
    stream = fleet.plan.item_streams["door"].stream
    kept = list(fleet.gateway.keeper.entries(stream, 0, FIRST_US + 10**12))
    if isinstance(keeper, FleetStore):
        assert len(kept) < 200
    late_us = since_us + 60 * SECOND_US
    fleet.restart()
    fleet.land([fleet.reads("pi-0", (late_us - FIRST_US) / SECOND_US, 3)])
    truth = {at: row for at, row in fleet.truth("all").items() if at[0] >= since_us}
    assert {at: row for at, row in fleet.rows("all").items() if at[0] >= since_us} == truth


def test_rows_are_asked_of_a_file_of_an_older_release(tmp_path):
    store = FleetStore(tmp_path)
    store._db.execute("DROP TABLE result_part")
    store.close()
    with pytest.raises(NotFound, match="is of an older release and keeps no rows of results"):
        found(str(tmp_path), RowsWanted("visits"))


NEVER = TERMS._replace(tentative_after_us=NEVER_US)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("live", [50_000, 20])
def test_where_rows_wait_for_all_devices_none_is_tentative_and_all_are_the_oracles(
    keeper, monkeypatch, seed, live
):
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", live)
    rng, fleet = Random(seed), Fleet(doors(), keeper, NEVER)
    for n in range(120):
        at_s = 4 * n + rng.choice([0, 1, 2, 30, -rng.random() * 4 * n])
        entry = fleet.reads(rng.choice(DEVICES), at_s, rng.randrange(9), rng.choice("ab"))
        fleet.land([entry], 4 * n if n % 5 == 0 else None)
        assert "tentative" not in {status for status, _ in fleet.statuses("all").values()}
    fleet.land([], 1_000)
    fleet.check()


def test_a_row_that_waited_for_long_enough_is_tentative(keeper):
    fleet = Fleet(
        doors(), keeper, TERMS._replace(tentative_after_us=15 * SECOND_US, dead_after_us=10**13)
    )
    fleet.land([fleet.reads("pi-0", 1, 5), fleet.reads("pi-1", 3, 8)])
    fleet.promise("pi-0", 10)
    assert not fleet.stored("all")
    fleet.pass_time(16)
    assert [status for status, _ in fleet.statuses("all").values()] == ["tentative"]
    fleet.restart()
    fleet.land([fleet.reads("pi-2", 2, 6)])
    fleet.land([], 100)
    fleet.check()


def test_what_was_taken_stays_taken_where_rows_wait_for_longer_after_a_restart(keeper):
    fleet = Fleet(doors(), keeper)
    fleet.land([fleet.reads("pi-0", 1, 5), fleet.reads("pi-1", 400, 8)])
    (row,) = fleet.rows("all")
    fleet.gateway.terms = NEVER
    for _ in range(2):
        fleet.restart()
        fleet.land([fleet.reads("pi-2", 900, 6)])
    assert list(fleet.rows("all")) == [row]
    fleet.land([fleet.reads("pi-1", 400, 8, state=RETRACTED)])
    fleet.land([], 2_000)
    fleet.check()


def test_a_restart_forgets_no_item_that_waits(keeper):
    fleet = Fleet(doors(), keeper, NEVER)
    fleet.land([fleet.reads("pi-0", 1, 5), fleet.reads("pi-1", 3, 8)])
    fleet.restart()
    fleet.land([], 100)
    fleet.check()
    assert len(fleet.rows("all")) == 1


def test_where_few_items_come_those_of_a_day_are_in_memory(keeper):
    """So what is older than late items are taken for leaves the store, and no late item is lost."""
    week_us = 7 * 86_400 * SECOND_US
    fleet = Fleet(doors(), keeper, TERMS._replace(retain_us=week_us, dead_after_us=10**13))
    for n in range(60):
        entries = [fleet.reads(DEVICES[n % 3], 14_400 * n, n % 7)]
        if n % 9 == 8:
            entries.append(fleet.reads("pi-0", 14_400 * (n - 8) + 60, 5))
        fleet.land(entries, 14_400 * n)
        if n % 20 == 19:
            fleet.restart()
    streams, frontier_us = fleet.gateway.core.streams, fleet.gateway.core.coverage.frontier
    since_us, (needed_us,) = frontier_us - week_us, streams.needed_from_us(frontier_us).values()
    assert since_us - 2 * 86_400 * SECOND_US < needed_us <= since_us
    truth = {at: row for at, row in fleet.truth("all").items() if at[0] >= since_us}
    assert {at: row for at, row in fleet.rows("all").items() if at[0] >= since_us} == truth


def test_an_older_cell_behind_many_others_of_its_turn_is_not_stored(keeper, monkeypatch):
    """Its newer one is in no store yet, and has left memory if memory holds few."""
    monkeypatch.setattr(streams_module, "MOST_CELLS", 3)
    fleet = Fleet(doors(), keeper, TERMS._replace(tentative_after_us=NEVER_US))
    older, newer = fleet.reads("pi-0", 1, 5), fleet.reads("pi-0", 2, 6)
    fleet.land([newer, *[fleet.reads("pi-1", 100 + 10 * n, n) for n in range(5)], older])
    fleet.restart()
    fleet.land([], promised_s=1_000)
    fleet.check()


def test_rows_that_give_way_to_newer_ones_do_not_make_the_store_be_read(keeper, monkeypatch):
    """Each reading of a session takes its row back, and brings one at a later time."""
    read, rows = list[int](), GatewayHistory.rows

    def counted(self, result, least_us, end_us):
        read.append(least_us)
        return rows(self, result, least_us, end_us)

    fleet = Fleet(doors(), keeper)
    fleet.land([fleet.reads("pi-0", 1, 5), fleet.reads("pi-0", 1_000, 5)])
    monkeypatch.setattr(GatewayHistory, "rows", counted)
    for n in range(2, 12):
        fleet.land([fleet.reads("pi-1", n, n)])
    assert read == []
    newest = {key: each for name, key, each in fleet.gateway.core.streams.newest() if key}
    assert newest["hall"].tentative[0][0] == FIRST_US + (11 + 30) * SECOND_US
    fleet.land([fleet.reads("pi-0", 1_000, 5, state=RETRACTED)])
    assert read, "no row is known then, and an older one may be there"


def test_events_in_order_that_came_while_nothing_was_local_are_published_once_it_is_again(keeper):
    """Behind one that no device is told of no scan goes on."""
    fleet = Fleet(barriers(local="power"), keeper)
    fleet.land([fleet.reads("pi-0", 10, 1)], 15)
    for n, plan in enumerate([barriers(), barriers(local="power")]):
        fleet.gateway.plan = fleet.plan = plan
        fleet.restart()
        fleet.land([fleet.reads("pi-0", 30 + 20 * n, 2 + n)], 35 + 20 * n)
    (gathering,) = fleet.gateway.core.streams.parted.gathered.values()
    assert [place[0] for place in sorted(gathering.open)] == [
        FIRST_US + each * SECOND_US for each in (10, 30, 50)
    ]


def test_events_in_order_older_than_late_answers_are_taken_wait_for_nobody(keeper, monkeypatch):
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", 40)
    fleet = Fleet(barriers(local="power"), keeper)
    for n in range(300):
        fleet.land([fleet.reads("pi-0", 60 * n, n)], 60 * n + 30)
    streams = fleet.gateway.core.streams
    (gathering,) = streams.parted.gathered.values()
    assert min(gathering.open)[0] >= streams.floor_us(streams.frontier_us)
    assert len(gathering.open) < 70
    assert len(gathering.records) < 200, "they leave memory, too"


class Doors(ValueBarrier):
    name, depends = "doors", (("door", "power"), ("door", "door"))


def barriers(**local):
    program = Program("doors")
    power, door = program.event("power"), program.event("door")
    program.result(program.scan("load", source=[power, door], scan=Doors, **local))
    return program.plan()
