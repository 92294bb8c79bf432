"""Real agents whose wall clock Debian's faketime sets: the kernel's clock stays as it is."""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from device_agent.agent.timing.system_clock import SystemClock, wall_us
from lasp_edge.units import SECOND_US
from tests.brokers import PATIENCE_S
from tests.device_agent import support_stage
from tests.device_agent.support_stage import Agent, Stage
from tests.support_clock import FakedClock

pytestmark = [pytest.mark.broker, pytest.mark.slow]

NEAR_US = 3 * SECOND_US
"""By how much a reading's time may differ from ours: a lander tells its clock in seconds."""
DAYS_TO_1970 = 20_000
DAY_US = 86_400 * SECOND_US


class FakedStage(Stage):
    """A stage whose agents have a clock of their own.

    Attributes:
        begun_us: when it began, truly.
    """

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        on_load = support_stage.PROGRAM.replace("source=temperature", "source=load")
        monkeypatch.setattr(support_stage, "PROGRAM", on_load)
        super().__init__(directory, monkeypatch)
        self._monkeypatch, self._clock = monkeypatch, FakedClock(directory)
        self.clock_is = self._clock.is_off_by
        self.begun_us = wall_us()

    def agent(self, device: str, *source: object, fails: bool = False) -> Agent:
        with self._monkeypatch.context() as environment:
            for name, value in self._clock.environment.items():
                environment.setenv(name, value)
            return super().agent(device, *source, fails=fails)

    def host(self, *more: object) -> Agent:
        """Start an agent that stamps five readings a second."""
        every = ("--source", "host", "--every", "0.2", "--commit-every", "0.2")
        return self.agent("a", *every, *more)

    def waits(self, enough: Callable[[], bool]) -> None:
        """Wait without a lander until something is the case."""
        ends_s = time.perf_counter() + PATIENCE_S
        while not enough():
            assert time.perf_counter() < ends_s, "waited in vain"
            time.sleep(0.05)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakedStage]:
    stage = FakedStage(tmp_path, monkeypatch)
    yield stage
    stage.close()


def state(agent: Agent) -> str:
    return agent.newest().get("clock", {}).get("state", "")


def more_than(agent: Agent, readings: int) -> Callable[[], bool]:
    wanted = agent.newest()["accepted"] + readings
    return lambda: agent.newest()["accepted"] >= wanted


def in_true_time(stage: FakedStage, agent: Agent) -> list[bool]:
    """Return of each reading, in the order of acceptance, whether its time is ours."""
    first_us, last_us = stage.begun_us - NEAR_US, wall_us() + NEAR_US
    return [first_us <= reading["time_us"] <= last_us for reading in agent.readings()]


def test_readings_of_1970_wait_for_the_clock_and_land_in_their_windows(stage):
    stage.clock_is(f"-{DAYS_TO_1970}d")
    agent = stage.host()
    stage.waits(lambda: agent.newest().get("clock", {}).get("waiting", 0) > 5)
    assert (state(agent), agent.report["accepted"]) == ("waiting", 0)
    status = agent.status()
    assert status["clock"].startswith("waiting for the clock")
    assert status["waiting_for_the_clock"] > 5
    stage.clock_is("+0")
    stage.lander.serve(more_than(agent, 20))
    assert state(agent) == "trusted"
    agent.send(signal.SIGUSR1)
    stage.lander.serve(agent.done)
    assert agent.end() == 0
    assert all(in_true_time(stage, agent))
    landed = sum(partial[0] for _, partial in stage.lander.landed.panes.values())
    assert landed == agent.status()["accepted"] == len(agent.readings())


def test_a_device_that_stays_in_1970_takes_the_landers_time(stage):
    stage.clock_is(f"-{DAYS_TO_1970}d")
    agent = stage.host()
    stage.lander.serve(more_than(agent, 20))
    assert state(agent) == "behind"
    assert "hours behind" in agent.status()["clock"]
    assert all(in_true_time(stage, agent))
    assert agent.end() == 0


def test_a_clock_that_jumps_days_ahead_and_back_moves_no_reading(stage):
    stage.clock_is("+0")
    stage.broker.stop()
    agent = stage.host()
    stage.waits(more_than(agent, 5))
    stage.clock_is("+2d")
    stage.waits(lambda: state(agent) == "waiting")
    stage.waits(lambda: agent.newest()["clock"]["waiting"] > 5)
    stage.clock_is("+0")
    stage.waits(lambda: state(agent) == "trusted")
    stage.waits(more_than(agent, 10))
    assert agent.end() == 0
    times_us = [reading["time_us"] for reading in agent.readings()]
    assert all(in_true_time(stage, agent))
    assert times_us == sorted(set(times_us))


def test_one_landers_clock_is_named_where_it_differs_and_tells_which_way_a_jump_went(stage):
    stage.clock_is("+2d")
    agent = stage.host()
    stage.lander.serve(lambda: "is 48.0 hours behind this" in str(agent.newest().get("clock")))
    assert state(agent) == "trusted"  # either of the two may be the wrong one
    stage.lander.serve(more_than(agent, 3))
    agent.end(signal.SIGKILL)
    stage.clock_is("+0")
    again = stage.host()
    stage.lander.serve(lambda: state(again) == "trusted")
    stage.lander.serve(more_than(again, 10))
    assert again.end() == 0
    placed = in_true_time(stage, again)
    wrong = placed.index(True)
    assert wrong > 3
    assert all(placed[wrong:])
    status = again.status()
    assert status["too_late"] == status["in_the_future"] == 0
    assert status["high_us"] < wall_us() + NEAR_US
    assert status["floor_us"] < wall_us()


def test_a_replay_in_1970_refuses_nothing_and_goes_on_when_the_clock_is_set(stage):
    stage.clock_is(f"-{DAYS_TO_1970}d")
    recorded = stage.record("a", 300)
    agent = stage.replay("a")
    stage.waits(lambda: state(agent) == "waiting")
    assert agent.report["accepted"] == 0
    assert (
        agent.status()["sources"].get(f"jsonl:{stage.directory}/a.jsonl", {}).get("cursor") is None
    )
    stage.clock_is("+0")
    stage.lander.serve(agent.done)
    assert agent.end() == 0
    assert agent.status()["in_the_future"] == 0
    assert [reading["time_us"] for reading in agent.readings()] == [r.time_us for r in recorded]


def test_a_faked_clock_is_never_taken_for_one_that_the_kernel_keeps(monkeypatch):
    clock = SystemClock()
    monkeypatch.setattr(
        "device_agent.agent.timing.system_clock.wall_us", lambda: wall_us() + DAY_US
    )
    assert not clock.read().synchronised
    assert clock.read().boot
    before_us, monotonic_us = clock.now_us(), clock.read().monotonic_us
    assert clock.now_us() >= before_us
    assert clock.read().monotonic_us >= monotonic_us
