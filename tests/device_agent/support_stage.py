"""Real agents at a real broker, and a lander that acknowledges what it takes."""

import contextlib
import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest

from device_agent.agent.timing.system_clock import wall_us as now_us
from lasp_edge.errors import Exit
from lasp_edge.link import BrokerUrl, Connected, Link, Message
from lasp_edge.protocol.frames import PresenceFrame, VariableFrame
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.topics import Topics, topic_of
from lasp_edge.tool.command_line import main
from lasp_edge.tool.loading import load_plan
from simulations.oracle import Reading, windows
from simulations.processes.broker import PrivateBroker
from simulations.world.lander import SimulatedLander
from tests.brokers import PATIENCE_S, broker_program

PROGRAM = """
from crdts import BoundedLWWSet
from lasp_edge import Program, folds

program = Program("{name}")
temperature = program.event("temperature", resolution="0.01")
load = program.event("load", resolution="0.01")
samples = program.declare_dynamic(BoundedLWWSet(bound=100), "samples", measures=temperature)

@program.on_event(temperature)
def sampled(event, update):
    update(samples, BoundedLWWSet.add, event.value, event.time_us)

local = program.fold(samples, folds.mean(), "local_average")
program.fold_dynamic(local, "global_average")
program.window("warm", source=temperature, fold=folds.mean(), size_s=60, slide_s=10)
"""
NAME = "process_fleet"
MAIN = "import sys; from lasp_edge.tool.command_line import main; sys.exit(main())"
START_S = 1_600_000_000


