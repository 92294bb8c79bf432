"""The durable side of a gateway: one SQLite file, one transaction a turn.

It is kept with the care of an agent's file (`device_agent.agent.state`): a write-ahead log with
`synchronous=FULL`, a seal on each row, and a damaged file is put aside and never deleted. It can be
large, so at a start only what tells of the devices is verified; entries and rows are, when they are
read. Each start takes a new id, and names those before it, with the last commit of each that is in
the file. So a device sees whether all is there that was acknowledged to it: a file that was cut,
copied or put back lacks it, and gets again what the device keeps.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from crdts import ControlLog, Frontier, Member, Membership, Version, decode, encode
from crdts.frontier import Promise
from crdts.plain import pack
from crdts.replica import SEQS
from device_agent.gateway.kept import (
    FleetChanges,
    FleetState,
    KeptEntry,
    WriterOfPanes,
)
from device_agent.gateway.partials import packed_partial, unpacked_partial
from device_agent.gateway.stored_history import TABLE as HISTORY
from device_agent.gateway.stored_history import (
    HistoryFile,
    forget_history,
    forget_results,
    put_history,
)
from device_agent.storage.damage import DamagedStoreError
from device_agent.storage.opening import StoreForm, check_format
from device_agent.storage.sealed_file import (
    StoreNames,
    Transaction,
    finding_damage,
    put,
    unsealed,
)
from device_agent.storage.whose import need_data
from lasp_edge.language.fleet_regimes import StartSpan
from lasp_edge.protocol.acks import FORMER_STORES, FormerStore
from lasp_edge.protocol.lost_stores import EarlierLives
from lasp_edge.protocol.waiting import Step
from lasp_edge.protocol.window_rows import (
    FIELDS,
    OPTIONAL,
    WINDOW_RECORD,
    FleetRow,
    WindowStart,
    names_text,
)

FILE_NAME: Final = "gateway.sqlite"
LOCK_NAME: Final = "gateway.lock"
STORE_ID, PROGRAM, FRONTIER, SERVED = "store", "program", "frontier", "served"
SUMMARY = "summary"
"""Facts: the id of the file, what its windows mean, how far results are final, and of which."""
CONTROL, HELD, BEGUN, LOST, OWED = "control", "held", "begun", "lost", "owed"
EARLIER, FURTHEST = "earlier", "furthest"
"""Facts: the log of parameters, windows that wait or lack readings, promises that were greater."""
_OF_DEVICES: Final = (BEGUN, LOST, OWED, EARLIER, FURTHEST)
COMMITS, FORMER = "commits", "former"
"""Facts: how many commits were made under the present id, and the ids and commits before it."""

_RECORDED: Final = tuple(name for name in WINDOW_RECORD if name != "revision")
_BEGINS: Final = -len(WINDOW_RECORD)
_REVISION: Final = list(WINDOW_RECORD).index("revision")
"""The columns of a row's record that stand behind its partial."""
_RECORD: Final = ", ".join(
    f"{name} {'TEXT' if each.kind == 'string' else 'INTEGER'}"
    + ("" if name in OPTIONAL else " NOT NULL")
    for name, each in FIELDS.items()
    if name != "revision"
)
_SCHEMA: Final = f"""
CREATE TABLE IF NOT EXISTS entry (
    stream INTEGER, pane_us INTEGER, key TEXT, device TEXT, incarnation INTEGER, nonce INTEGER,
    seq INTEGER NOT NULL, partial BLOB NOT NULL, seal INTEGER NOT NULL,
    PRIMARY KEY (stream, pane_us, key, device, incarnation, nonce)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS revision (
    window TEXT, start_us INTEGER, key TEXT, revision INTEGER, end_us INTEGER NOT NULL,
    partial BLOB NOT NULL, {_RECORD},
    seal INTEGER NOT NULL, PRIMARY KEY (window, start_us, key, revision)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS promise (
    device TEXT PRIMARY KEY, incarnation INTEGER NOT NULL, nonce INTEGER NOT NULL,
    seq INTEGER NOT NULL, low_us INTEGER, done INTEGER NOT NULL, heard_us INTEGER NOT NULL,
    seal INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS member (
    device TEXT PRIMARY KEY, control INTEGER NOT NULL, retired INTEGER NOT NULL,
    incarnation INTEGER NOT NULL, nonce INTEGER NOT NULL, seq INTEGER NOT NULL,
    seal INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS heard (
    device TEXT PRIMARY KEY, line TEXT NOT NULL, seal INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS step (
    received_us INTEGER, lead_us INTEGER, seal INTEGER NOT NULL,
    PRIMARY KEY (received_us, lead_us)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fact (
    name TEXT PRIMARY KEY, value TEXT NOT NULL, seal INTEGER NOT NULL) WITHOUT ROWID;
{HISTORY}"""
_PANES_GONE: Final = "DELETE FROM entry WHERE stream = ? AND pane_us < ?"
_STREAMS: Final = """
WITH RECURSIVE each(stream) AS (
    SELECT min(stream) FROM entry UNION ALL
    SELECT (SELECT min(stream) FROM entry WHERE stream > each.stream) FROM each
    WHERE stream IS NOT NULL)
SELECT stream FROM each WHERE stream IS NOT NULL"""
"""The streams that have entries: a step in the table for each, and not for each entry."""
_NEWEST: Final = """
WITH now(start_us, key, revision, status) AS (
    SELECT start_us, key, max(revision), CASE WHEN devices_in THEN status END FROM revision
    WHERE window = ?1 AND stream = ?2 AND start_us >= ifnull((SELECT DISTINCT start_us FROM revision
        WHERE window = ?1 ORDER BY start_us DESC LIMIT 1 OFFSET 1000), -9e18)
    GROUP BY start_us, key)
SELECT start_us, key FROM now WHERE status != '' AND start_us IN (
    SELECT DISTINCT start_us FROM now WHERE status != '' ORDER BY start_us DESC LIMIT ?3)
UNION SELECT max(start_us), key FROM now WHERE status != '' GROUP BY key, status = 'tentative'
UNION SELECT max(start_us), key FROM now GROUP BY key HAVING count(status) = 0"""
GATEWAY: Final = StoreForm(
    _SCHEMA,
    # Of seven recorded fields; a file that lacks one has another format.
    number=1 + len(FIELDS) - 7,
    application=0x6C617100,
    unmarked=-1,
    unseals=dict.fromkeys(("promise", "member", "heard", "step", "fact"), unsealed),
    all_pages=False,
    cache_kib=2_048,
    advice="start the gateway with another --data-dir; devices send it what they still keep",
)
"""The form of a gateway's file."""


