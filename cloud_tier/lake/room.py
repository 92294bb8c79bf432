"""Room on the disk of a lake: nothing is written while less is free than a commit may take.

A disk that is full in the midst of a file has the libraries below print pages, and no file of the
lake can be written any more, not even the one that says why the job failed.
"""

import os
from shlex import quote
from typing import Final

from cloud_tier.lake.tables import LakeTables
from lasp_edge.errors import CommandError, Exit

LEAST_FREE_BYTES: Final = 16_000_000
"""Twice a lander's largest segment (`cloud_tier.lander.run.SegmentPace`)."""


class DiskFull(CommandError, OSError):  # noqa: N818 - it says what happened
    """The disk of a lake has no room; the text says what to type.

    An `OSError` too: a lander waits and tries again, and a command ends with one line.
    """

    exit_code = Exit.ENVIRONMENT


def need_room(lake: LakeTables) -> None:
    """See that a commit has room, on a disk of this machine.

    Raises:
        DiskFull: less than `LEAST_FREE_BYTES` are free.
    """
    if not lake.is_local:
        return
    room = os.statvfs(lake.root)
    free = room.f_bavail * room.f_frsize
    if free < LEAST_FREE_BYTES:
        raise DiskFull(
            f"No space left on device: {free / 1e6:,.1f} MB are free where {lake.root} is, and "
            f"{LEAST_FREE_BYTES / 1e6:,.0f} are needed; to see what takes the rest, type: "
            f"df -h {quote(lake.root)}"
        )
