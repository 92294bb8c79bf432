"""The newest failure of a lake's job, which the job notes in a file of the lake on its machine.

A job that fails again and again ends, and its log may be elsewhere or gone. `lasp-edge lake status`
and cron read the file. The next batch that is merged takes it away.
"""

import contextlib
import json
from pathlib import Path
from typing import Final, NamedTuple

from cloud_tier.lake.coverage import host_us
from cloud_tier.lake.tables import LakeTables

FAILURE: Final = "job.failure"
"""The file, in the lake's directory."""


class Failure(NamedTuple):
    """Why a job fails.

    Attributes:
        why: the reason in one line; of a job that ended, also what to type.
        times: how often it failed on the batch; 0: it ended before it could read one.
        first_us: when it failed for the first time, by the clock of its machine.
        last_us: when it failed for the last time.
    """

    why: str
    times: int
    first_us: int
    last_us: int


def note_failure(tables: LakeTables, why: str, times: int = 0) -> None:
    """Note that a job failed; in an object store, or where nothing can be written, do nothing."""
    if not tables.is_local:
        return
    now_us, before = host_us(), noted_failure(tables)
    first_us = now_us if before is None else before.first_us
    found = Failure(why, times or (before.times if before else 0), first_us, now_us)
    with contextlib.suppress(OSError):
        Path(tables.root, FAILURE).write_text(json.dumps(found._asdict()))


def noted_failure(tables: LakeTables) -> Failure | None:
    """Return the failure that no merged batch has followed; None without one, or where unknown."""
    if not tables.is_local:
        return None
    try:
        return Failure(**json.loads(Path(tables.root, FAILURE).read_text()))
    except (OSError, ValueError, TypeError):  # none, or cut short
        return None


def forget_failure(tables: LakeTables) -> None:
    """Take the note away: a batch was merged."""
    if tables.is_local:
        with contextlib.suppress(OSError):
            Path(tables.root, FAILURE).unlink(missing_ok=True)
