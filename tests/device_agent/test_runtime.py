"""Real agents on a real broker: stopped, killed, cut off, and what their commands print."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from device_agent.timing.system_clock import wall_us as now_us
from lasp_edge.errors import Exit
from lasp_edge.link import BrokerUrl, Connected, Link, Message
from lasp_edge.protocol.frames import PresenceFrame, VariableFrame
from lasp_edge.protocol.kinds import decode, topic_of
from lasp_edge.protocol.topics import Topics
from lasp_edge.tool.loading import load_plan
from simulations.demo.broker import PrivateBroker
from simulations.fleet import SimulatedLander
from simulations.oracle import Reading, dynamic_partials, windows
from tests.brokers import PATIENCE_S, broker_program

pytestmark = [pytest.mark.broker, pytest.mark.slow]

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
    return subprocess.run(line, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


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

    def serve(self, enough: Callable[[], bool], seconds: float = 2 * PATIENCE_S) -> None:
        """Work until something is the case."""
        ends_s = time.perf_counter() + seconds
        while not enough():
            assert time.perf_counter() < ends_s, "waited in vain"
            for event in self.link.poll(0.05):
                if isinstance(event, Connected):
                    self.retained.clear()
                elif isinstance(event, Message) and event.payload:
                    self._take(event)

    def _take(self, message: Message) -> None:
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
        if fails:  # no file may grow beyond a megabyte
            line = ["prlimit", f"--fsize={1 << 20}", *line]
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                line, cwd=stage.directory, stdout=subprocess.PIPE, stderr=errors
            )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self._text = b""
        self.report: dict[str, Any] = {"accepted": 0, "done": False, "values": {}}

    def newest(self) -> dict[str, Any]:
        """Return the newest report."""
        with contextlib.suppress(BlockingIOError):
            self._text += os.read(self.process.stdout.fileno(), 1 << 20)
        *lines, self._text = self._text.split(b"\n")
        if lines:
            self.report = json.loads(lines[-1])
        return self.report

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

    def readings(self) -> list[dict[str, Any]]:
        """Return what `lasp-edge readings` prints."""
        printed = lasp_edge("readings", "--data-dir", self.data)
        assert printed.returncode == 0, printed.stderr
        return [json.loads(line) for line in printed.stdout.splitlines()]

    def status(self) -> dict[str, Any]:
        """Return what `lasp-edge status --json` prints."""
        printed = lasp_edge("status", "--data-dir", self.data, "--json")
        assert printed.returncode == 0, printed.stderr
        return json.loads(printed.stdout)

    def memory_mib(self, what: str) -> float:
        """Return VmRSS or VmHWM of the process."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (line,) = [line for line in lines if line.startswith(what)]
        return int(line.split()[1]) / 1024


