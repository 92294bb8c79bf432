"""Rows that cannot change a result are left out before Spark sees them.

Nothing here decides a result: whatever is left in is joined and combined by Spark all the same, and
leaving nothing out would give the same. But a pane that grows is sent again and again, a frame of a
variable holds all keys of a shard of which one has changed, and a row costs Spark's planner and one
task many times what it costs here.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cloud_tier.job.dynamic import CurrentRow, CurrentRows
from crdts import Membership, Version
from lasp_edge.language.declarations import DynamicFold
from lasp_edge.protocol.inputs import entry_hash, inputs_digest, membership_text, variable_digest


def newest(rows: pa.Table, entry: Sequence[str], order: Sequence[str]) -> pa.Table:
    """Return the rows of each entry that are greatest in the order; several may be level.

    Args:
        rows: of `lattice`.
        entry: columns, never NULL.
        order: columns of integers, the most significant first.
    """
    for column in order:
        groups = rows.group_by(list(entry), use_threads=False)
        greatest = groups.aggregate([(column, "max")]).rename_columns([*entry, column])
        keys = [*entry, column]
        rows = rows.join(greatest, keys, join_type="left semi", use_threads=False)
    return rows


def changed_keys(
    entries: pa.Table, folds: Sequence[DynamicFold], membership: Membership, before: CurrentRows
) -> tuple[pa.Table, CurrentRows]:
    """Return the entries of keys whose `inputs` changed, and the current rows that may differ.

    Equal `inputs`, equal result (`lasp_edge.protocol.inputs`). A fold that leaves silent devices
    out goes by more than a key's entries, so all of its variable's keys are kept.

    Args:
        entries: the rows of variables that stand.
        folds: the program's dynamic folds.
        membership: the retired devices, among others.
        before: the current rows that are made from these entries.
    """
    readers: dict[int, list[DynamicFold]] = {}
    for fold in folds:
        readers.setdefault(fold.source.stream, []).append(fold)
    whole = {stream for stream, of in readers.items() if any(fold.absence for fold in of)}
    known, kept = dict(before), set()
    for (stream, key), digest in _digests(entries, readers, whole, membership).items():
        rows = {fold.name: _row(fold, digest) for fold in readers[stream]}
        if all(_same(known.get((name, key)), row) for name, row in rows.items()):
            for name in rows:
                del known[name, key]
        else:
            kept.add((stream, key))
    streams, keys = entries["stream"].to_pylist(), entries["key"].to_pylist()
    compared = readers.keys() - whole
    wanted = [
        stream not in compared or (stream, key) in kept
        for stream, key in zip(streams, keys, strict=True)
    ]
    of_stream = {fold.name: stream for stream in compared for fold in readers[stream]}
    current = {
        (name, key): row
        for (name, key), row in known.items()
        # A key that went before and has not come back stays as it is; "" follows the membership.
        if row.devices_in or not key or name not in of_stream or (of_stream[name], key) in kept
    }
    return entries.filter(pa.array(wanted, pa.bool_())), current


def _digests(
    entries: pa.Table,
    readers: Mapping[int, Sequence[DynamicFold]],
    whole: set[int],
    membership: Membership,
) -> dict[tuple[int, str], int]:
    """Return the digest of each key of the variables that are compared.

    Where two rows claim to be one device's entry, which only a clone makes, no current row has
    that digest, so Spark decides.
    """
    found: dict[tuple[int, str], int] = {}
    retired, text = membership.retired, membership_text(membership)
    for stream in readers.keys() - whole:
        names = readers[stream][0].fold.columns_named
        columns = ("key", "device", "incarnation", "nonce", "changed", *names)
        rows = entries.filter(pc.field("stream") == stream).select(columns)
        listed = zip(*(column.to_pylist() for column in rows.columns), strict=True)
        counting = [row for row in listed if row[0] is not None and row[1] not in retired]
        counting.sort(key=_entry)
        for key, of_key in groupby(counting, key=lambda row: row[0]):
            own = list(of_key)
            hashes = [
                entry_hash(key, row[1], Version(row[2], row[3], row[4]), row[5:]) for row in own
            ]
            found[stream, key] = variable_digest(hashes, text)
    return found


def _entry(row: tuple[Any, ...]) -> tuple[str, str]:
    return row[0], row[1]


def _row(fold: DynamicFold, digest: int) -> tuple[str, int]:
    return inputs_digest(digest, fold.stream), fold.stream


def _same(known: CurrentRow | None, row: tuple[str, int]) -> bool:
    return known is not None and (known.inputs, known.stream) == row
