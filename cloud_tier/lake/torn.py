"""Commits of a lake on this machine that a power cut may have torn, and what keeps them whole.

Neither deltalake nor Spark syncs its commits. A power cut may leave the last ones, or the files
that they add, empty, cut short or missing, and of an empty commit both report nothing: its rows are
gone. So a commit is synced here before devices get its acknowledgement. All else follows from
`landing`: commits from the first torn one on are taken back, and everything that landed is merged
again, with the same result.
"""

import fcntl
import json
import os
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from cloud_tier.lake.checkpoint import put_aside
from cloud_tier.lake.tables import LakeTables

_RECENT: Final = 100
"""Commits of a table that are checked, the newest ones: a table has a commit a second at most."""
_RECENT_S: Final = 90.0
"""How much older than the newest commit of its table a torn one is at most, in seconds: the kernel
writes within a minute what nobody syncs. A file that is gone of an older one was deleted."""
_LOG: Final = "_delta_log"
_LAST: Final = "_last_checkpoint"
"""Only says where to begin: readers that do not find it list the folder."""
_ASIDE: Final = ".torn"
_PARQUET_END: Final = b"PAR1"


def make_durable(path: str, after: int) -> int:
    """Have the disk hold the commits above a version, with the files that they add.

    Args:
        path: of a table on this machine.
        after: the version up to which all is durable; -1 where that is unknown.

    Returns:
        The newest version.
    """
    commits = {version: file for version, file in _recent(path).items() if version > after}
    folders = {Path(path, _LOG)}
    for commit in commits.values():
        for added in _added(path, _actions(commit.read_bytes()) or []):
            if added.is_file():  # a later commit may have removed it, and VACUUM the file
                sync(added)
                folders.add(added.parent)
        sync(commit)
    for folder in folders | {Path(path)}:
        sync(folder)
    return max(commits, default=after)


def mend_tables(lake: LakeTables) -> list[str]:
    """Take the torn commits back; return a line about each table that had one.

    A process that begins to work on a lake calls this first. While one works on it nothing is torn.
    """
    if not lake.is_local or not Path(lake.root).is_dir():
        return []
    lock = os.open(lake.root, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # lander and job start together
        for path in lake.all:
            _drop_torn_checkpoints(path)
        torn = ((path, _first_torn(path)) for path in lake.all)
        return [_taken_back(lake, path, version) for path, version in torn if version is not None]
    finally:
        os.close(lock)


def _taken_back(lake: LakeTables, path: str, version: int) -> str:
    """Take a table's commits from a version on back; return a line about it."""
    _cut(path, version)
    name = Path(path).name
    line = f"a power cut has torn commit {version} of the table {name}, which is taken back"
    if path in {lake.landing, lake.lattice, lake.windows, lake.globals, lake.results}:
        put_aside(lake)
        line += "; all that landed is merged again"
    return line


def _first_torn(path: str) -> int | None:
    """Return the first recent commit that is not whole."""
    torn, removed = None, set()
    commits = _recent(path)
    newest_s = max((commit.stat().st_mtime for commit in commits.values()), default=0.0)
    for version, commit in sorted(commits.items(), reverse=True):
        actions = _actions(commit.read_bytes())
        if not actions:
            torn = version
            continue
        is_recent = commit.stat().st_mtime >= newest_s - _RECENT_S
        files = _added(path, actions) if is_recent else {}
        if any(_differs(file, size) for file, size in files.items() if file not in removed):
            torn = version
        removed |= _removed(path, actions)
    return torn


def _differs(file: Path, size: int) -> bool:
    return not file.is_file() or file.stat().st_size != size


def _cut(path: str, version: int) -> None:
    """Put a table's commits from a version on aside, and drop what was derived from them."""
    for file in Path(path, _LOG).iterdir():
        number = file.name.partition(".")[0]
        if number.isdecimal() and int(number) >= version and file.suffix != _ASIDE:
            file.replace(file.with_name(file.name + _ASIDE))
    Path(path, _LOG, _LAST).unlink(missing_ok=True)
    sync(Path(path, _LOG))


def _drop_torn_checkpoints(path: str) -> None:
    """Drop what sums commits up and is not whole; the commits themselves stay for a month."""
    for file in Path(path, _LOG).glob("*.checkpoint*.parquet"):
        if not file.read_bytes().endswith(_PARQUET_END):
            file.unlink()
            Path(path, _LOG, _LAST).unlink(missing_ok=True)
    last = Path(path, _LOG, _LAST)
    if last.is_file() and not _actions(last.read_bytes()):
        last.unlink()


def _recent(path: str) -> dict[int, Path]:
    """Return the newest commits by version."""
    files = (file for file in Path(path, _LOG).glob("*.json") if file.stem.isdecimal())
    return {int(file.stem): file for file in sorted(files)[-_RECENT:]}


def _actions(written: bytes) -> list[dict[str, Any]] | None:
    """Return the actions of a commit; None where it is cut short or damaged."""
    try:
        found = [json.loads(line) for line in written.splitlines()]
    except ValueError:
        return None
    return found if all(isinstance(action, dict) for action in found) else None


def _added(path: str, actions: list[dict[str, Any]]) -> dict[Path, int]:
    """Return the files that a commit adds, with their sizes."""
    added = (action["add"] for action in actions if "add" in action)
    return {Path(path, unquote(add["path"])): add["size"] for add in added}


def _removed(path: str, actions: list[dict[str, Any]]) -> set[Path]:
    removed = (action["remove"] for action in actions if "remove" in action)
    return {Path(path, unquote(remove["path"])) for remove in removed}


def sync(path: Path) -> None:
    """Have the disk hold a file, or a folder's names."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
