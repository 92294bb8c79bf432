"""The lander as a child process: started again when it dies, gone when its job is."""

import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from cloud_tier.lander.child import LanderChild
from lasp_edge.errors import Exit
from lasp_edge.tool.command_line import main
from tests.brokers import until_true

PROGRAM = "lasp_edge.examples.greenhouse:program"
NOBODY = "mqtt://127.0.0.1:1"


def test_lander_that_dies_is_started_again_at_growing_intervals():
    child = LanderChild(["--help"])
    starts = []
    now_s = 0.0
    for _ in range(3):
        while not child.runs:
            child.watch(now_s)
            now_s += 0.25
        starts.append(now_s)
        until_true(lambda: not child.runs)
    gaps = [after - before for before, after in pairwise(starts)]
    assert gaps[0] < gaps[1]


def test_lander_stops_when_it_is_told_to(tmp_path):
    child = LanderChild([PROGRAM, "--broker", NOBODY, "--lake", str(tmp_path)])
    child.watch(0.0)
    until_true((tmp_path / "log" / "lander").exists)
    child.stop()
    assert not child.runs
    child.stop()


def test_a_lander_that_does_not_stop_is_killed_and_has_ended_then(tmp_path):
    deaf, child = tmp_path / "deaf", LanderChild([])
    code = (
        "import signal, time; from pathlib import Path;"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        f"Path({str(deaf)!r}).touch(); time.sleep(600)"
    )
    child._command = [sys.executable, "-c", code]
    child.watch(0.0)
    until_true(deaf.exists)
    lander = child._process
    child.stop(within_s=0.1)
    assert lander.returncode == -signal.SIGKILL


def test_lander_ends_when_its_job_was_killed(tmp_path):
    code = (
        "import os; from cloud_tier.lander.child import LanderChild;"
        f"child = LanderChild([{PROGRAM!r}, '--broker', {NOBODY!r}, '--lake', {str(tmp_path)!r}]);"
        "child.watch(0.0); print(child._process.pid, flush=True); input()"
    )
    job = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    lander = int(job.stdout.readline())
    until_true((tmp_path / "log" / "lander").exists)
    job.kill()
    job.communicate()
    until_true(lambda: not _is_alive(lander))


def _is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        ([PROGRAM], Exit.USAGE, "--broker is needed"),
        ([PROGRAM, "--broker", "http://x"], Exit.USAGE, "mqtt://"),
        (["no.such:program", "--broker", NOBODY], Exit.NOT_FOUND, "no module"),
        ([PROGRAM, "--no-lander", "--conf", "x"], Exit.USAGE, "K=V"),
        ([PROGRAM, "--no-lander", "--retain-days", "nan"], Exit.USAGE, "from 0 to 100,000, not"),
        ([PROGRAM, "--no-lander", "--conf", "spark.sql.ansi.enabled=false"], Exit.USAGE, "results"),
    ],
)
def test_wrong_arguments_of_cloud_say_what_is_needed(tmp_path, capsys, words, code, why):
    pytest.importorskip("pyspark", reason="needs the extra `cloud`")
    assert main(["cloud", *words, "--lake", str(tmp_path / "lake")]) == code
    assert why in capsys.readouterr().err
