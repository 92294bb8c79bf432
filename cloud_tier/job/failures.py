"""Why a query ended, in one line, and what a start mends by itself.

A failure comes as some hundred lines: of Spark, of the function that Python ran in it, and of Spark
again. The line that tells is the last one of Python's traceback, or Spark's first.

Two failures have one cure, to merge again all that `landing` holds, which gives the same results: a
file that a batch was to read was put together with others and then deleted, or somebody changed the
table. Where a file of `landing` is gone without that, its rows are lost, whoever merges: it is
named, and taken out of the table.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from cloud_tier.lake.checkpoint import merged_up_to, put_aside, read_up_to, rewind
from cloud_tier.lake.deletion import ask_recompute, recompute_is_due
from cloud_tier.lake.feed import deleted_unread
from cloud_tier.lake.query import in_one_line
from cloud_tier.lake.statements import Gap, gaps, is_of_another_landing
from cloud_tier.lake.tables import LakeTables

_OF_SPARK: Final = re.compile(r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ")
_RAISED: Final = re.compile(r"^(?:[\w.]+\.)?([A-Z]\w*): (.+(?:\n.*↳.*)*)$", re.MULTILINE)
"""An error and its text, with the lines of its causes where `deltalake` writes them below it."""
_CODED: Final = re.compile(r"\[[A-Z][A-Z0-9_.]+\] .+")
"""How Spark names its own errors, whatever wraps them."""
_PLAN: Final = "=== Streaming Query ==="
_SUPERSEDED: Final = "Superseded"
_OWN: Final = (_SUPERSEDED, "TableRestored", "DiskFull")
"""Errors of the job whose text says all."""
_MOST: Final = 500
"""Characters of a line, at most."""
_OF_LANDING: Final = re.compile(
    "FILE_NOT_EXIST|FileNotFound|FILE_NOT_FOUND|IGNORE_CHANGES|IGNORE_DELETE|NoSuchKey"
)
"""Failures of reading `landing` that a fresh checkpoint cures."""
_NO_ROOM: Final = re.compile("No space left on device|Disk quota exceeded")


def reason(text: str) -> str:
    r"""Return in one line why a query ended.

    Args:
        text: of its exception.

    >>> reason("[STREAM_FAILED] Query [id = 1] terminated with exception: An exception was raised "
    ...        "by the Python Proxy. Return Message: Traceback (most recent call last):\n"
    ...        "  File x\n    step()\nbuiltins.OSError: the disk is full\n\n\tat py4j.Protocol\n")
    'OSError: the disk is full'
    >>> reason("Traceback (most recent call last):\nOSError: a store\n  \x1b[31m↳\x1b[0m is away\n")
    'OSError: a store is away'
    >>> reason("[STREAM_FAILED] Query [id = 1] terminated with exception: [GONE] a file\n=== S")
    '[GONE] a file'
    """
    text = text.strip().partition(_PLAN)[0]
    raised = _RAISED.findall(text.partition("Traceback (most recent call last):")[2])
    if raised:
        name, line = raised[-1]
        if coded := _CODED.search(text, text.rfind(line)):
            return coded[0][:_MOST]
        return in_one_line(line if name in _OWN else f"{name}: {line}")[:_MOST]
    return _OF_SPARK.sub("", text.partition("\n")[0])[:_MOST] or "the query was stopped"


def is_superseded(text: str) -> bool:
    """Return whether a newer driver merges into the lake, so that trying again is of no use."""
    return f"{_SUPERSEDED}: " in text


def advice(text: str, tables: LakeTables) -> str:
    """Return what to type where a batch fails again and again."""
    if _NO_ROOM.search(text):
        return "make room on the disk, and start the job again"
    return (
        f"`lasp-edge lake status --lake {tables.root}` shows what is not merged; if the batch "
        f"fails at the next start too, move {tables.checkpoint} aside: all that landed is merged "
        "again, with the same results"
    )


def mended(text: str, tables: LakeTables) -> Iterator[str]:
    """Mend what made a query fail, if it can be mended; yield a line about each thing.

    Args:
        text: of its exception.
        tables: of the lake, which no query reads.
    """
    if _OF_LANDING.search(text):
        yield from _without_lost_files(tables)
        if put_aside(tables):
            yield "files of landing were replaced or changed: all that it holds is merged again"


def after_deletion(tables: LakeTables) -> str:
    """Have all merged again where a deletion of ours took files that were still to be read.

    Returns:
        A line about it; empty without one.
    """
    read = read_up_to(tables)
    if read is None:
        return ""
    landing = tables.table(tables.landing)
    deletion = deleted_unread(landing, read.version, has_begun=read.has_begun)
    if deletion is None or not put_aside(tables):
        return ""
    return (
        f"`{deletion.command}` deleted from landing at {_time(deletion.time_ms * 1000)} UTC: all "
        "that it holds is merged again"
    )


def filled(tables: LakeTables) -> Iterator[str]:
    """Have merged again what a table lacks since somebody restored or changed it, or `landing`.

    A copy in place of `landing` has fewer versions than were read, or others, once devices have
    sent again what it lacks.

    Yields:
        Lines about it.
    """
    read = read_up_to(tables)
    is_shorter = read is not None and read.version > tables.table(tables.landing).version()
    if (is_shorter or is_of_another_landing(tables)) and put_aside(tables):
        yield "landing was put back, or is another one: all that it holds is merged again"
        return
    found = gaps(tables, merged_up_to(tables))
    for gap in found:
        yield _filling(gap)
    if any(gap.changed for gap in found):
        ask_recompute(tables)  # rows of any age may be gone
    if found:
        rewind(tables, min(gap.landing for gap in found))


def recompute_may_begin(tables: LakeTables) -> bool:
    """Return whether all windows are to be made again, and `lattice` has what they are made of."""
    if not recompute_is_due(tables):
        return False
    return "lattice" not in {gap.table for gap in gaps(tables, merged_up_to(tables))}


def _filling(gap: Gap) -> str:
    if gap.changed:
        todo = "; changed ones go on to count until you restore the version before"
        return (
            f"rows of the table {gap.table} were deleted or changed: all that landed is merged "
            f"again{todo if gap.table == 'lattice' else ''}"
        )
    return (
        f"the table {gap.table} is an earlier one: what landed since version {gap.landing} of "
        "landing is merged again"
    )


def _without_lost_files(tables: LakeTables) -> Iterator[str]:
    """Take the files that are gone out of `landing`; yield a line about each of them."""
    table = DeltaTable(tables.landing)
    known = {row["path"]: row for row in pa.table(table.get_add_actions(flatten=True)).to_pylist()}
    lost = table.repair(dry_run=True)["files_removed"]
    if not lost:
        return
    # Else Delta refuses to remove what it knows to be gone.
    table.alter.set_table_properties({"delta.appendOnly": "false"})
    try:
        table.repair()
    finally:
        table.alter.set_table_properties({"delta.appendOnly": "true"})
    for path in lost:
        yield f"the file {tables.landing}/{path} is gone, and with it {_contents(known.get(path))}"


def _contents(file: dict[str, Any] | None) -> str:
    """Return what a file held, as Delta's statistics have it."""
    if not file or file.get("num_records") is None:
        return "its rows; devices send again what they keep"
    first, last = (_time(file.get(f"{bound}.received_us")) for bound in ("min", "max"))
    of = f" of devices up to {file['max.device']}" if file.get("max.device") else ""
    return (
        f"{file['num_records']:,} rows{of}, received from {first} to {last} UTC; devices send "
        "again what they keep"
    )


def _time(time_us: int | None) -> str:
    if time_us is None:
        return "?"
    return f"{datetime.fromtimestamp(time_us / 1e6, UTC):%Y-%m-%d %H:%M:%S}"
