"""The lake: which Delta tables there are, what their columns mean, and how they are made.

    landing    what the lander took in, one commit a log segment; rows may repeat
    lattice    the same rows, joined inside each batch; rows may repeat until compaction
    windows    every revision of every window; the current one has the greatest `revision`
    globals    every value of every dynamic fold; the current one has the greatest `revision`
    rejects    frames that were not taken, with the reason
    programs   what the windows and folds in the lake mean, so that readers need no program

`landing` and `lattice` hold irreducibles of the fleet's lattices as rows, so Spark's `max`,
`max_by` and `sum` are the join. Five kinds of row share the columns:

    pane       one replica's partial of one pane of one key; the greatest `seq` of a replica wins
    variable   one key of a device's entry of a dynamic variable, that is, of one `shard` of it. It
               counts while its version is the greatest of (stream, device, shard); `changed` is
               the seq at which the key itself last changed. An entry without keys is one row whose
               `key` is NULL, and only says that all others are gone
    promise    one device's low watermark, and when its version was first heard
    tick       a lander's clock: it has listened from `since_us` until `low_us`
    member     an operator's word on a device: numbered by `changed`, retired if `done`, and then
               (incarnation, nonce, seq) is up to where its panes count

Tables are plain (reader version 1, writer version 2): any Delta reader opens them.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, Field, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.schema import PrimitiveType

from lasp_edge.errors import NotFound, UsageError
from lasp_edge.folds.columns import Column, Op

PANE: Final = "pane"
VARIABLE: Final = "variable"
PROMISE: Final = "promise"
MEMBER: Final = "member"
TICK: Final = "tick"

TENTATIVE: Final = "tentative"
FINAL: Final = "final"
REVISED: Final = "revised"

ENTRY: Final = {
    "kind": "string",
    "stream": "long",
    "key": "string",
    "pane_us": "long",
    "device": "string",
    "incarnation": "long",
    "nonce": "long",
    "seq": "long",
    "low_us": "long",
    "since_us": "long",
    "received_us": "long",
    "done": "boolean",
    "shard": "long",
    "changed": "long",
}
PANE_DATE: Final = "pane_date"

_WINDOW_IDENTITY: Final = {
    "window": "string",
    "key": "string",
    "start_us": "long",
    "end_us": "long",
}
_WINDOW_RECORD: Final = {
    "devices_in": "integer",
    "devices_expected": "integer",
    "excluded": "string",
    "status": "string",
    "revision": "integer",
    "frontier": "long",
    "stream": "long",
}
_GLOBAL_RECORD: Final = {
    "inputs": "string",
    "devices_in": "integer",
    "revision": "integer",
    "stream": "long",
}
REJECTS: Final = {
    "received_us": "long",
    "topic": "string",
    "reason": "string",
    "frames": "long",
    "frame": "binary",
}
PROGRAMS: Final = {
    "kind": "string",
    "name": "string",
    "revision": "integer",
    "description": "string",
}

# Totals over devices and panes may exceed 64 bits; a single entry's never do.
_COMBINED: Final = {Op.SUM: "decimal(38,0)"}
_ARROW: Final = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
}
_NOT_IN_A_NAME: Final = frozenset(" ,;{}()\n\t=.`")
_APPENDED_ONLY: Final = {"delta.appendOnly": "true"}
# A reader of a table's log opens at most so many commits; a checkpoint costs an append 0.3 s.
_PROPERTIES: Final = {"delta.checkpointInterval": "100"}


class Lake:
    """Where the tables of a lake are.

    Args:
        root: a directory, or what deltalake and Spark both understand as one.
    """

    def __init__(self, root: str | Path) -> None:
        text = str(root)
        self.root = text.rstrip("/") if "://" in text else str(Path(text).absolute())

    @property
    def landing(self) -> str:
        """What the lander took in."""
        return f"{self.root}/landing"

    @property
    def lattice(self) -> str:
        """The landed rows, joined batch by batch."""
        return f"{self.root}/lattice"

    @property
    def windows(self) -> str:
        """Revisions of windows."""
        return f"{self.root}/windows"

    @property
    def globals(self) -> str:
        """Values of dynamic folds."""
        return f"{self.root}/globals"

    @property
    def rejects(self) -> str:
        """Frames that were not taken."""
        return f"{self.root}/rejects"

    @property
    def programs(self) -> str:
        """What windows and folds mean."""
        return f"{self.root}/programs"

    @property
    def grown(self) -> tuple[str, ...]:
        """The tables that get a file with every commit."""
        return (self.landing, self.lattice, self.windows, self.globals, self.rejects)

    @property
    def checkpoint(self) -> str:
        """Where the streaming query keeps how far it has read."""
        return f"{self.root}/checkpoint"

    @property
    def log(self) -> str:
        """Where the lander logs messages before it acknowledges them."""
        return f"{self.root}/log"

    def table(self, path: str) -> DeltaTable:
        """Return one of the lake's tables.

        Raises:
            NotFound: there is no such table.
        """
        try:
            return DeltaTable(path)
        except TableNotFoundError:
            name = path.rpartition("/")[2]
            raise NotFound(f"no lake with a table {name!r} in {self.root}") from None

    def lake_id(self) -> str:
        """Return the id that tells this lake from any other, also from one made anew here."""
        return str(self.table(self.landing).metadata().id)

    def create(self, columns: Mapping[str, Column]) -> None:
        """Make the tables that are missing, and widen those that lack one of the columns.

        Args:
            columns: the program's columns by name.

        Raises:
            UsageError: a column's name cannot stand beside the lake's own.
        """
        _check_names(columns)
        parts = _part_types(columns)
        combined = {name: _COMBINED.get(made.op, parts[name]) for name, made in columns.items()}
        windows = {**_WINDOW_IDENTITY, **combined, **_WINDOW_RECORD}
        values = {"name": "string", "key": "string", **combined, **_GLOBAL_RECORD}
        _ensure(self.landing, {**ENTRY, **parts}, _APPENDED_ONLY)
        _ensure(self.lattice, {**ENTRY, PANE_DATE: "date", **parts}, {}, PANE_DATE)
        _ensure(self.windows, windows, _APPENDED_ONLY)
        _ensure(self.globals, values, _APPENDED_ONLY)
        _ensure(self.rejects, REJECTS, _APPENDED_ONLY)
        _ensure(self.programs, PROGRAMS, _APPENDED_ONLY)


def arrow_schema(columns: Mapping[str, str]) -> pa.Schema:
    """Return the Arrow schema of columns by Delta type; an entry's are `ENTRY` and its parts."""
    return pa.schema([pa.field(name, _ARROW[kind]) for name, kind in columns.items()])


