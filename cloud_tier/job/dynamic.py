"""Dynamic folds in the cloud: the same combination as on every device, with the same `inputs`.

`inputs` is a sum modulo 2**64 of one hash an entry and one for the membership
(`lasp_edge.protocol.inputs`), so Spark computes it with its own `sha2`. Equal `inputs`, equal
value: a row is appended only where `inputs` is new.

Entries of retired devices do not count, nor do those of devices that a fold with `stale_after`
leaves out: the notes on absent devices are entries like all others, and a device is out as long as
it has written nothing after the greatest version in them (`lasp_edge.aggregates.absence`).

Where no entry is left, because a key has gone or no device that had it counts, the newest
row says so: the fold's zero, and 0 in `devices_in`. Such a key
has no further row until an entry of it counts again, except that "", the only key of a fold
without keys, follows the membership like a value that is there.

All folds are one aggregate over the entries, however many folds and keys there are. The rows of
before are compared by their `inputs` alone, which the driver keeps: `globals` grows with every
change and is read only at a start.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from cloud_tier.job import own_combine
from cloud_tier.job.combination import combined
from cloud_tier.job.frames import Frames
from cloud_tier.job.selection import Selection
from cloud_tier.lake.sqltext import (
    any_of,
    identifier,
    literal,
    newest_of,
    one_of,
    standard_literal,
)
from cloud_tier.lake.tables import VARIABLE
from crdts import Membership
from lasp_edge.folds.bounds import DEVICES, gives_zero
from lasp_edge.folds.columns import Column, Op
from lasp_edge.language.declarations import DynamicFold
from lasp_edge.protocol.inputs import MODULUS, membership_text, text_hash
from lasp_edge.protocol.shards import key_shard

_IDENTITY = ("name", "key")
_SCHEMA = pa.schema(
    {
        "name": pa.string(),
        "key": pa.string(),
        "revision": pa.int32(),
        "inputs": pa.string(),
        "stream": pa.int64(),
        "devices_in": pa.int32(),
    }
)


class CurrentRow(NamedTuple):
    """The newest row of a fold and key, without its parts."""

    revision: int
    inputs: str
    stream: int
    devices_in: int


CurrentRows = Mapping[tuple[str, str], CurrentRow]
"""The newest rows by name and key."""


def values(
    made: Frames, entries: Selection, folds: Sequence[DynamicFold], membership: Membership
) -> Selection:
    """Return each fold's value over the entries that count.

    Columns: name, key, inputs (a decimal), devices_in (of those that have samples), stream, and the
    parts of all these folds.

    Args:
        made: makes frames.
        entries: merged rows of the variables that stand: one for each device and key.
        folds: the program's dynamic folds.
        membership: the retired devices, among others.
    """
    sources = {_group(fold): fold for fold in folds}
    counting = _counting(entries, folds, membership)
    hashes = " ".join(
        f"WHEN {at}L THEN {_entry(fold.fold.columns)}" for at, fold in sources.items()
    )
    record = [
        f"sum({_hash(f'CASE stream {hashes} END')}) AS digest",
        f"CAST(count_if(NOT ({_of_no_sample(folds)})) AS INT) AS devices_in",
    ]
    columns = _every_column(folds)
    own = {_group(fold): fold.fold for fold in folds if fold.fold.combines_itself}
    is_own = own_combine.of_streams(own) if own else "false"
    by_spark = counting.where(f"NOT {is_own}") if own else counting
    keys, names = ["stream", "key"], [identifier(column.name) for column in columns]
    grouped = by_spark.grouped(keys, [*record, *combined(columns)])
    if own:
        of_own = counting.where(is_own)
        totals = made.view(own_combine.totals(of_own.frame(), keys, columns, own))
        found = of_own.grouped(keys, record).alias("recorded").join(totals, keys)
        has_number = any(column.name == DEVICES for column in columns)
        inside = f"coalesce({identifier(DEVICES)}, devices_in)" if has_number else "devices_in"
        by_fold = found.select(*keys, "digest", f"CAST({inside} AS INT) AS devices_in", *names)
        grouped = grouped.union(by_fold)
    named = grouped.select("*", f"explode({_folds_of(folds, membership)}) AS fold")
    return named.select(
        "fold.name AS name",
        "key",
        f"CAST(pmod(digest + fold.constant, {_decimal(MODULUS)}) AS DECIMAL(20, 0)) AS inputs",
        "devices_in",
        "fold.stream AS stream",
        *names,
    )


def _of_no_sample(folds: Sequence[DynamicFold]) -> str:
    """Return the condition under which a row without a key is that of a device without samples."""
    zeros = {
        _group(each): each.fold for each in folds if not each.keyed and not gives_zero(each.fold)
    }
    cases = [
        " AND ".join([f"stream = {at}L", *map(_is_zero, fold.columns, fold.zero)])
        for at, fold in zeros.items()
    ]
    return any_of(cases) if cases else "false"


def _is_zero(column: Column, zero: Any) -> str:
    if zero is None:
        return f"{identifier(column.name)} IS NULL"
    shown = f"X'{zero.hex()}'" if column.binary else str(zero)
    return f"{identifier(column.name)} <=> {shown}"


def _group(fold: DynamicFold) -> int:
    """Return under which number the entries stand that a fold combines."""
    return fold.stream if fold.absence else fold.source.stream


def _counting(
    entries: Selection, folds: Sequence[DynamicFold], membership: Membership
) -> Selection:
    """Return the rows that count; of a fold that leaves devices out they have its own stream."""
    streams = {fold.source.stream for fold in folds if not fold.absence}
    members = entries
    if membership.retired:
        members = entries.where(f"NOT ({one_of('device', membership.retired)})")
    found = _of_streams(members, streams).where("key IS NOT NULL")
    beside = "* EXCEPT (stream)"
    for fold in folds:
        if fold.absence is not None:
            own = _of_streams(members, [fold.source.stream])
            notes = _of_streams(members, [fold.absence.stream]).where("key IS NOT NULL")
            present = _without_absent(own, notes).where("key IS NOT NULL")
            as_own = present.select(f"{fold.stream}L AS stream", beside)
            found = found.select("stream", beside).union(as_own)
    return found


def _of_streams(entries: Selection, streams: Iterable[int]) -> Selection:
    named = ", ".join(f"{stream}L" for stream in sorted(streams))
    return entries.where(f"stream IN ({named})" if named else "false")


def _without_absent(entries: Selection, notes: Selection) -> Selection:
    """Return the entries of devices that wrote something after the greatest note on them."""
    fields = ("incarnation", "nonce", "seq")
    version = f"max({_version(fields, fields)}) AS newest"
    newest = entries.grouped(["device"], [version])
    noted = _version(fields, [f"absent_{field}" for field in fields])
    last = notes.grouped(["key"], [f"max({noted}) AS last"]).alias("note")
    silent = newest.alias("own").join(last, "own.device = note.key AND newest <= last")
    absent = silent.select("own.device", hint="BROADCAST").alias("absent")
    is_absent = "entry.device = absent.device"
    return entries.alias("entry").join(absent, is_absent, "LEFT ANTI").select("entry.*")


def _version(names: Sequence[str], columns: Sequence[str]) -> str:
    """Return a version as a struct, which is ordered as versions are."""
    pairs = zip(names, columns, strict=True)
    return f"named_struct({', '.join(f'{literal(n)}, CAST({c} AS BIGINT)' for n, c in pairs)})"


def remembered(rows: CurrentRows) -> CurrentRows:
    """Return the rows that the driver keeps: all, or without the keys that went if these are many.

    Keys may be session numbers that come and go for ever. What was left out is looked up in
    `globals` when a key comes that is not known.
    """
    gone = sum(not row.devices_in for row in rows.values())
    if gone <= GONE_KEPT:
        return rows
    return {at: row for at, row in rows.items() if row.devices_in or not at[1]}


def current(folds: Iterable[DynamicFold], keys: Iterable[str] | None = None) -> str:
    """Return the query, in DataFusion's dialect, for the newest rows of these folds.

    Args:
        folds: some of the program's.
        keys: the keys to look up; None for all.
    """
    names = ", ".join(standard_literal(fold.name) for fold in folds)
    listed = None if keys is None else ", ".join(map(standard_literal, sorted(keys)))
    only = "" if listed is None else f" AND key IN ({listed})"
    fields = ", ".join((*_IDENTITY, *CurrentRow._fields))
    return newest_of("source", fields, f"name IN ({names}){only}", "name, key")


def current_rows(rows: pa.Table) -> CurrentRows:
    """Return rows of `globals` by name and key, of which each has one."""
    columns = [rows.column(name).to_pylist() for name in (*_IDENTITY, *CurrentRow._fields)]
    found = zip(*columns, strict=True)
    return {(name, key): CurrentRow(*record) for name, key, *record in found}


GONE_KEPT: Final = 10_000
"""Keys that nobody has any more and whose newest row the driver keeps: some 3 MB."""


class Touched(NamedTuple):
    """The entries of variables that a step reads.

    Attributes:
        shards: by stream of a variable, the shards; None for all of them.
    """

    shards: Mapping[int, frozenset[int] | None]

    def where(self) -> str:
        """Return which rows of `lattice` these are, in Spark's dialect or the standard."""
        found = []
        for stream, shards in sorted(self.shards.items()):
            numbers = "" if shards is None else ", ".join(map(str, sorted(shards)))
            found.append(f"(stream = {stream}{f' AND shard IN ({numbers})' if numbers else ''})")
        return f"{one_of('kind', [VARIABLE])} AND {any_of(found)}"

    def rows(self, folds: Iterable[DynamicFold], rows: CurrentRows) -> CurrentRows:
        """Return which of the current rows are made from these entries."""
        keyed = {fold.name: fold.keyed for fold in folds}
        shards = {
            fold.name: self.shards[fold.source.stream]
            for fold in folds
            if fold.source.stream in self.shards
        }
        return {
            (name, key): row
            for (name, key), row in rows.items()
            if name in shards
            and ((only := shards[name]) is None or (key_shard(key) if keyed[name] else 0) in only)
        }


