"""A gateway's file: all of a turn or nothing, damage is reported, and readers see the rest."""

import json
import sqlite3

import pytest

from crdts import ControlLog
from device_agent.gateway.kept import (
    FleetChanges,
    FleetState,
    KeptEntry,
    WriterOfPanes,
)
from device_agent.gateway.store import FILE_NAME, FleetStore, existing_fleet
from device_agent.gateway.table import found, meaning_of, newest_rows
from device_agent.storage.damage import DamagedStoreError
from lasp_edge.errors import NotFound, UsageError
from lasp_edge.protocol.acks import FORMER_STORES, FormerStore
from lasp_edge.protocol.lost_stores import EarlierLives
from lasp_edge.protocol.waiting import Step
from lasp_edge.protocol.window_rows import COUNTED, COVERED, FleetRow, WindowStart
from lasp_edge.tool.command_line import main
from lasp_edge.tool.printing import RowsWanted
from tests.cloud_tier.support_devices import rooms

PLAN = rooms()
WINDOW = PLAN.windows["totals"]
ENTRY = KeptEntry(WINDOW.stream, 30_000_000, "", WriterOfPanes("pi", 1, 7), 3, (2100,))


def row(start_s, total, status="final", revision=0, frontier_us=90_000_000):
    at = WindowStart("totals", "", start_s * 1_000_000)
    record = (2, 3, ("attic",), status, revision, frontier_us, WINDOW.stream)
    return FleetRow(at, at.start_us + WINDOW.size_us, (total,), *record)


@pytest.fixture
def store(tmp_path):
    store = FleetStore(tmp_path)
    store.put_facts({"program": meaning_of(PLAN, ControlLog()), "store": "s-1", "name": PLAN.name})
    yield store
    store.close()


def wanted(name="totals", **only):
    blank = {"key": None, "since_us": None, "until_us": None, "as_of_us": None}
    return RowsWanted(name, **{**blank, "all_revisions": False, **only})


def shown(directory, **only):
    columns, rows, _ = found(str(directory), wanted(**only))
    return [dict(zip(columns, each, strict=True)) for each in rows]


