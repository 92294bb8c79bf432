"""A lander whose disk is full, or gone, acknowledges nothing, and goes on by itself after that."""

import errno
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from cloud_tier.lake import room
from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.tables import LakeTables
from cloud_tier.lander import landing as landing_module
from cloud_tier.lander import process as process_module
from cloud_tier.lander.process import LanderProcess
from lasp_edge.errors import EnvironmentLacks, UsageError
from lasp_edge.link import BrokerUrl, Connected, Message
from tests.cloud_tier.frames import FakeLink, message
from tests.cloud_tier.support_devices import rooms
from tests.lasp_edge.protocol.support_frames import beat, panes

PROGRAM = rooms()
BROKER = BrokerUrl.parse("mqtt://127.0.0.1:1")


class Broker:
    """Brings unacknowledged messages to each link again, and frees the disk later."""

    log = None

    def __init__(self, *messages):
        self.kept = list(messages)
        self.links = []
        self.waits = 0
        self.is_full = True

    def begin(self):
        """Begin a process."""
        log = self.log or Path(self.tables.log)
        self.process = LanderProcess(PROGRAM, BROKER, self.tables, log, wait=self.wait)

    def link(self, *_, **__):
        self.links.append(BrokerLink(self))
        return self.links[-1]

    def wait(self, _seconds):
        self.waits += 1
        assert self.waits < 200, "it never went on"
        if self.waits == 9:
            self.is_full = False


class BrokerLink(FakeLink):
    def __init__(self, broker):
        super().__init__()
        self.broker = broker

    def start(self):
        self.coming.append([Connected("5", session_present=True), *self.broker.kept])
        if not self.broker.kept:
            self.broker.process.stop()

    def acknowledge(self, message):
        assert not self.broker.is_full
        self.broker.kept.remove(message)
        if not self.broker.kept:
            self.broker.process.stop()

    def wake(self):
        pass

    def stop(self):
        pass


@pytest.fixture
def broker(tmp_path, monkeypatch):
    made = Broker(message(panes(PROGRAM, 4)), message(beat(1, 10)))
    monkeypatch.setattr(process_module, "Link", made.link)
    made.tables = LakeTables(tmp_path / "lake")
    made.begin()
    return made


def landed(broker):
    rows = DeltaTable(broker.tables.landing).to_pyarrow_table().to_pylist()
    return sorted(row["kind"] for row in rows if row["kind"] != "tick")


def test_full_disk_of_the_log_stops_acknowledging_until_there_is_room(broker, monkeypatch, caplog):
    right = os.fsync

    def fsync(descriptor):
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if broker.is_full and path.suffix == ".segment":
            raise OSError(errno.ENOSPC, "No space left on device")
        right(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    broker.process.run()
    assert broker.waits >= 9
    assert len(broker.links) > 1, "it started over as a new process would"
    assert set(landed(broker)) == {"pane", "promise"}
    assert "No space left on device; nothing is acknowledged until that works" in caplog.text
    assert caplog.messages.count("writing works again") == 1
    assert caplog.messages[-1] == "writing works again"


def test_full_disk_of_the_lake_lands_from_the_log_when_there_is_room(broker, monkeypatch):
    right = landing_module.write_deltalake

    def write(*arguments, **options):
        if broker.disk_of_lake_is_full:
            raise DeltaError("No space left on device")
        right(*arguments, **options)

    monkeypatch.setattr(landing_module, "write_deltalake", write)
    broker.disk_of_lake_is_full, broker.is_full = True, False
    broker.process.run()
    assert broker.kept == [], "they are in the log"
    assert landed(broker) == []
    broker.disk_of_lake_is_full = False
    broker.begin()
    broker.process.run()
    assert set(landed(broker)) == {"pane", "promise"}


@pytest.mark.parametrize("table", ["landing", "rejects"])
def test_a_change_of_metadata_between_two_commits_is_no_failure(broker, monkeypatch, caplog, table):
    """As `lake retain` makes it beside a lander: the segment is committed on top of it."""
    right, changed = landing_module.write_deltalake, []

    def write(there, *arguments, **options):
        if not changed and there.table_uri.rstrip("/").endswith(table):
            changed.append(DeltaTable(there.table_uri))
            for value in ("false", "true"):
                changed[0].alter.set_table_properties({"delta.appendOnly": value})
        right(there, *arguments, **options)

    monkeypatch.setattr(landing_module, "write_deltalake", write)
    broker.kept.append(
        Message(broker.kept[0].topic, b"no frame", retain=False, qos=1, token=(1, 1))
    )
    broker.is_full = False
    broker.process.run()
    assert len(changed) == 1
    assert (broker.waits, len(broker.links), caplog.text) == (0, 1, "")
    assert set(landed(broker)) == {"pane", "promise"}


def test_a_lander_that_waits_for_room_can_be_stopped(broker, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "full")))
    broker.process._wait = lambda _: broker.process.stop()
    broker.process.run()
    assert len(broker.kept) == 2


