"""SQL over one table of the lake, without Spark: DataFusion, inside the `deltalake` package.

Not `DeltaTable.to_pyarrow_table`: it leaves threads behind that now and then abort the process
when it exits. Files that a condition rules out by their statistics are not opened, and columns
that nobody asks for are not read.
"""

import os
import re
from pathlib import Path
from shlex import quote
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from lasp_edge.errors import CommandError, EnvironmentLacks, UsageError

_DECORATION: Final = re.compile(r"\x1b\[[\d;]*m|↳")


def selected(table: DeltaTable, query: str) -> pa.Table:
    """Return what a query selects.

    Args:
        table: it is called `source` in the query.
        query: a SELECT in DataFusion's dialect.
    """
    return plain(pa.table(QueryBuilder().register("source", table).execute(query)))


def plain(found: pa.Table) -> pa.Table:
    """Return a table whose types every tool knows, without DataFusion's views of texts and bytes.

    Also what DataFusion has written, as where rows were deleted, is read with such types.
    """
    return found.cast(pa.schema([field.with_type(_plain(field.type)) for field in found.schema]))


def in_one_line(error: Exception | str) -> str:
    """Return what `deltalake` says of an error, without its colours and arrows."""
    return " ".join(_DECORATION.sub(" ", str(error)).split())


def _plain(type_: pa.DataType) -> pa.DataType:
    """Return the type that every tool knows, in place of a view."""
    if pa.types.is_string_view(type_):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(type_) else type_


def unreadable(root: str, error: Exception) -> str:
    """Return why a lake cannot be read; a directory of this machine may be torn."""
    text = f"{root} cannot be read: {in_one_line(error)}"
    if "://" in root:
        return text
    return f"{text} (what a power cut has torn is mended at the next start of `lasp-edge cloud`)"


def unwritable(place: Path) -> CommandError:
    """Return the error of a lake in a directory where this process cannot write."""
    if os.statvfs(place).f_flag & os.ST_RDONLY:  # the kernel mounts a disk so after an error
        remount = f'sudo mount -o remount,rw "$(findmnt -n -o TARGET -T {quote(str(place))})"'
        return EnvironmentLacks(f"--lake {place}: its disk is mounted read-only", remount)
    return UsageError(f"--lake {place}: this user cannot write there")


def no_table(root: str, name: str) -> str:
    """Return that a lake lacks a table, and what to type: a start of the job makes it again.

    >>> no_table("./lake", "results").partition(", or ")[2]
    'start `lasp-edge cloud MODULE:PROGRAM --broker URL --lake ./lake` to make one'
    """
    start = f"`lasp-edge cloud MODULE:PROGRAM --broker URL --lake {root}`"
    text = f"no lake with a table {name!r} in {root}: name its directory with --lake"
    return f"{text}, or start {start} to make one"


def gone(root: str) -> str:
    """Return that a lake is not there any more, as where its disk is not mounted."""
    return f"the lake {root} is gone (`findmnt -T {quote(root)}` shows whether its disk is mounted)"
