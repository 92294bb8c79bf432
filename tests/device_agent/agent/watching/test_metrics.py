"""The figures of an agent, read back as Prometheus reads them."""

import socket

import pytest

from device_agent.agent.watching.metrics import LinkFigures, metrics
from device_agent.agent.watching.service_manager import ServiceManager
from lasp_edge.metrics.exposition import Metric, exposition
from lasp_edge.units import SECOND_US
from tests.lasp_edge.metrics.support_exposition import read

LINK = LinkFigures(2, 30, 40, 1, 5_000, 6_000)


def figures(device):
    core = device.core
    return read(exposition(metrics(core.report(), core.counters.totals, LINK, "greenhouse")))


def of(found, metric, /, **labels):
    return found[f"lasp_edge_{metric}", tuple(sorted(labels.items()))]


def test_an_agents_report_becomes_figures(device):
    device.read([21.5, 22.5])
    device.tick()
    found = figures(device)
    here = {"device": "pi-1"}
    assert of(found, "readings_total", **here, outcome="accepted") == 2
    assert of(found, "readings_total", **here, outcome="refused") == 0
    assert of(found, "value", **here, name="local_average", key="", part="mean") == 22
    assert of(found, "value_devices", **here, name="global_average") == 1
    assert of(found, "waiting_panes", **here, sink="lake") == 1
    assert of(found, "connected", **here) == 1
    assert of(found, "received_bytes_total", **here) == 6_000
    assert found["process_resident_memory_bytes", ()] > 10_000_000


def test_refusals_and_failures_have_their_reasons(device):
    device.core.counters.add('refused: no field "tsx"', 3)
    device.core.counters.add("failed: handler of temperature: line 1\nline 2")
    found = figures(device)
    assert of(found, "refused_readings_total", device="pi-1", reason='no field "tsx"') == 3
    reason = "handler of temperature: line 1\nline 2"
    assert of(found, "failures_total", device="pi-1", reason=reason) == 1


@pytest.mark.parametrize("text", ["plain", 'a "quoted" one', "two\nlines", "back\\slash", "Küche"])
def test_any_label_is_read_back(text):
    shown = exposition([Metric("m", "gauge", "Help.", [({"name": text}, 1)])])
    assert read(shown) == {("m", (("name", text),)): 1}


@pytest.fixture
def systemd(tmp_path):
    """A socket such as systemd's, and what was said on it since the last look."""
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(path))
        sock.settimeout(0)

        def heard():
            lines = []
            while True:
                try:
                    lines += sock.recv(4096).decode().split("\n")
                except BlockingIOError:
                    return lines

        yield {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": str(60 * SECOND_US)}, heard


def test_the_watchdog_hears_of_an_agent_only_while_it_is_well(systemd):
    environment, heard = systemd
    manager = ServiceManager(environment)
    now_us = 1_700_000_000 * SECOND_US
    manager.turn([], now_us)
    assert heard() == ["READY=1", "WATCHDOG=1", "STATUS=measuring"]
    manager.turn([], now_us + SECOND_US)
    assert heard() == []
    manager.turn([], now_us + 15 * SECOND_US)
    assert heard() == ["WATCHDOG=1"]
    manager.turn(["the link sleeps"], now_us + 40 * SECOND_US)
    assert heard() == ["STATUS=the link sleeps"]
    manager.turn(["the link sleeps"], now_us + 80 * SECOND_US)
    assert heard() == []
    manager.turn([], now_us + 81 * SECOND_US)
    assert heard() == ["WATCHDOG=1", "STATUS=measuring"]
    manager.stopping()
    assert heard() == ["STOPPING=1"]


def test_without_systemd_nothing_is_said():
    manager = ServiceManager({})
    manager.turn([], 1)
    manager.stopping()


def test_a_manager_that_is_gone_harms_nothing(tmp_path):
    ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "gone")}).turn([], 1)
