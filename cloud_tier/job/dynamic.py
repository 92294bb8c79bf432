"""Dynamic folds in the cloud: the same combination as on every device, with the same `inputs`.

`inputs` is a sum modulo 2**64 of one hash an entry and one for the membership
(`lasp_edge.protocol.inputs`), so Spark computes it with its own `sha2`. Equal `inputs`, equal
value: a row is appended only where `inputs` is new.

Entries of retired devices do not count. Where none is left, because a key has gone or everybody
who had it was retired, the newest row says so: the fold's zero, and 0 in `devices_in`. Such a key
has no further row until an entry of it counts again, except that "", the only key of a fold
without keys, follows the membership like a value that is there.

All folds are one aggregate over the entries, however many folds and keys there are. What was said
before is compared by its `inputs` alone, which the driver keeps: `globals` grows with every change
and is read at a start only.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from cloud_tier.job.combination import aggregates, combined, quoted
from cloud_tier.job.merge import any_of, text
from cloud_tier.plan import FoldPlan, Part
from crdts import Membership
from lasp_edge.folds.columns import Op
from lasp_edge.protocol.inputs import MODULUS, membership_text, text_hash

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


class Said(NamedTuple):
    """What the newest row of a fold and key says, beside its parts."""

    revision: int
    inputs: str
    stream: int
    devices_in: int


Current = Mapping[tuple[str, str], Said]
"""The newest rows by name and key."""


def values(entries: DataFrame, folds: Sequence[FoldPlan], membership: Membership) -> DataFrame:
    """Return each fold's value over the entries that count.

    Columns: name, key, inputs (a decimal), devices_in, stream, and the parts of all these folds.

    Args:
        entries: merged rows of the variables that stand: one for each device and key.
        folds: the program's dynamic folds.
        membership: who was retired.
    """
    sources = {fold.source_stream: fold for fold in folds}
    streams = ", ".join(f"{stream}L" for stream in sources)
    retired = ", ".join(map(text, membership.retired))
    counting = entries.where(f"stream IN ({streams}) AND key IS NOT NULL")
    if retired:
        counting = counting.where(f"device NOT IN ({retired})")
    hashes = " ".join(f"WHEN {at}L THEN {_entry(fold.parts)}" for at, fold in sources.items())
    record = aggregates(
        f"sum({_hash(f'CASE stream {hashes} END')}) AS digest",
        "CAST(count(1) AS INT) AS devices_in",
    )
    parts = _every_part(folds)
    grouped = counting.groupBy("stream", "key").agg(*record, *combined(parts))
    named = grouped.selectExpr("*", f"explode({_folds_of(folds, membership)}) AS fold")
    return named.selectExpr(
        "fold.name AS name",
        "key",
        f"CAST(pmod(digest + fold.constant, {_decimal(MODULUS)}) AS DECIMAL(20, 0)) AS inputs",
        "devices_in",
        "fold.stream AS stream",
        *(quoted(part.name) for part in parts),
    )


def current(rows: DataFrame, folds: Iterable[FoldPlan]) -> Current:
    """Return what the newest rows of these folds say.

    Args:
        rows: rows of `globals`.
        folds: the program's dynamic folds.
    """
    wanted = any_of(f"name = {text(fold.name)}" for fold in folds)
    fields = [field for field in Said._fields if field != "revision"]
    newest = aggregates(
        "max(revision) AS revision",
        *(f"max_by({field}, revision) AS {field}" for field in fields),
    )
    return said(rows.where(wanted).groupBy(*_IDENTITY).agg(*newest))


def said(rows: DataFrame) -> Current:
    """Return what rows of `globals` say, one for each name and key."""
    found = rows.select(*_IDENTITY, *Said._fields).collect()
    return {(name, key): Said(*record) for name, key, *record in found}


def frame_of(spark: SparkSession, current: Current) -> DataFrame:
    """Return what the newest rows say as a DataFrame."""
    columns = zip(*((*at, *record) for at, record in current.items()), strict=True)
    arrays = [list(column) for column in columns] or [[]] * len(_SCHEMA)
    table = pa.table(dict(zip(_SCHEMA.names, arrays, strict=True)), schema=_SCHEMA)
    return spark.createDataFrame(table)


def revisions(
    values: DataFrame, current: DataFrame, folds: Sequence[FoldPlan], membership: Membership
) -> DataFrame:
    """Return the rows to append: values with other inputs than the current row's, and who is gone.

    Args:
        values: what `values` gives.
        current: what `frame_of` gives for the same folds.
        folds: the program's dynamic folds.
        membership: who was retired.
    """
    before = "CAST(conv(inputs, 16, 10) AS DECIMAL(20, 0)) AS inputs"
    old = current.selectExpr(*_IDENTITY, before, "revision", "stream", "devices_in")
    named = _by_name(folds, lambda fold: f"{fold.stream}L")
    nothing = _by_name(folds, lambda fold: _decimal(_constant(fold, membership)))
    differs = any_of(f"NOT (new.{name} <=> old.{name})" for name in ("inputs", "stream"))
    gone = (
        f"new.name IS NULL AND old.stream = {named} "
        f"AND (old.devices_in > 0 OR (key = '' AND old.inputs <> {nothing}))"
    )
    both = values.alias("new").join(old.hint("shuffle_hash").alias("old"), list(_IDENTITY), "full")
    inputs = f"coalesce(new.inputs, {nothing})"
    return both.where(f"(new.name IS NOT NULL AND {differs}) OR ({gone})").selectExpr(
        *_IDENTITY,
        *(_part_or_zero(part, folds) for part in _every_part(folds)),
        f"lower(lpad(conv(CAST({inputs} AS STRING), 10, 16), 16, '0')) AS inputs",
        "coalesce(new.devices_in, 0) AS devices_in",
        "coalesce(old.revision + 1, 0) AS revision",
        f"{named} AS stream",
    )


def _every_part(folds: Iterable[FoldPlan]) -> list[Part]:
    """Return the parts of all folds, each once."""
    return list({part.name: part for fold in folds for part in fold.parts}.values())


def _folds_of(folds: Sequence[FoldPlan], membership: Membership) -> str:
    """Return the dynamic folds of a row's stream, as an array."""
    cases = []
    for stream in sorted({fold.source_stream for fold in folds}):
        reading = ", ".join(
            f"named_struct('name', {text(fold.name)}, 'stream', {fold.stream}L, "
            f"'constant', {_decimal(_constant(fold, membership))})"
            for fold in folds
            if fold.source_stream == stream
        )
        cases.append(f"WHEN {stream}L THEN array({reading})")
    return f"CASE stream {' '.join(cases)} END"