_FACTS: Final[dict[str, tuple[str, Callable[[Any], str]]]] = {
    "frontier_us": (FRONTIER, str),
    "served": (SERVED, lambda served: json.dumps(sorted(served))),
    "control": (CONTROL, lambda log: encode(log).hex()),
    "held": (HELD, json.dumps),
    **{name: (name, lambda each: json.dumps(dict(each))) for name in _OF_DEVICES},
}
"""Field of the state -> its fact, and the text of its value."""


class FleetStore(HistoryFile):
    """A gateway's SQLite file, held by one process; see `existing_fleet` for others that look.

    Args and errors are those of `SealedFile`.
    """

    form = GATEWAY
    names = StoreNames(FILE_NAME, LOCK_NAME)
    _state: FleetState | None = None
    commits: int = 0

    def begin(self, store: str) -> tuple[FormerStore, ...]:
        """Take a new id, and return the stores from which this one follows."""
        facts = self.facts()
        former = [FormerStore(*each) for each in json.loads(facts.get(FORMER, "[]"))]
        if STORE_ID in facts:
            former.append(FormerStore(facts[STORE_ID], int(facts.get(COMMITS, SEQS - 1))))
        former = former[-FORMER_STORES:]
        self.commits = 1  # this one
        self.put_facts({STORE_ID: store, COMMITS: "1", FORMER: json.dumps(former)})
        return tuple(former)

    @finding_damage
    def facts(self) -> dict[str, str]:
        """Return the facts about the whole file, by name."""
        return dict(self._rows("SELECT * FROM fact"))

    @finding_damage
    def put_facts(self, facts: dict[str, str]) -> None:
        """Make facts durable."""
        with Transaction(self._db):
            put(self._db, "fact", facts.items())

    @finding_damage
    def restored(self) -> FleetState:
        """Return the state that a core starts with."""
        facts, rows = self.facts(), self._rows
        frontier, control, served = facts.get(FRONTIER), facts.get(CONTROL), facts.get(SERVED)
        by_device = {name: json.loads(facts.get(name, "{}")) for name in _OF_DEVICES}
        promises = {
            device: Promise(Version(*version), low_us, bool(done), heard_us)
            for device, *version, low_us, done, heard_us in rows("SELECT * FROM promise")
        }
        members = {
            device: Member(number, bool(retired), Version(*version))
            for device, number, retired, *version in rows("SELECT * FROM member")
        }
        self._state = FleetState(
            None if frontier is None else int(frontier),
            Frontier(promises),
            Membership(members),
            dict(rows("SELECT * FROM heard")),
            frozenset(Step(*each) for each in rows("SELECT * FROM step")),
            ControlLog() if control is None else _log(control),
            tuple([StartSpan(*each) for each in json.loads(facts.get(HELD, "[]"))]),
            None if served is None else frozenset(json.loads(served)),
            {name: tuple(map(tuple, each)) for name, each in by_device[BEGUN].items()},
            {name: tuple(each) for name, each in by_device[LOST].items()},
            by_device[OWED],
            {name: EarlierLives(*each) for name, each in by_device[EARLIER].items()},
            by_device[FURTHEST],
        )
        return self._state

    @finding_damage
    def current(self, window: str, first_us: int, last_us: int) -> list[FleetRow]:
        """Return the current rows of a window, of starts from one to another, both included."""
        query = (
            "SELECT * FROM revision WHERE window = ? AND start_us BETWEEN ? AND ?"
            " ORDER BY start_us, key, revision"
        )
        rows = map(_row, self._rows(query, (window, first_us, last_us)))
        return list({row.at: row for row in rows}.values())

    @finding_damage
    def entries(self, stream: int, first_us: int, last_us: int) -> list[KeptEntry]:
        """Return the entries of the panes of a stream from one start to another, both included."""
        return [
            KeptEntry(stream, pane_us, key, WriterOfPanes(*writer), seq, unpacked_partial(packed))
            for _, pane_us, key, *writer, seq, packed in self._rows(
                "SELECT * FROM entry WHERE stream = ? AND pane_us BETWEEN ? AND ?",
                (stream, first_us, last_us),
            )
        ]

    @finding_damage
    def places(self, stream: int, first_us: int, last_us: int) -> list[tuple[int, str]]:
        """Return start and key of the panes with entries, from one start to another, included."""
        # No seal is checked: the entries of a pane are read when it is computed.
        query = (
            "SELECT DISTINCT pane_us, key FROM entry WHERE stream = ? AND pane_us BETWEEN ? AND ?"
        )
        return self._db.execute(query, (stream, first_us, last_us)).fetchall()

    @finding_damage
    def row(self, at: WindowStart) -> FleetRow | None:
        """Return the current row of a window; None before it has one."""
        window, key, start_us = at
        found = self._rows(
            "SELECT * FROM revision WHERE window = ? AND start_us = ? AND key = ?"
            " ORDER BY revision DESC LIMIT 1",
            (window, start_us, key),
        )
        return next(map(_row, found), None)

    @finding_damage
    def rows(
        self,
        window: str,
        stream: int,
        *,
        key: str | None = None,
        since_us: int | None = None,
        until_us: int | None = None,
        as_of_us: int | None = None,
        all_revisions: bool = False,
    ) -> Iterator[FleetRow]:
        """Yield a window's rows, by key, start and revision; the current ones, or all revisions.

        Args:
            window: its name.
            stream: of its definition; rows of a former one are left out.
            key: only rows of this key.
            since_us: only windows that start then or later.
            until_us: only windows that start before.
            as_of_us: only what was known when the frontier was there.
            all_revisions: not only the current ones.
        """
        conditions, arguments = ["window = ?", "stream = ?"], [window, stream]
        for condition, argument in (
            ("key = ?", key),
            ("start_us >= ?", since_us),
            ("start_us < ?", until_us),
            ("(frontier_us IS NULL OR frontier_us <= ?)", as_of_us),
        ):
            if argument is not None:
                conditions.append(condition)
                arguments.append(argument)
        query = (
            f"SELECT * FROM revision WHERE {' AND '.join(conditions)}"  # noqa: S608 - ours
            " ORDER BY key, start_us, revision"
        )
        before: FleetRow | None = None
        for row in map(_row, self._rows(query, arguments)):
            if before is not None and (all_revisions or before.at != row.at):
                yield before
            before = row
        if before is not None:
            yield before

    @finding_damage
    def newest(self, window: str, stream: int, starts: int) -> list[FleetRow]:
        """Return the current rows of a window's last starts, and the newest two of each key.

        These are the final and the tentative one, of 1,000 starts. Of a key that has none there any
        more it is the last that it had, which is of no device; no other one is.
        """
        found: list[FleetRow] = []
        for at_us, key in self._db.execute(_NEWEST, (window, stream, starts)).fetchall():
            found += self.rows(window, stream, key=key, since_us=at_us, until_us=at_us + 1)
        return sorted(found)

    @finding_damage
    def commit(self, changes: FleetChanges) -> None:
        """Make all changes durable, or none."""
        self.need_file()
        with Transaction(self._db) as db:
            put(db, "entry", map(_of_entry, changes.entries))
            put(db, "revision", map(_of_row, changes.rows))
            put_history(db, changes.history, changes.result_parts)
            if changes.state is not None:
                _put_state(db, self._state or self.restored(), changes.state)
            _forget(db, changes)
            put(db, "fact", [*changes.facts.items(), (COMMITS, str(self.commits + 1))])
        self.commits += 1
        self._state = changes.state or self._state


