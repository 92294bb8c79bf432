"""What `cloud` and `lander` refuse, each in one line and before anything is written."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cloud_tier.job.opened import Superseded
from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.failed import noted_failure
from cloud_tier.lake.tables import LakeTables
from lasp_edge import Program, folds
from lasp_edge.errors import EnvironmentLacks, Exit, UsageError
from lasp_edge.tool.command_line import main
from lasp_edge.tool.loading import load_plan
from simulations.processes.broker import free_port

pytest.importorskip("pyspark", reason="needs the extra `cloud`")

PROGRAM = "lasp_edge.examples.greenhouse:program"
NOBODY = "mqtt://127.0.0.1:1"
COMMANDS = (("cloud", PROGRAM, "--no-lander"), ("lander", PROGRAM, "--broker", NOBODY))


def refused(capsys, *words, code=Exit.USAGE):
    """Run a command that is to refuse; return its one line."""
    assert main([str(word) for word in words]) == code
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert printed.out == ""
    return line


def files(folder):
    return {path: path.stat().st_mtime_ns for path in Path(folder).rglob("*")}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
def test_a_lake_that_is_a_file_or_cannot_be_made(command, tmp_path, capsys):
    file = tmp_path / "file"
    file.touch()
    for place in (file, file / "lake"):
        assert "a directory is needed, not a file" in refused(capsys, *command, "--lake", place)
    assert "cannot be made" in refused(capsys, *command, "--lake", "/proc/lake")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
def test_a_lake_that_cannot_be_written(command, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    assert "this user cannot write there" in refused(capsys, *command, "--lake", tmp_path)
    monkeypatch.undo()
    (tmp_path / "landing").touch()  # the first of the tables' directories
    line = refused(capsys, *command, "--lake", tmp_path, code=Exit.ENVIRONMENT)
    assert "cannot be written: " in line


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
def test_a_lake_on_a_disk_that_is_read_only_is_no_mistake_of_options(
    command, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("os.access", lambda *_: False)
    monkeypatch.setattr("os.statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    line = refused(capsys, *command, "--lake", tmp_path, code=Exit.ENVIRONMENT)
    assert "its disk is mounted read-only; to bring it, type: sudo mount -o remount,rw" in line


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
def test_a_lake_of_another_program_is_refused_by_name_and_stays_as_it_is(command, tmp_path, capsys):
    other = Program("garden")
    event = other.event("moisture", resolution="0.1")
    other.window("wettest", source=event, fold=folds.max(), size_s=60)
    prepare(other.plan(), LakeTables(tmp_path))
    (tmp_path / "job.lock").touch()
    before = files(tmp_path)
    line = refused(capsys, *command, "--lake", tmp_path)
    assert "holds results of the program 'garden'; give 'greenhouse' a --lake of its own" in line
    assert files(tmp_path).keys() == before.keys()
    assert all(
        files(table) == {p: t for p, t in before.items() if table in p.parents}
        for table in map(Path, LakeTables(tmp_path).all)
    )


@pytest.mark.parametrize(
    "master", ["nonsense", "local[x]", "local[0]", "spark://cluster", "spark:/cluster:7077", ""]
)
def test_a_master_that_spark_does_not_know(master, tmp_path, capsys):
    lake = tmp_path / "lake"
    line = refused(capsys, *COMMANDS[0], "--lake", lake, "--master", master)
    assert "--master: local, local[N], spark://HOST:PORT" in line
    assert not lake.exists()


@pytest.mark.parametrize(
    ("scheme", "typed"), [("spark", "master.Master"), ("sc", "cloud_tier.command.submit connect")]
)
def test_a_cluster_that_does_not_answer(scheme, typed, tmp_path, capsys):
    port = free_port()
    lake = tmp_path / "lake"
    words = (*COMMANDS[0], "--lake", lake, "--master", f"{scheme}://127.0.0.1:{port}")
    line = refused(capsys, *words, code=Exit.ENVIRONMENT)
    assert "no Spark master answers" in line
    assert typed in line
    assert not lake.exists()


def test_metrics_of_steps_that_run_in_a_server_of_spark_connect(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:
        master = f"sc://127.0.0.1:{server.getsockname()[1]}/;user_id=me"
        words = (*COMMANDS[0], "--lake", tmp_path / "lake", "--master", master)
        line = refused(capsys, *words, "--metrics", "9100")
    assert "leave it out" in line
    assert not (tmp_path / "lake").exists()


def test_a_log_that_cannot_be_made(tmp_path, capsys):
    words = (*COMMANDS[1], "--lake", tmp_path, "--log-dir", "/proc/log")
    assert "--log-dir /proc/log cannot be made" in refused(capsys, *words)


def test_second_job_on_a_lake_is_refused_while_another_process_holds_it(tmp_path, capsys):
    holds = (
        "import sys; from cloud_tier.command.cloud import _locked;"
        "from cloud_tier.lake.tables import LakeTables;"
        "lock = _locked(LakeTables(sys.argv[1])); print('held', flush=True); input()"
    )
    words = [sys.executable, "-c", holds, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as first:
        assert first.stdout.readline() == "held\n"
        line = refused(capsys, *COMMANDS[0], "--lake", tmp_path)
        assert f"another `lasp-edge cloud` is merging into {tmp_path}" in line
        assert [path.name for path in tmp_path.iterdir()] == ["job.lock"]
        first.communicate("\n")
    assert first.returncode == 0


def test_a_job_that_merges_once_beside_a_lander_of_its_own(tmp_path, capsys):
    line = refused(capsys, "cloud", PROGRAM, "--once", "--broker", NOBODY, "--lake", tmp_path / "x")
    assert "--once merges what landers have landed: add --no-lander" in line
    assert not (tmp_path / "x").exists()


def test_why_a_job_ended_is_noted_in_the_lake_but_where_another_goes_on(
    tmp_path, capsys, monkeypatch
):
    def ends(error):
        def merge(*_, **__):
            raise error

        monkeypatch.setattr("cloud_tier.command.cloud._merge", merge)
        return refused(capsys, *COMMANDS[0], "--lake", tmp_path, code=error.exit_code)

    prepare(load_plan(PROGRAM), LakeTables(tmp_path))  # of a new lake a line would be printed
    for silent in (Superseded("a newer job"), UsageError("a word")):
        ends(silent)
        assert noted_failure(LakeTables(tmp_path)) is None
    assert "no Java" in ends(EnvironmentLacks("no Java"))
    assert noted_failure(LakeTables(tmp_path)).why == "no Java"
