"""`lasp-edge check` of streams: what is no function is found, and a late reading has its price."""

import json
import math
import random
import time
from datetime import datetime

import pytest

from lasp_edge import Program, folds, scans
from lasp_edge.checking.determinism import risks, risks_of
from lasp_edge.checking.handlers import uncallable
from lasp_edge.checking.recordings import recording_of
from lasp_edge.checking.streams import tried_streams
from lasp_edge.checking.texts import texts_of
from lasp_edge.checking.ties import RecordFields, ties
from lasp_edge.checking.trial import Findings
from lasp_edge.checking.whole import all_tried
from lasp_edge.errors import Exit, NotFound, UsageError
from lasp_edge.testing import check_program
from lasp_edge.tool.command_line import main
from tests.lasp_edge.language.test_parting import plan_of
from tests.lasp_edge.support_programs import climate


def program_with(scan=None, function=None, key=None):
    program = Program("water")
    source = litres = program.event("litres", resolution="0.5")
    if function is not None:
        source = program.map(litres, function, "mapped")
    if scan is not None:
        source = program.scan("scanned", source=source, scan=scan, key=key, per_device=True)
    program.result(source, parts={"it": "1"})
    return program


class Counting(scans.Scan):
    """A scan that keeps something beside its state."""

    name, zero = "counting", 0

    def __init__(self):
        self.calls = 0

    def step(self, state, event):
        self.calls += 1
        return state, [self.calls]


class Mutating(scans.Scan):
    """A scan whose state is a list."""

    name, zero = "mutating", ()

    def step(self, state, event):
        return [*state, event.value], ()


def test_what_keeps_something_beside_its_state_is_found():
    (flaw,) = tried_streams(program_with(Counting()).plan()).wrong
    assert flaw.startswith("scan scanned: step from 0 at ")
    with pytest.raises(AssertionError, match="scan scanned: step from 0"):
        check_program(program_with(Counting()))
    seen = []
    found = tried_streams(program_with(function=lambda event: seen.append(0) or len(seen)).plan())
    assert "map mapped: its function gives something else the second time" in found.wrong[0]


def test_what_always_fails_is_wrong_and_what_fails_at_times_is_a_doubt():
    (wrong,) = tried_streams(program_with(Mutating()).plan()).wrong
    assert "scan scanned fails each time: ValueError: a plain value is needed" in wrong
    found = tried_streams(program_with(function=lambda event: 1 / event.value).plan())
    assert found.wrong == []
    (doubt,) = found.doubts
    assert "times: ZeroDivisionError" in doubt
    assert "for the event litres 0.0" in doubt


@pytest.mark.parametrize(
    ("scan", "cost"),
    [
        (scans.differences(), "2 steps and changes 2 results"),
        (scans.last(4), "4 steps and changes 4 results"),
        (scans.every(3, len), "500 steps and changes 334 results: all behind it"),
    ],
)
def test_a_late_reading_has_its_price(scan, cost):
    (line,) = tried_streams(program_with(scan).plan()).costs
    assert line == f"scan scanned: a late reading amid 1,000 takes {cost}"


def test_a_scan_over_the_fleet_has_a_replay_ratio_and_one_of_each_device_has_none():
    program = Program("water")
    litres = program.event("litres", resolution="0.5")
    used = program.scan("used", source=litres, scan=scans.differences(), per_device=True)
    program.scan("pairs", source=used, scan=scans.last(2))
    *costs, last = tried_streams(program.plan()).costs
    assert not [line for line in costs if "replay ratio" in line]
    assert last.startswith("scan pairs: replay ratio 1.")


def test_a_state_that_is_a_list_is_named_with_what_to_write():
    class Listed(scans.Scan):
        name, parts, zero = "listed", {"n": "1"}, [0]

        def step(self, state, event):
            state[0] += 1
            return state, [state[0]]

    (line, *_) = tried_streams(program_with(Listed()).plan()).wrong
    assert line.startswith("scan scanned: step from [")
    assert "a plain value is needed (a tuple in place of a list), not a list" in line


