"""What README and docs show of parameters: programs give it, and commands print it."""

import json
import re
import subprocess
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crdts import ControlLog
from device_agent.agent.timing.system_clock import wall_us
from lasp_edge.examples import hothouse
from simulations.oracle import Reading, rows, windows
from simulations.processes.broker import PrivateBroker
from tests.brokers import broker_program, until_true
from tests.support_readme import BIN, block, commands, here, succeeds

PROGRAM = "lasp_edge.examples.hothouse:program"
DEVICES = ("attic", "cellar")
HOUR_US = 3_600_000_000


def test_hothouse_is_the_example_module():
    shown = {}
    exec(block("hothouse"), shown)
    shown, plan = shown["program"].plan(), hothouse.program.plan()
    assert shown.parameters == plan.parameters
    assert shown.windows["hot"].stream == plan.windows["hot"].stream


def test_a_press_is_counted_with_the_parameters_at_each_readings_time():
    shown = {}
    exec(block("press"), shown)
    plan = shown["program"].plan()
    readings = [Reading("pi-1", "vibration", 2.0, at_s * 1_000_000) for at_s in (5, 15, 25)]
    log = ControlLog()
    log |= log.set("mode", "", 10_000_000, "night", "ann")
    log |= log.set("gain", "", 20_000_000, "0.5", "ann")  # 1.0 mm/s is not above 1 by night
    held = windows(plan, "shaking", readings, log)
    counts = {start_us // 1_000_000: truth.partial for (_, start_us), truth in held.items()}
    assert sorted(counts) == [-40, -20, 0]
    alone = windows(plan, "shaking", readings[:2])
    assert {at: held[at].partial for at in alone} == {at: alone[at].partial for at in alone}


def test_a_washroom_steps_its_runs_by_the_pause_of_each_readings_time():
    shown = {}
    exec(block("washroom"), shown)
    plan = shown["program"].plan()
    readings = [Reading("pi-1", "power", 9, at_s * 1_000_000) for at_s in (0, 200, 400)]
    readings += [Reading("pi-1", "litres", n, n * 1_000_000) for n in (1, 2, 4)]
    log = ControlLog()
    log |= log.set("pause_s", "", 150_000_000, "60", "ann")
    log |= log.set("least", "", 4_000_000, "2.5", "ann")
    runs = [len(rows(plan, "runs", readings, log=each)) for each in (ControlLog(), log)]
    drawn = [windows(plan, "drawn", readings, each) for each in (ControlLog(), log)]
    assert runs == [1, 3]
    assert [truth.partial for each in drawn for truth in each.values()] == [(30,), (10,)]


@pytest.mark.slow
@pytest.mark.broker
def test_what_is_set_is_printed_and_counts_as_shown(tmp_path):
    early, late = commands(block("setting"))
    hour_us = wall_us() // HOUR_US * HOUR_US
    times = {
        "2026-11-24T06:00": hour_us + 30 * HOUR_US,
        "2026-11-18T00:00": hour_us - 120 * HOUR_US,
        "2026-11-20T12:00": hour_us - 60 * HOUR_US,
    }
    with PrivateBroker(tmp_path / "broker", broker_program()) as broker, ExitStack() as ending:
        start(tmp_path, broker, ending)
        printed = [succeeds([*moved(line, times, tmp_path, broker), "--listen", "20"], tmp_path)
                   for line in (early, late)]  # fmt: skip
        expected = block("set")
        for written, time_us in times.items():
            expected = expected.replace(written.replace("T", " ") + ":00", shown(time_us))
        panes = r"\d+ panes"  # one more where an hour ends meanwhile
        assert re.sub(panes, "", "".join(printed)) == re.sub(panes, "", expected)
        words = [str(BIN / "lasp-edge"), "schedule", PROGRAM, "--broker", broker.url]
        told = json.loads(succeeds([*words, "--listen", "20", "--json"], tmp_path))
        assert told["known"] == list(DEVICES)
        assert [(each["parameter"], each["device"], each["value"]) for each in told["places"]] == [
            ("alarm_above", None, "30"),
            ("offset", "cellar", "-0.30"),
            ("offset", "cellar", ""),
        ]


def start(folder: Path, broker: PrivateBroker, ending: ExitStack) -> None:
    """Start two agents, and wait until both are connected."""
    agents = []
    for device in DEVICES:
        reading = {"ts": wall_us() // 1_000_000, "temperature": 28.1}
        (folder / f"{device}.jsonl").write_text(json.dumps(reading))
        line = f"lasp-edge agent {PROGRAM} --device {device} --broker mqtt://192.168.1.10"
        line += f" --data-dir ~/{device} --source jsonl:{device}.jsonl --time ts --report 0.5"
        words = here(line, folder, broker.url)
        running = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True)
        ending.callback(running.wait, 20)
        ending.callback(running.terminate)
        agents.append(running)
    for agent in agents:
        until_true(lambda out=agent.stdout: '"connected": true' in out.readline(), 60)


def moved(line: str, times: dict[str, int], folder: Path, broker: PrivateBroker) -> list[str]:
    """Return a command of the README at times of today."""
    for written, time_us in times.items():
        line = line.replace(written, shown(time_us).replace(" ", "T"))
    return here(line, folder, broker.url)


def shown(time_us: int) -> str:
    return f"{datetime.fromtimestamp(time_us // 1_000_000, UTC):%Y-%m-%d %H:%M:%S}"
