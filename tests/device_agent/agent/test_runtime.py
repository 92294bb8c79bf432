"""Real agents on a real broker: stopped, killed, cut off, and what their commands print."""

import signal
import subprocess
import time
from pathlib import Path
from random import Random

import pytest

from crdts import Replica
from lasp_edge.errors import Exit
from lasp_edge.protocol.acks import Answer
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.topics import topic_of
from simulations.oracle import Reading, dynamic_partials
from tests.brokers import PATIENCE_S
from tests.device_agent.support_stage import NAME, PROGRAM, Agent, Stage, asked, typed

pytestmark = [pytest.mark.broker, pytest.mark.slow]


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
        plain = asked("status", "--data-dir", agent.data)
        assert "accepted       3000" in plain


def test_a_broker_takes_a_device_whose_name_has_what_it_takes_in_no_client_id(stage):
    device = "caf\u00e9 \u0085+1"
    recorded = stage.record(device, 30)
    agent = stage.replay(device)
    stage.lander.serve(lambda: agent.agreed(1))
    assert agent.end() == 0
    stage.windows_are(recorded)


def reads_on(stage: Stage, agent: Agent, count: int) -> bool:
    """Wait until an agent has read so many more; return whether it is not done then."""
    wanted = agent.newest()["accepted"] + count
    stage.lander.serve(lambda: agent.done() or agent.newest()["accepted"] >= wanted)
    return not agent.done()


def test_an_agent_that_is_killed_again_and_again_loses_and_doubles_nothing(stage):
    recorded = stage.record("a", 6_000)
    random = Random(6)
    kills = 0
    agent = stage.replay("a")
    while kills < 4 and reads_on(stage, agent, random.randint(1, 2_000)):
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
    printed = typed(
        *("agent", f"{NAME}:program", "--device", "b", "--broker", stage.broker.url),
        *("--data-dir", first.data, "--source", "host"),
    )
    assert (printed.returncode, "belongs to device 'a'" in printed.stderr) == (Exit.USAGE, True)


def test_the_data_of_another_program_are_refused_and_left_as_they_are(stage):
    stage.record("a", 10)
    first = stage.replay("a", "--exit-when-done")
    stage.lander.serve(lambda: first.process.poll() is not None)
    before = first.status()
    (stage.directory / "garden_of_others.py").write_text(PROGRAM.format(name="garden"))
    printed = typed(
        *("agent", "garden_of_others:program", "--device", "a", "--broker", stage.broker.url),
        *("--data-dir", first.data, "--source", "host"),
    )
    assert printed.returncode == Exit.USAGE
    assert f"readings of the program '{NAME}'; give 'garden' a --data-dir" in printed.stderr
    assert first.status() | {"free_bytes": 0} == before | {"free_bytes": 0}


def test_an_agent_without_room_says_so_waits_and_goes_on_when_there_is_room(stage):
    recorded = stage.record("a", 12_000)
    agent = stage.replay("a", fails=True)
    stage.lander.serve(lambda: "cannot be kept in" in str(agent.newest().get("trouble")))
    accepted = agent.report["accepted"]
    assert 0 < accepted < 23_000
    landed = sum(partial[0] for _, partial in stage.lander.landed.panes.values())
    assert landed <= len(agent.readings())  # nothing was published that is not in the store
    time_s = time.perf_counter()
    stage.lander.serve(lambda: time.perf_counter() > time_s + 1.0 and agent.newest())
    assert (agent.report["accepted"], agent.process.poll()) == (accepted, None)
    room = ["prlimit", f"--pid={agent.process.pid}", "--fsize=unlimited"]
    subprocess.run(room, check=True)
    stage.lander.serve(agent.done)
    stage.windows_are(recorded)
    assert agent.end() == 0
    assert kept(agent) == as_read(recorded)
    said = agent.errors.read_text().splitlines()
    assert len([line for line in said if f"type: df -h {agent.data}" in line]) == 1
    assert "the agent's data can be kept again" in said[-1]
    assert "Traceback" not in "".join(said)
    (failure,) = [text for text in agent.status()["failures"] if text.startswith("store: ")]
    assert "nothing was read or sent until there was room" in failure


def test_an_agent_that_is_stopped_without_room_says_what_it_cannot_keep(stage):
    stage.record("a", 12_000)
    agent = stage.replay("a", fails=True)
    stage.lander.serve(lambda: "cannot be kept in" in str(agent.newest().get("trouble")))
    assert agent.end() == Exit.ENVIRONMENT
    assert f"type: df -h {agent.data}" in agent.errors.read_text().splitlines()[-1]
    assert "Traceback" not in agent.errors.read_text()


def test_clocks_that_the_broker_kept_move_no_clock(stage):
    """Beats and acknowledgements of years ago, which somebody let the broker keep."""
    long_ago_s, sink = 1_700_000_000, ("lake", "lake-1")
    kept = [
        BeatFrame(Replica(1, 7, name), 1, (), done=False, reports=(), clock_s=long_ago_s)
        for name in ("x", "y", "z")
    ]
    kept += Answer().frames(Replica(1, 5, "lander"), 1, "a", sink, long_ago_s)
    stage.lander.serve(lambda: stage.lander.link.connected)
    for frame in kept:
        topic = topic_of(frame, stage.lander.topics)
        assert stage.lander.link.publish(topic, frame.encode(), retain=True)
    stage.record("a", 20)
    agent = stage.replay("a")
    stage.lander.serve(lambda: agent.done() or bool(agent.errors.read_text()))
    assert (agent.newest()["accepted"], agent.newest()["clock"]["state"]) == (20, "trusted")
    assert agent.end() == 0
    assert "clock" not in agent.errors.read_text()
    refused = agent.status()["frames_left_aside"]
    assert refused["kept by the broker, and true only when it is sent"] >= len(kept)


@pytest.mark.parametrize(
    "words",
    [
        ("--source", "jsonl:nowhere.jsonl"),
        ("--source", "moon:light"),
        ("--source", "host", "--interval", "0"),
        ("--source", "host", "--with-tag", "room"),
        ("--source", "host", "--speed", "fast"),
        ("--source", "host", "--event", "load=x"),
    ],
    ids=" ".join,
)
def test_arguments_that_cannot_work_are_refused_in_one_line(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "refusing.py").write_text(PROGRAM.format(name="refusing"))
    printed = typed(
        *("agent", "refusing:program", "--device", "a", "--broker", "mqtt://127.0.0.1:9"),
        *("--data-dir", tmp_path / "a", *words),
    )
    assert printed.returncode == Exit.USAGE
    assert len(printed.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["readings", "status"])
def test_looking_where_no_agent_was_ends_with_3(tmp_path, command):
    assert typed(command, "--data-dir", tmp_path).returncode == Exit.NOT_FOUND


def test_an_agent_stays_below_thirty_mebibytes(stage):
    recorded = stage.record("a", 23_000, step_s=3.7)
    agent = stage.replay("a")
    stage.lander.serve(agent.done)
    resident, peak = agent.memory_mib("VmRSS"), agent.memory_mib("VmHWM")
    print(f"after {len(recorded)} readings: VmRSS {resident:.1f} MiB, VmHWM {peak:.1f} MiB")
    assert resident < 30
    assert peak < 30
    assert "libcrypto" not in Path(f"/proc/{agent.process.pid}/maps").read_text()
    assert agent.end() == 0
