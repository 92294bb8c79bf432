"""A store can be looked at while an agent writes it, and on a card that takes no more."""

import resource
import sqlite3

import pytest

from device_agent.agent.state.store import FILE_NAME, Store, existing_store
from device_agent.gateway.store import FleetStore, existing_fleet
from device_agent.storage.read_only import ReadOnlyFile
from lasp_edge.errors import NotFound
from tests.device_agent.agents import NOW_US, Device


def test_one_may_look_while_an_agent_writes(tmp_path):
    device = Device(tmp_path)
    device.read([20.0], [NOW_US])
    looking = existing_store(tmp_path)
    assert [reading["q"] for reading in looking.readings()] == [2000]
    device.read([21.0], [NOW_US])
    assert len(list(looking.readings())) == 2
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        ReadOnlyFile(tmp_path / FILE_NAME).execute("DELETE FROM reading")
    looking.close()
    device.kill()
    closed = existing_store(tmp_path)
    assert len(list(closed.readings())) == 2
    closed.close()


INDEX_BYTES = 32_768
"""Bytes of the least index of a log."""


def without_an_index(directory):
    """Let SQLite make no index of a log, as on a card that has become read-only."""
    (directory / f"{FILE_NAME}-shm").symlink_to("/proc/nowhere")


def test_one_may_look_where_nothing_can_be_written_beside_the_file(tmp_path):
    device = Device(tmp_path)
    device.read([20.0], [NOW_US])
    device.kill()
    without_an_index(tmp_path)
    looking = existing_store(tmp_path)
    assert [reading["q"] for reading in looking.readings()] == [2000]
    looking.close()


def test_one_may_look_on_a_full_card(tmp_path, monkeypatch):
    device = Device(tmp_path)
    device.read([20.0], [NOW_US])
    device.kill()
    files = [tmp_path / FILE_NAME, *tmp_path.glob(f"{FILE_NAME}-wal")]
    room = max(file.stat().st_size for file in files)
    assert room < INDEX_BYTES, "then the files can be copied, and the index has no room"
    monkeypatch.setattr("tempfile.tempdir", "/proc/nowhere")  # the copy has none there, either
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        looking = existing_store(tmp_path)
        found = [reading["q"] for reading in looking.readings()]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert found == [2000]
    looking.close()


def test_a_file_that_may_not_be_read_is_no_traceback(tmp_path, monkeypatch):
    Device(tmp_path).kill()
    without_an_index(tmp_path)

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("shutil.copyfile", denied)
    with pytest.raises(NotFound, match=r"cannot be read: .*Permission denied"):
        existing_store(tmp_path)


def test_looking_at_a_damaged_file_leaves_it_where_it_is(tmp_path):
    (tmp_path / FILE_NAME).write_bytes(b"no database" * 1_000)
    with pytest.raises(NotFound, match="cannot be read"):
        existing_store(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_looking_where_no_agent_was_says_so(tmp_path):
    with pytest.raises(NotFound, match="holds no agent's data"):
        existing_store(tmp_path)


def test_the_directory_of_the_other_is_named_as_that_with_what_to_type(tmp_path):
    of_agent, of_gateway = tmp_path / "agent", tmp_path / "gateway"
    Store(of_agent).close()
    FleetStore(of_gateway).close()
    with pytest.raises(NotFound, match=r"of a gateway, .* results, with NAME --gateway "):
        existing_store(of_gateway)
    with pytest.raises(NotFound, match=r"of an agent, .* --data-dir .* --program "):
        existing_fleet(of_agent)
