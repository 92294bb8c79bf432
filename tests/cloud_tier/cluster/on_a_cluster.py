"""The job on a real cluster, where executors and drivers die, and through Spark Connect.

The tables are to equal the recomputation bit for bit, as those of a job on this machine do. No part
of the suite, since they take minutes: see `make test-cluster`.
"""

import json
import os
import signal
from importlib.util import find_spec
from pathlib import Path

import pytest
from deltalake import write_deltalake

from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.tables import LakeTables
from simulations.oracle import Reading
from tests.brokers import free_port
from tests.cloud_tier.cluster import support_many_rows, support_rooms
from tests.cloud_tier.cluster.support_cluster import Cluster, all_merged, answers, finish, until
from tests.cloud_tier.lakes import ReadLake
from tests.cloud_tier.support_devices import (
    SECOND_US,
    Device,
    readings_of,
    rooms,
    table,
    tick,
    true_global,
    true_windows,
)
from tests.conftest import CHECKOUT
from tests.end_to_end import truth
from tests.support_missing import lacks

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = rooms()


def recorded(folder):
    """Return the first readings of the recorded devices."""
    readings = []
    for line in truth.recorded(folder / "rpi_mqtt_3dev" / "messages.jsonl.gz")[:60]:
        message = json.loads(line)
        room = "light" if message["data"]["light"] else "dark"
        time_us = round(message["ts"] * SECOND_US)
        value = round(message["data"]["temp"], 2)
        readings.append(Reading(message["device"], "temperature", value, time_us, {"room": room}))
    return readings


class Landed:
    """A lake in which parts of a fleet's history land one after the other."""

    def __init__(self, folder, parts):
        self.tables = LakeTables(folder)
        prepare(PROGRAM, self.tables)
        self.parts = list(parts)

    def land(self):
        rows = table(PROGRAM, self.parts.pop(0))
        write_deltalake(self.tables.landing, rows, mode="append", schema_mode="merge")


@pytest.fixture(scope="module")
def readings():
    """Recorded ones where they are, else a generated fleet's."""
    named = os.environ.get("LASP_EDGE_TEST_DATA")
    folder = Path(named) if named else CHECKOUT.parent / "shared" / "data"
    return recorded(folder) if folder.is_dir() else readings_of(5, each=6)


@pytest.fixture(scope="module")
def devices(readings):
    """The devices that took them, and the rows that they sent."""
    made = {reading.device: Device(PROGRAM, reading.device) for reading in readings}
    rows, heard_us = [], max(reading.time_us for reading in readings)
    for start in range(0, len(readings), 10):
        for name, device in made.items():
            own = [reading for reading in readings[start : start + 10] if reading.device == name]
            rows += device.accept(own) if own else []
        for device in made.values():
            rows.append(device.promise(readings[start].time_us, heard_us))
    return made, [*rows, tick(1, heard_us, heard_us - 3_600 * SECOND_US)]


@pytest.fixture(scope="module")
def parts(devices):
    """The rows in the parts in which they land."""
    _, rows = devices
    size = -(-len(rows) // 4)
    return [rows[start : start + size] for start in range(0, len(rows), size)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


def check(landed, readings, devices):
    """Check that a lake says what the recomputation says, which a job on this machine equals."""
    found = ReadLake(PROGRAM, landed.tables)
    assert found.current() == true_windows(PROGRAM, readings)
    value = found.globals()["global_average", ""]
    assert (value.partial, value.inputs) == true_global(PROGRAM, devices[0].values())
    assert max(each.count("final") for each in found.statuses().values()) == 1


def test_executor_and_driver_are_killed_and_the_tables_are_the_same(
    cluster, parts, readings, devices, tmp_path
):
    landed = Landed(tmp_path / "lake", parts)
    lake = landed.tables
    landed.land()
    words = (support_rooms.SPEC, "--lake", lake.root)
    job = cluster.job(*words)
    until(lambda: all_merged(lake), job)
    (killed, *_) = cluster.executors()
    os.kill(killed, signal.SIGKILL)
    landed.land()
    until(lambda: all_merged(lake), job)
    assert killed not in cluster.executors()
    landed.land()
    job.kill()
    while landed.parts:
        landed.land()
    # Another driver, started the other way, takes even few rows as it takes many.
    words = (support_many_rows.SPEC, "--lake", lake.root, "--no-lander", "--until-idle", "1")
    again = cluster.submit("job", *words)
    finish(again)
    check(landed, readings, devices)


def test_a_client_of_spark_connect_is_killed_and_the_tables_are_the_same(
    cluster, parts, readings, devices, tmp_path
):
    if any(find_spec(package) is None for package in ("grpc", "pandas", "zstandard")):
        lacks("needs the extra `connect`")
    landed = Landed(tmp_path / "lake", parts)
    lake = landed.tables
    port = free_port()
    listens = ("--conf", f"spark.connect.grpc.binding.port={port}")
    listens += ("--conf", "spark.connect.grpc.binding.address=127.0.0.1")
    server = cluster.submit("connect", options=listens, name="server")
    until(lambda: answers(port), server)
    words = (support_rooms.SPEC, "--lake", lake.root)
    landed.land()
    client = cluster.job(*words, name="client", master=f"sc://127.0.0.1:{port}")
    until(lambda: all_merged(lake), client)
    client.kill()
    while landed.parts:
        landed.land()
    again = cluster.job(*words, "--until-idle", "1", master=f"sc://127.0.0.1:{port}")
    finish(again)
    check(landed, readings, devices)
