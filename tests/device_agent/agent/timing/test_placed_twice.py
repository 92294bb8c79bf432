"""Readings that waited for the clock, on a store that is an older image: they wait there again."""

from dataclasses import replace
from shutil import copytree, rmtree

import pytest

from crdts import Replica
from lasp_edge.protocol.fencing import ProcessReport
from lasp_edge.units import SECOND_US
from tests.device_agent.agent.timing.clocked import TRUE_US, ClockedDevice

TWICE = "fence: readings that may count twice"
WAITED, LATER = 5, 3
"""Readings that wait in the image, and those that come after it was restored."""


@pytest.fixture
def device(tmp_path):
    """Return a device on an image of its store, in which readings wait that were placed since."""
    device = ClockedDevice(tmp_path / "store", off_us=-TRUE_US)
    device.reads_for(WAITED)
    device.tick()
    device.kill()
    copytree(tmp_path / "store", tmp_path / "image")
    device.start()
    device.off_us = 0
    device.tick()
    assert device.counted["accepted"] == WAITED
    device.told = ProcessReport(Replica(2, 2, device.name), device.core.fence.source_highs())
    device.kill()
    rmtree(tmp_path / "store")
    copytree(tmp_path / "image", tmp_path / "store")
    device.off_us = -TRUE_US
    device.start()
    device.reads_for(LATER)
    return device


def tell(device):
    device.core.intake.peer_reports.learn(device.told, device.now_us)


@pytest.mark.parametrize("apart_us", [0, SECOND_US // 2, -SECOND_US // 2])
def test_what_an_earlier_life_has_placed_is_doubtful(device, apart_us):
    """The clock of that life may have been somewhat behind, or ahead."""
    tell(device)
    device.tick(5)
    device.reads_for(LATER)
    device.off_us = apart_us
    device.tick()
    assert device.counted["doubtful"] == WAITED
    assert device.counted["accepted"] == 2 * LATER
    assert device.core.intake.low_us(device.now_us) is not None


def test_what_was_placed_before_that_was_told_may_count_twice(device):
    device.off_us = 0
    device.tick()
    assert (device.counted["accepted"], device.counted.get(TWICE, 0)) == (WAITED + LATER, 0)
    tell(device)
    assert device.counted[TWICE] == WAITED


def test_a_life_that_has_placed_nothing_raises_no_doubt(device):
    device.told = device.told._replace(highs=())
    tell(device)
    device.off_us = 0
    device.tick()
    assert device.counted["accepted"] == WAITED + LATER
    assert not device.counted.get("doubtful", 0)


def test_they_wait_for_the_fence(device):
    device.kill()
    device.settings = replace(device.settings, fence_wait_us=10 * SECOND_US)
    device.off_us = 0
    device.start()
    device.tick()
    assert device.counted.get("accepted", 0) == 0
    tell(device)
    device.tick(11)
    device.tick()
    assert device.counted["doubtful"] == WAITED
