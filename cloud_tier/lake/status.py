"""All of a lake in one report: tables, how far results are final, refused frames, processes.

Reads the tables without Spark, and of a lake on this machine also its files: the lander's log, the
job's checkpoint, and the locks of both.
"""

import fcntl
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from cloud_tier.lake.checkpoint import merged
from cloud_tier.lake.coverage import FleetCoverage, fleet_coverage, host_us
from cloud_tier.lake.definitions import program_of
from cloud_tier.lake.failed import noted_failure
from cloud_tier.lake.feed import committed_ms, has_other_rows_since, newest_commits_us
from cloud_tier.lake.held import noted_held
from cloud_tier.lake.query import selected
from cloud_tier.lake.tables import BEGUN, PROMISE, TICK, LakeTables
from lasp_edge.errors import NotFound
from lasp_edge.protocol.frontier import Listening

JOB_LOCK: Final = "job.lock"
LANDER_LOCK: Final = "lock"
"""The files that a running job, and a running lander, hold locked in the lake and in its log."""
_LEAST_COMMITS: Final = 20
_MOST_COMMITS: Final = 200
"""Commits of `landing` that are looked at for those of landers: each is a file of some kB."""
_NO_LANDER: Final = "lasp-edge "
"""What an application's name in the log begins with that is no lander's: the job's, and others."""


def status(
    tables: LakeTables, *, roster: Collection[str] | None, dead_after_us: int
) -> dict[str, Any]:
    """Return plain data about a lake.

    Args:
        tables: of the lake.
        roster: the devices that are expected; None for all that have landed.
        dead_after_us: a device that was silent for longer is not waited for.

    Returns:
        `lake`, `id`, `format`, `program`; `made_us`: when the lake was made; `tables`: by name
        rows, files, bytes and version; `windows`: by name the newest `start_us` and `end_us` and
        `final_end_us`; `results`: by name the newest `time_us` of a row, and `final_time_us`;
        `frontier`: of what is merged, where it is, its lag behind the landers' clock, who holds it,
        and the state of every device; and of each lander, merged or not, as `landed_us` when it
        last committed to `landing` (None: long ago); `rejects`: by reason the frames and when the
        last came; `merged`: whether a batch is begun and not finished, how many commits of
        `landing` are not merged, as `oldest_us` when the first of them came, whether one of them
        has data or all have only the clocks of landers and promises of devices, and as `last_us`
        when the last merged batch was begun; `failure`: why the job fails, unless a batch was
        merged since; `held`: what a job that runs prints of scans that stand, or that nobody
        answers; `runs`: whether a job and a lander run, None where the lake's directory does not
        tell; `job_since_us`: when a job that runs was started.

    Raises:
        NotFound: there is no such lake.
    """
    landing, failure = tables.table(tables.landing), noted_failure(tables)
    runs = _job_runs(tables)
    return {
        "lake": tables.root,
        "id": str(landing.metadata().id),
        "format": tables.format_of(landing),
        "program": program_of(tables),
        "made_us": landing.metadata().created_time * 1000,
        "tables": {
            path.rpartition("/")[2]: _size(tables.table(path))
            for path in tables.all
            if DeltaTable.is_deltatable(path)  # an earlier release made fewer
        },
        "windows": _newest_windows(tables),
        "results": _newest_rows(tables),
        "frontier": _frontier(fleet_coverage(tables, roster, dead_after_us), landing),
        "rejects": _rejects(tables),
        "merged": _merged(tables, landing),
        "failure": failure and failure._asdict(),
        "held": noted_held(tables) if runs else [],
        "runs": {
            "job": runs,
            "lander": is_locked(tables, f"{tables.log}/{LANDER_LOCK}"),
        },
        "job_since_us": _job_since_us(tables) if runs else None,
    }


def _size(table: DeltaTable) -> dict[str, int]:
    counted = selected(table, "SELECT count(*) AS rows FROM source").to_pylist()
    sizes = pa.table(table.get_add_actions()).column("size_bytes").to_pylist()
    rows: int = counted[0]["rows"]
    return {"rows": rows, "files": len(sizes), "bytes": sum(sizes), "version": table.version()}


def _newest_windows(tables: LakeTables) -> dict[str, dict[str, Any]]:
    query = (
        'SELECT "window", max(start_us) AS start_us, max(end_us) AS end_us, '
        "max(CASE WHEN status <> 'tentative' THEN end_us END) AS final_end_us "
        'FROM source GROUP BY "window" ORDER BY "window"'
    )
    rows = selected(tables.table(tables.windows), query).to_pylist()
    return {row.pop("window"): row for row in rows}


