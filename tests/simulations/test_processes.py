"""Whatever becomes of the demo, nothing that it started outlives it."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from simulations.processes.process import Process, Processes, stop
from tests.simulations.watching import eventually, runs

PYTHON = [sys.executable, "-c"]
LONG = [*PYTHON, "import time; time.sleep(600)"]
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(600)
"""
# Prints the id of its own child, which leads a process group: two generations in one session.
PARENT = f"""
import subprocess, time
print(subprocess.Popen({LONG!r}, process_group=0).pid, flush=True)
time.sleep(600)
"""
PLAY = f"""
import time
from simulations.processes.process import Processes

with Processes() as processes:
    parent = processes.new("parent", {PYTHON!r})
    parent.run([{PARENT!r}])
    while not (lines := parent.new_lines()):
        time.sleep(0.02)
    print(processes.folder, *lines, sep="\\n", flush=True)
    time.sleep(600)
"""


def started(processes: Processes, code: str) -> tuple[Process, list[str]]:
    """Return a process, and what it has printed first."""
    process, lines = processes.new("child", PYTHON), list[str]()
    process.run([code])
    assert eventually(lambda: lines.extend(process.new_lines()) or bool(lines))
    return process, lines


def test_an_exception_in_the_block_ends_processes_and_their_children_and_the_folder():
    with pytest.raises(ZeroDivisionError), Processes() as processes:  # noqa: PT012
        parent, (line,) = started(processes, PARENT)
        1 / 0  # noqa: B018
    assert eventually(lambda: not runs(parent.pid))
    assert eventually(lambda: not runs(int(line)))
    assert not processes.folder.exists()


def test_a_process_that_ignores_sigterm_is_killed():
    with Processes() as processes:
        deaf, _ = started(processes, DEAF)
        stop([deaf], grace_s=0.1)
        assert (deaf.exit_code, deaf.ended_by_itself) == (-signal.SIGKILL, False)


def test_a_process_that_ends_by_itself_is_known_and_its_last_lines_are_read():
    with Processes() as processes:
        alone = processes.new("alone", PYTHON)
        alone.run(["import sys; print(*range(5000), sep='\\n'); sys.exit('bye')"])
        assert eventually(lambda: alone.ended_by_itself)
        assert alone.new_lines() == [str(n) for n in range(5000)]
        assert (alone.last_lines(), alone.exit_code) == (["bye"], 1)
        alone.run(["print('again')"])
        assert eventually(lambda: alone.ended_by_itself)
        assert alone.new_lines() == ["again"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_ended_by_a_signal_leaves_nothing_behind(number):
    demo = subprocess.Popen([*PYTHON, PLAY], stdout=subprocess.PIPE, text=True)
    assert demo.stdout is not None
    folder, grandchild = Path(demo.stdout.readline().strip()), int(demo.stdout.readline())
    assert folder.is_dir()
    assert runs(grandchild)
    demo.send_signal(number)
    demo.wait()
    demo.stdout.close()
    assert eventually(lambda: not runs(grandchild))
    assert eventually(lambda: not folder.exists())
