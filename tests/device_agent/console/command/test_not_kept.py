"""What an agent says whose data cannot be kept: what it proposes fits what is wrong."""

import sqlite3
from pathlib import Path

import pytest

from device_agent.agent.state.store import Store
from device_agent.console.command import readings
from device_agent.storage.not_kept import not_kept
from lasp_edge.errors import Exit


def readonly():
    error = sqlite3.OperationalError("attempt to write a readonly database")
    error.sqlite_errorname = "SQLITE_READONLY"
    return error


@pytest.mark.parametrize(
    ("error", "code", "typed"),
    [
        (FileExistsError(17, "File exists"), Exit.USAGE, "name one with --data-dir"),
        (NotADirectoryError(20, "Not a directory"), Exit.USAGE, "name one with --data-dir"),
        (FileNotFoundError(2, "No such file"), Exit.USAGE, "name another one with --data-dir"),
        (PermissionError(13, "denied"), Exit.ENVIRONMENT, "chown -R $(id -un) '/a b'"),
        (readonly(), Exit.ENVIRONMENT, "chown -R $(id -un) '/a b'"),
        (OSError(28, "No space left on device"), Exit.ENVIRONMENT, "df -h '/a b'"),
        (OSError(24, "Too many open files"), Exit.ENVIRONMENT, "ulimit -n 1024"),
        (
            OSError(30, "Read-only file system"),
            Exit.ENVIRONMENT,
            'sudo mount -o remount,rw "$(findmnt -n -o TARGET -T /)"',
        ),
        (sqlite3.OperationalError("database or disk is full"), Exit.ENVIRONMENT, "df -h '/a b'"),
    ],
)
def test_what_is_proposed_fits_what_is_wrong(error, code, typed):
    told = not_kept(Path("/a b"), error)
    assert (told.exit_code, str(told).endswith(typed)) == (code, True), told


def test_readings_that_were_not_kept_are_no_silence(tmp_path, capsys):
    Store(tmp_path / "data").close()

    class Asked:
        data_dir = tmp_path / "data"

    assert readings.run(Asked) == Exit.FINE
    assert "start" in capsys.readouterr().err
