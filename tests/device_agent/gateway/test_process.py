"""A real gateway at a real broker: killed twice, it keeps the true windows and tells them."""

import csv
import io
import json
import signal
import subprocess
import sys
from random import Random

import pytest

from crdts import ControlLog
from lasp_edge.link import BrokerUrl, Link, Message
from simulations.oracle import windows
from tests.brokers import PATIENCE_S, until_true
from tests.device_agent.support_stage import MAIN, NAME, asked

pytestmark = [pytest.mark.slow, pytest.mark.broker]
READINGS = 400
NOTHING_SAID = ControlLog()


class Gateway:
    """A `lasp-edge gateway` process that may be killed and started again over its data."""

    def __init__(self, stage, *more):
        self.stage, self.data, self.more = stage, stage.directory / "gateway", more
        self.start()

    def start(self):
        words = ["gateway", f"{NAME}:program", "--broker", self.stage.broker.url]
        words += ["--data-dir", str(self.data), "--commit-every", "0.2", "--dead-after", "3"]
        words += ["--results", "0.2", "--home-assistant", *self.more]
        line = [sys.executable, "-c", MAIN, *words]
        self.process = subprocess.Popen(line, cwd=self.stage.directory, stdout=subprocess.PIPE)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def rows(self):
        """Return what `lasp-edge windows` prints while the gateway runs."""
        printed = asked("windows", "warm", "--gateway", self.data, "--csv")
        return list(csv.DictReader(io.StringIO(printed)))


def test_killed_twice_it_keeps_and_tells_the_windows_that_the_readings_give(stage):
    stage.lander.link.stop(0.0)
    recorded = [stage.record(name, READINGS, 0.7) for name in ("a", "b")]
    gateway = Gateway(stage)
    heard = {}
    try:
        for name in ("a", "b"):
            stage.replay(name)
        for least in (1, 2):
            until_true(lambda least=least: least_rows(gateway, 10 * least))
            gateway.kill()
            gateway.start()
        watch = link_of(stage)
        truth = truth_of(recorded, stage)
        until_true(lambda: is_final(gateway.rows(), truth))
        last = max(gateway.rows(), key=lambda row: int(row["start_us"]))
        until_true(lambda: published(watch, heard, stage) == (int(last["count"]), last["status"]))
        watch.stop(0.0)
        assert gateway.process.stdout.readline().startswith(b"gateway: ")
        gateway.process.terminate()
        assert gateway.process.wait(timeout=PATIENCE_S) == 0
    finally:
        gateway.kill()
    topic = "homeassistant/device/lasp__process_5ffleet/gateway__gateway/config"
    entity = json.loads(heard[topic])["components"]["warm__mean"]
    assert entity["state_topic"] == stage.lander.topics.result("warm", "gateway")


def test_an_older_image_of_its_data_gets_what_it_had_acknowledged_since(stage):
    stage.lander.link.stop(0.0)
    recorded = stage.record("a", READINGS, 0.7)
    file = stage.directory / "a.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[: READINGS // 2]))
    gateway = Gateway(stage)
    try:
        agent = stage.replay("a")
        until_true(agent.done)
        gateway.process.send_signal(signal.SIGSTOP)
        image = {each: each.read_bytes() for each in gateway.data.iterdir()}
        gateway.process.send_signal(signal.SIGCONT)
        assert agent.end() == 0
        file.write_text("".join(lines))
        agent = stage.replay("a")
        until_true(agent.done)
        gateway.kill()
        for each, content in image.items():
            each.write_bytes(content)  # the same file to the system
        gateway.start()
        truth = truth_of([recorded], stage)
        until_true(lambda: is_final(gateway.rows(), truth))
    finally:
        gateway.kill()


def least_rows(gateway, count):
    return asked("windows", "warm", "--gateway", gateway.data).count("\n") > count


def truth_of(recorded, stage, window="warm", log=NOTHING_SAID):
    """Return (key, start) -> what the readings give."""
    return windows(stage.program, window, [each for of in recorded for each in of], log)


def is_final(rows, truth):
    """Return whether each window is final, and as it truly is."""
    found = {
        (row["key"], int(row["start_us"])): ((int(row["count"]), int(row["total_q"])),
                                             int(row["devices_in"]))
        for row in rows
    }  # fmt: skip
    is_all = found == {at: tuple(each) for at, each in truth.items()}
    return is_all and all(row["status"] != "tentative" for row in rows)


def link_of(stage):
    link = Link(
        BrokerUrl.parse(stage.broker.url),
        client_id="watcher",
        subscriptions=[f"{stage.lander.topics.root}/out/#", "homeassistant/#"],
        jitter=Random(1),
    )
    link.start()
    return link


def published(link, heard, stage):
    """Return count and status of the newest window that is published, with its entities."""
    for event in link.poll(0.1):
        if isinstance(event, Message):
            heard[event.topic] = event.payload
    topic = stage.lander.topics.result("warm", "gateway")
    if topic not in heard or not any(name.startswith("homeassistant/") for name in heard):
        return None
    document = json.loads(heard[topic])
    return document["count"], document["status"]
