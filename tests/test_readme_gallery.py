"""The programs of the gallery keep the laws, and give what plain Python makes of their readings."""

from collections import Counter, defaultdict
from fractions import Fraction
from math import ceil, exp, floor, isclose, log
from random import Random
from statistics import linear_regression

import pytest

from lasp_edge.testing import replay
from lasp_edge.tool.command_line import main
from tests.support_readme import CHECKOUT, MARKS, block

START_S = 1_764_028_800
"""A full hour."""


def program_of(text):
    shown = {}
    exec(text, shown)
    return shown["program"]


def of(rows, part):
    """Return key and start in seconds -> a part of the rows of a window."""
    return {(row["key"], row["start"].timestamp()): row[part] for row in rows}


PAGE = (CHECKOUT / "docs" / "gallery.md").read_text()
GALLERY = [name for name, (kind, mark) in MARKS.items() if kind == "python" and mark in PAGE]


def test_there_are_fourteen():
    assert len(GALLERY) == 14


@pytest.mark.parametrize("name", GALLERY)
def test_each_passes_check_without_a_warning(name, tmp_path, monkeypatch, capsys):
    module = f"gallery_{name.replace(' ', '_')}"
    (tmp_path / f"{module}.py").write_text(block(name))
    monkeypatch.syspath_prepend(str(tmp_path))
    checked = main(["check", f"{module}:program", "--strict", "--no-record"])
    assert checked == 0, capsys.readouterr().out


