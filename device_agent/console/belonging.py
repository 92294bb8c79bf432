"""The device and program of a data directory, and whether an agent runs on it."""

import fcntl
import os
from pathlib import Path

from device_agent.agent.state.store import LOCK_NAME
from lasp_edge.language.plan import Plan


def is_used(directory: Path) -> bool:
    """Return whether an agent runs on a data directory."""
    try:
        flags = os.O_RDONLY | os.O_NONBLOCK
        with os.fdopen(os.open(directory / LOCK_NAME, flags)) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def need_own(
    directory: Path,
    known: tuple[int, int, str] | None,
    holds: str | None,
    device: str,
    program: Plan | None,
) -> None:
    """Check that a data directory is of this device and program.

    Raises:
        ValueError: it is of another one.
    """
    if known and known[2] != device:
        raise ValueError(
            f"{directory} belongs to device {known[2]!r}; give {device!r} a --data-dir of its own"
        )
    if program is not None and holds not in {None, program.name}:
        raise ValueError(
            f"{directory} holds readings of the program {holds!r}; give {program.name!r} a "
            "--data-dir of its own"
        )
