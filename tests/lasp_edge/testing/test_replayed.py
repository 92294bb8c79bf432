"""What a replay gives of shared variables, of time, and of what a device refuses or combines."""

import json

import pytest

from crdts import BoundedLWWSet, Counter, ORMap, ORSet
from lasp_edge import Program, folds, scans
from lasp_edge.testing import check_program, replay
from tests.cloud_tier.support_own_fold import Parity

START_S = 1_764_028_800


def test_shared_variables_and_what_is_derived_from_them_are_there_in_the_end():
    program = Program("doors")
    door, door_at = program.event("door", resolution="1"), program.declare(ORSet(), "open_now")
    opened = program.declare(ORMap(Counter()), "opened")
    program.filter(door_at, lambda room: room.startswith("a"), "open_attics")

    @program.on_event(door)
    def moved(event, update):
        room = event.tags["room"]
        update(door_at, ORSet.add if event.value else ORSet.remove, room)
        update(opened, ORMap.update, room, Counter.increment, round(event.value))

    moves = [("attic", 1), ("cellar", 1), ("cellar", 0), ("attic", 0), ("attic", 1), ("bath", 1)]
    found = replay(
        program,
        [
            ("a", "door", is_open, START_S + at, {"room": r})
            for at, (r, is_open) in enumerate(moves)
        ],
        faults="rough",
    )
    assert found.variable("open_now") == {room for room, is_open in dict(moves).items() if is_open}
    assert found.variable("open_attics") == {"attic"}
    assert found.variable("opened") == {"attic": 2, "cellar": 1, "bath": 1}
    with pytest.raises(KeyError, match="there is no variable 'closed'; there are open_now"):
        found.variable("closed")


def test_what_cannot_be_taken_back_counts_and_is_named_with_what_keeps_it(tmp_path):
    program = Program("meter")
    litres = program.event("litres")
    flow = program.scan("flow", source=litres, scan=scans.differences(), per_device=True)
    program.window("used", source=flow, fold=folds.sum(), size_s=60)
    program.window("newest", source=litres, fold=folds.last(), size_s=60)
    lines = [{"ts": START_S, "litres": 5}, {"ts": START_S + 1, "litres": 9}]
    lines.append({**lines[-1], "wrong": True})
    recording = tmp_path / "meter.jsonl"
    recording.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    found = replay(program, recording, time="ts", retract="wrong")
    assert [row["sum"] for row in found.window("used")] == [9 - 5]
    why = "not_revisable: window newest cannot take a reading of litres back"
    assert found.failures == [f"refused: litres: {why} (readings: 1)"]


def test_an_alert_goes_on_whose_condition_has_to_hold_for_a_minute():
    program = Program("oven")
    heat = program.event("heat")
    last = program.declare_dynamic(BoundedLWWSet(bound=1), "last", measures=heat)
    program.collect(heat, into=last)
    fleet = program.fold_dynamic(program.fold(last, folds.mean(), "here"), "fleet")
    program.alert("hot", fleet, above=28, for_s=60)
    program.alert("cold", fleet, below=10, for_s=60)
    found = replay(program, [("a", "heat", 29, START_S)])
    assert {row["alert"]: row["state"] for row in found.alerts} == {"hot": "on", "cold": "off"}
    assert "2 of 2 alerts are what the oracle says" in found.compared


def test_a_window_of_which_all_was_taken_back_keeps_a_row_of_nothing(tmp_path):
    program = Program("meter")
    litres = program.event("litres")
    flow = program.scan("flow", source=litres, scan=scans.differences(), per_device=True)
    fold = folds.struct(n=folds.count(), mean=folds.mean())
    program.window("read", source=litres, fold=fold, size_s=60)
    program.window("used", source=flow, fold=folds.sum(), size_s=60)
    lines = [{"ts": START_S, "litres": 5}, {"ts": START_S + 100, "litres": 9}]
    lines.append({**lines[0], "wrong": True})
    recording = tmp_path / "meter.jsonl"
    recording.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    found = replay(program, recording, time="ts", retract="wrong")
    assert [(row["n"], row["mean"]) for row in found.window("read")] == [(0, None), (1, 9)]
    assert [row["sum"] for row in found.window("used")] == [0]
    assert found.failures == []


def test_time_passes_for_scans_over_the_fleet_beside_those_of_devices():
    program = Program("both")
    a, means = program.event("a"), scans.time_weighted_mean(every_s=30, hold_s=60)
    program.result(program.scan("of_all", source=a, scan=means))
    program.result(program.scan("of_each", source=a, scan=means, per_device=True))
    found = replay(program, [("x", "a", 5, START_S + 1)])
    for name in ("of_all", "of_each"):  # from 1 to 61 the value holds
        ends = [row["time"].timestamp() - START_S for row in found.result(name)]
        assert ends == [30, 60, 90]


def test_a_fold_that_combines_by_itself_is_what_its_own_combine_makes_of_all():
    program = Program("bits")
    bits = program.event("bits", resolution="1")
    program.window("parity", source=bits, fold=Parity(), size_s=60)
    last = program.declare_dynamic(BoundedLWWSet(bound=2), "last", measures=bits)
    program.collect(bits, into=last)
    program.fold_dynamic(program.fold(last, Parity(), "here"), "all")
    given = [("a", 5), ("a", 6), ("b", 12)]
    found = replay(program, [(at, "bits", bit, START_S) for at, bit in given])
    assert [row["parity"] for row in found.window("parity")] == [5 ^ 6 ^ 12]
    assert found.value("all").parts["parity"] == 5 ^ 6 ^ 12
    assert check_program(program) is None


def test_windows_of_what_time_alone_brings_are_final_in_the_end():
    program = Program("charging")
    power = program.event("power", resolution="1", unit="W")
    mean = program.scan(
        "mean", source=power, scan=scans.time_weighted_mean(every_s=600), per_device=True
    )
    program.window("hour", source=mean, fold=folds.sum(), size_s=3600)
    # The last mean is of 00:50 to 01:00, and so in the window of the next hour.
    given = [("a", "power", 6, START_S + 600 * n) for n in range(6)]
    rows = replay(program, given).window("hour")
    assert [(row["sum"], row["status"]) for row in rows] == [(30, "final"), (6, "final")]
