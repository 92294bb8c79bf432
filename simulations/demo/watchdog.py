"""Ends what the demo leaves behind when it is killed before it can tidy up itself.

The demo holds the only other end of this process's standard input. Whatever becomes of the demo,
SIGKILL included, that pipe ends then; the sessions that were started and not yet ended are killed,
and the folders that were made and not yet removed are removed. It works wherever pipes do, and
lives in a session of its own, so that Ctrl-C does not reach it.

Each process that the demo starts leads a session. What it starts itself stays in that session,
even in a process group of its own, as Spark's JVM and the lander are.

Lines: `started SESSION`, `ended SESSION`, `made FOLDER`, `removed FOLDER`.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

_PASSES = 2  # a process may start another one while the first pass looks around
_ATTEMPTS = 20
_PAUSE_S = 0.1


def left_behind(lines: Iterable[str]) -> tuple[set[int], set[Path]]:
    """Return the sessions and folders that are still there after `lines`.

    >>> left_behind(["started 71", "made /demo-1", "started 72", "ended 71"])
    ({72}, {PosixPath('/demo-1')})
    """
    sessions: set[int] = set()
    folders: set[Path] = set()
    for line in lines:
        verb, _, what = line.rstrip("\n").partition(" ")
        if verb == "started":
            sessions.add(int(what))
        elif verb == "ended":
            sessions.discard(int(what))
        elif verb == "made":
            folders.add(Path(what))
        elif verb == "removed":
            folders.discard(Path(what))
    return sessions, folders


def kill_sessions(sessions: set[int]) -> None:
    """Kill every process of these sessions."""
    for _ in range(_PASSES):
        for pid in _processes():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getsid(pid) in sessions:
                    os.kill(pid, signal.SIGKILL)


def _processes() -> Iterator[int]:
    """Yield the ids of all processes."""
    listed = [entry.name for entry in Path("/proc").glob("[0-9]*")]
    if not listed:
        ran = subprocess.run(["/bin/ps", "-A", "-o", "pid="], capture_output=True, check=False)
        listed = ran.stdout.decode().split()
    yield from map(int, listed)


def tidy(sessions: set[int], folders: set[Path]) -> None:
    """Kill the sessions and remove the folders, whose files may be written to a moment longer."""
    kill_sessions(sessions)
    for folder in folders:
        for _ in range(_ATTEMPTS):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(_PAUSE_S)


if __name__ == "__main__":
    tidy(*left_behind(sys.stdin))
