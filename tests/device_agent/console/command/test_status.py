"""What `lasp-edge status` prints: the rows of results, and a full disk."""

import argparse
from types import SimpleNamespace

import pytest

from device_agent.console.command import status
from device_agent.console.command.status import FULL_BYTES, _rows
from tests.device_agent.agents import Device

ROW = {"key": "attic", "time_us": 0, "status": "final", "revision": 0, "used": 0.004, "to": 7.5}


def test_a_value_is_printed_with_all_decimals_of_its_step():
    _, _, line = _rows("used", [ROW], {"used": "0.001", "to": "1"})
    assert line.split() == ["attic", "1970-01-01", "00:00:00", "0.004", "7.50", "final"]


@pytest.mark.parametrize("free_bytes", [0, FULL_BYTES - 1, FULL_BYTES])
def test_a_full_disk_is_named_with_what_to_type(tmp_path, monkeypatch, capsys, free_bytes):
    Device(tmp_path)
    usage = SimpleNamespace(free=free_bytes)
    monkeypatch.setattr(status, "disk_usage", lambda _: usage)
    parser = argparse.ArgumentParser()
    status.add_arguments(parser)
    status.run(parser.parse_args(["--data-dir", str(tmp_path)]))
    is_full = f"until there is room; type: df -h {tmp_path}\n" in capsys.readouterr().out
    assert is_full == (free_bytes < FULL_BYTES)
