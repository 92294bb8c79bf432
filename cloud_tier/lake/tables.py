"""The lake: which Delta tables there are, what their columns mean, and how they are made.

    landing    what the lander took in, one commit a log segment; rows may repeat
    lattice    the same rows, of large batches joined; rows may repeat until compaction
    windows    every revision of every window; the current one has the greatest `revision`
    globals    every value of every dynamic fold; the current one has the greatest `revision`
    results    every revision of every row of a result; the current one has the greatest `revision`
    shared     the irreducibles of shared variables (`cloud_tier.shared`); rows may repeat
    rejects    frames that were not taken, with the reason
    programs   what the windows and folds in the lake mean, so that readers need no program

`landing` and `lattice` hold irreducibles of the fleet's lattices as rows, so Spark's `max`,
`max_by` and `sum` are the join. Twelve kinds of row share the columns. (incarnation, nonce, seq) is
a version, and all rows have `received_us`, the time at which the lander took them in:

    pane       one replica's partial of one pane (`stream`, `key`, `pane_us`) of a device; the
               greatest `seq` of a replica wins. A row of a result is a pane of its own, packed in
               `said` (`lasp_edge.ordered.sent_rows`), and of a device's the greatest version wins.
               A cell of items is one, too, packed in `items`: those of all replicas of a device
               are united (`lasp_edge.ordered.sent_items`)
    variable   one key of a device's entry of a dynamic variable, that is, of one `shard` of it. It
               counts while its version is the greatest of (stream, device, shard); `changed` is
               the seq at which the key itself last changed. An entry without keys is one row whose
               `key` is NULL, and only says that all others are gone
    promise    a device's low watermark `low_us`, or that it is `done`, as of its version;
               `received_us` is when that version first came. From `since_us` on no other store of
               the device has accepted readings alone, where it states that
    begun      beside a promise, of its version: a window `stream` has all from `since_us` on alone
    tick       a `lander`'s clock `now_us` at the end of segment `seq`; it listens since `since_us`
    member     an operator's command on a device, the one numbered `control`: `retired` or not; if
               it is, panes up to the version still count; it owes some up to `low_us`, at most
    control    an entry of the log of a parameter `key`, for a `device` or "" for all, from
               `pane_us` on (`cloud_tier.lake.controls`). `changed` of a promise: its log's digest

Of the others, which a job keeps for a start, the rows with the greatest `seq` count:

    held       starts of a window `key`, from `pane_us` to `now_us`, that wait until all devices
               have promised again (`cloud_tier.job.control`)
    lives      what is known of earlier lives of a device, of which stretch a lost store may have
               had more, and up to when it owes readings once retired (`cloud_tier.job.lives`)
    cut        where the streams over the fleet stand at `pane_us`, packed in `said`, until `low_us`
    mark       of a scan with local events the events in order of a cell at `pane_us`, packed in
               `said`, needed until `low_us` (both: `cloud_tier.job.fleet_history`)
    bookmark   what the job knew at a version of the other tables (`cloud_tier.job.bookmark`)

A column that a kind of row has no use for is NULL, or 0 or "" where rows are grouped by it
(`ABSENT`). The columns stand in `lasp_edge.protocol.lake_columns`, where they are reserved too.
Tables are plain (reader version 1, writer version 2): any Delta reader opens them.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, Field, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.schema import PrimitiveType

from cloud_tier.lake.comments import TABLES, comment
from cloud_tier.lake.query import no_table, unreadable, unwritable
from lasp_edge.errors import CommandError, Exit, NotFound, UsageError
from lasp_edge.folds.columns import Column, Op
from lasp_edge.language.declarations import TEXT, StreamResult
from lasp_edge.language.item_stream import ItemStream
from lasp_edge.protocol.lake_columns import (
    CONTROL_ENTRY,
    IDENTITY,
    LAKE_COLUMNS,
    LANDED,
    PANE_DATE,
    RESULT_ROW,
    ROW_IDENTITY,
    ROW_RECORD,
    VALUE_IDENTITY,
    VALUE_RECORD,
)
from lasp_edge.protocol.window_rows import LAKE_RECORD, WINDOW_IDENTITY

PANE: Final = "pane"
VARIABLE: Final = "variable"
PROMISE: Final = "promise"
BEGUN: Final = "begun"
MEMBER: Final = "member"
TICK: Final = "tick"
CONTROL: Final = "control"
LIVES: Final = "lives"
HELD: Final = "held"
CUT: Final = "cut"
MARK: Final = "mark"
BOOKMARK: Final = "bookmark"

REJECTS: Final = {
    "received_us": "long",
    "topic": "string",
    "reason": "string",
    "frames": "long",
    "frame": "binary",
}
SHARED: Final = {
    "variable": "string",
    "stream": "long",
    "part": "string",
    "key": "string",
    "kind": "string",
    "entry": "string",
    "context": "string",
    "device": "string",
    "incarnation": "long",
    "nonce": "long",
    "seq": "long",
    "mark": "long",
    "sign": "integer",
    "value": "string",
    "tie": "string",
    "rank": "decimal(38,0)",
    "upto": "long",
    "received_us": "long",
}
PROGRAMS: Final = {
    "kind": "string",
    "name": "string",
    "revision": "integer",
    "description": "string",
    "since_us": "long",
}

_OF_NOTHING: Final[Mapping[str, Any]] = {"string": "", "long": 0}
ABSENT: Final[Mapping[str, Any]] = {"seq": 0} | {n: _OF_NOTHING[k] for n, k in IDENTITY.items()}
"""What a column holds in a kind of row that has no use for it; NULL if it is not here."""

FORMAT: Final = 2
"""Of the tables' columns and of their meaning; one that only adds columns or tables is no other
format. A lake of another format is left as it is until somebody asks for `cloud_tier.lake.upgrade`,
as a lander of the release before must not write to it any more."""
_DESCRIPTION: Final = "lasp-edge lake, format "

# Totals over devices and panes may exceed 64 bits; a single entry's never do.
_COMBINED: Final = {Op.SUM: "decimal(38,0)"}
_ARROW: Final = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "decimal(38,0)": pa.decimal128(38, 0),
}
_NOT_IN_A_NAME: Final = frozenset(" ,;{}()\n\t=.`")
APPEND_ONLY: Final = "delta.appendOnly"
"""Delta's property by which it refuses that rows of a table change or go."""
_PROPERTIES: Final = {"delta.checkpointInterval": "100"}
"""In commits: how many of them a reader of a table opens at most. A checkpoint costs 0.3 s."""


