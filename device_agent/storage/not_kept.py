"""The message of a command that cannot keep its data in a directory: why, and what to type."""

import errno
import os
import sqlite3
from pathlib import Path
from typing import Final

from lasp_edge.errors import CommandError, EnvironmentLacks, UsageError

_NOT_OURS: Final = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")


def not_kept(directory: Path, error: OSError | sqlite3.Error, whose: str = "agent") -> CommandError:
    """Return the error of a command whose data cannot be kept in a directory.

    >>> error = FileExistsError(17, "File exists")
    >>> print(not_kept(Path("/dev/null"), error))
    the agent's data cannot be kept in /dev/null: that is no directory; name one with --data-dir
    """
    import shlex  # noqa: PLC0415 - only after a mistake

    what = f"the {whose}'s data cannot be kept in {directory}"
    typed = shlex.quote(str(directory))
    if isinstance(error, FileExistsError | NotADirectoryError):
        return UsageError(f"{what}: that is no directory; name one with --data-dir")
    if isinstance(error, FileNotFoundError):
        return UsageError(f"{what}: it cannot be made there; name another one with --data-dir")
    there = next(each for each in (directory, *directory.absolute().parents) if each.exists())
    if isinstance(error, OSError) and error.errno == errno.EROFS:
        # The kernel mounts a card so after an error.
        mounted = f"$(findmnt -n -o TARGET -T {shlex.quote(str(there))})"
        return EnvironmentLacks(f"{what}: {error}", f'sudo mount -o remount,rw "{mounted}"')
    if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}:
        return EnvironmentLacks("too few files may be open at a time", "ulimit -n 1024")
    sqlite_says = str(getattr(error, "sqlite_errorname", ""))
    if isinstance(error, PermissionError) or sqlite_says.startswith(_NOT_OURS):
        return EnvironmentLacks(
            f"{what}: {error}", f"sudo mkdir -p {typed} && sudo chown -R $(id -un) {typed}"
        )
    room = os.statvfs(there)
    free = f"{room.f_bavail * room.f_frsize / 1e6:,.1f} MB are free"
    return EnvironmentLacks(
        f"{what}: {error}, {free}; to see what takes the rest, type: df -h {typed}"
    )