def touched(
    folds: Iterable[DynamicFold], shards: Mapping[int, set[int]], *, everything: bool = False
) -> Touched:
    """Return which entries decide about values that a batch may have changed.

    A key is in one shard, whichever device has it. But a device that was silent is left out of a
    fold by what it wrote in any shard, and by notes that are another variable's.

    Args:
        folds: the program's dynamic folds.
        shards: of the batch's rows of variables, by stream.
        everything: whether the membership may have changed too.
    """
    found: dict[int, frozenset[int] | None] = {}
    for fold in folds:
        stream = fold.source.stream
        notes = fold.absence
        if notes is not None and (everything or {stream, notes.stream} & shards.keys()):
            found[stream] = found[notes.stream] = None
        elif everything:
            found[stream] = None
        elif stream in shards:
            found.setdefault(stream, frozenset(shards[stream]))
    return Touched(found)


def table_of(current: CurrentRows) -> pa.Table:
    """Return current rows as a table."""
    columns = zip(*((*at, *record) for at, record in current.items()), strict=True)
    arrays = [list(column) for column in columns] or [[]] * len(_SCHEMA)
    return pa.table(dict(zip(_SCHEMA.names, arrays, strict=True)), schema=_SCHEMA)


def revisions(
    values: Selection, current: Selection, folds: Sequence[DynamicFold], membership: Membership
) -> Selection:
    """Return the rows to append: values with other inputs than the current row's, and gone keys.

    Args:
        values: what `values` gives.
        current: the rows of `table_of` of the same folds, with a hint how they are joined.
        folds: the program's dynamic folds.
        membership: the retired devices, among others.
    """
    before = "CAST(conv(inputs, 16, 10) AS DECIMAL(20, 0)) AS inputs"
    columns = (*_IDENTITY, before, "revision", "stream", "devices_in")
    old = current.select(*columns, hint="SHUFFLE_HASH").alias("old")
    named = _by_name(folds, lambda fold: f"{fold.stream}L")
    nothing = _by_name(folds, lambda fold: _decimal(_constant(fold, membership)))
    differs = any_of(f"NOT (new.{name} <=> old.{name})" for name in ("inputs", "stream"))
    gone = (
        f"new.name IS NULL AND old.stream = {named} "
        f"AND (old.devices_in > 0 OR (key = '' AND old.inputs <> {nothing}))"
    )
    both = values.alias("new").join(old, _IDENTITY, "FULL")
    hashed = f"lpad(conv(CAST(coalesce(new.inputs, {nothing}) AS STRING), 10, 16), 16, '0')"
    return both.where(f"(new.name IS NOT NULL AND {differs}) OR ({gone})").select(
        *_IDENTITY,
        *(_part_or_zero(column, folds) for column in _every_column(folds)),
        f"{_small(hashed)} AS inputs",
        "coalesce(new.devices_in, 0) AS devices_in",
        "coalesce(old.revision + 1, 0) AS revision",
        f"{named} AS stream",
    )


