"""A recording is replayed as an agent reads it: what an agent refuses is no reading here either."""

import json

from lasp_edge import Program, scans
from lasp_edge.testing import replay

START_S = 1_764_028_800


def water():
    program = Program("water")
    litres = program.event("litres", resolution="0.1")
    program.result(program.scan("used", source=litres, scan=scans.differences(), per_device=True))
    return program


def written(file, lines):
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return file


def test_a_file_has_no_times_that_an_agent_refuses(tmp_path):
    times = (5, START_S, START_S + 1_000_000_000)
    file = written(tmp_path / "litres.jsonl", [{"ts": at, "litres": 3} for at in times])
    found = replay(water(), file, time="ts")
    (why,) = found.failures
    assert why == (
        "refused: a time of 1970: is it an uptime, or is --time-unit missing or wrong? (lines: 1)"
    )
    assert len(found.result("used")) == 1
    assert replay(water(), [("pi-1", "litres", 3, 5)]).failures == []


def test_a_retraction_of_a_reading_that_never_came_is_named(tmp_path):
    lines = [{"ts": START_S, "litres": value} for value in (3, 4)]
    lines += [{"ts": START_S, "litres": value, "wrong": True} for value in (3.04, 5)]
    lines += [{"ts": START_S + 1, "litres": 4, "wrong": True}]
    file = written(tmp_path / "litres.jsonl", lines)
    found = replay(water(), file, time="ts", retract="wrong")
    (why,) = found.failures
    assert why.startswith("litres: a retraction takes back a reading that never came: none has its")
    assert why.endswith("(readings: 2)")
