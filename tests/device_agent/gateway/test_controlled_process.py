"""Operators change parameters of a real fleet: a device is away then, and its gateway is killed."""

import json
from contextlib import suppress

import pytest

from crdts import ControlLog
from device_agent.console.parameters.change import ParameterChange
from device_agent.gateway.table import found
from lasp_edge.errors import Exit, NotFound
from lasp_edge.tool.printing import RowsWanted
from lasp_edge.tool.times import shown_time
from tests.brokers import until_true
from tests.device_agent.gateway.test_process import Gateway, is_final, truth_of
from tests.device_agent.support_stage import NAME, START_S, Stage, asked, lasp_edge

pytestmark = [pytest.mark.slow, pytest.mark.broker]
READINGS = 240
EARLY = ("above", "", "22", 150, 200)
LATE = ("offset", "b", "-2.5", 61, 163)
PROGRAM = """
from lasp_edge import Program, folds, scans

program = Program("{name}")
temperature = program.event("temperature", resolution="0.01")
level = program.parameter("level", "20", resolution="0.5")
switched = program.scan(
    "switched",
    source=temperature,
    scan=lambda at: scans.hysteresis(above=at[level] + 2, below=at[level]),
    per_device=True,
    uses=(level,),
)
program.result(switched)
above = program.parameter("above", "0")
offset = program.parameter("offset", "0", resolution="0.5")
for name, size_s, slide_s in (("warm", 60, 10), ("hot", 30, 30)):
    program.window(
        name,
        source=temperature,
        fold=folds.mean(),
        size_s=size_s,
        slide_s=slide_s,
        uses=(above, offset),
        value=lambda event, at: event.value + at[offset],
        where=lambda event, at: event.value > at[above] or event.time_us % 7 == 0,
    )
"""


@pytest.fixture
def stage(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, PROGRAM)
    stage.lander.link.stop(0.0)
    yield stage
    stage.close()


def time_of(seconds):
    return shown_time((START_S + seconds) * 1_000_000).replace(" ", "T") + "Z"


def say(stage, *words):
    """Type `lasp-edge set`; return what it prints."""
    whole = ("set", f"{NAME}:program", *words, "--broker", stage.broker.url, "--listen", 1)
    whole += ("--force",)  # there may be no device yet
    printed = lasp_edge(*whole, cwd=stage.directory)
    assert printed.returncode in {Exit.FINE, Exit.NOT_CONFIRMED}, printed.stderr
    return printed.stdout


def rows_of(gateway, window):
    """Return the rows of a window while the gateway runs; none before it has a file."""
    with suppress(NotFound):
        columns, rows, _ = found(str(gateway.data), RowsWanted(window, *[None] * 4, False))  # noqa: FBT003
        return [dict(zip(columns, row, strict=True)) for row in rows]
    return []


def switched_on(device):
    """Return (seconds, 1 or 0) of each row of the scan that a device has."""
    words = ("--data-dir", device, "--program", f"{NAME}:program", "--json")
    rows = map(json.loads, asked("results", "switched", *words).splitlines())
    return [(row["time_us"] // 1_000_000 - START_S, row["value"]) for row in rows]


def truly_switched_on(readings, levels):
    """Return the same in plain Python: levels are (from second, to second, level), else 20."""
    found, state = [], None
    for reading in readings:
        second = reading.time_us // 1_000_000 - START_S
        (level,) = [each for first, end, each in levels if first <= second < end] or [20]
        new = 1 if reading.value > level + 2 else 0 if reading.value < level else state
        if new != state:
            found.append((second, new))
        state = new
    return found


def log_of(stage, *given):
    log, parameters = ControlLog(), stage.program.parameters
    for name, scope, value, *span_s in given:
        from_us, until_us = ((START_S + each) * 1_000_000 for each in span_s)
        change = ParameterChange(parameters[name], scope, value, from_us, until_us, "ann")
        log = log | change.delta(log)
    return log


@pytest.fixture
def told_early(stage):
    """A gateway and two devices that have heard from the start what holds from 150 s to 200 s."""
    printed = say(stage, "above=22", "--from", time_of(150), "--until", time_of(200))
    assert printed.endswith("unless one of them knows a later entry.\n")
    recorded = [stage.record(name, READINGS) for name in ("a", "b")]
    gateway = Gateway(stage)
    try:
        agents = [stage.replay(name) for name in ("a", "b")]
        truth = truth_of(recorded, stage, "warm", log_of(stage, EARLY))
        until_true(lambda: is_final(rows_of(gateway, "warm"), truth))
        yield recorded, agents[1], gateway
    finally:
        gateway.kill()


def test_each_window_is_what_the_readings_give_under_what_was_said(stage, told_early):
    recorded, away, gateway = told_early
    away.process.kill()
    away.process.wait()
    words = ("--from", time_of(61), "--until", time_of(163))
    assert switched_on(stage.directory / "a") == truly_switched_on(recorded[0], [])
    say(stage, "level=24", *words)  # "a" runs: it steps its readings again from there on
    printed = say(stage, "offset=-2.5", "--device", "b", *words)
    assert "No beat arrived, so since when they keep readings is not known: b.\n" in printed
    assert "Known on 1 of 2 devices; not yet: b (away).\n" in printed
    gateway.kill()
    gateway.start()
    stage.replay("b")
    log = log_of(stage, EARLY, LATE)
    for name in ("warm", "hot"):
        truth = truth_of(recorded, stage, name, log)
        until_true(lambda name=name, truth=truth: is_final(rows_of(gateway, name), truth))
    for device, readings in zip("ab", recorded, strict=True):
        truth = truly_switched_on(readings, [(61, 163, 24)])
        assert truth != truly_switched_on(readings, [])
        until_true(lambda at=device, truth=truth: switched_on(stage.directory / at) == truth)
    revised = [row for row in rows_of(gateway, "warm") if row["status"] == "revised"]
    starts_s = {row["start_us"] // 1_000_000 - START_S for row in revised}
    # They hold a time from 61 s to 163 s, so they begin from 10 s to 160 s.
    assert set(range(10, 161, 10)) <= starts_s