def _every_column(folds: Iterable[DynamicFold]) -> list[Column]:
    """Return the columns of all folds, each once."""
    return list({column.name: column for fold in folds for column in fold.fold.columns}.values())


def _folds_of(folds: Sequence[DynamicFold], membership: Membership) -> str:
    """Return the dynamic folds of a row's stream, as an array."""
    cases = []
    for stream in sorted({_group(fold) for fold in folds}):
        reading = ", ".join(
            f"named_struct('name', {literal(fold.name)}, 'stream', {fold.stream}L, "
            f"'constant', {_decimal(_constant(fold, membership))})"
            for fold in folds
            if _group(fold) == stream
        )
        cases.append(f"WHEN {stream}L THEN array({reading})")
    return f"CASE stream {' '.join(cases)} END"


def _constant(fold: DynamicFold, membership: Membership) -> int:
    """Return the `inputs` of a fold over no entry at all."""
    return (text_hash(membership_text(membership)) + text_hash(str(fold.stream))) % MODULUS


def _part_or_zero(column: Column, folds: Iterable[DynamicFold]) -> str:
    """Return a column of the new row; without one, the zero if the fold has that column."""
    name = identifier(column.name)
    if column.op is not Op.SUM and not column.binary:
        return f"new.{name}"
    zero = "X''" if column.binary else "CAST(0 AS DECIMAL(38, 0))"
    having = [fold.name for fold in folds if column.name in fold.fold.columns_named]
    missing = f"new.name IS NULL AND {one_of('name', having)}"
    return f"if({missing}, {zero}, new.{name}) AS {name}"