def test_rows_have_a_lakes_columns_and_are_chosen_as_there(store, tmp_path, capsys):
    rows = [row(0, 5, "tentative", frontier_us=None), row(0, 7, revision=1), row(30, 2**70)]
    store.commit(FleetChanges(rows=rows))
    now = shown(tmp_path)
    assert list(now[0]) == [
        *("key", "start_us", "end_us", "sum", "total_q", "devices_in", "devices_expected"),
        *("excluded", "status", "revision", "frontier", *COUNTED, COVERED),
    ]
    assert [(each["total_q"], each["revision"]) for each in now] == [(7, 1), (2**70, 0)]
    assert [each["total_q"] for each in shown(tmp_path, all_revisions=True)] == [5, 7, 2**70]
    assert [each["total_q"] for each in shown(tmp_path, as_of_us=1)] == [5]
    assert [each["start_us"] for each in shown(tmp_path, since_us=1)] == [30_000_000]
    assert shown(tmp_path, until_us=0) == shown(tmp_path, key="attic") == []
    assert main(["windows", "totals", "--gateway", str(tmp_path), "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == ",0,30000000,0.07,7,2,3,final,1"
    assert main(["windows", "totals", "--gateway", str(tmp_path), "--json"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == now


def test_what_is_not_there_is_said(store, tmp_path):
    with pytest.raises(NotFound, match=r"no window 'other' in .*; there are: by_room, odd, totals"):
        found(str(tmp_path), wanted("other"))
    with pytest.raises(NotFound, match="holds no gateway's data"):
        existing_fleet(tmp_path / "elsewhere")
    with pytest.raises(BlockingIOError):
        FleetStore(tmp_path)
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / FILE_NAME).touch()  # a gateway that is starting has made no tables yet
    with pytest.raises(NotFound, match="no gateway has kept anything here yet"):
        found(str(begun), wanted("totals"))


def test_a_turn_is_durable_whole_or_not_at_all(store):
    class Broken(dict):
        def items(self):
            raise RuntimeError

    state = FleetState(witnessed=Broken(pi="line"))
    changes = FleetChanges([ENTRY], [row(0, 5)], state)
    with pytest.raises(RuntimeError):
        store.commit(changes)
    assert store.entries(WINDOW.stream, 0, 10**9) == []
    assert store.row(WindowStart("totals", "", 0)) is None
    store.commit(FleetChanges([ENTRY], [row(0, 5)]))
    assert store.entries(WINDOW.stream, 0, 10**9) == [ENTRY]


def test_what_is_of_no_use_is_forgotten_in_the_same_turn(store):
    store.commit(FleetChanges([ENTRY, ENTRY._replace(pane_us=60_000_000)], [row(0, 5), row(60, 6)]))
    store.commit(FleetChanges(panes_below={WINDOW.stream: 60_000_000}, rows_below=30_000_000))
    assert [each.pane_us for each in store.entries(WINDOW.stream, 0, 10**9)] == [60_000_000]
    assert [each.partial for each in store.rows("totals", WINDOW.stream)] == [(6,)]


def test_streams_that_are_no_more_are_forgotten_by_a_bound_of_their_own(store):
    streams = (WINDOW.stream, -5, 0, 7, 2**62)
    times_us = (0, 60_000_000, 120_000_000)
    store.commit(
        FleetChanges([ENTRY._replace(stream=s, pane_us=t) for s in streams for t in times_us])
    )
    below = {WINDOW.stream: 120_000_000, 0: 0}
    store.commit(FleetChanges(panes_below=below, others_below=60_000_000))
    kept = {s: [each.pane_us for each in store.entries(s, 0, 10**9)] for s in streams}
    assert kept == {
        WINDOW.stream: [120_000_000],
        0: list(times_us),
        **{stream: [60_000_000, 120_000_000] for stream in (-5, 7, 2**62)},
    }


def test_the_last_starts_are_those_that_are_there_still(store):
    gone = [row(start, 0, "revised", 1)._replace(devices_in=0) for start in (60, 90)]
    store.commit(FleetChanges(rows=[row(start, start) for start in (0, 30, 60, 90)]))
    assert [each.at.start_us for each in store.newest("totals", WINDOW.stream, 2)] == [
        60_000_000,
        90_000_000,
    ]
    store.commit(FleetChanges(rows=gone))
    assert store.newest("totals", WINDOW.stream, 1) == [row(30, 30)]
    assert store.newest("totals", WINDOW.stream, 9) == [row(0, 0), row(30, 30)]


def test_of_a_key_that_has_no_row_any_more_the_newest_says_so(store):
    def of_room(key, start, devices, revision=0):
        given = row(start, start, "revised" if revision else "final", revision)
        return given._replace(at=given.at._replace(key=key), devices_in=devices)

    rows = [of_room(key, start, 2) for key in ("attic", "cellar") for start in (0, 30, 60)]
    rows += [of_room("attic", start, 0, 1) for start in (0, 30, 60)] + [of_room("cellar", 60, 0, 1)]
    store.commit(FleetChanges(rows=rows))
    found = store.newest("totals", WINDOW.stream, 2)
    assert [(each.at.key, each.at.start_us // 1_000_000, each.devices_in) for each in found] == [
        ("attic", 60, 0),
        ("cellar", 0, 2),
        ("cellar", 30, 2),
    ]


def test_the_newest_rows_have_the_final_one_that_many_tentative_ones_are_behind(store):
    def of_room(key, start, status):
        given = row(start, start, status)
        return given._replace(at=given.at._replace(key=key))

    rows = [of_room("attic", 0, "final"), of_room("attic", 30, "final")]
    rows += [of_room("attic", start, "tentative") for start in (60, 90, 120, 150)]
    rows += [of_room("cellar", 120, "tentative"), of_room("hall", 0, "final")]
    store.commit(FleetChanges(rows=rows))
    found = [(each.at.key, each.at.start_us // 1_000_000) for _, each in newest_rows(store, 2)]
    assert found == [
        ("attic", 30),
        ("attic", 120),
        ("attic", 150),
        ("cellar", 120),
        ("hall", 0),
    ]


def change(directory, statement):
    db = sqlite3.connect(directory / FILE_NAME)
    db.execute(statement)
    db.commit()
    db.close()


def test_a_changed_entry_is_damage_when_it_is_read(store, tmp_path):
    store.commit(FleetChanges([ENTRY], [row(0, 5)]))
    store.close()
    change(tmp_path, "UPDATE entry SET seq = 4")
    again = FleetStore(tmp_path)
    with pytest.raises(DamagedStoreError):
        again.entries(WINDOW.stream, 0, 10**9)
    again.put_aside()
    assert (tmp_path / f"{FILE_NAME}.damaged-1").exists()


def test_a_damaged_start_is_put_aside_and_another_format_is_left(store, tmp_path):
    store.close()
    change(tmp_path, "UPDATE fact SET value = 'x' WHERE name = 'store'")
    fresh = FleetStore(tmp_path)
    assert "damaged, kept as" in fresh.news
    assert fresh.facts() == {}
    fresh.close()
    change(tmp_path, "PRAGMA user_version = 9")
    change(tmp_path, f"PRAGMA application_id = {0x6C617100 + 9}")
    with pytest.raises(UsageError, match="start the gateway with another --data-dir"):
        FleetStore(tmp_path)


def test_people_read_who_is_missing_where_somebody_is(store, tmp_path, capsys):
    rows = [row(0, 5), row(30, 7, "tentative"), row(60, 9)._replace(excluded=())]
    store.commit(FleetChanges(rows=rows))
    assert main(["windows", "totals", "--gateway", str(tmp_path)]) == 0
    head, *lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert head[-2:] == ["waiting_for", "without"]
    assert [line[-3:] for line in lines] == [
        ["final", "0", "attic"],
        ["tentative", "0", "attic"],
        ["3", "final", "0"],
    ]
    assert (
        main(["windows", "totals", "--gateway", str(tmp_path), "--since", "1970-01-01T00:01"]) == 0
    )
    assert capsys.readouterr().out.splitlines()[0].endswith("status  revision")


def test_steps_are_kept_until_they_are_of_no_use(store):
    first, second = Step(5, 3), Step(9, 8)
    store.commit(FleetChanges(state=FleetState(steps=frozenset([first, second]))))
    store.commit(FleetChanges(state=FleetState(steps=frozenset([first]))))
    assert store.restored() == FleetState(steps=frozenset([first]))


def test_what_is_known_of_devices_is_there_again(store):
    state = FleetState(
        begun={"pi-0": ((7, 60), (0, 30))},
        lost={"pi-0": (10, 30)},
        owed={"pi-1": 20},
        earlier={"pi-0": EarlierLives(10, -5), "pi-2": EarlierLives(0, 40)},
    )
    store.commit(FleetChanges(state=state))
    assert store.restored() == state


def test_a_file_names_the_last_stores_before_it_and_their_last_commits(tmp_path):
    names = [f"s-{number}" for number in range(FORMER_STORES + 3)]
    for name in names:
        store = FleetStore(tmp_path)
        former = store.begin(name)
        store.commit(FleetChanges(state=FleetState(frontier_us=len(former) + 1)))
        store.close()
    assert former == tuple(FormerStore(name, 2) for name in names[2:-1])
