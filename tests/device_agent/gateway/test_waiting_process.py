"""A gateway that waits for devices, at a real broker: one device is cut off shorter, then longer.

The relay between that device and the broker is cut as a network is. Readings are the machine's own.
"""

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from device_agent.gateway import table
from lasp_edge.errors import NotFound
from lasp_edge.tool.printing import RowsWanted
from simulations.demo.broker import PrivateBroker
from simulations.demo.relay import Relay
from tests.brokers import PATIENCE_S, broker_program
from tests.device_agent.support_stage import MAIN, lasp_edge

pytestmark = [pytest.mark.slow, pytest.mark.broker]
PROGRAM = """
from lasp_edge import Program, folds

program = Program("waiting")
load = program.event("memory", resolution="0.01")
program.window("load", source=load, fold=folds.count(), size_s=2)
"""
WAIT_S = 8
"""X: more than a link takes to come back after a second."""


class Wire:
    """A relay in a thread of its own."""

    def __init__(self, port):
        self.loop, self.relay = asyncio.new_event_loop(), Relay(port)
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        asyncio.run_coroutine_threadsafe(self.relay.start(), self.loop).result()
        self.url = f"mqtt://127.0.0.1:{self.relay.port}"

    def cut(self, seconds):
        self.loop.call_soon_threadsafe(self.relay.cut)
        time.sleep(seconds)
        self.loop.call_soon_threadsafe(self.relay.restore)

    def close(self):
        asyncio.run_coroutine_threadsafe(self.relay.close(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


@pytest.fixture
def site(tmp_path):
    (tmp_path / "waiting.py").write_text(PROGRAM)
    broker = PrivateBroker(tmp_path / "broker", broker_program()).start()
    wire, started = Wire(broker.port), []

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
    for name, url in (("near", broker.url), ("far", wire.url)):
        source = ("--source", "host", "--every", "0.5", "--interval", "0.4")
        start("agent", "--device", name, "--broker", url, "--data-dir", name, *source)
    wait_until(lambda: len(rows(directory)) >= 2)
    wire.cut(1)
    before = len(rows(directory))
    wait_until(lambda: len(rows(directory)) >= before + 3)
    assert {row["status"] for row in rows(directory)} == {"final"}
    wire.cut(WAIT_S + 6)
    wait_until(lambda: any(row["status"] == "tentative" for row in rows(directory)))
    said = lasp_edge("windows", "load", "--gateway", "gateway", "--all-revisions", cwd=directory)
    waited = [line.split() for line in said.stdout.splitlines() if " tentative " in line]
    assert {line[-1] for line in waited} == {"far"}
    wait_until(lambda: all_final(directory, len(waited)))


def rows(directory):
    """Return the current rows, by the columns that `lasp-edge windows` prints."""
    blank = {"key": None, "since_us": None, "until_us": None, "as_of_us": None}
    wanted = RowsWanted("load", **blank, all_revisions=False)
    try:
        columns, found = table.found(str(directory / "gateway"), wanted)
    except NotFound:  # it is still starting
        return []
    return [dict(zip(columns, row, strict=True)) for row in found]


def all_final(directory, tentative):
    """Return whether each window was final once, and those too that were tentative first."""
    current = rows(directory)
    revised = [row for row in current if row["revision"]]
    is_over = {row["status"] for row in current} == {"final"} and len(revised) >= tentative
    return is_over and all(row["devices_in"] == 2 for row in current[1:])


def wait_until(holds):
    ends_s = time.perf_counter() + 2 * PATIENCE_S
    while not holds():
        assert time.perf_counter() < ends_s, "waited in vain"
        time.sleep(0.3)
