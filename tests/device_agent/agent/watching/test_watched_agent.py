"""A real agent that is watched: by whoever asks for its page, and by systemd's watchdog."""

import json
import signal
import socket
import urllib.request
from pathlib import Path

import pytest

from device_agent.agent.watching.service_manager import SOCKET, WATCHDOG
from lasp_edge.errors import Exit
from simulations.processes.broker import free_port
from tests.brokers import PATIENCE_S
from tests.device_agent.agent.watching.test_metrics import of, read
from tests.device_agent.support_stage import NAME, lasp_edge

pytestmark = [pytest.mark.broker, pytest.mark.slow]


def asked(port, path):
    """Return what the agent's page says."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_S) as answer:
        return answer.read().decode()


def test_a_watched_agent_tells_its_figures_and_feeds_the_watchdog(stage, monkeypatch):
    stage.record("a", 10)
    port, path = free_port(), stage.directory / "systemd"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(path))
        systemd.settimeout(PATIENCE_S)
        monkeypatch.setenv(SOCKET, str(path))
        monkeypatch.setenv(WATCHDOG, "2000000")
        agent = stage.replay("a", "--metrics", port)
        stage.lander.serve(agent.done)
        found = read(asked(port, "/metrics"))
        assert of(found, "readings_total", device="a", outcome="accepted") == 10
        assert of(found, "connected", device="a") == 1
        assert of(found, "waiting_panes", device="a", sink="lake") == 0
        well = json.loads(asked(port, "/healthz"))
        assert well == {"ok": True, "problems": [], "connected": True}
        assert agent.memory_mib("VmHWM") <= 30
        heard = systemd.recv(4096).split(b"\n")
        assert heard == [b"READY=1", b"WATCHDOG=1", b"STATUS=measuring"]
        assert systemd.recv(4096) == b"WATCHDOG=1"
        agent.send(signal.SIGTERM)
        while (last := systemd.recv(4096)) == b"WATCHDOG=1":
            continue
        assert last == b"STOPPING=1"
        assert agent.process.wait(timeout=PATIENCE_S) == 0


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("http", "--metrics: a port such as 9100, or HOST:PORT, not 'http'"),
        ("70000", "--metrics: a port such as 9100, or HOST:PORT, not '70000'"),
        (
            "192.0.2.1:9100",
            "--metrics 192.0.2.1:9100: Cannot assign requested address; choose 127.0.0.1:9100",
        ),
    ],
)
def test_a_page_that_cannot_be_is_refused_at_the_start(stage, address, why):
    printed = lasp_edge(
        *("agent", f"{NAME}:program", "--device", "b", "--broker", stage.broker.url),
        *("--data-dir", Path("b"), "--source", "host", "--metrics", address),
        cwd=stage.directory,
    )
    assert (printed.returncode, printed.stderr) == (Exit.USAGE, f"lasp-edge agent: {why}\n")
