"""Each check holds for the truth, and for nothing else."""

import pytest

from crdts import BoundedLWWSet
from lasp_edge import Plan, Program, folds
from simulations.demo.checks import verdicts
from simulations.demo.evidence import Evidence
from simulations.oracle import Reading, dynamic_partials, windows
from tests.simulations.everything import FOLDS


def made(max_age_s: float | None = None, stale_after_s: float | None = None) -> Plan:
    program = Program("house")
    heat = program.event("heat", resolution="0.1")
    last = program.declare_dynamic(BoundedLWWSet(bound=3, max_age_s=max_age_s), "last")

    @program.on_event(heat)
    def keep(event, update):
        update(last, BoundedLWWSet.add, event.value, event.time_us)

    own = program.fold(last, folds.mean(), "own")
    program.fold_dynamic(own, "every", stale_after_s=stale_after_s)
    program.window(
        "by_room",
        source=heat,
        fold=folds.struct(mean=folds.mean(), low=folds.min()),
        size_s=50,
        slide_s=20,
        key=lambda event: event.tags["room"],
    )
    return program.plan()


PLAN = made()
READINGS = {
    device: [
        Reading(device, "heat", 20 + at * step, at * 7_000_000, {"room": room}) for at in range(9)
    ]
    for device, room, step in (("a", "bath", 0.3), ("b", "attic", 0.7), ("c", "bath", -0.2))
}


def evidence(plan: Plan = PLAN) -> Evidence:
    """The evidence of a fleet that computes the truth."""
    count, total = dynamic_partials(PLAN, "every", READINGS)[""]
    columns = {"count": count, "total_q": total, "inputs": "00ff"}
    value = {"parts": {"mean": 1.0}, "settled": True, "except": [], **columns}
    stored = {"name": "every", "key": "", "devices_in": 3, "revision": 4, **columns}
    every = [reading for readings in READINGS.values() for reading in readings]
    rows = []
    for (key, start_us), truth in windows(PLAN, "by_room", every).items():
        names = PLAN.windows["by_room"].fold.columns_named
        row = {"key": key, "start_us": start_us, "devices_in": truth.devices_in, "revision": 1}
        rows.append(row | dict(zip(names, truth.partial, strict=True)))
    values = {device: {"every": value} for device in READINGS}
    return Evidence(plan, values, READINGS, {"by_room": rows}, {"every": [stored]}, 70.0)


def outcomes(seen: Evidence) -> str:
    words = {True: "+", False: "-", None: "?"}
    return "".join(words[verdict.ok] for verdict in verdicts(seen))


def with_value(seen: Evidence, device: str, **changed) -> Evidence:
    value = {**seen.values[device]["every"], **changed}
    return seen._replace(values={**seen.values, device: {"every": value}})


def with_windows(seen: Evidence, rows: list) -> Evidence:
    return seen._replace(windows={"by_room": rows})


def test_the_truth_passes_with_its_numbers():
    found = verdicts(evidence())
    assert [verdict.ok for verdict in found] == [True] * 4
    assert "all 3 devices hold the same every" in found[0].text
    assert "last 3 readings" in found[1].text
    assert "count 9, total_q 1,968" in found[1].text
    assert "00ff" in found[2].text
    assert "by_room: 10 windows equal the recomputation from 27" in found[3].text


def test_one_device_that_holds_another_value_fails_a_and_b():
    seen = with_value(evidence(), "b", total_q=1967)
    assert outcomes(seen) == "--++"
    assert "at b '' there is count 9, total_q 1,967, and right is" in verdicts(seen)[1].text


def test_equal_values_of_different_inputs_are_not_agreement():
    assert outcomes(with_value(evidence(), "b", inputs="00fe")) == "-+++"


def test_a_device_without_a_value_fails_a():
    seen = evidence()
    assert outcomes(seen._replace(values={**seen.values, "c": {}})) == "-+++"