def _entry(columns: Iterable[Column]) -> str:
    """Return the text of a row whose hash `lasp_edge.protocol.inputs.entry_hash` is."""
    fields = [f"CAST({field} AS STRING)" for field in ("incarnation", "nonce", "changed")]
    fields += [_shown(column) for column in columns]
    return f"concat_ws('\\u001f', key, device, {', '.join(fields)})"


def _shown(column: Column) -> str:
    name = identifier(column.name)
    shown = _small(f"hex({name})") if column.binary else f"CAST({name} AS STRING)"
    return f"coalesce({shown}, '')"


def _small(digits: str) -> str:
    """Return hexadecimal digits in small letters.

    Spark's `lower` first works out the cases of every alphabet: most of a second of each process.
    """
    return f"translate({digits}, 'ABCDEF', 'abcdef')"


def _hash(entry: str) -> str:
    """Return the first eight bytes of a text's SHA-256 as a decimal."""
    digits = f"substring(sha2(CAST({entry} AS BINARY), 256), 1, 16)"
    return f"CAST(conv({digits}, 16, 10) AS DECIMAL(20, 0))"


def _by_name(folds: Iterable[DynamicFold], value: Callable[[DynamicFold], str]) -> str:
    """Return a value by the row's name, which is one of the folds'."""
    cases = " ".join(f"WHEN {literal(fold.name)} THEN {value(fold)}" for fold in folds)
    return f"CASE name {cases} END"


def _decimal(number: int) -> str:
    return f"CAST('{number}' AS DECIMAL(38, 0))"
