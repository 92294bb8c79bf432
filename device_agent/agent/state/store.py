"""The durable side of an agent: one SQLite file, one transaction a commit.

With a write-ahead log and `synchronous=FULL`, everything survives a power cut once `commit` has
returned. Every row is sealed with a checksum (`sealed_file`). A damaged file is renamed and kept,
never deleted (`damage`); the agent starts empty, and learns from its peers and from the lander what
they know of it. A file may show its damage at the opening (`opening`), which verifies all of it, or
at any later read or commit: then the method raises `DamagedStoreError`, and the agent starts again.
Who looks while an agent has the file open is given a copy (`look`).
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from crdts.plain import pack
from device_agent.agent.changes import Changes, Facts, Restored
from device_agent.agent.state.form import AGENT
from device_agent.agent.state.pane_table import PaneTable
from device_agent.agent.stored_rows import (
    BLOCK_US,
    EVERY_SINK,
    BlockId,
    EntryKey,
    PaneId,
    PaneRow,
    ReadingRow,
    Retraction,
    SourceRow,
    StoreWide,
    Undelivered,
    WaitingRow,
    WaitingTotals,
    refusal,
)
from device_agent.storage.opening import check_format
from device_agent.storage.sealed_file import (
    SealedFile,
    StoreNames,
    Transaction,
    finding_damage,
    masks_become,
    put,
    sealed_pane,
    unsealed,
)
from device_agent.storage.whose import need_data
from lasp_edge.evaluation.stored import HistoryRow

KEPT_LIVES = 1_000
"""Lives of the device that an agent remembers, the last ones: 0.1 MB. Who speaks of an earlier one
speaks of a later one, too."""
FILE_NAME = "agent.sqlite"
LOCK_NAME = "agent.lock"
LAST_BLOCKS = 2_500
"""Streams whose last block of identities a start reads, at most: a tag that differs in each
reading makes a stream a reading, and a start must not fill its memory with them."""
NEVER_US = -(2**62)
"""Before every time."""
_RETRACTED = "retracted"


class Store(SealedFile):
    """An agent's SQLite file, held by one process; see `existing_store` for others that look.

    Args:
        directory: the agent's data directory; made where it is missing.
        read_only: only look; another process may write.

    Raises:
        BlockingIOError: another agent runs on this directory.
        UsageError: the file has another format.
        sqlite3.Error: the file cannot be read or written.
    """

    form = AGENT
    names = StoreNames(FILE_NAME, LOCK_NAME)

    def _use(self, db: sqlite3.Connection) -> None:
        super()._use(db)
        self._panes = PaneTable(db)

    @finding_damage
    def restored(self) -> Restored:
        """Return what an agent starts with."""
        restored = Restored()
        newest = "SELECT * FROM replica ORDER BY incarnation DESC LIMIT ?"
        last = self._rows(newest, (KEPT_LIVES,))
        restored.replicas = frozenset((incarnation, nonce) for incarnation, nonce, _ in last)
        restored.incarnation = max(restored.replicas, default=(0, 0))[0]
        for number, variable, meaning in self._rows("SELECT * FROM meaning"):
            restored.meanings[number] = (variable, meaning)
        for number, key, _, part in self._rows("SELECT * FROM variable ORDER BY meaning, key, n"):
            restored.variables.setdefault(number, {}).setdefault(key, []).append(part)
        for name, cursor, high_us, stamped, done in self._rows("SELECT * FROM source"):
            restored.sources[name] = SourceRow(cursor, high_us, bool(stamped), bool(done))
        restored.counters = dict(self._rows("SELECT * FROM counter"))
        members = self._rows("SELECT * FROM member")
        restored.facts = Facts.from_rows(self._rows("SELECT * FROM fact"), members)
        restored.waiting = _waiting_totals(self._db)
        restored.last_blocks = self._db.execute(
            "SELECT event, tags, max(block) FROM identity GROUP BY event, tags"
            " ORDER BY max(block) DESC LIMIT ?",
            (LAST_BLOCKS,),
        ).fetchall()
        return restored

    @finding_damage
    def commit(self, changes: Changes) -> None:
        """Make all changes durable, or none."""
        self.need_file()
        with Transaction(self._db):
            self._write(changes)

    def _write(self, changes: Changes) -> None:
        if changes.replica:
            put(self._db, "replica", [tuple(changes.replica)])
        put(self._db, "fact", changes.facts.rows())
        if changes.facts.membership is not None:
            put(self._db, "member", changes.facts.member_rows())
        put(self._db, "counter", changes.counters.items())
        put(
            self._db,
            "source",
            [
                (name, row.cursor, row.high_us, int(row.stamped), int(row.done))
                for name, row in changes.sources.items()
            ],
        )
        put(
            self._db, "identity", [(*block, packed) for block, packed in changes.identities.items()]
        )
        _write_panes(self._db, changes)
        _write_variables(self._db, changes)
        self._write_readings(changes)
        put(self._db, "waiting", changes.waiting)
        if changes.placed:
            self._db.executemany("DELETE FROM waiting WHERE n = ?", [(n,) for n in changes.placed])

    def _write_readings(self, changes: Changes) -> None:
        if not changes.readings:
            return
        (last,) = self._db.execute("SELECT coalesce(max(n), 0) FROM reading").fetchone()
        put(
            self._db,
            "reading",
            [(n, *stored_reading(row)) for n, row in enumerate(changes.readings, last + 1)],
        )

    @finding_damage
    def identities(self, block: BlockId) -> bytes | None:
        """Return a block's packed identities."""
        row = self._db.execute(
            "SELECT * FROM identity WHERE event = ? AND tags = ? AND block = ?", block
        ).fetchone()
        return unsealed(row)[3] if row else None

    @finding_damage
    def identity_blocks(self, event: str, first: int, last: int) -> list[tuple[BlockId, bytes]]:
        """Return the blocks of an event from one number to another, both included."""
        rows = self._rows(
            "SELECT * FROM identity WHERE event = ? AND block BETWEEN ? AND ?",
            (event, first, last),
        )
        return [(BlockId(event, tags, block), packed) for _, tags, block, packed in rows]

    @finding_damage
    def panes_between(
        self, stream: int, first_us: int, end_us: int
    ) -> list[tuple[PaneId, PaneRow]]:
        """Return all replicas' entries of a stream; see `PaneTable.between`."""
        return self._panes.between(stream, first_us, end_us)

    @finding_damage
    def history(self, stream: int, least_us: int, end_us: int) -> list[tuple[int, HistoryRow]]:
        """Return what is kept of a stream with least_us <= time < end_us, each with its time."""
        return self._panes.history(stream, least_us, end_us)

    @finding_damage
    def panes_named(self, panes: Iterable[PaneId]) -> list[tuple[PaneId, PaneRow]]:
        """Return those of these entries that are here."""
        return self._panes.named(panes)

    @finding_damage
    def newest_panes(self, stream: int, span_us: int) -> list[tuple[PaneId, PaneRow]]:
        """Return all replicas' newest entries of a stream; see `PaneTable.newest`."""
        return self._panes.newest(stream, span_us)

    @finding_damage
    def dirty_panes(
        self, after: EntryKey, limit: int, *, refused_too: bool
    ) -> list[tuple[PaneId, PaneRow]]:
        """Return the next dirty entries after a place; see `PaneTable.dirty`."""
        return self._panes.dirty(after, limit, refused_too=refused_too)

    @finding_damage
    def undelivered(self) -> list[Undelivered]:
        """Return how many entries are dirty, by stream, and for whom."""
        return self._panes.undelivered()

    @finding_damage
    def waiting(self, packed_bytes: int) -> list[WaitingRow]:
        """Return the first batches that wait for the clock: one, or more of these bytes."""
        rows: list[WaitingRow] = []
        for row in self._rows("SELECT * FROM waiting ORDER BY n"):
            rows.append(WaitingRow(*row))
            packed_bytes -= len(rows[-1].batch)
            if packed_bytes <= 0:
                break
        return rows

    @finding_damage
    def prune(self, floor_us: int, pruned_us: int = NEVER_US) -> int:
        """Delete what lies wholly below the floor; panes only once acknowledged.

        Args:
            floor_us: the floor.
            pruned_us: the greatest end of all that was deleted before.

        Returns:
            The greatest end of all that was ever deleted: no reading below it may come again.
        """
        panes, blocks = "pane_us < ? AND end_us <= ? AND dirty = 0", "block < ?"
        floors, block = (floor_us, floor_us), (floor_us // BLOCK_US,)
        most = (
            (f"SELECT max(end_us) FROM pane WHERE {panes}", floors),  # noqa: S608 - ours
            (f"SELECT (max(block) + 1) * {BLOCK_US} FROM identity WHERE {blocks}", block),  # noqa: S608
        )
        with Transaction(self._db) as db:
            ends_us = [db.execute(*query).fetchone()[0] for query in most]
            known_us = [end_us for end_us in ends_us if end_us is not None]
            pruned_us = max([pruned_us, *known_us])
            if known_us:
                db.execute(f"DELETE FROM pane WHERE {panes}", floors)  # noqa: S608 - ours
                db.execute(f"DELETE FROM identity WHERE {blocks}", block)  # noqa: S608 - ours
                put(self._db, "fact", Facts(pruned_us=pruned_us).rows())
        return pruned_us

    def check(self) -> None:
        """Read a little of what every store holds.

        Raises:
            UsageError: it has another format.
            sqlite3.Error: it cannot be read.
        """
        check_format(self._db, self.path, self.form)
        self._db.execute("SELECT key FROM variable, replica LIMIT 1").fetchone()

    def replica(self) -> tuple[int, int, str] | None:
        """Return the last replica that was started on this store."""
        row = self._db.execute("SELECT * FROM replica ORDER BY incarnation DESC LIMIT 1").fetchone()
        if row is None:
            return None
        incarnation, nonce, device = unsealed(row)
        return incarnation, nonce, device

    def readings(self) -> Iterator[dict[str, Any]]:
        """Yield the kept readings in the order of their acceptance."""
        rows = self._kept_readings()
        while (row := self._next(rows)) is not None:
            yield shown_reading(*row)

    @finding_damage
    def _kept_readings(self) -> Iterator[tuple[Any, ...]]:
        return self._rows("SELECT * FROM reading ORDER BY n")

    @finding_damage
    def _next(self, rows: Iterator[tuple[Any, ...]]) -> tuple[Any, ...] | None:
        return next(rows, None)


def _waiting_totals(db: sqlite3.Connection) -> WaitingTotals:
    """Return how much waits for the clock."""
    found = db.execute(
        "SELECT coalesce(max(n), 0), coalesce(sum(readings), 0),"
        " coalesce(sum(length(batch)), 0) FROM waiting"
    ).fetchone()
    return WaitingTotals(*found)


def _write_variables(db: sqlite3.Connection, changes: Changes) -> None:
    put(db, "meaning", [(number, *known) for number, known in changes.meanings.items()])
    if changes.states:
        db.executemany("DELETE FROM variable WHERE meaning = ? AND key = ?", changes.states.keys())
    wholes = [(*at, 0, state) for at, state in changes.states.items() if state is not None]
    deltas = [(*at, *part) for at, parts in changes.deltas.items() for part in parts]
    put(db, "variable", [*wholes, *deltas])


def _write_panes(db: sqlite3.Connection, changes: Changes) -> None:
    """Write what changed: first what concerns many entries, then single ones."""
    if changes.forgotten:
        kept = ~changes.forgotten
        _set_masks(db, masks_become(f"dirty & {kept}", f"refused & {kept}"))
    if changes.dirtied:
        bits = changes.dirtied
        masks = masks_become(f"dirty | {bits}", f"refused & {~bits}")
        _set_masks(db, f"{masks} WHERE incarnation != 0")
    for answer in changes.answers:
        _write_answer(db, answer)
    if changes.abandoned:
        db.executemany(
            "DELETE FROM pane WHERE stream = ? AND pane_us >= ? AND pane_us < ?",
            changes.abandoned,
        )
    rows = [
        (*pane, row.seq, row.end_us, pack(row.partial), row.dirty, row.refused)
        for pane, row in changes.panes.items()
    ]
    rows += [
        (*at, "", 0, 0, 0, row.end_us, pack((row.content,)), 0, 0)
        for at, row in changes.history.items()
    ]
    db.executemany(
        "INSERT OR REPLACE INTO pane VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        map(sealed_pane, rows),
    )


def _set_masks(db: sqlite3.Connection, masks: str) -> None:
    db.execute(f"UPDATE pane SET {masks}")  # noqa: S608 - masks of ours


def _write_answer(db: sqlite3.Connection, answer: StoreWide) -> None:
    bit, reason, (incarnation, nonce, runs) = answer
    if reason:
        refused = f"(refused & {EVERY_SINK}) | {refusal(0, bit, reason)}"
        masks = masks_become(refused=refused)
    else:
        masks = masks_become(f"dirty & {~bit}", f"refused & {~bit}")
    db.executemany(
        f"UPDATE pane SET {masks} WHERE dirty != 0 AND dirty & {bit} != 0"  # noqa: S608 - ours
        " AND incarnation = ? AND nonce = ? AND seq BETWEEN ? AND ?",
        [(incarnation, nonce, *run) for run in runs],
    )


def stored_reading(row: ReadingRow) -> ReadingRow:
    """Return a kept reading with its value as JSON: of a retraction, an object."""
    return row._replace(value=json.dumps(row.value, default=_as_json))


def shown_reading(
    n: int,
    accepted_us: int,
    event: str,
    time_us: int,
    value: str,
    quantised: int,
    tags: str,
    source: str,
) -> dict[str, Any]:
    """Return a stored row for people; a retraction is marked.

    >>> row = ReadingRow(9, "litres", 5, Retraction(310), 620, "", "meter")
    >>> shown = shown_reading(1, *stored_reading(row))
    >>> shown["value"], shown["retracted"]
    (310, True)
    """
    read = json.loads(value)
    shown = {
        "n": n,
        "event": event,
        "time_us": time_us,
        "value": read,
        "q": quantised,
        "tags": json.loads(tags) if tags else {},
        "accepted_us": accepted_us,
        "source": source,
    }
    return shown | {"value": read[_RETRACTED], _RETRACTED: True} if type(read) is dict else shown


def _as_json(value: Any) -> Any:
    if isinstance(value, Retraction):
        return {_RETRACTED: value.value}
    try:
        return str(value)
    except ValueError:  # a fraction of more digits than can be printed; it is in range
        return float(value)


def existing_store(directory: Path) -> Store:
    """Return the store of a data directory, to look at while an agent may write.

    Raises:
        NotFound: the directory has no store, or it cannot be read.
        UsageError: it has another format.
    """
    need_data(directory, FILE_NAME)
    store = Store(directory, read_only=True)
    store.look(store.check)
    return store
