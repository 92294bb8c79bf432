"""The streaming query's checkpoint: how far it has read, and on this machine torn files.

    metadata     the query's name, from the first start on
    offsets/N    batch N was planned: up to where it reads `landing`
    commits/N    batch N is finished

Spark renames these files into place and does not sync them, so a power cut may leave the newest one
empty or cut short, and Spark then fails at every start. A newest file that is torn is as good as
one that was never written: the batch is planned and merged again, which gives the same lake. Where
a finished batch's offsets are torn, nothing tells any more what was read; then the checkpoint is
put aside, and all that landed is merged again, with the same result. So it is where the name is
torn: Spark goes on under no other one.
"""

import json
import shutil
from pathlib import Path
from typing import Any, Final, NamedTuple

from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileSelector, FileType, PyFileSystem

from cloud_tier.lake.tables import LakeTables

_FOLDER: Final = "checkpoint"
_OFFSETS: Final = "offsets"
_COMMITS: Final = "commits"
_METADATA: Final = "metadata"
_ASIDE: Final = "checkpoint.torn"
_ALL_AGAIN: Final = f"it is kept as {_ASIDE}, and all that landed is merged again"


class Merged(NamedTuple):
    """How far the query has come.

    Attributes:
        batch: the number of the last batch that is finished; None before the first.
        unfinished: whether a later one was planned.
        version: of `landing`, up to which finished batches have read; None where that is unclear.
        last_us: when that batch was planned, in microseconds since the epoch, by its own note: a
            file's time is that of its copy. None before it, or where that is unclear.
    """

    batch: int | None
    unfinished: bool
    version: int | None
    last_us: int | None = None


def merged(tables: LakeTables) -> Merged | None:
    """Return how far the query has come; None before it has planned a batch, or elsewhere."""
    begun, finished = _numbered(tables, _OFFSETS), _numbered(tables, _COMMITS)
    if not begun:
        return None
    last = max(finished, default=None)
    text = begun[last].read_text(errors="replace") if last in begun else ""
    return Merged(last, last is None or max(begun) > last, _version(text), _planned_us(text))


def mend(tables: LakeTables) -> str:
    """Take away what a power cut has torn; return one line about it, empty if all is whole.

    No query may run.
    """
    begun, finished = _numbered(tables, _OFFSETS), _numbered(tables, _COMMITS)
    torn = ""
    if _has_file_as_folder(tables) or _lacks_name(tables, begun):
        put_aside(tables)
        begun, finished, torn = {}, {}, _ALL_AGAIN
    if finished and not _is_whole(finished[max(finished)], lines=2):
        _remove(finished.pop(max(finished)))
        torn = "the last batch is merged again"
    if begun and not _is_whole(begun[max(begun)], lines=3):
        number = max(begun)
        _remove(begun[number])
        torn = f"batch {number} is planned again"
        if number in finished:
            put_aside(tables)
            torn = _ALL_AGAIN
    return f"a file of the checkpoint was torn: {torn}" if torn else ""


def put_aside(tables: LakeTables) -> bool:
    """Have all that landed merged again; on this machine the checkpoint is kept beside.

    Returns:
        Whether there was one.
    """
    if not tables.is_local:
        files = _files(tables)
        if not _batches(files, _OFFSETS):
            return False
        files.delete_dir(_FOLDER)
        return True
    aside = Path(tables.root, _ASIDE)
    if not Path(tables.checkpoint).exists():
        return False
    if aside.is_file():
        aside.unlink()
    shutil.rmtree(aside, ignore_errors=True)
    Path(tables.checkpoint).rename(aside)
    return True


def merged_up_to(tables: LakeTables) -> int | None:
    """Return up to which version of `landing` finished batches have read all; -1 for nothing.

    None where that is unknown.
    """
    last = max(_batches(_files(tables), _COMMITS), default=None)
    return -1 if last is None else planned_up_to(tables, last)


class ReadUpTo(NamedTuple):
    """How far finished batches have read `landing`.

    Attributes:
        version: the last one of which they may have read something.
        has_begun: of that one, with which the query began, something may be left.
    """

    version: int
    has_begun: bool


def read_up_to(tables: LakeTables) -> ReadUpTo | None:
    """Return from where a start reads `landing` on; None before a batch, or where unknown."""
    files = _files(tables)
    finished, begun = _batches(files, _COMMITS), _batches(files, _OFFSETS)
    last = max(finished, default=min(begun, default=None))
    text = None if last is None else _offsets_text(files, last)
    version, _, is_first = (None, -1, False) if text is None else _offset(text)
    if version is None:
        return None
    has_begun = is_first or not finished
    return ReadUpTo(version if is_first else version - 1, has_begun)


