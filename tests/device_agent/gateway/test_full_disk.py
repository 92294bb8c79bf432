"""A gateway whose disk is full: it says so once, what to type, and when it goes on."""

import sqlite3

import pytest

from device_agent.gateway import process as process_module
from device_agent.gateway.core import WaitingTerms
from device_agent.gateway.process import GatewayProcess
from device_agent.gateway.run import GatewaySettings
from device_agent.gateway.store import FILE_NAME, FleetStore, existing_fleet
from device_agent.storage.damage import DamagedStoreError
from lasp_edge.link import BrokerUrl, Connected
from tests.cloud_tier.frames import FakeLink, message
from tests.cloud_tier.support_devices import rooms
from tests.lasp_edge.protocol.support_frames import BEGIN_US, SECOND_US, panes

PROGRAM = rooms()
FAILURES = 3


class Full:
    """A disk that is full for some commits, and a broker that brings a message again and again."""

    def __init__(self, directory, monkeypatch):
        self.failures, self.links, right = 0, 0, FleetStore.commit

        def commit(store, changes):
            self.fail_at_first()
            right(store, changes)
            if changes.entries:
                self.process.stop()

        monkeypatch.setattr(FleetStore, "commit", commit)
        monkeypatch.setattr(process_module, "Link", self.link)
        settings = GatewaySettings("gateway", "", WaitingTerms(), 0, 0)
        self.process = GatewayProcess(
            PROGRAM,
            BrokerUrl.parse("mqtt://127.0.0.1:1"),
            directory,
            settings,
            say=lambda _: None,
            wait=lambda _: None,
        )

    def link(self, *_, **__):
        self.links += 1
        assert self.links < 20, "it never went on"
        return BrokerLink()

    def fail_at_first(self):
        if self.failures < FAILURES:
            self.failures += 1
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
            raise error


class BrokerLink(FakeLink):
    trouble = None

    def start(self):
        self.coming.append([Connected("5", session_present=True), message(panes(PROGRAM, 4))])

    def stop(self, *_, **__):
        pass

    def wake(self):
        pass


@pytest.fixture
def full(tmp_path, monkeypatch):
    return Full(tmp_path / "data", monkeypatch)


def test_it_says_once_what_to_type_and_goes_on_when_there_is_room(full, tmp_path, caplog):
    full.process.run()
    assert full.failures == FAILURES
    why, again = (
        record.getMessage() for record in caplog.records if "kept again" in record.getMessage()
    )
    data = tmp_path / "data"
    assert why.startswith(
        "nothing is acknowledged until data can be kept again: the gateway's data cannot be kept "
        f"in {data}: disk I/O error, "
    )
    assert why.endswith(f" MB are free; to see what takes the rest, type: df -h {data}")
    assert again == "the gateway's data can be kept again"
    kept = existing_fleet(data)
    entries = kept.entries(PROGRAM.windows["by_room"].stream, BEGIN_US, BEGIN_US + 10 * SECOND_US)
    kept.close()
    assert [(each.key, each.partial) for each in entries] == [
        ("attic", (1, 2000)),
        ("cellar", (2, 4100)),
    ]


def test_a_store_that_is_found_to_be_damaged_is_put_aside_and_a_new_one_goes_on(
    full, tmp_path, monkeypatch
):
    def fail_at_first():
        if not full.failures:
            full.failures += 1
            raise DamagedStoreError("a row cannot be read")

    monkeypatch.setattr(full, "fail_at_first", fail_at_first)
    full.process.run()
    names = {each.name for each in (tmp_path / "data").iterdir()}
    assert f"{FILE_NAME}.damaged-1" in names
    assert FILE_NAME in names
