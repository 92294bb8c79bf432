"""Ctrl-C ends each command without a traceback: while it starts, while it runs, while it ends."""

import os
import signal
import subprocess
import sys

import pytest

from crdts import ControlLog
from device_agent.gateway.store import FleetStore
from device_agent.gateway.table import meaning_of
from lasp_edge.errors import Exit
from lasp_edge.examples.greenhouse import program
from simulations.processes.broker import PrivateBroker
from tests.brokers import PATIENCE_S, broker_program

GREENHOUSE = "lasp_edge.examples.greenhouse:program"
SCRIPT = "import sys; from device_agent.console.start import main; sys.exit(main())"
IMPORTING = """
import os, signal, sys
from importlib.abc import MetaPathFinder

class Interrupted(MetaPathFinder):
    def find_spec(self, name, *_):
        if name == "lasp_edge.tool.command_line":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupted())
from device_agent.console.start import main
sys.argv[1:] = ["help"]
sys.exit(main())
"""


def test_while_it_is_imported():
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING], capture_output=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


AGAIN = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
os.kill(os.getpid(), signal.SIGINT)
line = [sys.executable, "-P", "-m", "device_agent.console.small_process", "agent"]
os.execv(sys.executable, line)
"""


def test_while_an_agent_starts_again_without_openssl():
    done = subprocess.run(
        [sys.executable, "-c", AGAIN], capture_output=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


def test_who_started_it_may_ignore_it():
    code = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{IMPORTING}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stderr) == (Exit.FINE, b"")
    assert b"usage: lasp-edge" in done.stdout


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with PrivateBroker(tmp_path_factory.mktemp("broker"), broker_program()) as started:
        yield started


RUNNING = {
    "agent": f"agent {GREENHOUSE} --device a --broker URL --data-dir a --source stdin",
    "gateway": f"gateway {GREENHOUSE} --broker URL --data-dir g",
    "watch": f"watch {GREENHOUSE} --broker URL --every 0.1",
    "dashboard": f"dashboard {GREENHOUSE} --broker URL --port 0",
    "windows": "windows temperature_by_room --gateway kept --follow",
}


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.parametrize("command", RUNNING)
def test_while_it_runs(command, broker, tmp_path):
    store = FleetStore(tmp_path / "kept")
    store.put_facts({"program": meaning_of(program.plan(), ControlLog()), "store": "s"})
    store.close()
    words = RUNNING[command].replace("URL", broker.url).split()
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    line = [sys.executable, "-c", SCRIPT, *words]
    running = subprocess.Popen(line, cwd=tmp_path, start_new_session=True, **pipes)
    try:
        assert running.stdout.readline()
        os.killpg(running.pid, signal.SIGINT)
        _, said = running.communicate(timeout=PATIENCE_S)
    finally:
        running.kill()
        running.wait()
    assert (running.returncode, said) == (Exit.INTERRUPTED, b"")
