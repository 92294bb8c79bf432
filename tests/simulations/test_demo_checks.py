"""Each check holds for the truth, and for nothing else."""

from decimal import Decimal

import pytest

from crdts import BoundedLWWSet
from lasp_edge import Program, folds
from simulations.demo.checks import verdicts
from simulations.demo.devices import KeyValue, Value
from simulations.demo.evidence import Evidence
from simulations.oracle import Reading, dynamic_partials, windows


def made(max_age_s: float | None = None, stale_after_s: float | None = None) -> Program:
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


PROGRAM = made()
READINGS = {
    device: [
        Reading(device, "heat", 20 + at * step, at * 7_000_000, {"room": room}) for at in range(9)
    ]
    for device, room, step in (("a", "bath", 0.3), ("b", "attic", 0.7), ("c", "bath", -0.2))
}


def evidence(program: Program = PROGRAM) -> Evidence:
    """What a fleet leaves that computes the truth."""
    count, total = dynamic_partials(PROGRAM, "every", READINGS)[""]
    columns = {"count": count, "total_q": total}
    value = Value({"": KeyValue({"mean": 1.0}, columns, "00ff")}, "00ff", True, ())  # noqa: FBT003
    stored = {"key": "", "inputs": "00ff", "devices_in": 3, **columns, "total_q": Decimal(total)}
    every = [reading for readings in READINGS.values() for reading in readings]
    rows = []
    for (key, start_us), truth in windows(PROGRAM, "by_room", every).items():
        names = PROGRAM.windows["by_room"].fold.columns_named
        row = {"key": key, "start_us": start_us, "devices_in": truth.devices_in}
        rows.append(row | dict(zip(names, truth.partial, strict=True)))
    values = {device: {"every": value} for device in READINGS}
    return Evidence(program, values, READINGS, {"every": [stored]}, {"by_room": rows}, 70.0)


def outcomes(seen: Evidence) -> str:
    words = {True: "+", False: "-", None: "?"}
    return "".join(words[verdict.ok] for verdict in verdicts(seen))


def with_value(seen: Evidence, device: str, **changed) -> Evidence:
    value = seen.values[device]["every"]
    one = value.keys[""]._replace(**changed)
    value = value._replace(keys={"": one}, inputs=one.inputs)
    return seen._replace(values={**seen.values, device: {"every": value}})


def with_window(seen: Evidence, rows: list) -> Evidence:
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
    value = {"count": 9, "total_q": 1967}
    seen = with_value(evidence(), "b", columns=value)
    assert outcomes(seen) == "--++"
    assert "b holds count 9, total_q 1,967" in verdicts(seen)[1].text


def test_equal_values_of_different_inputs_are_not_agreement():
    assert outcomes(with_value(evidence(), "b", inputs="00fe")) == "-+++"


def test_a_device_without_a_value_fails_a():
    seen = evidence()
    assert outcomes(seen._replace(values={**seen.values, "c": {}})) == "-+++"


@pytest.mark.parametrize("change", [{"inputs": "00fe"}, {"total_q": Decimal(1967)}])
def test_another_value_in_the_lake_fails_c(change):
    seen = evidence()
    (row,) = seen.globals["every"]
    assert outcomes(seen._replace(globals={"every": [{**row, **change}]})) == "++-+"


@pytest.mark.parametrize("times", [0, 2])
def test_a_value_that_is_not_in_the_lake_or_doubled_there_fails_c(times):
    seen = evidence()
    assert outcomes(seen._replace(globals={"every": seen.globals["every"] * times})) == "++-+"


def test_missing_extra_changed_and_doubled_windows_fail_d():
    seen = evidence()
    rows = list(seen.windows["by_room"])
    extra = {**rows[0], "start_us": 980_000_000}
    wrong = {**rows[3], "low_min_q": 7}
    fewer = {**rows[4], "devices_in": 9}
    assert "1 missing" in verdicts(with_window(seen, rows[1:]))[3].text
    assert "1 extra" in verdicts(with_window(seen, [*rows, extra]))[3].text
    assert (
        "1 with other integers"
        in verdicts(with_window(seen, [*rows[:3], wrong, *rows[4:]]))[3].text
    )
    assert "1 doubled" in verdicts(with_window(seen, [*rows, rows[0]]))[3].text
    for changed in (rows[1:], [*rows, extra], [*rows[:3], wrong, *rows[4:]], [*rows, rows[0]]):
        assert outcomes(with_window(seen, changed)) == "+++-"
    assert outcomes(with_window(seen, [*rows[:4], fewer, *rows[5:]])) == "+++-"


def test_a_device_that_is_silent_for_longer_than_the_value_allows_does_not_count_there():
    plan = made(stale_after_s=60)
    heard = {device: of for device, of in READINGS.items() if device != "c"}
    count, total = dynamic_partials(plan, "every", heard)[""]
    seen = evidence()
    (stored,) = seen.globals["every"]
    columns = {"count": count, "total_q": total}
    for device in heard:
        seen = with_value(seen, device, columns=columns)
    globals_ = {"every": [{**stored, **columns, "total_q": Decimal(total)}]}
    seen = seen._replace(plan=plan, globals=globals_)
    assert outcomes(seen) == "--++", "c has a connection, so it counts"
    assert outcomes(seen._replace(silent_us={"c": 60_000_000})) == "--++"
    silent = seen._replace(silent_us={"c": 60_000_001})
    assert outcomes(silent) == "++++"
    assert "without c" in verdicts(silent)[1].text
    unlike = with_value(silent, "b", columns={**columns, "count": count + 1})
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