def _constant(fold: FoldPlan, membership: Membership) -> int:
    """Return the `inputs` of a fold over no entry at all."""
    return (text_hash(membership_text(membership)) + text_hash(str(fold.stream))) % MODULUS


def _part_or_zero(part: Part, folds: Iterable[FoldPlan]) -> str:
    """Return a part of the new row; where there is none, the zero if the fold has that part."""
    column = quoted(part.name)
    if part.op is not Op.SUM and not part.binary:
        return f"new.{column}"
    zero = "X''" if part.binary else "CAST(0 AS DECIMAL(38, 0))"
    having = ", ".join(text(fold.name) for fold in folds if part in fold.parts)
    missing = f"new.name IS NULL AND name IN ({having})"
    return f"if({missing}, {zero}, new.{column}) AS {column}"


def _entry(parts: Iterable[Part]) -> str:
    """Return the text of a row whose hash `lasp_edge.protocol.inputs.entry_hash` is."""
    fields = [f"CAST({field} AS STRING)" for field in ("incarnation", "nonce", "changed")]
    fields += [_shown(part) for part in parts]
    return f"concat_ws('\\u001f', key, device, {', '.join(fields)})"


def _shown(part: Part) -> str:
    column = quoted(part.name)
    shown = f"lower(hex({column}))" if part.binary else f"CAST({column} AS STRING)"
    return f"coalesce({shown}, '')"


def _hash(entry: str) -> str:
    """Return the first eight bytes of a text's SHA-256 as a decimal."""
    digits = f"substring(sha2(CAST({entry} AS BINARY), 256), 1, 16)"
    return f"CAST(conv({digits}, 16, 10) AS DECIMAL(20, 0))"


def _by_name(folds: Iterable[FoldPlan], value: Callable[[FoldPlan], str]) -> str:
    """Return a value by the row's name, which is one of the folds'."""
    cases = " ".join(f"WHEN {text(fold.name)} THEN {value(fold)}" for fold in folds)
    return f"CASE name {cases} END"


def _decimal(number: int) -> str:
    return f"CAST('{number}' AS DECIMAL(38, 0))"
