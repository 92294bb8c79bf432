"""The unit that `lasp-edge service install` writes: systemd understands it, and runs that agent."""

import configparser
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from device_agent.console.command import service
from lasp_edge.errors import Exit
from lasp_edge.tool.command_line import main
from tests.brokers import PATIENCE_S
from tests.support_missing import lacks

PROGRAM = "lasp_edge.examples.greenhouse:program"


@pytest.fixture
def install(tmp_path, monkeypatch, capsys):
    """Return the exit code, what was printed, and the unit's text, of an installation."""
    units = tmp_path / "units"
    units.mkdir()
    monkeypatch.setattr(service, "UNITS", units)
    monkeypatch.chdir(tmp_path)

    def run(*words, device="kitchen", data="data", name="lasp-edge"):
        agent = [PROGRAM, "--device", device, "--broker", "mqtt://x", "--data-dir", data]
        code = main(["service", "install", *words, "--", *agent, "--source", "host"])
        path = units / f"{name}.service"
        return code, capsys.readouterr(), path.read_text() if path.exists() else ""

    return run


def read(unit):
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str
    parser.read_string(unit)
    return parser


def test_the_unit_starts_the_agent_that_was_asked_for(install, tmp_path):
    code, printed, unit = install("--user", Path.home().owner())
    assert code == Exit.FINE, printed.err
    section = read(unit)["Service"]
    python, *words = shlex.split(section["ExecStart"])
    assert python == sys.executable
    assert words[:4] == ["-m", "lasp_edge", "agent", PROGRAM]
    assert words[4:6] == ["--device", "kitchen"]
    assert section["WorkingDirectory"] == str(tmp_path)
    assert section["ReadWritePaths"] == str(tmp_path / "data")
    assert (tmp_path / "data").is_dir()
    assert section["User"] == Path.home().owner()
    assert (section["Type"], section["Restart"]) == ("notify", "always")
    assert "sudo systemctl enable --now lasp-edge\n" in printed.out


def test_systemd_finds_nothing_wrong_with_it(install, tmp_path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        lacks("systemd-analyze is not installed; type: sudo apt-get install -y systemd")
    _, _, unit = install("--name", "attic", device='a "b" $c %d', name="attic")
    path = tmp_path / "attic.service"
    path.write_text(unit)
    done = subprocess.run(
        [analyze, "verify", path], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert '"a \\"b\\" $$c %%d"' in unit


def test_print_writes_nothing(install, tmp_path):
    code, printed, unit = install("--print")
    assert (code, unit) == (Exit.FINE, "")
    assert read(printed.out)["Install"]["WantedBy"] == "multi-user.target"
    assert not (tmp_path / "data").exists()


def test_an_agent_that_cannot_start_is_refused_before_anything_is_written(install, capsys):
    code = main(["service", "install", "--", "no_such:program", "--device", "a"])
    assert code == Exit.USAGE
    assert "--data-dir" in capsys.readouterr().err
    code, printed, unit = install("--name", "../x")
    assert (code, unit) == (Exit.USAGE, "")
    assert "--name: letters, digits" in printed.err


def test_who_may_not_write_units_is_told_what_to_type(install, monkeypatch):
    def refuse(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "write_text", refuse)
    monkeypatch.setattr(sys, "argv", ["lasp-edge", "service", "install", "--", "x y"])
    code, printed, _ = install()
    assert code == Exit.ENVIRONMENT
    again = f"sudo {sys.executable} -m lasp_edge service install -- 'x y'"
    assert printed.err.rstrip().endswith(f"to bring it, type: {again}")