def existing_fleet(directory: Path) -> FleetStore:
    """Return the store of a data directory, to look at while a gateway may write.

    Raises:
        NotFound: the directory has no store, or it cannot be read.
        UsageError: it has another format.
    """
    need_data(directory, FILE_NAME)
    store = FleetStore(directory, read_only=True)
    store.look(lambda: check_format(store._db, store.path, store.form))  # noqa: SLF001
    return store


def _put_state(db: sqlite3.Connection, before: FleetState, after: FleetState) -> None:
    """Write the rows of a state that differ from those of the state before."""
    promises = _changed(before.promises.entries, after.promises.entries)
    low = [(name, *p.version, p.low_us, int(p.done), p.heard_us) for name, p in promises]
    put(db, "promise", low)
    members = _changed(before.membership.entries, after.membership.entries)
    put(db, "member", [(name, m.control, int(m.retired), *m.version) for name, m in members])
    put(db, "heard", _changed(before.witnessed, after.witnessed))
    fields = {name: (getattr(before, name), getattr(after, name)) for name in _FACTS}
    changed = {name: new for name, (old, new) in fields.items() if new is not None and new != old}
    put(db, "fact", [(_FACTS[name][0], _FACTS[name][1](new)) for name, new in changed.items()])
    put(db, "step", sorted(after.steps - before.steps))
    gone = "DELETE FROM step WHERE received_us = ? AND lead_us = ?"
    db.executemany(gone, before.steps - after.steps)


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the items of a mapping that another does not have."""
    return [] if after is before else [at for at in after.items() if before.get(at[0]) != at[1]]


def _forget(db: sqlite3.Connection, changes: FleetChanges) -> None:
    """Delete what is of no use any more."""
    for stream, below_us in changes.panes_below.items():
        db.execute(_PANES_GONE, (stream, below_us))
    if changes.others_below is not None:
        known, others_us = changes.panes_below, changes.others_below
        streams = [stream for (stream,) in db.execute(_STREAMS) if stream not in known]
        db.executemany(_PANES_GONE, [(stream, others_us) for stream in streams])
        forget_history(db, others_us)
    if changes.rows_below is not None:
        forget_results(db, changes.rows_below)
        db.execute("DELETE FROM revision WHERE end_us <= ?", (changes.rows_below,))


def _of_entry(entry: KeptEntry) -> tuple[Any, ...]:
    packed = pack(entry.partial)
    return (entry.stream, entry.pane_us, entry.key, *entry.writer, entry.seq, packed)


def _of_row(row: FleetRow) -> tuple[Any, ...]:
    window, key, start_us = row.at
    values = [names_text(each) if type(each) is tuple else each for each in row[_BEGINS:]]
    revision = values.pop(_REVISION)
    return (window, start_us, key, revision, row.end_us, packed_partial(row.partial), *values)


def _row(stored: tuple[Any, ...]) -> FleetRow:
    window, start_us, key, revision, end_us, packed, *values = stored
    record = dict(zip(_RECORDED, values, strict=True), revision=revision)
    return FleetRow.stored(
        WindowStart(window, key, start_us), end_us, unpacked_partial(packed), record
    )


def _log(text: str) -> ControlLog:
    """Return the log of the parameters from its stored text."""
    try:
        log = decode(bytes.fromhex(text))
    except ValueError as error:
        raise DamagedStoreError("the log of parameters cannot be read") from error
    assert isinstance(log, ControlLog)
    return log