def lasp_edge(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess:
    """Run a command to its end."""
    line = [sys.executable, "-c", MAIN, *map(str, words)]
    return subprocess.run(
        line, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def typed(*words: object) -> subprocess.CompletedProcess:
    """Run a command to its end in this process: one of its own takes a core for half a second."""
    printed, trouble = io.StringIO(newline=""), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(trouble):
        code = main(list(map(str, words)))
    return subprocess.CompletedProcess(words, code, printed.getvalue(), trouble.getvalue())


def asked(*words: object) -> str:
    """Return what a command prints; nothing where it fails."""
    done = typed(*words)
    return done.stdout if done.returncode == Exit.FINE else ""


class Lander:
    """A lander on the test's own thread: it acknowledges what it takes."""

    def __init__(self, url: str, program: Any) -> None:
        self.program = program
        self.topics = Topics(program.name)
        self.landed = SimulatedLander("lake-1", program)
        self.retained: dict[str, Any] = {}
        kinds = ("pane", "beat", "presence", "var", "hello")
        self.link = Link(
            BrokerUrl.parse(url),
            client_id="lander",
            subscriptions=[self.topics.every(kind) for kind in kinds],
            jitter=Random(1),
        )
        self.link.start()

    def serve(self, enough: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
        """Work until something is the case."""
        ends_s = time.perf_counter() + seconds
        while not enough():
            assert time.perf_counter() < ends_s, "waited in vain"
            for event in self.link.poll(0.05):
                if isinstance(event, Connected):
                    self.retained.clear()
                elif isinstance(event, Message) and event.payload:
                    self.take(event)

    def take(self, message: Message) -> None:
        """Take a message, and acknowledge it."""
        frame = decode(message.payload)
        if isinstance(frame, VariableFrame | PresenceFrame):
            self.retained[message.topic] = frame
        answer = self.landed.hear(message.topic, message.payload, now_us())
        if answer is not None:
            self.link.publish(topic_of(answer, self.topics), answer.encode())


class Agent:
    """One `lasp-edge agent` process; its reports are read as they come."""

    def __init__(self, stage: "Stage", device: str, *source: object, fails: bool = False) -> None:
        self.device = device
        self.data = stage.directory / device
        words = ["agent", f"{NAME}:program", "--device", device, "--broker", stage.broker.url]
        words += ["--data-dir", str(self.data), "--report", "0.2", "--interval", "0.4"]
        words += ["--keep-readings", *map(str, source)]
        self.errors = stage.directory / f"{device}.err"
        line = [sys.executable, "-c", MAIN, *words]
        if fails:  # no file may grow beyond a megabyte, until the test allows it
            line = ["prlimit", f"--fsize={1 << 20}:unlimited", *line]
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                line, cwd=stage.directory, stdout=subprocess.PIPE, stderr=errors
            )
        self._line = b""
        self._reader = Thread(target=self._read, daemon=True)  # a full pipe would hold the agent
        self._reader.start()
        self.report: dict[str, Any] = {"accepted": 0, "done": False, "values": {}}

    def newest(self) -> dict[str, Any]:
        """Return the newest report."""
        if self._line:
            self.report = json.loads(self._line)
        return self.report

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._line = line if line.endswith(b"\n") else self._line

    def done(self) -> bool:
        """Return whether it has read everything and everything has landed."""
        return bool(self.newest()["done"])

    def agreed(self, devices: int) -> bool:
        """Return whether it knows that so many devices hold the same."""
        value = self.newest()["values"].get("global_average", {})
        complete = value.get("devices") == devices and not value["except"]
        return complete and value["settled"] and self.report["done"]

    def send(self, number: int) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Stop it and return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE_S)

    def close(self) -> None:
        """Kill it, if it still runs."""
        self.process.kill()
        self.process.wait()
        self._reader.join()

    def readings(self) -> list[dict[str, Any]]:
        """Return what `lasp-edge readings` prints."""
        return [
            json.loads(line) for line in asked("readings", "--data-dir", self.data).splitlines()
        ]

    def status(self) -> dict[str, Any]:
        """Return what `lasp-edge status --json` prints."""
        return json.loads(asked("status", "--data-dir", self.data, "--json"))

    def memory_mib(self, what: str) -> float:
        """Return VmRSS or VmHWM of the process."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (line,) = [line for line in lines if line.startswith(what)]
        return int(line.split()[1]) / 1024


class Stage:
    """A directory with a program, a broker, a lander and agents."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch, program: str = "") -> None:
        self.directory = directory
        (directory / f"{NAME}.py").write_text((program or PROGRAM).format(name=NAME))
        monkeypatch.chdir(directory)
        monkeypatch.syspath_prepend(str(directory))
        monkeypatch.delitem(sys.modules, NAME, raising=False)  # another stage's program
        self.program = load_plan(f"{NAME}:program")
        self.broker = PrivateBroker(directory / "broker", broker_program()).start()
        self.lander = Lander(self.broker.url, self.program)
        self.agents: list[Agent] = []

    def agent(self, device: str, *source: object, fails: bool = False) -> Agent:
        self.agents.append(Agent(self, device, *source, fails=fails))
        return self.agents[-1]

    def replay(self, device: str, *more: object, fails: bool = False) -> Agent:
        """Start an agent on its recorded file."""
        path = self.directory / f"{device}.jsonl"
        source = ("--source", f"jsonl:{path}", "--time", "ts")
        return self.agent(device, *source, *more, fails=fails)

    def record(self, device: str, count: int, step_s: float = 1.0) -> list[Reading]:
        """Write a file of recorded readings."""
        random = Random(f"{device}{count}")
        readings = []
        with (self.directory / f"{device}.jsonl").open("w") as file:
            for number in range(count):
                value, time_s = round(random.uniform(15, 30), 2), START_S + number * step_s
                file.write(json.dumps({"ts": time_s, "temperature": value}) + "\n")
                time_us = round(time_s * 1_000_000)
                readings.append(Reading(device, "temperature", value, time_us))
        return readings

    def windows_are(self, *recorded: list[Reading]) -> None:
        """Assert that what has landed gives the windows of these readings."""
        truth = windows(self.program, "warm", [r for readings in recorded for r in readings])
        found = self.lander.landed.windows(self.program, "warm")
        assert found == {at: window.partial for at, window in truth.items()}

    def close(self) -> None:
        for agent in self.agents:
            agent.close()
        self.lander.link.stop(0.0)
        self.broker.stop()