class LakeUnreadable(CommandError, OSError):  # noqa: N818 - it says what happened
    """A table of the lake cannot be read; the text says why.

    An `OSError` too: a lander waits and tries again, and a command ends with one line.
    """

    exit_code = Exit.ENVIRONMENT


class LakeTables:
    """Where the tables of a lake are.

    Args:
        root: a directory, or a URL that deltalake and Spark both understand as one.

    Attributes:
        landing, lattice, windows, globals, results, shared, rejects, programs: paths of the tables.
        landed: the tables to which landers append.
        merged: the tables that only a job writes to; the merged state is the first.
        grown: the tables that get a file with every commit.
        all: every table.
        rewritten: the tables of which maintenance makes their own join; rows are only appended to
            the others.
        checkpoint: where the streaming query keeps how far it has read.
        log: where the lander logs messages before it acknowledges them.
        is_local: whether it is a directory of this machine.
    """

    def __init__(self, root: str | Path) -> None:
        text = str(root)
        self.is_local = "://" not in text
        self.root = str(Path(text).absolute()) if self.is_local else text.rstrip("/")
        self.landing = f"{self.root}/landing"
        self.lattice = f"{self.root}/lattice"
        self.windows = f"{self.root}/windows"
        self.globals = f"{self.root}/globals"
        self.results = f"{self.root}/results"
        self.shared = f"{self.root}/shared"
        self.rejects = f"{self.root}/rejects"
        self.programs = f"{self.root}/programs"
        self.landed = (self.landing, self.shared, self.rejects)
        self.merged = (self.lattice, self.windows, self.globals, self.results)
        self.grown = (self.landing, *self.merged, self.shared, self.rejects)
        self.all = (*self.grown, self.programs)
        self.rewritten = (self.lattice, self.shared)
        self.checkpoint = f"{self.root}/checkpoint"
        self.log = f"{self.root}/log"

    def table(self, path: str) -> DeltaTable:
        """Return one of the lake's tables.

        Raises:
            NotFound: there is no such table.
            LakeUnreadable: its store does not answer, or refuses, or what is there is damaged.
        """
        try:
            return DeltaTable(path)
        except TableNotFoundError:
            raise NotFound(no_table(self.root, path.rpartition("/")[2])) from None
        except (DeltaError, OSError) as error:
            raise LakeUnreadable(unreadable(self.root, error)) from error

    def lake_id(self) -> str:
        """Return the id that tells this lake from any other, also from a new one in its place."""
        return str(self.table(self.landing).metadata().id)

    def make_place(self) -> None:
        """Make the directory, unless it is there or is no place of this machine.

        Raises:
            UsageError, EnvironmentLacks: nothing can be written there.
        """
        if not self.is_local:
            return
        place = Path(self.root)
        try:
            place.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise UsageError(f"--lake {self.root}: a directory is needed, not a file") from None
        except OSError as error:
            raise UsageError(f"--lake {self.root} cannot be made: {error.strerror}") from None
        if not os.access(place, os.W_OK | os.X_OK):
            raise unwritable(place)

    def create(
        self,
        columns: Mapping[str, Column],
        results: Collection[StreamResult] = (),
        parameters: Collection[str] = (),
        items: Iterable[ItemStream] = (),
    ) -> None:
        """Make the tables that are missing, and widen those that lack one of the columns.

        Args:
            columns: the program's columns by name.
            results: the program's results.
            parameters: what operators can change of it.
            items: the program's streams of items.

        Raises:
            UsageError: a column's name cannot stand beside the lake's own, or the lake is there
                and has another format.
        """
        _check_names(columns)
        _check_format(self)
        parts = _part_types(columns)
        landed = {**LANDED, **parts, **_own_types(results, parameters, items)}
        combined = {name: _COMBINED.get(made.op, parts[name]) for name, made in columns.items()}
        windows = {**WINDOW_IDENTITY, **combined, **LAKE_RECORD}
        values = {**VALUE_IDENTITY, **combined, **VALUE_RECORD}
        rows = {**ROW_IDENTITY, **row_types(results), **ROW_RECORD}
        self._ensure(self.landing, landed)
        self._ensure(self.lattice, {**landed, PANE_DATE: "date"}, PANE_DATE)
        self._ensure(self.windows, windows)
        self._ensure(self.results, rows)
        self._ensure(self.globals, values)
        self._ensure(self.shared, SHARED)
        self._ensure(self.rejects, REJECTS)
        self._ensure(self.programs, PROGRAMS)

    def _ensure(self, path: str, columns: Mapping[str, str], partition: str = "") -> None:
        table_name = path.rpartition("/")[2]
        fields = [_field(name, kind, table_name) for name, kind in columns.items()]
        if not DeltaTable.is_deltatable(path):
            own = {} if path in self.rewritten else {APPEND_ONLY: "true"}
            _make(path, fields, {**_PROPERTIES, **own}, partition)
        table = DeltaTable(path)
        known = {field.name for field in table.schema().fields}
        missing = [field for field in fields if field.name not in known]
        if missing:
            table.alter.add_columns(missing)

    @contextmanager
    def open_to_changes(self, path: str) -> Iterator[None]:
        """Have Delta allow that rows of a table change or go while the block lasts."""
        if path in self.rewritten:
            yield
            return
        alter = self.table(path).alter
        alter.set_table_properties({APPEND_ONLY: "false"}, raise_if_not_exists=False)
        try:
            yield
        finally:
            alter = self.table(path).alter
            alter.set_table_properties({APPEND_ONLY: "true"}, raise_if_not_exists=False)

    @property
    def description(self) -> str:
        """The text by which `landing` is known to have the present format."""
        return f"{_DESCRIPTION}{FORMAT}"

    @staticmethod
    def format_of(landing: DeltaTable) -> str:
        """Return the format of the lake that has this table `landing`."""
        described = landing.metadata().description or ""
        return described.removeprefix(_DESCRIPTION) if described else "1"


