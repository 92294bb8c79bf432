"""Up to which version of `landing` each table of results has merged, as its commits state it.

Every commit of a job carries, as Delta's `userMetadata`, the version of `landing` up to which its
batch reads. A commit to `lattice`, the first one of a batch, also carries how far the other tables
had come. So a start sees what is missing where somebody restored a table, changed its rows, took
it away, or copied it back from a backup: a table states less than `lattice` knows of it, or
nothing, or its newest statement is behind a commit of others. Merging again from there puts back
what is lost, since a batch that is merged twice counts once.

    {"frontier": 1700000000000000, "landing": 12, "stated": {"windows": 11, "globals": 9}}

Where `lattice` itself went back, some other table states more than it does, or the checkpoint of
the query has come further.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from deltalake import DeltaTable

from cloud_tier.lake.feed import has_rows_between, is_changed_by_others
from cloud_tier.lake.store_id import store_id
from cloud_tier.lake.tables import LakeTables

_LOOKED_AT: Final = (20, 1_000, None)
"""Newest commits in which a statement is looked for; the next where the former ones had none."""


class Statement(NamedTuple):
    """The newest statement of a table.

    Attributes:
        landing: the version of `landing` that it has merged; -1 for nothing.
        others: the same of the other tables by name, as `lattice` knows it.
        restored: whether somebody has restored the table since.
        store: the id of the store that `landing` was of; empty where an earlier release wrote it.
        changed: whether somebody has deleted or changed rows since: which ones is not known.
    """

    landing: int
    others: Mapping[str, int]
    restored: bool
    store: str = ""
    changed: bool = False


class Gap(NamedTuple):
    """The part of `landing` that a table lacks.

    Attributes:
        table: its name.
        landing: up to which version it has all.
        changed: whether somebody has deleted or changed some of its rows.
    """

    table: str
    landing: int
    changed: bool = False


def statement_text(
    landing: int | None, others: Mapping[str, int], frontier: int | None, store: str = ""
) -> str:
    """Return the metadata of a commit, empty for none.

    >>> statement_text(12, {"windows": 11}, None)
    '{"landing": 12, "stated": {"windows": 11}}'
    """
    stated: dict[str, Any] = {} if frontier is None else {"frontier": frontier}
    if landing is not None:
        stated |= {"landing": landing} | ({"stated": others} if others else {})
        stated |= {"store": store} if store else {}
    return json.dumps(stated) if stated else ""


def is_restore(commit: Mapping[str, Any]) -> bool:
    """Return whether a commit put an earlier version of its table in place of the newest one."""
    return commit.get("operation") == "RESTORE"


def gaps(tables: LakeTables, finished: int | None = None) -> list[Gap]:
    """Return which tables lack a part of `landing` that they had merged.

    Args:
        tables: of the lake.
        finished: the version of `landing` up to which batches have read all, by the checkpoint;
            None where that is unknown.
    """
    opened = {path.rpartition("/")[2]: tables.table(path) for path in tables.merged}
    stated = {name: newest_statement(table) for name, table in opened.items()}
    first, *others = opened
    lattice = stated[first]
    known = dict(lattice.others) if lattice is not None else {}
    merged = [each.landing for name in others if (each := stated[name]) is not None]
    if finished is not None and _was_merged(tables, lattice, opened[first], finished):
        merged.append(finished)
    known[first] = max(merged, default=-1)
    found = [(name, each or Statement(-1, {}, restored=False)) for name, each in stated.items()]
    return [
        Gap(name, each.landing, each.changed)
        for name, each in found
        if each.restored or each.changed or each.landing < known.get(name, -1)
    ]


def _was_merged(
    tables: LakeTables, stated: Statement | None, lattice: DeltaTable, finished: int
) -> bool:
    """Return whether `lattice` must have merged up to a version, of which batches had rows."""
    if stated is None and lattice.file_uris():
        return False  # an earlier release wrote it
    landing, merged = tables.table(tables.landing), -1 if stated is None else stated.landing
    return has_rows_between(landing, merged, min(finished, landing.version()))


def is_of_another_landing(tables: LakeTables) -> bool:
    """Return whether `landing` is not the one that was merged: a copy was put in its place."""
    stated = newest_statement(tables.table(tables.merged[0]))
    return stated is not None and stated.store not in {"", store_id(tables.table(tables.landing))}


def newest_statement(table: DeltaTable) -> Statement | None:
    """Return the newest statement of a table; None where an earlier release wrote it."""
    for most in _LOOKED_AT:
        commits = table.history(most)
        is_all = most is None or len(commits) < most
        for found in _statements(table, commits, is_all=is_all):
            return found
        if is_all:
            return None
    return None


def _statements(
    table: DeltaTable, commits: list[dict[str, Any]], *, is_all: bool
) -> Iterator[Statement]:
    """Yield the statements that hold, the newest first."""
    at, restored = commits[0]["version"] if commits else 0, False
    for commit in commits:
        if commit["version"] > at:
            continue  # a RESTORE went back behind it
        if is_restore(commit):
            restored, version = True, commit.get("operationParameters", {}).get("version")
            if version is None or not str(version).isdecimal():
                yield Statement(-1, {}, restored=True)  # by a time: all is merged again
                return
            at = int(version)
            continue
        stated = _stated(commit.get("userMetadata"))
        if "landing" in stated:
            store = str(stated.get("store", ""))
            yield Statement(stated["landing"], stated.get("stated", {}), restored, store)
        elif is_changed_by_others(table, commit["version"]):
            yield Statement(-1, {}, restored, changed=True)
    if restored and is_all:
        yield Statement(-1, {}, restored=True)  # to before all of them


def _stated(metadata: Any) -> dict[str, Any]:
    try:
        found = json.loads(metadata or "{}")
    except (TypeError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
