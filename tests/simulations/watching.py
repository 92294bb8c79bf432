"""Looking at other processes from outside."""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from simulations.processes.process import now_s
from tests.brokers import PATIENCE_S


def runs(pid: int) -> bool:
    """Whether a process runs; one that is over but not yet waited for does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # it may end while it is read
        if Path("/proc/self").exists():
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 0)
            return True
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def eventually(condition: Callable[[], bool], most_s: float = PATIENCE_S) -> bool:
    """Whether a condition comes true while other processes do what they do.

    Looking takes a fifth of the time at most: others need the cores.
    """
    looked_s = now_s()
    ends_s = looked_s + most_s
    while not condition():
        if now_s() > ends_s:
            return False
        time.sleep(0.02 + 4 * (now_s() - looked_s))
        looked_s = now_s()
    return True


def processes_of(folder: Path) -> list[int]:
    """Return the processes whose command line names a file in the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(folder) in (entry / "cmdline").read_text():
                found.append(int(entry.name))
    return found
