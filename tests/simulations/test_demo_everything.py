"""The demo checks every program of the README and every fold, with and without keys."""

import json
from decimal import Decimal

import pytest

from crdts import BoundedLWWSet
from lasp_edge import Plan, Program, folds
from lasp_edge.errors import EnvironmentLacks
from lasp_edge.folds.columns import Op
from lasp_edge.folds.fold import Fold
from simulations.demo.broker import find_broker
from simulations.demo.checks import verdicts
from simulations.demo.devices import Value
from simulations.demo.evidence import Evidence
from simulations.oracle import Reading, dynamic_partials, windows
from tests.conftest import CHECKOUT
from tests.simulations.everything import FOLDS, SPEC, WRITTEN, program
from tests.simulations.support_demo import demo
from tests.support_missing import lacks

PLAN = program.plan()
ROOMS = ("attic", "bath", "cellar")
DEVICES = ("a", "b", "c")


def recorded() -> list[dict]:
    """Some minutes of three devices, each in one room and then in another."""
    return [
        {
            "ts": 1_735_689_600 + 7 * at,
            "device": device,
            "t": round(20 + at * 0.31 * (number - 1.2), 2),
            "door": (at + number) % 3 - 1,
            "room": ROOMS[(number + at // 12) % 3],
            "truck": f"truck {at % 2}",
        }
        for at in range(24)
        for number, device in enumerate(DEVICES)
    ]


def fields() -> list[str]:
    """How a line becomes a reading of every event."""
    fields = ["--time", "ts", "--device", "device", "--tag", "room=room", "--tag", "truck=truck"]
    for name in PLAN.events:
        fields += ["--event", f"{name}={'door' if 'door' in name else 't'}"]
    return fields


def test_everything_is_in_the_program():
    built_in = {
        name
        for name, made in vars(folds).items()
        if name.islower() and isinstance(made, type) and issubclass(made, Fold)
    }
    assert built_in == FOLDS.keys() - {"range"}
    written = {names["program"]._prefix for names in WRITTEN if "program" in names}
    folded = {"greenhouse", "cold_chain", "rooms", "doors", "cellars", "talk"}
    assert written == folded | {"water", "laundry", "cold_room", "climate", "words"} | {
        "hothouse",
        "press",
    }


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
def test_every_program_of_the_readme_and_every_fold_is_replayed_and_found_right(tmp_path):
    pytest.importorskip("pyspark", reason="needs the extra `cloud`")
    try:
        find_broker()
    except EnvironmentLacks as error:
        lacks(str(error))
    lines = tmp_path / "recorded.jsonl"
    lines.write_text("".join(f"{json.dumps(line)}\n" for line in recorded()))
    printed = demo(tmp_path, SPEC, "--replay", str(lines), *fields(), working_in=CHECKOUT)
    checks = [line[:7] for line in printed if line.startswith("(")]
    assert checks == ["(a) ok ", "(b) ok ", "(c) ok ", "(d) ok ", "(e) byt"]
    more = len(PLAN.dynamic_folds) - 3
    assert f"and {more} more alike" in " ".join(" ".join(printed).split())


def one_fold(fold, *, keyed: bool) -> Plan:
    """Return a program with one fold in a fleet-wide value and in a window."""
    made = Program("one")
    heat = made.event("heat", resolution="0.01")
    key = (lambda event: event.tags["room"]) if keyed else None
    kept = made.declare_dynamic(BoundedLWWSet(bound=3), "kept", key=key)
    made.collect(heat, into=kept)
    made.fold_dynamic(made.fold(kept, fold, "own"), "every")
    made.window("window", source=heat, fold=fold, size_s=50, slide_s=20, key=key)
    return made.plan()


READINGS = {
    device: [
        Reading(device, "heat", line["t"], round(line["ts"] * 1e6), {"room": line["room"]})
        for line in recorded()
        if line["device"] == device
    ]
    for device in DEVICES
}


def columns_of(fold, partial, *, as_reported: bool) -> dict:
    """Return a partial as a report has it, bytes as text; or as a table has it."""
    found = {}
    for column, part in zip(fold.columns, partial, strict=True):
        in_table = Decimal(part) if column.op is Op.SUM else part
        reported = part.hex() if isinstance(part, bytes) else part
        found[column.name] = reported if as_reported else in_table
    return found


def evidence(fold, *, keyed: bool) -> Evidence:
    """Return what a fleet leaves that computes the truth."""
    plan = one_fold(fold, keyed=keyed)
    values, rows = {}, []
    for key, partial in dynamic_partials(plan, "every", READINGS).items():
        value = columns_of(fold, partial, as_reported=True)
        values[key] = {"parts": {}, "inputs": f"0{len(key)}", **value}
        row = {"key": key, "inputs": f"0{len(key)}", "devices_in": 3}
        rows.append(row | columns_of(fold, partial, as_reported=False))
    whole = {"inputs": "00", "settled": True, "except": []}
    plain = {"keys": values, **whole} if keyed else values[""]
    held = Value.of(json.loads(json.dumps(plain)))
    given = [reading for readings in READINGS.values() for reading in readings]
    in_windows = [
        {"key": key, "start_us": start_us, "devices_in": truth.devices_in}
        | columns_of(fold, truth.partial, as_reported=False)
        for (key, start_us), truth in windows(plan, "window", given).items()
    ]
    return Evidence(
        plan,
        {device: {"every": held} for device in DEVICES},
        READINGS,
        {"every": rows},
        {"window": in_windows},
        lasted_s=9.0,
    )


def changed(part):
    """Return another value of a column."""
    if isinstance(part, bytes):
        return part[:-1] + bytes([part[-1] ^ 1])
    return 1 if part is None else part + 1


@pytest.mark.parametrize("keyed", [False, True], ids=["whole", "by key"])
@pytest.mark.parametrize("name", FOLDS)
def test_each_fold_passes_as_it_is_and_fails_with_any_other_column(name, keyed):
    fold = FOLDS[name].at(one_fold(FOLDS[name], keyed=keyed).events["heat"].resolution)
    seen = evidence(fold, keyed=keyed)
    assert [verdict.ok for verdict in verdicts(seen)] == [True] * 4, verdicts(seen)
    for column in fold.columns_named:
        rows = [dict(row) for row in seen.globals["every"]]
        rows[-1][column] = changed(rows[-1][column])
        found = verdicts(seen._replace(globals={"every": rows}))
        assert [verdict.ok for verdict in found] == [True, True, False, True]
        rows = [dict(row) for row in seen.windows["window"]]
        rows[-1][column] = changed(rows[-1][column])
        found = verdicts(seen._replace(windows={"window": rows}))
        assert [verdict.ok for verdict in found] == [True, True, True, False]
        assert all(verdict.lines() for verdict in found)
