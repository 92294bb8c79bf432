"""A test of a user's: readings in, and rows, values and alerts in the user's units out."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, given, settings

from crdts import BoundedLWWSet
from lasp_edge import Program, folds, scans
from lasp_edge.errors import EnvironmentLacks
from lasp_edge.examples.greenhouse import program as greenhouse
from lasp_edge.testing import check_program, replay
from lasp_edge.testing.strategies import readings

START_S = 1_764_028_800
METER = [(0, 100), (60, 130), (120, 310), (180, 180), (240, 200)]


def home() -> Program:
    program = Program("home")
    warm = program.event("warm", resolution="0.5", unit="°C")
    moist = program.event("moist", resolution="1", unit="%")
    last = program.declare_dynamic(BoundedLWWSet(bound=2), "last", measures=warm)
    program.collect(warm, into=last)
    fleet = program.fold_dynamic(program.fold(last, folds.mean(), "here"), "fleet")
    program.alert("hot", fleet, above=25)
    room = lambda event: event.tags["room"]  # noqa: E731 - as in the docs
    program.window("by_room", source=warm, fold=folds.mean(), size_s=60, key=room)
    both = program.scan(
        "both", source=[warm, moist], scan=scans.as_of(warm, moist, within_s=60), per_device=True
    )
    program.result(both, parts={"warm": "0.5", "moist": "1"})
    sessions = scans.sessions(gap_s=3600, fold=folds.count())
    program.result(program.scan("stays", source=warm, scan=sessions, per_device=True))
    return program


def test_all_that_a_program_makes_is_there_in_its_units():
    found = replay(
        home(),
        [
            ("a", "moist", 50, START_S, {"room": "attic"}),
            ("a", "warm", 20.2, START_S + 1, {"room": "attic"}),
            ("a", "warm", 22, datetime.fromtimestamp(START_S + 2, UTC), {"room": "attic"}),
            ("b", "warm", 34.0, START_S + 3, {"room": "cellar"}),
            ("c", "moist", 60, START_S + 3, {"room": "cellar"}),
        ],
    )
    assert [(row["key"], row["mean"], row["start"]) for row in found.window("by_room")] == [
        ("attic", 21.0, datetime.fromtimestamp(START_S, UTC)),
        ("cellar", 34.0, datetime.fromtimestamp(START_S, UTC)),
    ]
    assert found.value("fleet").number == pytest.approx((20 + 22 + 34) / 3)
    assert [(row["device"], row["state"]) for row in found.alerts] == [
        (device, "on") for device in "abc"
    ]
    assert [(row["warm"], row["moist"]) for row in found.result("both")] == [(20.0, 50), (22.0, 50)]
    assert found.value("fleet").devices == ("a", "b"), "c has nothing warm"
    assert found.value("fleet").settled, "all devices hold it"
    stays = [(row["start"], row["end"], row["count"]) for row in found.result("stays")]
    at = [datetime.fromtimestamp(START_S + n, UTC) for n in range(4)]
    assert stays == [(at[1], at[2], 2), (at[3], at[3], 1)], "time alone ends a session"
    assert found.failures == []


def test_rows_are_a_table_of_pandas_where_that_is_installed():
    rows = replay(greenhouse, [("pi-1", "temperature", 20, START_S, {"room": "a"})])
    if find_spec("pandas") is None:
        with pytest.raises(EnvironmentLacks, match="pip install pandas"):
            rows.window("temperature_by_room").to_pandas()
    else:
        assert set(rows.window("temperature_by_room").to_pandas()["mean"]) == {20.0}


def test_under_faults_it_is_the_same():
    given = [("pi-1", "temperature", 20 + n, START_S + n, {"room": "a"}) for n in range(60)]
    calm = replay(greenhouse, given)
    for faults in ("rough", ["kill=300", "loss=0.3"]):
        rough = replay(greenhouse, given, faults=faults, seed=7)
        assert [row["mean"] for row in rough.window("temperature_by_room")] == [
            row["mean"] for row in calm.window("temperature_by_room")
        ]


def meter() -> Program:
    program = Program("meter")
    litres = program.event("litres", resolution="1")
    differences = scans.differences(reset=True)
    program.result(program.scan("used", source=litres, scan=differences, per_device=True))
    return program


def test_a_recording_is_read_as_an_agent_reads_it(tmp_path):
    rows = [{"ts": START_S + at, "l": value, "of": "pi-2"} for at, value in METER]
    rows += [rows[2] | {"wrong": True}, rows[2] | {"l": 160}]
    path = tmp_path / "meter.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    options = {"time": "ts", "device_field": "of", "event": {"litres": "l"}, "retract": "wrong"}
    found = replay(meter(), path, **options)
    assert [(row["device"], row["difference"]) for row in found.result("used")] == [
        ("pi-2", difference) for difference in (30, 30, 20, 20)
    ]


def controlled() -> Program:
    program = Program("controlled")
    warm = program.event("warm", resolution="0.1", unit="°C")
    limit = program.parameter("limit", "28", resolution="0.1")
    offset = program.parameter("offset", "0", resolution="0.1")
    mode = program.parameter("mode", "day", choices=("day", "night"))
    span = program.parameter("span_s", "60")
    program.window(
        "hot",
        source=warm,
        fold=folds.count(),
        size_s=span,
        uses=(limit, offset),
        value=lambda event, at: event.value + at[offset],
        where=lambda event, at: event.value > at[limit],
    )
    runs = program.scan(
        "runs",
        source=warm,
        scan=lambda at: scans.sessions(gap_s=20 if at[mode] == "day" else 5, fold=folds.count()),
        per_device=True,
        uses=(mode,),
    )
    program.result(runs)
    return program


RISING = [(of, "warm", 20 + n, START_S + 10 * n) for n in range(12) for of in ("attic", "cellar")]


def hot_minutes(limit_at, offset_of):
    """Return start -> how many readings count; each has the values of its own time and device."""
    found = {}
    for device, _, value, at in RISING:
        if value + offset_of(device) > limit_at(at):
            found[at // 60 * 60] = found.get(at // 60 * 60, 0) + 1
    return found


@pytest.mark.parametrize("faults", ["", "rough"])
def test_parameters_hold_from_the_beginning_or_from_a_time_on_for_all_or_for_one(faults):
    noon = START_S + 60
    parameters = {
        "limit": {noon: "25.5", datetime.fromtimestamp(START_S + 90, UTC): 30},
        ("offset", "cellar"): -3,
        "mode": {noon: "night"},
    }
    found = replay(controlled(), RISING, parameters=parameters, faults=faults or ())
    limit_at = lambda at: 28 if at < noon else 25.5 if at < START_S + 90 else 30  # noqa: E731
    expected = hot_minutes(limit_at, {"cellar": -3, "attic": 0}.get)
    assert expected != hot_minutes(limit_at, lambda _device: 0)
    assert {row["start"].timestamp(): row["count"] for row in found.window("hot")} == expected
    # Ten seconds apart: one run by day, and at night each reading is a run of its own. The last of
    # the day waits by day, and by night it is over.
    counts = [row["count"] for row in found.result("runs") if row["device"] == "attic"]
    assert counts == [6, 1, 1, 1, 1, 1, 1]


def test_a_size_is_that_of_the_fleet():
    parameters = {"span_s": 120, "limit": 0}
    rows = replay(controlled(), RISING, parameters=parameters).window("hot")
    assert [(row["count"], (row["end"] - row["start"]).seconds) for row in rows] == [(24, 120)]


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"limt": 3}, "has no parameter 'limt'; did you mean \"limit\"\\?"),
        ({"limit": "warm"}, "'limit': a number in steps of 0.1 is needed, not 'warm'"),
        ({"limit": True}, "'limit': a number or a text is needed, not True"),
        ({"limit": [30]}, r"'limit': a number or a text is needed, not \[30\]"),
        ({"limit": {"noon": 30}}, "'limit': a datetime, or seconds since the epoch, is needed"),
        ({"limit": {datetime(2025, 1, 1): 30}}, "'limit': a datetime with a time zone is needed"),  # noqa: DTZ001
        ({"limit": {1e30: 30}}, "'limit': a time in seconds since the epoch is needed"),
        ({"mode": "dusk"}, "'mode': one of day, night is needed, not 'dusk'"),
        ({("span_s", "attic"): 30}, "'span_s' is one for the whole fleet"),
        ({"span_s": 0}, "parameters: window 'hot': "),
        ({7: 30}, r"a name, or \(name, device\), is needed, not 7"),
        ([("limit", 30)], 'parameters={"alarm_above": "30"}, or'),
    ],
)
def test_a_parameter_that_cannot_be_so_is_refused_in_one_line(parameters, text):
    with pytest.raises(ValueError, match=text) as refused:
        replay(controlled(), RISING, parameters=parameters)
    assert "\n" not in str(refused.value)


def test_what_a_program_does_not_have_is_named():
    found = replay(greenhouse, [("pi-1", "temperature", 20, START_S, {"room": "a"})])
    with pytest.raises(KeyError, match="there is no window 'w'; there are temperature_by_room"):
        found.window("w")


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=readings(greenhouse))
def test_drawn_readings_are_plausible_and_have_their_tags(drawn):
    assert replay(greenhouse, drawn).failures == []


def keyed_by_number() -> Program:
    program = Program("numbered")
    warm = program.event("warm", resolution="0.5", least=-20, most=60)
    program.window(
        "by_floor", source=warm, fold=folds.max(), size_s=60, key=lambda e: (int(e.tags["floor"]),)
    )
    runs = program.scan("runs", source=warm, scan=scans.changes(), key=lambda e: e.tags["wing"])
    words = program.map(runs, lambda e: f"warm: {e.value} " if e.value > 0 else "", "words")
    program.result(words, parts={"words": "text"})
    return program


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=readings(keyed_by_number()))
def test_drawn_tags_are_what_the_functions_that_ask_for_them_can_read(drawn):
    assert replay(keyed_by_number(), drawn).failures == []


def test_a_key_that_makes_a_number_of_a_tag_is_no_failure():
    check_program(keyed_by_number())


def test_pytest_has_the_fixtures(pytester_like):
    found = pytester_like(
        "from lasp_edge.examples.greenhouse import program\n"
        "def test_one(replay, fleet):\n"
        "    made = fleet(program, size=1)\n"
        "    made.read('pi-0', 'temperature', 20, {'room': 'a'})\n"
        "    made.settle()\n"
        "    given = [('pi-1', 'temperature', 21, 1_764_028_800, {'room': 'a'})]\n"
        "    assert replay(program, given).value('global_average').number == 21\n"
    )
    assert "1 passed" in found


@pytest.fixture
def pytester_like(tmp_path):
    def run(text):
        (tmp_path / "test_users.py").write_text(text)
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
        return subprocess.run(
            words, check=False, capture_output=True, text=True, cwd=tmp_path
        ).stdout

    return run


def test_alerts_on_windows_and_results_are_of_the_newest_final_rows():
    program = Program("rows")
    warm = program.event("warm", resolution="0.1")
    limit = program.parameter("limit", "25", resolution="0.1")
    minute = program.window(
        "minute", source=warm, fold=folds.mean(), size_s=60, key=lambda e: e.tags["room"]
    )
    program.alert("hot", minute, above=limit, hysteresis=1)
    steps = program.scan("steps", source=warm, scan=scans.differences(), per_device=True)
    program.result(steps)
    program.alert("jump", "steps", above=5)
    visits = program.scan(
        "visits", source=warm, scan=scans.sessions(gap_s=90), key=lambda e: e.tags["room"]
    )
    program.result(visits)
    program.alert("long", visits, part="count", above=3)
    readings = [
        (device, "warm", value, START_S + 60 * minute, {"room": f"of {device}"})
        for device, values in (("a", (20, 26, 24.5, 30)), ("b", (20, 26, 24.5, 23)))
        for minute, value in enumerate(values)
    ]
    readings.append(("b", "warm", 23, START_S + 1_000, {"room": "of b"}))
    for faults in ((), "rough"):
        found = replay(program, readings, faults=faults)
        states = {(row["alert"], row["device"], row["key"]): row["state"] for row in found.alerts}
        assert states == {
            ("hot", "", "of a"): "on",
            ("hot", "", "of b"): "off",
            ("jump", "a", ""): "on",
            ("jump", "b", ""): "off",
            ("long", "", "of a"): "on",
            ("long", "", "of b"): "off",
        }
        assert "6 of 6 alerts are what the oracle says" in found.compared


@pytest.mark.parametrize("faults", ["", "rough"])
def test_what_a_scan_of_the_fleet_raises_is_a_failure(faults):
    class Odd(scans.Scan):
        name, parts, zero = "odd", {"n": "1"}, 0

        def step(self, state, event):
            return state + 1, [1 // (round(event.value) - 3)]

    program = Program("odd")
    door = program.event("door", resolution="1")
    house = lambda event: event.tags["house"]  # noqa: E731 - as in the docs
    program.result(program.scan("odd", source=door, key=house, scan=Odd))
    oak = {"house": "oak"}
    given = [
        ("a", "door", 1, START_S, oak),
        ("b", "door", 3, START_S + 1, oak),
        ("b", "door", 4, START_S + 2),
    ]
    found = replay(program, given, faults=faults or ())
    assert len(found.result("odd")) == 1
    missing, zero = found.failures
    assert missing.startswith(
        "failed: odd: KeyError: 'house': door has no such tag; use --with-tag house=TEXT or "
        "tags.get('house', '') ("
    )
    assert zero.startswith("failed: odd: ZeroDivisionError: ")


def test_lines_of_a_file_that_give_no_reading_are_named(tmp_path):
    head, zoned, naive = "ts;device;warm", "2025-11-25T00:00:01Z;a;3", "2025-11-25T00:00:06;a;4"
    file = tmp_path / "warm.csv"
    file.write_text(f"{head}\n{zoned}\n{naive}")
    options = {"time": "ts", "device_field": "device"}
    found = replay(controlled(), file, **options)
    reason = "refused: time without a zone: add --time-zone, such as Europe/Berlin or UTC"
    assert found.failures == [f"{reason} (lines: 1)"]
    assert replay(controlled(), file, time_zone="UTC", **options).failures == []
    file.write_text(f"{head}\n{naive}")
    with pytest.raises(ValueError, match="no line gave a reading: refused: time without a zone"):
        replay(controlled(), file, **options)