class Stage:
    """A directory with a program, a broker, a lander and agents."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        (directory / f"{NAME}.py").write_text(PROGRAM.format(name=NAME))
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
            if agent.process.poll() is None:
                agent.process.kill()
            agent.process.wait()
            agent.process.stdout.close()
        self.lander.link.stop(0.0)
        self.broker.stop()


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    stage = Stage(tmp_path, monkeypatch)
    yield stage
    stage.close()


def as_read(recorded: list[Reading]) -> list[tuple[int, float]]:
    return [(reading.time_us, reading.value) for reading in recorded]


def kept(agent: Agent) -> list[tuple[int, float]]:
    return [(reading["time_us"], reading["value"]) for reading in agent.readings()]


def test_two_agents_agree_land_everything_and_say_goodbye(stage):
    recorded = {device: stage.record(device, 3_000) for device in ("a", "b")}
    agents = [stage.replay(device) for device in recorded]
    stage.lander.serve(lambda: all(agent.agreed(2) for agent in agents))
    values = [agent.newest()["values"]["global_average"] for agent in agents]
    truth = dynamic_partials(stage.program, "global_average", recorded)[""]
    assert {(value["count"], value["total_q"]) for value in values} == {truth}
    assert len({value["inputs"] for value in values}) == 1
    assert [agent.end() for agent in agents] == [0, 0]
    stage.windows_are(*recorded.values())
    topics = stage.lander.topics
    offline = [topics.of("presence", device) for device in recorded]
    stage.lander.serve(lambda: not any(stage.lander.retained[topic].online for topic in offline))
    for agent in agents:
        assert kept(agent) == as_read(recorded[agent.device])
        status = agent.status()
        assert (status["device"], status["accepted"], status["dirty_panes"]) == (
            agent.device,
            3_000,
            0,
        )
        assert status["last_settled"]["global_average"]["devices"] == 2
        assert status["replica"]["incarnation"] == 1
        plain = lasp_edge("status", "--data-dir", agent.data).stdout
        assert "accepted       3000" in plain


def reads_on(stage: Stage, agent: Agent, count: int) -> bool:
    """Wait until an agent has read so many more; return whether it is not done then."""
    wanted = agent.newest()["accepted"] + count
    stage.lander.serve(lambda: agent.done() or agent.newest()["accepted"] >= wanted)
    return not agent.done()


def test_an_agent_that_is_killed_again_and_again_loses_and_doubles_nothing(stage):
    recorded = stage.record("a", 23_000)
    random = Random(6)
    kills = 0
    agent = stage.replay("a")
    while kills < 8 and reads_on(stage, agent, random.randint(1, 4_000)):
        agent.end(signal.SIGKILL)
        kills += 1
        agent = stage.replay("a")
    stage.lander.serve(agent.done)
    assert agent.end() == 0
    assert kept(agent) == as_read(recorded)
    assert agent.status()["replica"]["incarnation"] == kills + 1
    stage.windows_are(recorded)


def test_a_broker_that_is_killed_and_comes_back_empty_heals(stage):
    recorded = {device: stage.record(device, 400) for device in ("a", "b")}
    agents = [stage.replay(device, "--speed", "100") for device in recorded]
    stage.lander.serve(lambda: all(agent.newest()["accepted"] > 100 for agent in agents))
    stage.broker.kill()
    stage.broker.forget()
    stage.broker.start()
    stage.lander.serve(lambda: all(agent.agreed(2) for agent in agents))
    variables = [frame for frame in stage.lander.retained.values() if hasattr(frame, "columns")]
    assert {frame.sender.device for frame in variables} == {"a", "b"}
    assert {frame.columns[0] for frame in variables} == {(100,)}
    stage.windows_are(*recorded.values())
    assert [agent.end() for agent in agents] == [0, 0]


def test_sigusr1_stops_the_sources_and_the_agent_goes_on_until_all_has_landed(stage):
    agent = stage.agent("a", "--source", "host")
    stage.lander.serve(lambda: agent.newest()["accepted"] >= 2)
    agent.send(signal.SIGUSR1)
    stage.lander.serve(agent.done)
    assert agent.process.poll() is None
    accepted = agent.newest()["accepted"]
    seen_s = time.perf_counter()
    stage.lander.serve(lambda: agent.newest() and time.perf_counter() > seen_s + 1.5)
    assert agent.newest()["accepted"] == accepted
    assert agent.end() == 0


def test_an_agent_without_a_broker_reads_on_and_catches_up(stage):
    recorded = stage.record("a", 2_000)
    stage.broker.kill()
    agent = stage.replay("a")
    deadline_s = time.perf_counter() + PATIENCE_S
    while agent.newest()["accepted"] < 2_000:
        assert time.perf_counter() < deadline_s
        time.sleep(0.05)
    assert (agent.report["connected"], agent.report["done"]) == (False, False)
    stage.broker.start()
    stage.lander.serve(agent.done)
    stage.windows_are(recorded)
    assert agent.end(signal.SIGINT) == Exit.INTERRUPTED


def test_an_agent_that_is_to_exit_when_done_does(stage):
    recorded = stage.record("a", 500)
    agent = stage.replay("a", "--exit-when-done")
    stage.lander.serve(lambda: agent.process.poll() is not None)
    assert agent.process.returncode == 0
    stage.windows_are(recorded)


def test_a_second_agent_on_a_data_directory_is_refused(stage):
    stage.record("a", 10)
    first = stage.replay("a")
    stage.lander.serve(first.done)
    second = stage.replay("a")
    assert second.process.wait(timeout=PATIENCE_S) == Exit.USAGE
    assert "another agent runs on" in second.errors.read_text()
    assert first.end() == 0


def test_the_data_of_another_device_are_refused(stage):
    stage.record("a", 10)
    first = stage.replay("a", "--exit-when-done")
    stage.lander.serve(lambda: first.process.poll() is not None)
    printed = lasp_edge(
        *("agent", f"{NAME}:program", "--device", "b", "--broker", stage.broker.url),
        *("--data-dir", first.data, "--source", "host"),
        cwd=stage.directory,
    )
    assert (printed.returncode, "belongs to device 'a'" in printed.stderr) == (Exit.USAGE, True)


def test_an_agent_that_cannot_write_stops_and_says_so(stage):
    stage.record("a", 23_000)
    agent = stage.replay("a", fails=True)
    stage.lander.serve(lambda: agent.process.poll() is not None)
    assert agent.process.returncode == Exit.ENVIRONMENT
    assert "cannot be kept in" in agent.errors.read_text()
    assert "Traceback" not in agent.errors.read_text()
    landed = sum(partial[0] for _, partial in stage.lander.landed.panes.values())
    assert landed <= len(agent.readings())  # nothing was published that is not in the store


@pytest.mark.parametrize(
    "words",
    [
        ("--source", "jsonl:nowhere.jsonl"),
        ("--source", "moon:light"),
        ("--source", "host", "--interval", "0"),
        ("--source", "host", "--with-tag", "room"),
        ("--source", "host", "--speed", "fast"),
    ],
    ids=" ".join,
)
def test_arguments_that_cannot_work_are_refused_in_one_line(stage, words):
    printed = lasp_edge(
        *("agent", f"{NAME}:program", "--device", "a", "--broker", stage.broker.url),
        *("--data-dir", stage.directory / "a", *words),
        cwd=stage.directory,
    )
    assert printed.returncode == Exit.USAGE
    assert len(printed.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["readings", "status"])
def test_looking_where_no_agent_was_ends_with_3(tmp_path, command):
    assert lasp_edge(command, "--data-dir", tmp_path).returncode == Exit.NOT_FOUND


def test_an_agent_stays_below_thirty_mebibytes(stage):
    recorded = stage.record("a", 23_000, step_s=3.7)
    agent = stage.replay("a")
    stage.lander.serve(agent.done, 60.0)
    resident, peak = agent.memory_mib("VmRSS"), agent.memory_mib("VmHWM")
    print(f"after {len(recorded)} readings: VmRSS {resident:.1f} MiB, VmHWM {peak:.1f} MiB")
    assert resident < 30
    assert peak < 30
    assert "libcrypto" not in Path(f"/proc/{agent.process.pid}/maps").read_text()
    assert agent.end() == 0
