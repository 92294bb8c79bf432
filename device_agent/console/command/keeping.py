"""Why an agent's data cannot be kept where they should be, and what to type.

>>> error = FileExistsError(17, "File exists")
>>> print(not_kept(Path("/dev/null"), error))
the agent's data cannot be kept in /dev/null: that is no directory; name one with --data-dir
"""

import errno
import shlex
import sqlite3
from pathlib import Path

from lasp_edge.errors import CommandError, EnvironmentLacks, UsageError

_NOT_OURS = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")


def not_kept(directory: Path, error: OSError | sqlite3.Error) -> CommandError:
    """Return the error of a command whose data cannot be kept in a directory."""
    what = f"the agent's data cannot be kept in {directory}"
    typed = shlex.quote(str(directory))
    if isinstance(error, FileExistsError | NotADirectoryError):
        return UsageError(f"{what}: that is no directory; name one with --data-dir")
    if isinstance(error, FileNotFoundError):
        return UsageError(f"{what}: it cannot be made there; name another one with --data-dir")
    if isinstance(error, OSError) and error.errno == errno.EROFS:
        # So the kernel leaves a card after an error of it.
        there = next(each for each in (directory, *directory.absolute().parents) if each.exists())
        mounted = f"$(findmnt -n -o TARGET -T {shlex.quote(str(there))})"
        return EnvironmentLacks(f"{what}: {error}", f'sudo mount -o remount,rw "{mounted}"')
    if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}:
        return EnvironmentLacks("too few files may be open at a time", "ulimit -n 1024")
    sqlite_says = str(getattr(error, "sqlite_errorname", ""))
    if isinstance(error, PermissionError) or sqlite_says.startswith(_NOT_OURS):
        return EnvironmentLacks(
            f"{what}: {error}", f"sudo mkdir -p {typed} && sudo chown -R $(id -un) {typed}"
        )
    return EnvironmentLacks(f"{what}: {error}", f"df -h {typed}")
