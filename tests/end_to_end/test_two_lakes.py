"""Two real landers with a lake each: under two names both get everything; one name is an alarm."""

import contextlib
import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lasp_edge.errors import Exit
from lasp_edge.tool.command_line import main
from simulations.processes.broker import PrivateBroker
from tests.brokers import PATIENCE_S, broker_program

pytestmark = [pytest.mark.slow, pytest.mark.broker]
PROGRAM = "lasp_edge.examples.greenhouse:program"
MAIN = "import sys; from lasp_edge.tool.command_line import main; sys.exit(main())"
START_S = 1_700_000_000
READINGS = 300


class Processes:
    """Commands that run, and are stopped in the end."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.running: list[subprocess.Popen] = []

    def start(self, *words: object) -> None:
        line = [sys.executable, "-c", MAIN, *map(str, words), "--broker", self.url]
        log = (self.folder / f"{len(self.running)}.log").open("wb")
        self.running.append(subprocess.Popen(line, stdout=log, stderr=log))
        log.close()

    def lander(self, lake: str, *words: object) -> None:
        self.start("lander", PROGRAM, "--lake", self.folder / lake, *words)

    def agent(self) -> None:
        lines = [json.dumps({"t": START_S + 7 * n, "temp": 20 + n % 9}) for n in range(READINGS)]
        (self.folder / "readings.jsonl").write_text("\n".join(lines) + "\n")
        words = ["agent", PROGRAM, "--device", "pi-1", "--data-dir", self.folder / "data"]
        words += ["--source", f"jsonl:{self.folder / 'readings.jsonl'}", "--interval", "0.5"]
        self.start(
            *words, "--time", "t", "--event", "temperature=temp", "--with-tag", "room=kitchen"
        )

    def status(self) -> dict:
        """Return what `lasp-edge status` prints of the agent; empty before it has a store."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            code = main(["status", "--json", "--data-dir", str(self.folder / "data")])
        return json.loads(printed.getvalue()) if code == Exit.FINE else {}

    def stop(self) -> None:
        for process in self.running:
            process.send_signal(signal.SIGTERM)
        for process in self.running:
            process.wait(PATIENCE_S)


@pytest.fixture
def processes(tmp_path):
    with PrivateBroker(tmp_path / "broker", broker_program()) as broker:
        processes = Processes(tmp_path, broker.url)
        yield processes
        processes.stop()


def until(enough, processes):
    ends_s = time.perf_counter() + PATIENCE_S
    while not enough():
        logs = [path.read_text()[-500:] for path in processes.folder.glob("*.log")]
        assert time.perf_counter() < ends_s, (processes.status(), logs)
        time.sleep(0.5)


def landed(folder: Path) -> dict:
    """Return (pane, key) -> count, of the newest entry of each replica, from a lake's landing."""
    newest: dict = {}
    for row in DeltaTable(folder / "landing").to_pyarrow_table().to_pylist():
        if row["kind"] == "pane":
            at = (row["stream"], row["pane_us"], row["key"], row["incarnation"], row["nonce"])
            newest[at] = max(row["seq"], newest.get(at, 0))
    return newest


def nothing_waits(processes, *sinks):
    status = processes.status()
    known = status.get("sinks", {})
    return (
        set(sinks) <= set(known)
        and all(known[sink]["store"] and not known[sink]["waiting"] for sink in sinks)
        and status["accepted"] == READINGS
    )


def test_two_lakes_get_everything_under_two_names_and_under_one_it_is_said_aloud(processes):
    processes.lander("first")
    processes.agent()
    until(lambda: nothing_waits(processes, "lake"), processes)
    processes.lander("second", "--sink", "archive")
    until(lambda: nothing_waits(processes, "lake", "archive"), processes)
    first, second = (landed(processes.folder / lake) for lake in ("first", "second"))
    assert first == second
    assert first
    assert processes.status()["sink_alarms"] == {}
    processes.lander("third")
    until(lambda: processes.status().get("sink_alarms"), processes)
    (alarm,) = processes.status()["sink_alarms"]
    assert "another name, a gateway by --name, a lander by --sink" in alarm