def _newest_rows(tables: LakeTables) -> dict[str, dict[str, Any]]:
    if not DeltaTable.is_deltatable(tables.results):  # an earlier release made none
        return {}
    query = (
        'SELECT "result", max(time_us) AS time_us, '
        "max(CASE WHEN status <> 'tentative' THEN time_us END) AS final_time_us "
        'FROM source GROUP BY "result" ORDER BY "result"'
    )
    rows = selected(tables.table(tables.results), query).to_pylist()
    return {row.pop("result"): row for row in rows}


def _frontier(coverage: FleetCoverage, landing: DeltaTable) -> dict[str, Any]:
    return {
        "frontier_us": coverage.frontier_us,
        "recorded_us": coverage.recorded_us,
        "now_us": coverage.now_us,
        "lag_s": None if coverage.lag_us is None else coverage.lag_us / 1e6,
        "held_by": [each.device for each in coverage.devices if each.holds],
        "landers": _landers(coverage.landers, landing),
        "devices": [each._asdict() for each in coverage.devices],
    }


def _landers(clocks: Mapping[str, Listening], landing: DeltaTable) -> dict[str, dict[str, Any]]:
    """Return the landers: those whose clock is merged, and those that have landed of late."""
    landed_us = newest_landed_us(landing, clocks)
    unknown = dict.fromkeys(Listening._fields)
    return {
        name: {
            **(clocks[name]._asdict() if name in clocks else unknown),
            "landed_us": landed_us.get(name),
        }
        for name in sorted(clocks.keys() | landed_us.keys())
    }


def newest_landed_us(landing: DeltaTable, known: Collection[str]) -> dict[str, int]:
    """Return when each lander last committed, merged or not, by its own clock.

    Args:
        landing: the table.
        known: landers that are looked for; others are found if they have landed of late.
    """
    found = newest_commits_us(landing, known, _LEAST_COMMITS, _MOST_COMMITS)
    return {name: us for name, us in found.items() if not name.startswith(_NO_LANDER)}


def _rejects(tables: LakeTables) -> list[dict[str, Any]]:
    query = (
        "SELECT reason, sum(frames) AS frames, max(received_us) AS last_us FROM source "
        "GROUP BY reason ORDER BY reason"
    )
    found: list[dict[str, Any]] = selected(tables.table(tables.rejects), query).to_pylist()
    return found


def _merged(tables: LakeTables, landing: DeltaTable) -> dict[str, Any] | None:
    """Return how far a lake is merged, and since when something waits."""
    found = merged_of(tables, landing.version())
    if found is None:
        return None
    read = landing.version() - found["commits_behind"]
    oldest_ms = committed_ms(landing, read + 1) if found["commits_behind"] else None
    return {
        **found,
        "has_data": _has_data_since(landing, read),
        "oldest_us": None if oldest_ms is None else oldest_ms * 1000,
    }


def _has_data_since(landing: DeltaTable, version: int) -> bool:
    """Return whether something that landed after a version may change a row."""
    try:
        return has_other_rows_since(landing, version, "kind", [TICK, PROMISE, BEGUN])
    except NotFound:
        return True


def merged_of(tables: LakeTables, landed: int) -> dict[str, Any] | None:
    """Return how far a lake on this machine is merged; None before there is a checkpoint.

    Args:
        tables: of the lake.
        landed: the newest version of `landing`.
    """
    found = merged(tables)
    if found is None:
        return None
    behind = landed + 1 if found.version is None else max(0, landed - found.version)
    return {
        "batch": found.batch,
        "unfinished": found.unfinished,
        "commits_behind": behind,
        "last_us": found.last_us,
    }


def _job_runs(tables: LakeTables) -> bool | None:
    """Return whether a job runs; every job of a lake on this machine has its lock there."""
    lock = f"{tables.root}/{JOB_LOCK}"
    return False if tables.is_local and not Path(lock).exists() else is_locked(tables, lock)


def note_start(lock: IO[str]) -> None:
    """Write into the lock of a job, which this process holds, when it was started."""
    lock.truncate(0)
    lock.write(str(host_us()))
    lock.flush()


def _job_since_us(tables: LakeTables) -> int | None:
    """Return when the job that runs was started; None where an earlier release runs."""
    try:
        return int(Path(tables.root, JOB_LOCK).read_text())
    except (OSError, ValueError):
        return None


def is_locked(tables: LakeTables, path: str) -> bool | None:
    """Return whether a process holds a file of a lake locked; None where that cannot be seen."""
    if not tables.is_local:
        return None
    try:
        with Path(path).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # it is another user's, or elsewhere
        return None
    return False
