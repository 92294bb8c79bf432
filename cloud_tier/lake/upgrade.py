"""A lake of the former format, carried over: what it holds stays, to the last row.

Between releases of one format columns and tables were added, and a start of a lander or a job adds
them (`LakeTables.create`). Format 1 had fewer columns, and two kinds of row used those of others:

    tick     `device` held the name of the lander, and `low_us` its clock
    member   `changed` held the number of the command, and `done` whether it retires
    others   `changed` was 0, and not NULL, where a row had no use for it

So each row of `landing` and `lattice` is rewritten, in one commit a table. A table whose rows are
rewritten is known by that, as `lander` is NULL in no row of it; the format of `landing` is set
last. So a run that was killed between any two commits is simply started again.
"""

from typing import Final

from deltalake import CommitProperties, DeltaTable, Field
from deltalake.schema import PrimitiveType

from cloud_tier.lake.feed import COMMAND
from cloud_tier.lake.query import selected
from cloud_tier.lake.tables import FORMAT, MEMBER, PROMISE, TICK, VARIABLE, LakeTables
from lasp_edge.errors import UsageError
from lasp_edge.protocol.lake_columns import LANDED

FORMER: Final = "1"
_ADDED: Final = {"lander": "string", "control": "long", "retired": "boolean", "now_us": "long"}
_WRITTEN: Final = frozenset(LANDED) - _ADDED.keys()
"""The columns that rows of format 1 have beside the folds'."""
_VALUES: Final = {
    "lander": f"CASE WHEN kind = '{TICK}' THEN device ELSE '' END",
    "device": f"CASE WHEN kind = '{TICK}' THEN '' ELSE device END",
    "now_us": f"CASE WHEN kind = '{TICK}' THEN low_us END",
    "control": f"CASE WHEN kind = '{MEMBER}' THEN changed END",
    "retired": f"CASE WHEN kind = '{MEMBER}' THEN done END",
    "low_us": f"CASE WHEN kind = '{PROMISE}' THEN low_us END",
    "done": f"CASE WHEN kind = '{PROMISE}' THEN done END",
    "changed": f"CASE WHEN kind = '{VARIABLE}' THEN changed END",
}
"""Columns of the present format, from those of format 1."""
_OLD_ROWS: Final = "lander IS NULL"
_BY: Final = CommitProperties(custom_metadata={COMMAND: "lake upgrade"})


def upgrade(tables: LakeTables) -> int:
    """Carry a lake over to the present format; return how many rows were rewritten.

    No job may run, and no lander.

    Raises:
        NotFound: there is no such lake.
        UsageError: its format is not the former one.
    """
    found = tables.format_of(tables.table(tables.landing))
    if found == str(FORMAT):
        return 0
    if found != FORMER:
        raise UsageError(f"{tables.root} has the lake format {found}: a later lasp-edge wrote it")
    changed = (tables.lattice, tables.landing)  # what is merged first
    for path in changed:
        _check(tables, path)
    count = sum(_rewrite(tables, path) for path in changed)
    landing = tables.table(tables.landing)
    landing.alter.set_table_description(tables.description)
    return count


def _check(tables: LakeTables, path: str) -> None:
    """Check that a table has all columns of format 1."""
    lacking = _WRITTEN - {field.name for field in tables.table(path).schema().fields}
    if lacking:
        raise UsageError(
            f"{path} has no column {min(lacking)}, so it is of no release: name another directory "
            "with --lake, and the devices will send again what they keep"
        )


def _rewrite(tables: LakeTables, path: str) -> int:
    table = tables.table(path)
    known = {field.name for field in table.schema().fields}
    added = [Field(each, PrimitiveType(kind)) for each, kind in _ADDED.items() if each not in known]
    if added:
        table.alter.add_columns(added)
    with tables.open_to_changes(path):
        opened = tables.table(path)
        if not _old_rows(opened):
            return 0
        return int(
            opened.update(_VALUES, predicate=_OLD_ROWS, commit_properties=_BY)["num_updated_rows"]
        )


def _old_rows(table: DeltaTable) -> bool:
    query = f"SELECT kind FROM source WHERE {_OLD_ROWS} LIMIT 1"  # noqa: S608 - ours
    return bool(selected(table, query).num_rows)