def arrow_schema(columns: Mapping[str, str]) -> pa.Schema:
    """Return the Arrow schema of columns that are given by Delta type."""
    return pa.schema([pa.field(name, _ARROW[kind]) for name, kind in columns.items()])


def landed_schema(
    columns: Mapping[str, Column],
    results: Collection[StreamResult] = (),
    parameters: Collection[str] = (),
    items: Iterable[ItemStream] = (),
) -> pa.Schema:
    """Return the Arrow schema of landing rows; see `LakeTables.create`."""
    own = _own_types(results, parameters, items)
    return arrow_schema({**LANDED, **_part_types(columns), **own})


def row_types(results: Iterable[StreamResult]) -> dict[str, str]:
    """Return the Delta types of the columns in which the parts of results are."""
    return {
        column: "string" if step == TEXT else "long"
        for result in results
        for column, (_, step) in zip(result.columns, result.parts, strict=True)
    }


def _own_types(
    results: Collection[StreamResult], parameters: Collection[str], items: Iterable[ItemStream]
) -> dict[str, str]:
    """Return the Delta types of the lake's own columns that only some programs have."""
    sent = [name for each in items for name in each.fold.columns_named]
    rows, entries = [RESULT_ROW] if results else [], [CONTROL_ENTRY] if parameters else []
    return dict.fromkeys([*rows, *entries, *sent], "binary")


