"""A lake in an object store: lander, job and commands against a server of S3 on this machine.

The job is started as docs/cloud.md says, killed, and started again. The tables are to equal the
recomputation. No part of the suite: see `make test-cluster`.
"""

import csv
import json
import shlex
import sys
from importlib.util import find_spec
from io import StringIO

import pytest

from cloud_tier.lake.tables import LakeTables
from cloud_tier.spark.session import LOG_OPTION
from lasp_edge.errors import Exit
from simulations.processes.process import COMMAND
from tests.brokers import free_port
from tests.cloud_tier.cluster import support_rooms
from tests.cloud_tier.cluster.on_frozen_drivers import Drivers, check_frozen, ended
from tests.cloud_tier.cluster.support_cluster import LIGHT, answers, finish, until
from tests.cloud_tier.lakes import ReadLake
from tests.cloud_tier.support_devices import SECOND_US, readings_of, true_windows
from tests.end_to_end.support_site import Process, Site
from tests.end_to_end.support_site import until as until_true
from tests.support_missing import lacks
from tests.support_readme import block, commands

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.slow]

PROGRAM = support_rooms.program.plan()
READINGS = sorted(readings_of(7, devices=2, each=30), key=lambda reading: reading.time_us)
FIELDS = ("--time", "ts", "--device-field", "device")
FIELDS += ("--event", "temperature=temp", "--tag", "room=room")
LAKE = "s3a://bucket/lake"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Return the URL of a server of S3 that has an empty bucket; the environment names it."""
    if any(find_spec(package) is None for package in ("moto", "flask", "boto3")):
        lacks("needs the extra `cluster`")
    import boto3  # noqa: PLC0415 - an extra

    port = free_port()
    url = f"http://127.0.0.1:{port}"
    words = ["-m", "moto.server", "--host", "127.0.0.1", "--port", str(port)]
    server = Process(tmp_path_factory.mktemp("store"), "store", [sys.executable, *words])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", url)
        patch.setenv("AWS_ALLOW_HTTP", "true")
        patch.setenv("AWS_REGION", "us-east-1")
        patch.setenv("AWS_ACCESS_KEY_ID", "a-key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
        server.run([])
        try:
            until(lambda: answers(port), server)
            boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="bucket")
            yield url
        finally:
            server.end()


@pytest.fixture
def site(tmp_path):
    """A fleet that replays the readings."""
    lines = [
        {"ts": r.time_us / SECOND_US, "device": r.device, "temp": r.value, "room": r.tags["room"]}
        for r in READINGS
    ]
    recording = tmp_path / "readings.jsonl"
    recording.write_text("".join(json.dumps(line) + "\n" for line in lines))
    devices = {reading.device for reading in READINGS}
    with Site(
        tmp_path / "site", recording, devices, program=support_rooms.SPEC, fields=FIELDS
    ) as made:
        yield made


def as_documented(number):
    """Return the words of a command of docs/cloud.md, for this program and lake."""
    words = shlex.split(commands(block("object store"))[number])
    return [words[1], support_rooms.SPEC, *words[3:]]


def of_this_store(url):
    """Return the options of a job by which it finds a store not Amazon's, and starts quickly."""
    here = {
        "spark.hadoop.fs.s3a.endpoint": url,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.driver.extraJavaOptions": f"{LOG_OPTION} {LIGHT}",
    }
    return [word for setting in here.items() for word in ("--conf", "=".join(setting))]


def printed(process, *words):
    """Return what a command prints."""
    process.run(words)
    finish(process)
    return process.printed.read_text()


def test_a_store_that_refuses_is_told_in_one_line(store, tmp_path):
    shell = Process(tmp_path, "shell", COMMAND)
    shell.run(["windows", "by_room", "--lake", "s3a://no-such-bucket/lake"])
    until_true(lambda: not shell.runs, shell.last_words)
    (line,) = shell.complained.read_text().splitlines()
    assert (shell.exit_code, "NoSuchBucket" in line) == (Exit.ENVIRONMENT, True)


def test_a_lake_in_an_object_store_equals_the_recomputation(store, site, tmp_path):
    lander, job = as_documented(0), as_documented(1)
    site.lander.run([*lander, "--broker", site.broker.url, "--log-dir", str(site.folder / "log")])
    site.start_agents()
    until_true(site.landed, site.standing)
    job += [
        *of_this_store(store),
        "--master",
        "local[2]",
        "--trigger",
        "0.5",
        "--roster",
        ",".join(site.devices),
    ]
    site.cloud.run(job)
    tables = LakeTables(LAKE)
    until(lambda: tables.table(tables.lattice).version() > 0, site.cloud)
    site.cloud.kill()
    site.cloud.run([*job, "--until-idle", "1"])
    finish(site.cloud)
    site.stop()
    assert site.lander.stop() == 0
    found = ReadLake(PROGRAM, tables)
    assert found.current() == true_windows(PROGRAM, READINGS)
    assert max(each.count("final") for each in found.statuses().values()) == 1
    shell = Process(tmp_path, "shell", COMMAND)
    status = json.loads(printed(shell, "lake", "status", "--lake", LAKE, "--json"))
    assert status["frontier"]["held_by"] == []
    assert status["tables"]["windows"]["rows"] == len(found.rows(tables.windows))
    shown = printed(shell, "windows", "by_room", "--lake", LAKE, "--csv")
    rows = {(row["key"], int(row["start_us"])): row for row in csv.DictReader(StringIO(shown))}
    assert {at: (int(row["count"]), int(row["total_q"])) for at, row in rows.items()} == {
        (key, start_us): partial
        for (name, key, start_us), (partial, _) in found.current().items()
        if name == "by_room"
    }


def test_of_two_drivers_on_an_object_store_the_frozen_one_ends_in_one_line(store, tmp_path):
    _, _, *words = as_documented(1)
    settings = [word for word in words if word not in {"--no-lander", "--lake", LAKE}]
    options = [*settings, *of_this_store(store), "--master", "local[1]"]
    with ended(Drivers(tmp_path, "s3a://bucket/two", options)) as drivers:
        check_frozen(drivers, "windows")