def test_energy_of_each_flat_survives_a_reset():
    readings, truth = [], Counter()
    for device, flat, step in (("a", "1", 0.3), ("b", "2", 0.5)):
        counted = 100.0
        for n in range(60):
            at = START_S + 60 * n
            was, counted = counted, 0.0 if n == 25 else round(counted + step, 1)
            readings.append((device, "meter", counted, at, {"flat": flat}))
            if n:
                truth[flat, at // 900 * 900] += round(10 * (counted if n == 25 else counted - was))
    found = replay(program_of(block("energy per flat")), readings, faults="rough", seed=1)
    energy = of(found.window("energy"), "sum")
    assert energy == {at: tenths / 10 for at, tenths in truth.items()}
    assert found.failures == []


def test_percentiles_of_requests_that_succeeded():
    drawn, truth = Random(3), defaultdict(list)
    readings = []
    for n in range(200):
        service, status = drawn.choice(["shop", "mail"]), drawn.choice(["200", "200", "500"])
        at, value = START_S + n // 2, round(drawn.lognormvariate(4, 1))
        readings.append(
            (f"pi-{n % 2}", "latency", value, at, {"service": service, "status": status})
        )
        if status == "200":
            truth[service, at // 60 * 60].append(value)
    rows = replay(program_of(block("percentiles")), readings).window("percentiles")
    assert of(rows, "n") == {at: len(values) for at, values in truth.items()}
    for part, f in (("latency_p50", 0.5), ("latency_p95", 0.95)):
        for at, value in of(rows, part).items():
            wanted = sorted(truth[at])[floor(f * (len(truth[at]) - 1))]
            assert isclose(value, wanted, rel_tol=0.01), (part, at)


def test_prices_are_weighted_by_amounts():
    drawn, paid, sold = Random(5), Counter(), Counter()
    readings = []
    for n in range(60):
        item, at = drawn.choice(["tea", "rice"]), START_S + 2 * n
        cents, amount = drawn.randrange(100, 999), drawn.randrange(1, 9)
        readings.append(("till", "amount", amount, at, {"item": item}))
        readings.append(("till", "price", cents / 100, at, {"item": item}))
        paid[item, at // 60 * 60] += cents * amount
        sold[item, at // 60 * 60] += amount
    found = replay(program_of(block("weighted mean")), readings, faults="rough", seed=2)
    rows = of(found.window("average_price"), "weighted_mean")
    assert rows == {at: float(Fraction(paid[at], 100 * sold[at])) for at in sold}


def test_the_trend_is_the_line_with_the_least_squares():
    drawn = Random(7)
    points = [(n * 36 / 3600, round(20 + 3 * n / 100 + drawn.gauss(0, 1), 2)) for n in range(100)]
    readings = [("pi-1", "temperature", y, START_S + 3600 * x, {}) for x, y in points]
    (row,) = replay(program_of(block("trend")), readings).window("trend")
    slope, intercept = linear_regression(*zip(*points, strict=True))
    assert isclose(row["slope"], slope, rel_tol=1e-9)
    assert isclose(row["intercept"], intercept, rel_tol=1e-9)


def test_the_geometric_mean():
    values = [1.05, 0.98, 1.2, 1.01, 0.875]
    readings = [("pi-1", "factor", value, START_S + n, {}) for n, value in enumerate(values)]
    (row,) = replay(program_of(block("geometric mean")), readings).window("mean_factor")
    assert isclose(row["geometric_mean"], exp(sum(map(log, values)) / 5), abs_tol=1e-6)


def test_a_smoothed_value_and_a_shift():
    values = [20.0, 20.4, 19.8, 21.5, 22.0, 22.1, 21.9, 22.3, 20.0]
    readings = [("pi-1", "temperature", value, START_S + n, {}) for n, value in enumerate(values)]
    found = replay(program_of(block("smoothed")), readings, faults="rough", seed=3)
    mean, total, means, shifted = values[0], 0.0, [], []
    for n, value in enumerate(values):
        mean = value if n == 0 else mean * 7 / 8 + value / 8
        total = max(0.0, total + (value - 20) - 0.5)
        means.append(mean)
        shifted += [round(total, 1)] if total > 4 else []
    assert [row["mean"] for row in found.result("ewma")] == pytest.approx(means, abs=0.0051)
    assert [row["total"] for row in found.result("shifted")] == pytest.approx(shifted)
    assert len(shifted) == 4


def test_runs_of_a_washing_machine():
    watts = [1, 1, 40, 2000, 2, 300, 1, 2, 1, 1, 50, 60, 1, 1]
    readings = [("cellar", "power", value, START_S + 60 * n, {}) for n, value in enumerate(watts)]
    rows = replay(program_of(block("washing machine")), readings).result("runs")
    assert [(row["runs"], row["seconds"]) for row in rows] == [(1, 5 * 60), (2, 3 * 60)]


def test_a_button_that_bounces_and_the_best_scores():
    pressed = [(0, 0), (2, 1), (2.1, 0), (2.2, 1), (5, 0)]
    scores = [(0, 5), (600, 9), (1200, 7), (1800, 8), (4000, 1)]
    readings = [("pi-1", "button", value, START_S + at, {}) for at, value in pressed]
    readings += [("pi-1", "score", value, START_S + at, {}) for at, value in scores]
    found = replay(program_of(block("debounce")), readings)
    assert [row["value"] for row in found.result("steady")] == [0, 1, 0]
    best = [
        sorted((v for at, v in scores if now - 3600 < at <= now), reverse=True)[:3]
        for now, _ in scores
    ]
    assert [row["scores"] for row in found.result("listed")] == [
        " ".join(map(str, each)) for each in best
    ]


def test_doors_are_known_everywhere(fleet):
    made = fleet(program_of(block("shared sets")), size=2, seed=4)
    for at, room, value in (("0", "21", 1), ("1", "22", 1), ("0", "11", 1), ("0", "21", 0)):
        made.read(f"pi-{at}", "door", value, {"room": room})
    made.settle()
    for shared in (device.core.variables.shared() for device in made.world.devices.values()):
        assert sorted(shared["open_now"]) == ["11", "22"]
        assert shared["openings"] == 3
        assert shared["notices"] == {"two rooms upstairs were opened"}


def test_the_load_of_all_panels():
    given, could = (300, 450, 0), (500, 500, 800)
    readings = [(f"pi-{n}", "power", watts, START_S, {}) for n, watts in enumerate(given)]
    readings += [(f"pi-{n}", "limit", watts, START_S, {}) for n, watts in enumerate(could)]
    found = replay(program_of(block("ratio")), readings, faults="rough", seed=5)
    assert found.value("load").number == round(sum(given) / sum(could), 3)


def test_the_middle_of_the_means_of_devices():
    values = {"pi-0": [20.0] * 9, "pi-1": [22.0, 23.0], "pi-2": [30.0, 30.0, 30.3]}
    readings = [
        (device, "temperature", value, START_S + n, {})
        for device, own in values.items()
        for n, value in enumerate(own)
    ]
    found = replay(program_of(block("percentile of means")), readings, faults="rough", seed=6)
    assert isclose(found.value("middle").number, 22.5, rel_tol=0.01)


def test_an_alert_is_on_above_the_parameter():
    program = program_of(block("alert above"))
    for value, state in ((28.0, "off"), (28.1, "on")):
        readings = [("pi-0", "temperature", 20.0, START_S, {})]
        readings.append(("pi-1", "temperature", value, START_S, {}))
        assert {row["state"] for row in replay(program, readings).alerts} == {state}


def test_damp_rooms_are_counted():
    readings, truth = [], defaultdict(lambda: [0, 0])
    drawn = Random(8)
    for n in range(50):
        room, at = drawn.choice(["bath", "attic"]), START_S + 100 * n
        warm, damp = drawn.randrange(15, 26), drawn.randrange(50, 95)
        readings.append(("pi-1", "humidity", damp, at, {"room": room}))
        readings.append(("pi-1", "temperature", warm, at, {"room": room}))
        counted = truth[room, at // 3600 * 3600]
        counted[0] += 1
        counted[1] += warm > 20 and damp > 70
    found = replay(program_of(block("joined sensors")), readings, faults="rough", seed=9)
    rows = found.window("risk")
    readings_of, risky = (of(rows, part) for part in ("readings", "risky"))
    assert {at: [readings_of[at], risky[at]] for at in risky} == dict(truth)


def test_badges_count_once_over_all_doors():
    drawn = Random(10)
    seen = [(f"pi-{n % 3}", drawn.randrange(200), START_S + 10 * n) for n in range(300)]
    readings = [(device, "badge", number, at, {}) for device, number, at in seen]
    found = replay(program_of(block("different ones")), readings, faults="rough", seed=11)
    different = len({number for _, number, _ in seen})
    (row,) = found.window("badges")
    assert abs(row["distinct"] - different) <= ceil(0.05 * different)
    rows = []
    for device, number, at in seen:
        if not any(row[:2] == (device, number) and at - row[2] < 600 for row in rows):
            rows.append((device, number, at))
    new = [(row["device"], row["value"], row["time"].timestamp()) for row in found.result("new")]
    assert new == sorted(rows, key=lambda row: (row[0], row[2]))
