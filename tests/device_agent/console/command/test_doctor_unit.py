"""`lasp-edge doctor` looks at the agent's unit for systemd."""

import os
import shlex
import sys

import pytest

from device_agent.console.command.checkup import machine
from device_agent.console.command.checkup.result import Level
from tests.device_agent.console.command.test_doctor import one


@pytest.mark.parametrize(
    ("told", "level", "says", "types"),
    [
        ("ActiveState=failed\nResult=watchdog", Level.WRONG, "is failed (watchdog)", "journalctl"),
        (
            "ActiveState=active\nUnitFileState=enabled\nWatchdogUSec=5min\nNRestarts=0",
            Level.OK,
            "its watchdog waits 5min",
            "",
        ),
        (
            "ActiveState=active\nUnitFileState=enabled\nWatchdogUSec=5min\nNRestarts=3",
            Level.WARNING,
            "was started again 3 times",
            "journalctl -u lasp-edge -n 50",
        ),
        (
            "ActiveState=active\nUnitFileState=disabled\nWatchdogUSec=5min",
            Level.WARNING,
            "it does not start with the machine",
            "sudo systemctl enable lasp-edge",
        ),
        (
            "ActiveState=active\nUnitFileState=enabled\nWatchdogUSec=0",
            Level.WARNING,
            "no watchdog looks after it",
            "-m lasp_edge service install --help",
        ),
        ("", Level.WRONG, "is unknown", "systemctl start"),
    ],
)
def test_the_unit(monkeypatch, tmp_path, told, level, says, types):
    assert one("unit", root=tmp_path).level is Level.SKIPPED
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    monkeypatch.setattr(machine, "UNITS", tmp_path)
    absent = one("unit", root=tmp_path)
    assert (absent.level, absent.says[:17]) == (Level.WARNING, "no unit lasp-edge")
    (tmp_path / "lasp-edge.service").touch()
    fake = tmp_path / "bin" / "systemctl"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\ncat <<END\n{told}\nEND\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    result = one("unit", root=tmp_path)
    assert result.level is level
    assert says in result.says
    assert types in result.type


def test_the_unit_that_is_proposed_is_that_of_the_file(monkeypatch, tmp_path):
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    monkeypatch.setattr(machine, "UNITS", tmp_path)
    (tmp_path / "fleet.toml").write_text('device = "a"\n')
    result = one("unit", "--config", str(tmp_path / "fleet.toml"), root=tmp_path)
    python = shlex.quote(sys.executable)
    file = tmp_path / "fleet.toml"
    assert result.type == f"sudo {python} -m lasp_edge service install -- --config {file}"
