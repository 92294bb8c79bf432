"""Beats are few: they say something new, answer whoever has come, or keep the device alive."""

import pytest

from crdts import Replica
from device_agent.agent.settings import Settings
from lasp_edge.protocol.frames import AskFrame, BeatFrame, PresenceFrame
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import Device

OTHER = Replica(1, 99, "pi-2")
OPERATOR = Replica(1, 5, "operator")


@pytest.fixture
def device(tmp_path):
    found = Device(tmp_path, settings=Settings.paced())
    for _ in range(1_000):
        found.tick()
    found.sent.clear()
    return found


def beats(device, seconds):
    return len(device.frames(BeatFrame, [p for _ in range(seconds) for p in device.tick()]))


def test_an_idle_device_sends_a_beat_in_four_minutes(device):
    assert beats(device, 2_400) == 10


def test_an_operator_that_asks_gets_a_beat_within_seconds(device):
    beats(device, 5)
    device.hear(AskFrame(OPERATOR, 1, "pi-1", ""))
    assert beats(device, 3) == 1
    assert beats(device, 60) == 0


def test_a_device_that_comes_hears_the_others_within_seconds(device):
    beats(device, 5)
    device.hear(PresenceFrame(OTHER, 1, online=True, program="", release=""))
    assert beats(device, 3) == 1
    device.hear(PresenceFrame(OTHER, 1, online=True, program="", release=""))
    assert beats(device, 60) == 0
    device.hear(PresenceFrame(OTHER._replace(nonce=100), 1, online=True, program="", release=""))
    assert beats(device, 3) == 1


def test_a_thousand_devices_that_come_at_once_get_few_beats(device):
    for number in range(1_000):
        other = Replica(1, number, f"other-{number}")
        device.hear(PresenceFrame(other, 1, online=True, program="", release=""))
    assert beats(device, 10) == 1


def test_a_promise_is_news_when_it_passes_the_end_of_a_pane(tmp_path):
    device = Device(tmp_path, settings=Settings(results_us=0))
    device.read([20.0])
    for _ in range(20):
        device.land()
    low_us = [beat.lows[0].low_us for beat in device.frames(BeatFrame)]
    panes = [low // (10 * SECOND_US) for low in low_us if low is not None]
    assert len(panes) <= len(set(panes)) + 3  # what else was new, and a beat that keeps alive
