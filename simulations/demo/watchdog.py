"""Ends what the demo leaves behind when it is killed before it can tidy up itself.

The demo holds the only other end of this process's standard input. Whatever becomes of the demo,
SIGKILL included, that pipe ends then; the process groups that were started and not yet ended are
killed, and the folders that were made and not yet removed are removed. It works wherever pipes do,
and lives in a session of its own, so that Ctrl-C does not reach it.

Lines: `started GROUP`, `ended GROUP`, `made FOLDER`, `removed FOLDER`.
"""

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

_ATTEMPTS = 20
_PAUSE_S = 0.1


def left_behind(lines: Iterable[str]) -> tuple[set[int], set[Path]]:
    """Return the process groups and folders that are still there after `lines`.

    >>> left_behind(["started 71", "made /tmp/a", "started 72", "ended 71"])
    ({72}, {PosixPath('/tmp/a')})
    """
    groups: set[int] = set()
    folders: set[Path] = set()
    for line in lines:
        verb, _, what = line.rstrip("\n").partition(" ")
        if verb == "started":
            groups.add(int(what))
        elif verb == "ended":
            groups.discard(int(what))
        elif verb == "made":
            folders.add(Path(what))
        elif verb == "removed":
            folders.discard(Path(what))
    return groups, folders


def tidy(groups: set[int], folders: set[Path]) -> None:
    """Kill the groups and remove the folders, whose files may be written to a moment longer."""
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for folder in folders:
        for _ in range(_ATTEMPTS):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(_PAUSE_S)


if __name__ == "__main__":
    tidy(*left_behind(sys.stdin))
