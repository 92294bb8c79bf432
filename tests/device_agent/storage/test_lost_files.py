"""A store whose file is deleted or replaced, with its log or without, while it is used or not."""

import os
import shutil

import pytest

from device_agent.agent.changes import Changes
from device_agent.agent.state.store import FILE_NAME, LOCK_NAME, Store
from device_agent.console.belonging import is_used
from device_agent.storage.damage import DamagedStoreError, damaged_files
from tests.device_agent.agent.state.test_damage import killed
from tests.device_agent.agents import NOW_US, Device


@pytest.mark.parametrize("is_quarantine", [True, False], ids=["killed midway", "deleted"])
def test_a_log_without_its_file_is_kept_and_is_no_part_of_the_next_store(tmp_path, is_quarantine):
    left = killed(tmp_path, 12)
    log = (left / f"{FILE_NAME}-wal").read_bytes()
    if is_quarantine:  # the process was killed between the two renames
        (left / FILE_NAME).rename(left / f"{FILE_NAME}.damaged-1")
    else:
        (left / FILE_NAME).unlink()
    store = Store(left)
    kept = left / f"{FILE_NAME}.damaged-{2 if is_quarantine else 1}-wal"
    assert store.news == f"its file was missing, and its log is kept as {kept.name}"
    assert kept.read_bytes() == log
    assert [kept] in list(damaged_files(store.path))
    assert store.restored().counters == {}
    store.commit(Changes(counters={"accepted": 1}))
    store.close()
    again = Store(left)
    assert (again.news, again.restored().counters) == ("", {"accepted": 1})
    again.put_aside()
    assert (left / f"{FILE_NAME}.damaged-{3 if is_quarantine else 2}").is_file()
    assert kept.read_bytes() == log


def test_a_store_that_is_deleted_under_an_agent_is_noticed_at_its_next_commit(tmp_path):
    device = Device(tmp_path / "data")
    device.read([20.0], [NOW_US])
    shutil.rmtree(tmp_path / "data")
    with pytest.raises(DamagedStoreError, match="was deleted or replaced while it was in use"):
        device.read([21.0], [NOW_US + 1])
    device.store.put_aside()
    device.start()
    device.read([21.0], [NOW_US + 1])
    assert device.store.restored().counters["accepted"] == 1
    device.kill()
    assert [path.name for path in (tmp_path / "data").iterdir() if "damaged" in path.name] == []


def test_a_store_that_somebody_put_in_its_place_is_opened_next(tmp_path):
    device = Device(tmp_path / "data")
    device.read([20.0, 21.0], [NOW_US, NOW_US + 1])
    device.kill()
    shutil.copy(tmp_path / "data" / FILE_NAME, tmp_path / "backup")
    device.start()
    device.read([22.0], [NOW_US + 2])
    (tmp_path / "backup").replace(tmp_path / "data" / FILE_NAME)
    with pytest.raises(DamagedStoreError, match="replaced"):
        device.read([23.0], [NOW_US + 3])
    device.store.put_aside()
    device.start()
    assert (device.store.quarantined, device.counted["accepted"]) == (None, 2)
    device.read([23.0], [NOW_US + 3])
    assert device.store.restored().counters["accepted"] == 3


def test_a_pipe_in_the_place_of_the_lock_is_a_lock(tmp_path):
    os.mkfifo(tmp_path / LOCK_NAME)
    assert not is_used(tmp_path)
    Device(tmp_path)
    assert is_used(tmp_path)
    with pytest.raises(BlockingIOError):
        Store(tmp_path)
