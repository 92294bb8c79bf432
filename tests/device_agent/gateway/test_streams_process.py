"""One order over real agents at a real gateway: killed twice, it has and tells the true rows."""

import csv
import io
import json

import pytest

from lasp_edge.link import Message
from lasp_edge.ordered.places import place_text
from simulations.oracle import rows
from tests.brokers import PATIENCE_S, until_true
from tests.device_agent.gateway.test_process import Gateway, link_of
from tests.device_agent.support_stage import NAME, Stage, asked, lasp_edge

pytestmark = [pytest.mark.slow, pytest.mark.broker]
PROGRAM = """
from lasp_edge import Program, scans

program = Program("{name}")
temperature = program.event("temperature", resolution="0.01")
program.event("load", resolution="0.01")
warm = program.filter(temperature, lambda event: event.value > 20, "warm")
steps = program.scan("steps", source=warm, scan=scans.differences())
program.result(steps)
"""
READINGS = 120


@pytest.fixture
def stage(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, PROGRAM)
    yield stage
    stage.close()


def printed(gateway):
    """Return what `lasp-edge results` prints while the gateway runs: place -> status and steps."""
    found = asked("results", "steps", "--gateway", gateway.data, "--csv")
    lines = csv.DictReader(io.StringIO(found))
    return {line["place"]: (line["status"], int(line["difference_q"])) for line in lines}


def test_the_order_over_three_devices_survives_two_kills_of_the_gateway(stage):
    stage.lander.link.stop(0.0)
    truth = truth_of(stage, "a", "b", "c")
    gateway = Gateway(stage)
    try:
        for name in ("a", "b"):
            stage.replay(name)
        for least in (1, 60):
            until_true(lambda least=least: len(printed(gateway)) >= least)
            gateway.kill()
            gateway.start()
        stage.replay("c")  # all of it comes late, or in between
        until_true(lambda: {at: steps for at, (_, steps) in printed(gateway).items()} == truth)
        until_true(
            lambda: {status for status, _ in printed(gateway).values()} <= {"final", "revised"}
        )
        until_true(lambda: told(stage) == truth[max(truth)])
        gateway.process.terminate()
        assert gateway.process.wait(timeout=PATIENCE_S) == 0
    finally:
        gateway.kill()
    other = lasp_edge("results", "nothing", "--gateway", gateway.data)
    assert other.returncode
    assert "no result 'nothing'" in other.stderr
    former = lasp_edge("results", "steps", "--gateway", gateway.data, "--as-of", "2026-01-01")
    assert "--as-of: a gateway does not keep what was known when" in former.stderr


def truth_of(stage, *names):
    """Write a file for each device; return place -> steps of the row there."""
    readings = [each for name in names for each in stage.record(name, READINGS, 0.7)]
    found = rows(stage.program, "steps", readings)
    return {place_text(place): row.parts[0] for (_, place), row in found.items()}


def told(stage):
    """Return the steps of the newest final row on the gateway's topic; None where there is none."""
    topic = stage.lander.topics.result("steps", "gateway")
    watch, heard = link_of(stage), []
    until_true(lambda: heard.extend(newest_in(watch, topic)) or heard)
    watch.stop(0.0)
    final = json.loads(heard[-1]).get("final")  # absent until there is one
    return final and round(final["difference"] * 100)


def newest_in(watch, topic):
    events = [event for event in watch.poll(0.1) if isinstance(event, Message)]
    return [event.payload for event in events if event.topic == topic and event.payload]


@pytest.mark.parametrize("of_devices", [False, True])
def test_a_program_with_nothing_for_a_gateway_is_refused(stage, of_devices):
    steady = "program.scan('s', source=y, scan=scans.changes(), per_device=True)"
    (stage.directory / f"{NAME}.py").write_text(
        "from lasp_edge import Program, scans\nprogram = Program('x')\n"
        f"y = program.event('y')\n{f'program.result({steady})' if of_devices else ''}\n"
    )
    found = lasp_edge(
        "gateway",
        f"{NAME}:program",
        "--data-dir",
        stage.directory / "g",
        "--broker",
        stage.broker.url,
        cwd=stage.directory,
    )
    assert found.returncode
    assert "declares no window, and no result of a scan over the fleet" in found.stderr
    assert ("type lasp-edge lander --help" in found.stderr) == of_devices