@pytest.mark.parametrize("change", [{"inputs": "00fe"}, {"total_q": 1967}])
def test_another_value_in_the_lake_fails_c(change):
    seen = evidence()
    (row,) = seen.globals["every"]
    assert outcomes(seen._replace(globals={"every": [{**row, **change}]})) == "++-+"
    assert (
        outcomes(seen._replace(globals={"every": [{**row, **change, "revision": 3}, row]}))
        == "++++"
    )


@pytest.mark.parametrize("times", [0, 2])
def test_a_value_that_is_not_in_the_lake_or_doubled_there_fails_c(times):
    seen = evidence()
    assert outcomes(seen._replace(globals={"every": seen.globals["every"] * times})) == "++-+"


def test_a_reading_that_its_room_never_had_fails_d():
    seen = evidence()
    lines = {device: [{"heat": each.value} for each in of] for device, of in READINGS.items()}
    assert outcomes(seen._replace(measured=lines)) == "++++"
    lost = {device: [{"heat": 7.0}, *of] for device, of in lines.items()}
    assert outcomes(seen._replace(measured=lost)) == "++++", "a crash loses readings"
    assert outcomes(seen._replace(measured=lines | {"b": lines["b"][:-1]})) == "+++-"
    assert outcomes(seen._replace(measured=lines | {"b": lines["b"][::-1]})) == "+++-"


def test_missing_extra_changed_and_doubled_windows_fail_d():
    seen = evidence()
    rows = list(seen.windows["by_room"])
    extra = {**rows[0], "start_us": 980_000_000}
    wrong = {**rows[3], "low_min_q": 7}
    fewer = {**rows[4], "devices_in": 9}
    assert "1 of 10 rows differ" in verdicts(with_windows(seen, rows[1:]))[3].text
    assert "1 of 11 rows differ" in verdicts(with_windows(seen, [*rows, extra]))[3].text
    assert "1 of them doubled" in verdicts(with_windows(seen, [*rows, rows[0]]))[3].text
    for changed in (rows[1:], [*rows, extra], [*rows[:3], wrong, *rows[4:]], [*rows, rows[0]]):
        assert outcomes(with_windows(seen, changed)) == "+++-"
    assert outcomes(with_windows(seen, [*rows[:4], fewer, *rows[5:]])) == "+++-"


def test_a_window_whose_readings_were_all_taken_back_keeps_an_empty_row():
    seen = evidence()
    fold, rows = PLAN.windows["by_room"].fold, list(seen.windows["by_room"])
    empty = dict(zip(fold.columns_named, fold.zero, strict=True))
    emptied = {**rows[0], **empty, "start_us": 980_000_000}
    assert outcomes(with_windows(seen, [*rows, emptied])) == "+++-"
    back = {name: list(several) for name, several in READINGS.items()}
    back["a"].append(back["a"][0]._replace(time_us=980_000_001, retracted=True))
    seen = seen._replace(readings=back)
    more = {**rows[0], "devices_in": rows[0]["devices_in"] + 1}
    assert outcomes(with_windows(seen, [more, *rows[1:], emptied]))[3] == "+"
    assert outcomes(with_windows(seen, [*rows[1:], emptied]))[3] == "-"
    full = {**emptied, **dict.fromkeys(empty, 1)}
    assert outcomes(with_windows(seen, [*rows, full]))[3] == "-"


def test_a_device_that_is_silent_for_longer_than_the_value_allows_does_not_count_there():
    plan = made(stale_after_s=60)
    heard = {device: of for device, of in READINGS.items() if device != "c"}
    count, total = dynamic_partials(plan, "every", heard)[""]
    seen = evidence(plan)
    columns = {"count": count, "total_q": total}
    for device in heard:
        seen = with_value(seen, device, **columns)
    seen = seen._replace(globals={"every": [{**row, **columns} for row in seen.globals["every"]]})
    assert outcomes(seen) == "--++", "c has a connection, so it counts"
    assert outcomes(seen._replace(silent_us={"c": 60_000_000})) == "--++"
    silent = seen._replace(silent_us={"c": 60_000_001})
    assert outcomes(silent) == "++++"
    assert "without c" in verdicts(silent)[1].text
    unlike = with_value(silent, "b", count=count + 1)
    assert outcomes(unlike) == "--++"


