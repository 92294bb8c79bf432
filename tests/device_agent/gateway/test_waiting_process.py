"""A gateway that waits for devices, at a real broker: one device is cut off shorter, then longer.

The relay between that device and the broker is cut as a network is. Readings are the machine's own.
"""

import subprocess
import sys
import time

import pytest

from device_agent.gateway import table
from lasp_edge.errors import NotFound
from lasp_edge.tool.printing import RowsWanted
from simulations.processes.broker import PrivateBroker
from simulations.processes.relay import Relay
from tests.brokers import PATIENCE_S, broker_program, until_true
from tests.device_agent.support_stage import MAIN, asked
from tests.support_clock import FakedClock

pytestmark = [pytest.mark.slow, pytest.mark.broker]
PROGRAM = """
from lasp_edge import Program, folds

program = Program("waiting")
load = program.event("memory", resolution="0.01")
program.window("load", source=load, fold=folds.count(), size_s=2)
"""
WAIT_S = 8
"""X: more than a link takes to come back after a second, unless the machine is busy."""
TRIES = 20
DEAD_S = 20
"""More than an agent is silent on a busy machine."""


@pytest.fixture
def site(tmp_path):
    (tmp_path / "waiting.py").write_text(PROGRAM)
    broker = PrivateBroker(tmp_path / "broker", broker_program()).start()
    wire, started = Relay(broker.port), []

    def start(*words):
        line = [sys.executable, "-c", MAIN, words[0], "waiting:program", *words[1:]]
        started.append(subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.PIPE))
        return started[-1]

    yield tmp_path, broker, wire, start
    for process in started:
        process.terminate()
    for process in started:
        process.communicate(timeout=PATIENCE_S)
    wire.close()
    broker.stop()


def test_an_outage_shorter_than_x_shows_nothing_tentative_and_a_longer_one_who_is_missing(site):
    directory, broker, wire, start = site
    gateway = start(
        *("gateway", "--broker", broker.url, "--data-dir", "gateway", "--commit-every", "0.2"),
        *("--roster", "near,far", "--tentative-after", str(WAIT_S)),
    )
    assert f"as tentative after {WAIT_S} s".encode() in gateway.stdout.readline()
    for name, port in (("near", broker.port), ("far", wire.port)):
        source = ("--source", "host", "--every", "0.5", "--interval", "0.4", "--lateness", "0.5")
        url = f"mqtt://127.0.0.1:{port}"
        start("agent", "--device", name, "--broker", url, "--data-dir", name, *source)
    since_us = after_a_final_row(directory, 0)
    for _ in range(TRIES):
        began_s = time.perf_counter()
        wire.cut()
        time.sleep(1)
        wire.restore()
        now_us = time.time_ns() // 1000  # noqa: TID251 - the agents' clock is the machine's
        before_us, since_us = since_us, after_a_final_row(directory, now_us)
        if time.perf_counter() - began_s < WAIT_S:
            assert {row["status"] for row in rows(directory, before_us)} == {"final"}
            break
    else:
        pytest.fail(f"no outage of a second was over within {WAIT_S} s")
    wire.cut()
    until_true(lambda: any(row["status"] == "tentative" for row in rows(directory, since_us)))
    wire.restore()
    waited = [row for row in revisions(directory, since_us) if row["status"] == "tentative"]
    assert {row["excluded"] for row in waited} == {"far"}
    until_true(lambda: all_final(directory, since_us, {row["start_us"] for row in waited}))


def test_a_gateway_that_starts_in_1970_waits_for_all_once_its_clock_is_set(site, monkeypatch):
    directory, broker, _, start = site
    clock = FakedClock(directory)
    clock.is_off_by("-20000d")
    for name in ("a", "b"):
        source = ("--source", "host", "--every", "0.5", "--interval", "0.4")
        start("agent", "--device", name, "--broker", broker.url, "--data-dir", name, *source)
    with monkeypatch.context() as environment:
        for name, value in clock.environment.items():
            environment.setenv(name, value)
        options = ("--data-dir", "gateway", "--commit-every", "0.2", "--dead-after", str(DEAD_S))
        start("gateway", "--broker", broker.url, *options)
    refused = "far ahead of its clock"
    until_true(lambda: refused in asked("status", "--data-dir", directory / "a"))
    wrong = "THIS MACHINE'S CLOCK is 480,000.0 hours behind those of 2 of 2 devices"
    watched = ("watch", "--fleet", "waiting", "--broker", broker.url, "--once")
    until_true(lambda: wrong in asked(*watched))
    began_s = time.perf_counter()
    clock.is_off_by("+0")
    until_true(lambda: any(row["status"] == "final" for row in rows(directory, 0)))
    assert time.perf_counter() - began_s >= DEAD_S
    final = [row for row in rows(directory, 0) if row["status"] == "final"]
    assert {row["devices_in"] for row in final[1:]} <= {2}
    until_true(lambda: wrong not in asked(*watched))


def after_a_final_row(directory, start_us):
    """Wait for a row of both devices that is final and starts then or later; return its end."""

    def ends():
        found = rows(directory, start_us)
        is_ours = [row["status"] == "final" and row["devices_in"] == 2 for row in found]
        return [row["end_us"] for row, ours in zip(found, is_ours, strict=True) if ours]

    until_true(lambda: bool(ends()))
    return min(ends())


def rows(directory, since_us):
    """Return the current rows of windows that start then or later."""
    return list({row["start_us"]: row for row in revisions(directory, since_us)}.values())


def revisions(directory, since_us):
    """Return all their revisions, by the columns of `lasp-edge windows --json`."""
    wanted = RowsWanted("load", None, since_us, None, None, all_revisions=True)
    try:
        columns, found, _ = table.found(str(directory / "gateway"), wanted)
    except NotFound:  # it is still starting
        return []
    return [dict(zip(columns, row, strict=True)) for row in found]


def all_final(directory, since_us, waited):
    """Return whether all that was tentative became final, and nothing is tentative now."""
    current = {row["start_us"]: row for row in rows(directory, since_us)}
    is_over = {row["status"] for row in current.values()} == {"final"}
    return is_over and all(
        current[at]["revision"] and current[at]["devices_in"] == 2 for at in waited
    )
