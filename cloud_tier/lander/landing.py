"""Landing: a log segment becomes rows of `landing`, in one commit that happens once.

The commit carries an app transaction (lander, segment number), so a segment that was landed before
a crash is recognised and not landed again. Data, promises and the tick are in the same commit:
whoever reads a promise reads the panes that it is about.

What the lander refused (`lasp_edge.protocol.acceptance`) goes to `rejects` with the reason, and
what is news of shared variables to `shared`; both before the segment's own commit.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from cloud_tier.lake.controls import has_log, log_of
from cloud_tier.lake.coverage import host_us
from cloud_tier.lake.device_state import landed_rows
from cloud_tier.lake.room import need_room
from cloud_tier.lake.shared import table_of
from cloud_tier.lake.store_id import STORE, store_id
from cloud_tier.lake.tables import CONTROL, MEMBER, PROMISE, REJECTS, LakeTables, arrow_schema
from cloud_tier.lake.torn import make_durable
from crdts import ControlLog, Member, Membership, Version
from lasp_edge.protocol.acceptance import Refusal, SharedNews
from lasp_edge.protocol.lake_columns import CONTROL_ENTRY
from lasp_edge.units import SECOND_US

log = logging.getLogger(__name__)

_LOSES: Final = frozenset({"RESTORE", "FSCK"})
"""Operations by which rows are not there any more: an earlier version, files that are gone."""
_LOOKED_AT: Final = (20, 1_000, None)
"""Newest commits that a start reads, until one of them states up to where a lander had looked."""
_LOOKED: Final = "lasp_edge_looked"
"""What a lander's commit states besides Delta's own words: up to which version it had looked for
such operations; what it found has another id by then. No commit of an earlier release has it."""
_TRIES: Final = 10
"""How often a commit is tried again, at once: `lake retain` changes the metadata of a table twice
and deletes between, and an append beside a deletion is no conflict."""
KEPT_BYTES: Final = 4096
"""Bytes of a refused frame that `rejects` keeps: its envelope and its first entries."""

Refusals = Mapping[tuple[str, str], Refusal]
"""What was refused, by topic and reason."""


class Landing:
    """Writes segments to a lake's tables, each once.

    Args:
        lake: its tables exist.
        lander: the id under which segments are known to have landed.
    """

    def __init__(self, lake: LakeTables, lander: str) -> None:
        self._lake = lake
        self._durable: dict[str, int] = {}
        self._landing = lake.table(lake.landing)
        self._rejects = lake.table(lake.rejects)
        self._shared = lake.table(lake.shared)
        self._lander = lander
        self._check_restored(self._not_looked_at())

    @property
    def lake_id(self) -> str:
        """The id of the lake as a store; another one since it was found to be put back."""
        return store_id(self._landing)

    @property
    def landed(self) -> int:
        """The number of the last segment that has landed, 0 before the first."""
        self.refresh()
        return self._landing.transaction_version(self._lander) or 0

    @property
    def newest(self) -> int:
        """The number of the newest commit that is known here: of a landed segment, at first."""
        return self._landing.version()

    def refresh(self) -> None:
        """Look for commits of others: somebody may have gone back."""
        before = self.newest
        self._landing.update_incremental()
        if self.newest > before:
            self._check_restored(self._landing.history(self.newest - before))

    def lacks(self, commit: int) -> bool:
        """Return whether the lake lacks a commit that this process has not acknowledged.

        It is there if another lander has made it.
        """
        self.refresh()
        if commit > self.newest:
            return True
        files = PyFileSystem(DeltaStorageHandler(self._landing.table_uri))
        try:
            with files.open_input_stream(f"_delta_log/{commit:020d}.json") as written:
                lines = written.read().splitlines()
        except FileNotFoundError:  # older than the log
            return False
        landers = [json.loads(line).get("txn", {}).get("appId") for line in lines]
        return not any(lander not in {None, self._lander, STORE} for lander in landers)

    def _not_looked_at(self) -> list[dict[str, Any]]:
        """Return the newest commits, down to one that states up to where a lander had looked.

        Where none does, an earlier release has written the lake, which looked at as many.
        """
        commits: list[dict[str, Any]] = []
        for most in _LOOKED_AT:
            commits = self._landing.history(most)
            if any(_LOOKED in commit for commit in commits):
                return commits
        return commits[: _LOOKED_AT[0]]

    def _check_restored(self, commits: Iterable[Mapping[str, Any]]) -> None:
        """Take another id, if rows were lost in commits, newest first, at which nobody has looked.

        Whoever landed a segment after that may have been killed before it looked.
        """
        looked = -1
        for commit in commits:
            looked = max(looked, int(commit.get(_LOOKED, -1)))
            if commit["version"] <= looked:
                return None
            if commit.get("operation") in _LOSES:
                log.warning("the table landing lost rows: devices send again what they keep")
                return self.begin_store()
        return None

    def begin_store(self) -> None:
        """Take another id as a store: this one lacks what devices were acknowledged."""
        need_room(self._lake)
        begun = (self._landing.transaction_version(STORE) or 0) + 1
        named = max(begun, host_us() // SECOND_US)  # no other lake that was put back has it
        nothing = pa.schema(self._landing.schema().to_arrow()).empty_table()
        _commit(self._landing, nothing, STORE, named)
        self._make_durable(self._lake.landing)

    def land(
        self, number: int, table: pa.Table, refused: Refusals, shared: Iterable[SharedNews] = ()
    ) -> None:
        """Commit a segment's rows, after what was refused in it and what is news of variables.

        On this machine all of it is durable then.
        """
        need_room(self._lake)
        if refused:
            self._beside(self._rejects, self._lake.rejects, _rejected(refused), number)
        news = table_of(shared)
        if news.num_rows:
            self._beside(self._shared, self._lake.shared, news, number)
        before = self.newest
        self._write(self._landing, table, number)
        if self.newest > before + 1:  # somebody committed meanwhile
            self._check_restored(self._landing.history(self.newest - before))
        self._make_durable(self._lake.landing)

    def _make_durable(self, path: str) -> None:
        if self._lake.is_local:
            self._durable[path] = make_durable(path, self._durable.get(path, -1))

    def incarnations(self) -> dict[str, int]:
        """Return the greatest incarnation of each device that has landed."""
        found: dict[str, int] = {}
        for row in self._rows(PROMISE, "device", "incarnation"):
            device, incarnation = row["device"], row["incarnation"]
            found[device] = max(incarnation, found.get(device, incarnation))
        return found

    def membership(self) -> Membership:
        """Return the join of all member commands that have landed."""
        found = Membership()
        columns = ("device", "control", "retired", "incarnation", "nonce", "seq")
        for row in self._rows(MEMBER, *columns):
            version = Version(row["incarnation"], row["nonce"], row["seq"])
            found |= Membership({row["device"]: Member(row["control"], row["retired"], version)})
        return found

    def control_log(self) -> ControlLog:
        """Return the log of parameters, as far as it has landed."""
        if not has_log(self._landing):
            return ControlLog()
        return log_of({"kind": CONTROL, **row} for row in self._rows(CONTROL, CONTROL_ENTRY))

    def _rows(self, kind: str, *columns: str) -> Iterator[dict[str, Any]]:
        return landed_rows(self._lake, self._landing, kind, columns)

    def _beside(self, table: DeltaTable, path: str, rows: pa.Table, number: int) -> None:
        """Commit rows of a segment to another table, unless an earlier process has."""
        table.update_incremental()
        if (table.transaction_version(self._lander) or 0) < number:
            self._write(table, rows, number)
        self._make_durable(path)

    def _write(self, table: DeltaTable, added: pa.Table, number: int) -> None:
        _commit(table, added, self._lander, number)


def _commit(table: DeltaTable, added: pa.Table, application: str, number: int) -> None:
    """Commit rows once, again where others have changed the table's metadata meanwhile.

    Args:
        table: they are appended to it, as of a version up to which was looked for lost rows.
        added: the rows.
        application: names who commits them.
        number: of its transaction: none with it has landed.
    """
    looked = {_LOOKED: str(table.version())}
    once = CommitProperties(looked, app_transactions=[Transaction(application, number)])
    # Merging schemas lets a lander go on whose program lacks a column that the lake has.
    options: dict[str, Any] = {"mode": "append", "schema_mode": "merge"}
    for left in range(_TRIES, -1, -1):
        try:
            return write_deltalake(table, added, **options, commit_properties=once)
        except CommitFailedError:
            table.update_incremental()
            if not left or (table.transaction_version(application) or 0) >= number:
                raise
    raise AssertionError("it returns or raises")


def _rejected(refused: Refusals) -> pa.Table:
    rows = [
        (first.received_us, topic, reason, records, first.payload[:KEPT_BYTES])
        for (topic, reason), (first, records) in refused.items()
    ]
    columns = dict(zip(REJECTS, map(list, zip(*rows, strict=True)), strict=True))
    return pa.table(columns, schema=arrow_schema(REJECTS))