def test_a_program_without_windows_or_fleet_wide_values_has_nothing_to_check():
    plain = Program("plain")
    plain.event("heat", resolution="0.1")
    seen = Evidence(plain.plan(), {"a": {}}, READINGS, {}, {}, 70.0)
    assert outcomes(seen) == "????"
    assert {verdict.text for verdict in verdicts(seen)} == {
        "nothing to check: the program has no fleet-wide value",
        "nothing to check: the program has no window",
    }


def test_samples_that_may_have_expired_by_the_clock_cannot_be_recomputed():
    assert outcomes(evidence(made(max_age_s=60.0))) == "+?++"
    assert outcomes(evidence(made(max_age_s=71.0))) == "++++"


def test_long_findings_are_wrapped():
    lines = verdicts(evidence())[1]._replace(text="word " * 60).lines()
    assert len(lines) > 2
    assert lines[0].startswith("(b) ok      word")
    assert all(line.startswith(" " * 12) for line in lines[1:])
    assert max(map(len, lines)) < 100


def of_every_fold(plan: Plan, readings: dict) -> Evidence:
    """The evidence of a fleet whose program has one fold in a value and in a window."""
    fold = plan.windows["window"].fold

    def plain(partial):
        parts = zip(fold.columns_named, partial, strict=True)
        return {name: part.hex() if isinstance(part, bytes) else part for name, part in parts}

    keys, rows = {}, []
    for key, partial in dynamic_partials(plan, "every", readings).items():
        keys[key] = {"parts": {}, "inputs": f"0{len(key)}", **plain(partial)}
        rows.append({"name": "every", "key": key, "devices_in": 3, "revision": 0, **keys[key]})
    whole = {"inputs": "00", "settled": True, "except": []}
    value = {"keys": keys, **whole} if plan.windows["window"].keyed else keys[""] | whole
    value |= {"inputs": rows[0]["inputs"]} if "keys" not in value else {}
    every = [reading for of_device in readings.values() for reading in of_device]
    in_windows = [
        {"key": key, "start_us": start_us, "devices_in": truth.devices_in, "revision": 0}
        | plain(truth.partial)
        for (key, start_us), truth in windows(plan, "window", every).items()
    ]
    values = {device: {"every": value} for device in readings}
    return Evidence(plan, values, readings, {"window": in_windows}, {"every": rows}, lasted_s=9.0)


def changed(part):
    """Return another value of a column, as JSON has it."""
    if isinstance(part, str):
        return part[:-1] + ("0" if part[-1] != "0" else "1")
    return 1 if part is None else part + 1


@pytest.mark.parametrize("keyed", [False, True], ids=["whole", "by key"])
@pytest.mark.parametrize("name", FOLDS)
def test_each_fold_passes_as_it_is_and_fails_with_any_other_column(name, keyed):
    program = Program("one")
    heat = program.event("heat", resolution="0.1")
    key = (lambda event: event.tags["room"]) if keyed else None
    kept = program.declare_dynamic(BoundedLWWSet(bound=3), "kept", key=key)
    program.collect(heat, into=kept)
    program.fold_dynamic(program.fold(kept, FOLDS[name], "own"), "every")
    program.window("window", source=heat, fold=FOLDS[name], size_s=50, slide_s=20, key=key)
    seen = of_every_fold(program.plan(), READINGS)
    assert outcomes(seen) == "++++", verdicts(seen)
    for column in seen.plan.windows["window"].fold.columns_named:
        rows = [dict(row) for row in seen.globals["every"]]
        rows[-1][column] = changed(rows[-1][column])
        assert outcomes(seen._replace(globals={"every": rows})) == "++-+"
        rows = [dict(row) for row in seen.windows["window"]]
        rows[-1][column] = changed(rows[-1][column])
        assert outcomes(seen._replace(windows={"window": rows})) == "+++-"