@pytest.mark.parametrize("zero", [frozenset(), (0, frozenset())])
def test_a_state_that_is_a_set_is_named_with_what_to_write(zero):
    class Seen(scans.Scan):
        name, parts = "seen", {"n": "1"}

        def step(self, state, event):
            seen = (state if zero == frozenset() else state[1]) | {event.value}
            return (seen if zero == frozenset() else (0, seen)), [len(seen)]

        def due(self, state):
            return None

    scan = Seen()
    scan.zero = zero
    lines = tried_streams(program_with(scan).plan()).wrong
    assert lines
    assert all("a sorted tuple in place of a set" in line for line in lines)


def test_a_timer_that_sets_itself_again_is_named_before_it_rings_for_ever():
    class Ringing(scans.Scan):
        name, parts, zero = "ringing", {"n": "1"}, (0, 0)

        def step(self, state, event):
            return (state[0] + 1, event.time_us), []

        def due(self, state):
            return state[1] + 60_000_000 if state[0] else None

        def ring(self, state, at_us):
            return state, [state[0]]

    (line,) = tried_streams(program_with(Ringing()).plan()).wrong
    assert "it rings without end; let due give None" in line


@pytest.mark.parametrize("in_a_second", [1, 1_000])
def test_a_timer_in_another_unit_than_microseconds_is_named(in_a_second):
    class Silent(scans.Scan):
        name, parts, zero = "silent", {"at": "1"}, None

        def step(self, state, event):
            return event.time_us * in_a_second // 10**6 + 60 * in_a_second, []

        def due(self, state):
            return state

        def ring(self, state, time_us):
            return None, [1]

    program = Program("pumps")
    program.result(program.scan("s", source=program.event("x", resolution="1"), scan=Silent))
    (line,) = tried_streams(program.plan()).wrong
    assert line.startswith("scan s: due gives 1700000060")
    assert "a time in microseconds since 1970 is needed, such as event.time_us + 60 * 1_00" in line


def test_tags_that_are_asked_for_are_named():
    found = tried_streams(program_with(scans.last(2), key=lambda e: e.tags["tap"]).plan())
    assert found.tags == {"litres": {"tap": ["scan scanned"]}}
    assert found.wrong == found.doubts == []


def test_a_tag_is_asked_of_the_events_that_come_to_who_asks():
    program = program_with(scans.last(2), key=lambda e: e.tags["tap"])
    program.result(program.filter(program.event("door"), lambda e: e.value, "open"))
    assert tried_streams(program.plan()).tags == {"door": {}, "litres": {"tap": ["scan scanned"]}}


def logarithm(value):
    return math.log(value)


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda event: math.log(event.value), ["math.log"]),
        (lambda event: logarithm(event.value), ["math.log"]),
        (lambda event: math.sqrt(event.value) + math.floor(event.value), []),
        (lambda event: time.time(), ["time.time"]),  # noqa: TID251 - what must be found
        (lambda event: random.random(), ["random"]),  # noqa: TID251 - as above
        (lambda event: datetime.now(), ["datetime.now"]),  # noqa: TID251, DTZ005 - as above
        (lambda event: [hash(each) for each in "ab"], ["hash"]),
        (lambda event: abs(event.value), []),
        (lambda event: event.value**2, ["**"]),
        (lambda event: event.value * event.value * 2**31, []),
    ],
)
def test_what_machines_do_differently_is_named(function, named):
    assert [risk.partition(":")[0] for risk in risks(function)] == named


def test_the_methods_and_functions_of_a_scan_are_looked_at():
    class Logarithm(scans.Scan):
        name = "logarithm"

        def step(self, state, event):
            return state, [math.exp(-event.value)]

    for scan in (Logarithm(), scans.running(lambda state, event: math.exp(-event.value), 0.0)):
        (doubt,) = risks_of(program_with(scan).plan())
        assert doubt.startswith("scan scanned names math.exp: it is rounded differently")


def test_functions_of_streams_are_called_with_what_agents_give():
    program = program_with(function=lambda event, more: 1)
    (line,) = uncallable(program.plan())
    assert line.startswith("function of mapped: <lambda>(event, more) is called as (event)")