def test_second_lander_on_one_log_is_refused_and_does_not_wait(broker):
    first = process_module.Log(Path(broker.tables.log), "one")
    with pytest.raises(UsageError, match="another lander"):
        broker.process.run()
    first.release()
    assert broker.waits == 0


def test_a_start_makes_no_lake_in_place_of_one_whose_disk_is_not_mounted(broker, tmp_path):
    broker.is_full = False
    broker.log = tmp_path / "log"
    broker.begin()
    broker.process.run()
    disk = Path(broker.tables.root).rename(tmp_path / "disk")
    with pytest.raises(EnvironmentLacks, match="shows whether its disk is mounted") as refused:
        broker.begin()
    assert list(Path(broker.tables.root).iterdir()) == []

    Path(broker.tables.root).rmdir()
    disk.rename(broker.tables.root)
    broker.begin()  # it is mounted again
    assert set(landed(broker)) == {"pane", "promise"}

    Path(broker.tables.root).rename(disk)
    typed = str(refused.value).partition("type: ")[2].partition(" (")[0]
    subprocess.run(shlex.split(typed), check=True)
    broker.begin()
    assert landed(broker) == []


def test_a_lander_whose_lake_goes_waits_and_makes_nothing_in_its_place(broker, tmp_path, caplog):
    broker.is_full = False
    disk = Path(broker.tables.root).rename(tmp_path / "disk")
    waited = []

    def come_back(_seconds):
        if not waited:
            waited.append(Path(broker.tables.root).exists())
            disk.rename(broker.tables.root)

    broker.process._wait = come_back
    broker.process.run()
    assert waited == [False]
    assert "shows whether its disk is mounted" in caplog.text
    assert set(landed(broker)) == {"pane", "promise"}


def test_a_lake_with_little_room_left_gets_nothing_until_there_is_more(broker, monkeypatch, caplog):
    """The lander waits before the disk is full, where libraries below would print pages."""
    broker.is_full = False
    before = list(Path(broker.tables.landing).iterdir())
    monkeypatch.setattr(room, "LEAST_FREE_BYTES", 1 << 80)
    broker.process.run()
    assert broker.kept == [], "they are in the log"
    assert list(Path(broker.tables.landing).iterdir()) == before
    (line,) = [line for line in caplog.messages if line.startswith("cannot write: ")]
    assert f"type: df -h {broker.tables.root}; nothing is acknowledged" in line
    monkeypatch.setattr(room, "LEAST_FREE_BYTES", 0)
    broker.begin()
    broker.process.run()
    assert set(landed(broker)) == {"pane", "promise"}


def test_no_lake_is_made_where_there_is_no_room_for_a_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "LEAST_FREE_BYTES", 1 << 80)
    lake = LakeTables(tmp_path / "lake")
    with pytest.raises(EnvironmentLacks, match=r"No space left on device: .* type: df -h "):
        prepare(PROGRAM, lake)
    assert list(Path(lake.root).iterdir()) == []
