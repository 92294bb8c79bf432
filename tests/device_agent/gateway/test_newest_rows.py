"""The newest rows of each key at a gateway: by their definition, at the price of what is needed."""

from random import Random

import pytest

from device_agent.gateway import streams as streams_module
from device_agent.gateway.fleet_history import GatewayHistory
from lasp_edge import Program, scans
from lasp_edge.evaluation import rows as rows_module
from lasp_edge.ordered.cells import PRESENT, RETRACTED
from tests.device_agent.gateway.support_streams import DEVICES, FIRST_US, SECOND_US, Fleet

APART_S = 40


def changes():
    """Return a program of the changes of each room's doors."""
    program = Program("doors")
    door = program.event("door")
    room = program.scan(
        "room", source=door, key=lambda event: event.tags["room"], scan=scans.changes()
    )
    program.result(room, parts={"value": "1"})
    return program.plan()


def known(fleet):
    """Return key -> the places of its newest final and tentative rows, as they are remembered."""
    newest = {key: each[1:] for _, key, each in fleet.gateway.core.streams.newest()}
    return {
        key: tuple(each and each[0] for each in both) for key, both in newest.items() if any(both)
    }


def defined(fleet):
    """Return the same by the definition, over all rows: a tentative one is later than the final."""
    found = {}
    for place, row in sorted(fleet.stored("room").items()):
        if row.event is not None:
            final, _ = found.get(row.event.key, (None, None))
            is_final = row.status != "tentative"
            found[row.event.key] = (place, None) if is_final else (final, place)
    return found


@pytest.fixture
def read_rows(monkeypatch):
    """Return the number of rows that were read of the store, from now on."""
    right, count = GatewayHistory.rows, [0]

    def rows(self, result, least_us, end_us):
        for cell_us, found in right(self, result, least_us, end_us):
            count[0] += len(found)
            yield cell_us, found

    monkeypatch.setattr(GatewayHistory, "rows", rows)
    return count


@pytest.mark.parametrize("seed", range(8))
def test_newest_rows_are_those_of_their_definition_whatever_is_taken_back(
    keeper, monkeypatch, seed
):
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", 20)
    monkeypatch.setattr(rows_module, "MOST_KEYS", 1_000 if seed % 2 else 3)
    rng, fleet = Random(seed), Fleet(changes(), keeper)
    for n in range(80):
        room, at_s = rng.choice("abcde"), 20 * n + rng.randrange(20) - 400 * (rng.random() < 0.1)
        entries = [fleet.reads(rng.choice(DEVICES), max(0, at_s), rng.randrange(9), room)]
        for _ in range(rng.choice((0, 0, 1)) if n > 9 else 0):
            there = [each for each, state in fleet.items.items() if state == PRESENT]
            device, item = rng.choice(sorted(there, key=lambda each: each[1].time_us)[-9:])
            seconds = (item.time_us - FIRST_US) / SECOND_US
            entries.append(fleet.reads(device, seconds, item.value, item.tags[9], RETRACTED))
        fleet.land(entries, 20 * n if n % 3 == 0 else None)
        if seed % 2:
            assert known(fleet) == defined(fleet)
        else:  # of some keys nothing is remembered
            assert len(known(fleet)) <= 3


@pytest.mark.parametrize("restarts", [False, True])
def test_a_row_that_is_taken_back_costs_the_rows_up_to_the_one_before(
    keeper, monkeypatch, read_rows, restarts
):
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", 20)
    fleet, count = Fleet(changes(), keeper), 300
    for n in range(count):
        fleet.land([fleet.reads("pi-0", n * APART_S, n % 7, "a")], n * APART_S)
    fleet.land([fleet.reads("pi-1", 200 * APART_S + 1, 3, "b")], count * APART_S)
    if restarts:
        fleet.restart()
    for at, room in ((200 * APART_S + 1, "b"), (299 * APART_S, "a"), (298 * APART_S, "a")):
        read_rows[0] = 0
        device, value = ("pi-1", 3) if room == "b" else ("pi-0", at // APART_S % 7)
        fleet.land([fleet.reads(device, at, value, room, RETRACTED)])
        if not restarts or room == "a":  # else it is not known that "b" has no older row
            assert read_rows[0] < 15
        assert known(fleet).get(room) == defined(fleet).get(room)
    read_rows[0] = 0
    fleet.land([fleet.reads("pi-1", 150 * APART_S + 1, 3, "b")])
    fleet.land([fleet.reads("pi-1", 150 * APART_S + 1, 3, "b", RETRACTED)])
    assert "b" not in known(fleet)
    assert read_rows[0] < 15, "it is known by now that there is no other row"


@pytest.mark.parametrize("has_open", [False, True])
def test_an_older_row_that_is_revised_after_a_restart_is_not_taken_for_the_newest(
    keeper, monkeypatch, has_open
):
    """A process takes the rows since the last cut, and the newest of a key may lie before it."""
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", 20)
    fleet, count = Fleet(changes(), keeper), 60
    fleet.land([fleet.reads("pi-1", at, at, "b") for at in (100, 300)])
    for n in range(count):
        fleet.land([fleet.reads("pi-0", n * APART_S, n % 7, "a")], n * APART_S)
    fleet.restart()
    assert "b" not in known(fleet)
    if has_open:
        fleet.land([fleet.reads("pi-1", count * APART_S, 9, "b")])
        assert known(fleet)["b"][0] is None
    fleet.land([fleet.reads("pi-1", 90, 1, "b")])
    assert known(fleet)["b"] == defined(fleet)["b"]
    assert known(fleet)["b"][0][0] == FIRST_US + 300 * SECOND_US


@pytest.mark.parametrize("seed", range(4))
def test_keys_whose_newest_row_was_taken_back_are_known_after_a_restart(keeper, monkeypatch, seed):
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", 50 if seed % 2 else 10_000)
    rng, fleet = Random(seed), Fleet(changes(), keeper)
    fleet.land([fleet.reads("pi-0", n, n, room) for n, room in enumerate("bcd")], 5)
    for n in range(2, 60):
        fleet.land([fleet.reads("pi-0", n * APART_S, n, "a")], n * APART_S)
    last = {room: (n + 10, 60 * APART_S + n) for n, room in enumerate("bcde")}
    fleet.land([fleet.reads("pi-1", at, n, room) for room, (n, at) in last.items()])
    fleet.land([], 61 * APART_S)
    back = rng.sample("bcde", 3)
    fleet.land([fleet.reads("pi-1", last[r][1], last[r][0], r, RETRACTED) for r in back])
    fleet.restart()
    assert (fleet.gateway.core.streams._engine.since_us > FIRST_US) == bool(seed % 2), "the cut"
    newest = {key for _, key, _ in fleet.gateway.core.streams.newest()}
    assert newest >= set(back), "else what was shown before the restart stays on their topics"
    assert {r: known(fleet).get(r) for r in back} == {r: defined(fleet).get(r) for r in back}