def _part_types(columns: Mapping[str, Column]) -> dict[str, str]:
    """Return the Delta types of one device's parts."""
    return {name: "binary" if made.binary else "long" for name, made in columns.items()}


def _check_format(lake: LakeTables) -> None:
    """Check that the lake is new or has this format; `landing` is its oldest table."""
    if not DeltaTable.is_deltatable(lake.landing):
        return
    number = lake.format_of(DeltaTable(lake.landing))
    if number != str(FORMAT):
        todo = (
            f"stop its job and landers, and type `lasp-edge lake upgrade --lake {lake.root}`"
            if number == "1"
            else "a later one wrote it: install that, or name another directory with --lake"
        )
        raise UsageError(
            f"{lake.root} has the lake format {number}, and this lasp-edge writes {FORMAT}: {todo}"
        )


def _check_names(columns: Iterable[str]) -> None:
    seen = {name: name for name in LAKE_COLUMNS}
    for name in columns:
        other = seen.setdefault(name.casefold(), name)
        if other in LAKE_COLUMNS or other != name:
            raise UsageError(f"a fold's column {name!r} clashes with the lake's column {other!r}")
        if not name or set(name) & _NOT_IN_A_NAME:
            raise UsageError(f"a fold's column {name!r} cannot be a column of a Delta table")


def _field(name: str, kind: str, table: str) -> Field:
    text = comment(name, is_binary=kind == "binary", table=table)
    return Field(name, PrimitiveType(kind), metadata={"comment": text} if text else None)


def _make(path: str, fields: list[Field], properties: dict[str, str], partition: str) -> None:
    name = path.rpartition("/")[2]
    try:
        DeltaTable.create(
            path,
            schema=Schema(fields),
            partition_by=[partition] if partition else None,
            configuration=properties,
            name=name,
            description=f"{_DESCRIPTION}{FORMAT}" + (f": {TABLES[name]}" if name in TABLES else ""),
        )
    except DeltaError:
        # The lander and the job start together, and one of them makes the table.
        if not DeltaTable.is_deltatable(path):
            raise