@pytest.mark.parametrize("others", ["a", "z", "ay", "az", "ayz"])
def test_each_of_several_events_has_the_values_that_functions_name(others):
    program = Program("wind")
    speed = program.event("speed", resolution="0.1", least=0, most=75)
    for name in others:
        program.result(program.map(program.event(name), abs, f"of_{name}", resolution="1"))
    storm = program.filter(speed, lambda event: event.value > 25, "storm")
    program.result(program.scan("storms", source=storm, scan=scans.changes(), per_device=True))
    found = Findings()
    tried_streams(program.plan(), {}, found)
    assert found.doubts == []


@pytest.mark.parametrize(
    ("key", "is_apart"),
    [
        (lambda event: event.tags["room"] if event.name == "warm" else "", True),
        (lambda event: event.tags["room"] + event.name, True),
        (lambda event: event.tags["room"], False),
    ],
    ids=["one has none", "each its own", "one for both"],
)
def test_two_events_that_no_key_has_together_are_named(key, is_apart):
    found = tried_streams(climate(key).plan())
    assert [line.partition(",")[0] for line in found.doubts] == [
        "scan both: no key has both moist and warm among made-up readings"
    ] * is_apart


def test_a_recording_of_coarse_times_is_named(tmp_path):
    plan, path = program_with(scans.last(2)).plan(), tmp_path / "meter.jsonl"
    records = [{"ts": n // 2, "litres": n, "device": f"pi-{n % 2}"} for n in range(100)]
    path.write_text("\n".join(map(json.dumps, records)))
    assert ties(plan, path, RecordFields()) == []
    (line,) = ties(plan, path, RecordFields(device="room"))
    assert line.startswith("event litres: 50 of 100 readings have the time of another one")
    table = tmp_path / "meter.csv"
    table.write_text("ts,litres\n1,5\n1,6\n")
    assert len(ties(plan, table, RecordFields())) == 1
    with pytest.raises(
        UsageError, match='no record has the time "at"; name its field by --time: ts'
    ):
        ties(plan, path, RecordFields("at"))
    table.write_text("ts,sensor,litre\n1,a,5\n1,a,6\n")
    by_event = (
        "no record has litres; name the field of an event by --event litres=FIELD: ts, sensor"
    )
    with pytest.raises(UsageError, match=by_event):
        ties(plan, table, RecordFields())
    assert len(ties(plan, table, RecordFields(events={"litres": "litre"}))) == 1
    with pytest.raises(UsageError, match="no record has litter; name the field of an event by"):
        ties(plan, table, RecordFields(events={"litres": "litter"}))
    with pytest.raises(NotFound, match="cannot be read"):
        ties(plan, tmp_path / "away.jsonl", RecordFields())


def test_a_reading_that_a_recording_takes_back_is_no_tie_of_its_correction(tmp_path):
    plan, path = program_with(scans.last(2)).plan(), tmp_path / "meter.jsonl"
    records = [{"ts": n, "litres": n} for n in (1, 2, 3)]
    records += [{"ts": 2, "litres": 2, "wrong": True}, {"ts": 2, "litres": 5, "wrong": False}]
    path.write_text("\n".join(map(json.dumps, records)))
    assert len(ties(plan, path, RecordFields())) == 1
    fields = RecordFields(retract="wrong")
    assert ties(plan, path, fields) == []
    steps = [plan.events["litres"].resolution.quantise(litres) for litres in (1, 3, 5)]
    assert [each.value for each in recording_of(plan, path, fields).items["litres"][""]] == steps


def test_a_field_of_the_device_that_no_record_has_is_named(tmp_path, capsys):
    path = tmp_path / "meter.jsonl"
    path.write_text('{"ts": 1, "litres": 1, "meter": "a"}\n')
    command = ["check", "lasp_edge.examples.machines:program", "--plan", "--recording", str(path)]
    assert main([*command, "--device-field", "device"]) == Exit.USAGE
    assert 'no record has the device field "device"; there are ts, litres, mete' in (
        capsys.readouterr().err
    )


def test_the_command_prints_costs_and_warnings(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "streamed_program.py").write_text(
        "import math\nfrom lasp_edge import Program, scans\n"
        "program = Program('p')\nx = program.event('x')\n"
        "program.scan('s', source=x, scan=scans.differences(), per_device=True)\n"
        "program.map(x, lambda event: math.sin(event.value), 'm')\n"
    )
    (tmp_path / "x.jsonl").write_text('{"ts": 1, "v": 2}\n{"ts": 1, "v": 3}\n')
    words = ["check", "streamed_program:program", "--recording", "x.jsonl", "--strict", "--event"]
    code = main([*words, "x=v"])
    printed = capsys.readouterr().out
    assert code == 1
    assert "COST  scan s: a late reading amid 1,000 takes 2 steps" in printed
    assert "WARNING  map m names math.sin: it is rounded differently" in printed
    assert "WARNING  event x: 1 of 2 readings have the time of another one" in printed
    for mistake, why in (("y=v", "--event y: the program has only"), ("x", "NAME=FIELD is needed")):
        assert main([*words, mistake, "--plan"]) == Exit.USAGE
        assert why in capsys.readouterr().err


def test_a_function_whose_text_changes_is_told_from_another_version():
    def texts(function, version=1):
        program = Program("water")
        litres = program.event("litres", resolution="0.5")
        program.map(litres, function, "mapped", version=version)
        return [(text.name, text.version, text.digest) for text in texts_of(program.plan())]

    ((name, version, digest),) = texts(lambda event: event.value + 1)
    assert (name, version) == ("map mapped, function", "1")
    ((_, again, other),) = texts(lambda event: event.value + 2, version=2)
    assert again == "2"
    assert other != digest


def test_a_scan_with_local_events_is_tried_where_it_is_whole():
    found = tried_streams(plan_of("a"))
    assert not found.wrong


def test_a_map_that_gives_none_is_told_to_leave_events_out_before_it():
    program = Program("warm")
    warm = program.event("warm", resolution="0.1")
    above = program.map(warm, lambda e: e.value if e.value > 10 else None, "m", resolution="0.1")
    program.window("w", source=above, fold=folds.mean(), size_s=60)
    found = all_tried(program.plan())
    assert any("by program.filter before this (" in line for line in found.wrong)


def test_a_rate_that_is_too_steep_is_named_once_with_the_range_that_ends_it():
    program = Program("leaks")
    meter = program.event("meter", resolution="0.1", unit="l", least=0)
    rate = scans.rate(per_s=3_600, resolution="0.001")
    program.result(program.scan("flow", source=meter, scan=rate, per_device=True))
    found = all_tried(program.plan())
    assert found.wrong == []
    (line,) = found.doubts
    assert line.startswith("scan flow: a reading that is far from the one a second before")
    assert line.endswith('say so by event("meter", .., least=, most=)')


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda event: (event.device, 1), 1),
        (lambda event: [(event.device, 1)], 0),
        (lambda event: (1, 2), 0),
    ],
    ids=("a pair", "a list of it", "numbers"),
)
def test_a_tuple_that_is_taken_for_several_values_is_named(function, found):
    program = Program("water")
    litres = program.event("litres", resolution="0.5")
    program.result(program.flat_map(litres, function, "pairs"), parts={"a": "text", "b": "1"})
    doubts = tried_streams(program.plan()).doubts
    assert len([each for each in doubts if "for one pair, write [(" in each]) == found


def test_a_state_that_is_no_plain_value_is_told_with_the_file_and_line_of_who_gave_it():
    program = Program("rooms")
    warm = program.event("warm", resolution="0.1")
    listed = scans.running(lambda state, event: [*(state or ()), event.value], zero=None)
    program.scan("all", source=warm, scan=listed, per_device=True)
    (line,) = tried_streams(program.plan()).wrong
    assert "a plain value is needed (a tuple in place of a list), not a list (" in line
    assert "test_streams.py:" in line
    assert "plain.py" not in line


def test_a_scan_of_ours_that_goes_on_for_long_after_the_last_reading_is_no_fault():
    program = Program("rooms")
    warm = program.event("warm", resolution="0.1")
    mean = scans.time_weighted_mean(every_s=60, hold_s=86_400)
    program.result(program.scan("mean", source=warm, scan=mean, per_device=True))
    assert tried_streams(program.plan()).wrong == []