def planned_up_to(tables: LakeTables, batch: int) -> int | None:
    """Return up to which version of `landing` a batch reads all; None where that is unknown."""
    return _whole_version(_files(tables), batch)


def rewind(tables: LakeTables, version: int) -> None:
    """Have all merged again that landed after a version of `landing`, or more.

    No query may run.
    """
    files = _files(tables)
    finished = {n: _whole_version(files, n) for n in _batches(files, _COMMITS)}
    kept = [n for n, whole in finished.items() if whole is not None and whole <= version]
    if not kept:
        put_aside(tables)
        return
    for folder in (_COMMITS, _OFFSETS):  # a batch is finished only while it is planned
        for number in _batches(files, folder):
            for name in (str(number), f".{number}.crc") if number > max(kept) else ():
                path = f"{_FOLDER}/{folder}/{name}"
                if files.get_file_info(path).type == FileType.File:
                    files.delete_file(path)


def _files(tables: LakeTables) -> PyFileSystem:
    """Return the files of a lake, here or in a store."""
    return PyFileSystem(DeltaStorageHandler(tables.root))


def _batches(files: PyFileSystem, folder: str) -> list[int]:
    found = files.get_file_info(FileSelector(f"{_FOLDER}/{folder}", allow_not_found=True))
    return [int(each.base_name) for each in found if each.base_name.isdecimal()]


def _whole_version(files: PyFileSystem, batch: int) -> int | None:
    """Return up to which version of `landing` a batch reads all; -1 for nothing."""
    text = _offsets_text(files, batch)
    version, _, is_first = (None, -1, False) if text is None else _offset(text)
    return version if version is None else -1 if is_first else version - 1


def _offsets_text(files: PyFileSystem, batch: int) -> str | None:
    try:
        with files.open_input_stream(f"{_FOLDER}/{_OFFSETS}/{batch}") as stored:
            return str(stored.read().decode(errors="replace"))
    except FileNotFoundError:
        return None


def _numbered(tables: LakeTables, folder: str) -> dict[int, Path]:
    if not tables.is_local:
        return {}
    paths = Path(tables.checkpoint, folder).glob("*")
    return {int(path.name): path for path in paths if path.name.isdecimal()}


def _has_file_as_folder(tables: LakeTables) -> bool:
    """Return whether a file is in place of a folder, as where somebody has copied one there."""
    return tables.is_local and any(
        Path(tables.checkpoint, name).is_file() for name in ("", _OFFSETS, _COMMITS)
    )


def _lacks_name(tables: LakeTables, begun: dict[int, Path]) -> bool:
    """Return whether the query's name is torn, or is gone though a batch was planned."""
    file = Path(tables.checkpoint, _METADATA)
    return _read(file.read_text(errors="replace")) is None if file.is_file() else bool(begun)


def _is_whole(file: Path, lines: int) -> bool:
    """Return whether a file has its version and then so much JSON, a line each."""
    found = file.read_text(errors="replace").splitlines()
    return len(found) >= lines and found[0] == "v1" and all(map(_is_json, found[1:]))


def _is_json(line: str) -> bool:
    return line == "-" or _read(line) is not None  # "-": a source that had nothing yet


def _read(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _remove(file: Path) -> None:
    file.unlink()
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def _version(text: str) -> int | None:
    """Return the version of `landing` up to which a batch has read, in part at least."""
    version, index, _ = _offset(text)
    return version if version is None or index >= 0 else version - 1


def _planned_us(text: str) -> int | None:
    """Return when a batch was planned; `batchTimestampMs` of Spark's `OffsetSeqMetadata`."""
    time_ms = next(
        (found.get("batchTimestampMs") for found in map(_read, text.splitlines()) if found), None
    )
    return time_ms * 1000 if isinstance(time_ms, int) else None


def _offset(text: str) -> tuple[int | None, int, bool]:
    """Return a version of `landing`, how much of it is read, and whether it is the first read.

    The first read takes all files of a version, which may take several batches.

    Source: `DeltaSourceOffset` of Delta Lake 4; below index 0 nothing of that version is read yet.
    """
    lines = text.splitlines()
    offset = (_read(lines[-1]) if lines else None) or {}
    version, index = offset.get("reservoirVersion"), offset.get("index")
    if not isinstance(version, int) or not isinstance(index, int):
        return None, -1, False
    return version, index, bool(offset.get("isStartingVersion"))