def entry_schema(columns: Mapping[str, Column]) -> pa.Schema:
    """Return the Arrow schema of landing rows with these part columns."""
    return arrow_schema({**ENTRY, **_part_types(columns)})


def _part_types(columns: Mapping[str, Column]) -> dict[str, str]:
    """Return the Delta types of one device's parts."""
    return {name: "binary" if made.binary else "long" for name, made in columns.items()}


def _check_names(columns: Iterable[str]) -> None:
    own = {*ENTRY, PANE_DATE, *_WINDOW_IDENTITY, *_WINDOW_RECORD, *_GLOBAL_RECORD, "name"}
    seen = {name.casefold(): name for name in own}
    for name in columns:
        other = seen.setdefault(name.casefold(), name)
        if other in own or other != name:
            raise UsageError(f"a fold's column {name!r} clashes with the lake's column {other!r}")
        if not name or set(name) & _NOT_IN_A_NAME:
            raise UsageError(f"a fold's column {name!r} cannot be a column of a Delta table")


def _ensure(
    path: str, columns: Mapping[str, str], properties: Mapping[str, str], partition: str = ""
) -> None:
    fields = [Field(name, PrimitiveType(kind)) for name, kind in columns.items()]
    if not DeltaTable.is_deltatable(path):
        _make(path, fields, {**_PROPERTIES, **properties}, partition)
    table = DeltaTable(path)
    known = {field.name for field in table.schema().fields}
    missing = [field for field in fields if field.name not in known]
    if missing:
        table.alter.add_columns(missing)


def _make(path: str, fields: list[Field], properties: dict[str, str], partition: str) -> None:
    try:
        DeltaTable.create(
            path,
            schema=Schema(fields),
            partition_by=[partition] if partition else None,
            configuration=properties,
        )
    except DeltaError:
        # The lander and the job start together, and one of them makes the table.
        if not DeltaTable.is_deltatable(path):
            raise
