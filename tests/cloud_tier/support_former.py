"""Lakes as earlier releases left them: their columns are listed here, whatever they are today."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import PrimitiveType

from cloud_tier.lake.tables import LakeTables
from lasp_edge import Op
from lasp_edge.language.plan import Plan

Row = dict[str, Any]

LANDED: Final = {
    "1": "kind:string stream:long key:string pane_us:long device:string incarnation:long "
    "nonce:long seq:long low_us:long since_us:long received_us:long done:boolean shard:long "
    "changed:long",
    "2": "kind:string stream:long shard:long key:string pane_us:long device:string lander:string "
    "incarnation:long nonce:long control:long retired:boolean now_us:long since_us:long seq:long "
    "received_us:long low_us:long done:boolean changed:long",
}
WINDOW: Final = "window:string key:string start_us:long end_us:long"
RECORD: Final = (
    "devices_in:integer devices_expected:integer excluded:string status:string revision:integer "
    "frontier:long stream:long"
)
VALUES: Final = (
    "name:string key:string",
    "inputs:string devices_in:integer revision:integer stream:long",
)
REJECTS: Final = "received_us:long topic:string reason:string frames:long frame:binary"
PROGRAMS: Final = "kind:string name:string revision:integer description:string"
DESCRIBED: Final = {"1": None, "2": "lasp-edge lake, format 2"}


class FormerLake:
    """A lake of a format, as the first release that had it made its tables.

    Args:
        tables: where it is made.
        plan: of its program, whose folds have no bytes.
        number: of the format.
    """

    def __init__(self, tables: LakeTables, plan: Plan, number: str) -> None:
        self.tables, self._number = tables, number
        parts = " ".join(f"{name}:long" for name in plan.columns)
        sums = [name for name, column in plan.columns.items() if column.op is Op.SUM]
        totals = " ".join(
            f"{name}:{'decimal(38,0)' if name in sums else 'long'}" for name in plan.columns
        )
        landed = f"{LANDED[number]} {parts}"
        self._make(tables.landing, landed)
        self._make(tables.lattice, f"{landed} pane_date:date", "pane_date")
        self._make(tables.windows, f"{WINDOW} {totals} {RECORD}")
        self._make(tables.globals, f"{VALUES[0]} {totals} {VALUES[1]}")
        self._make(tables.rejects, REJECTS)
        self._make(tables.programs, PROGRAMS)

    def land(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows of today to `landing` and `lattice`, as that release had them."""
        former = list(map(self._former, rows))
        self._append(self.tables.landing, former)
        self._append(self.tables.lattice, [each | {"pane_date": _day(each)} for each in former])

    def write_windows(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows to `windows`, as that release had them."""
        self._append(self.tables.windows, list(map(dict, rows)))

    def _former(self, row: Mapping[str, Any]) -> Row:
        if self._number == "2":
            return dict(row)
        made = {name: row.get(name) for name in (*_columns(LANDED["1"]), *row)}
        made["changed"] = made["changed"] or 0
        if row["kind"] == "tick":
            made |= {"device": row["lander"], "low_us": row["now_us"]}
        if row["kind"] == "member":
            made |= {"changed": row["control"], "done": row["retired"]}
        return {
            n: v for n, v in made.items() if n not in {"lander", "control", "retired", "now_us"}
        }

    def _make(self, path: str, columns: str, partition: str = "") -> None:
        fields = [Field(name, PrimitiveType(kind)) for name, kind in _columns(columns).items()]
        own = {} if path == self.tables.lattice else {"delta.appendOnly": "true"}
        DeltaTable.create(
            path,
            schema=Schema(fields),
            partition_by=[partition] if partition else None,
            configuration={"delta.checkpointInterval": "100", **own},
            description=DESCRIBED[self._number],
        )

    @staticmethod
    def _append(path: str, rows: list[Row]) -> None:
        schema = pa.schema(DeltaTable(path).schema().to_arrow())
        write_deltalake(path, pa.Table.from_pylist(rows, schema=schema), mode="append")


def _columns(text: str) -> dict[str, str]:
    return dict(each.split(":") for each in text.split())


def _day(row: Row) -> Any:
    of_us = row["pane_us"] if row["kind"] == "pane" else 0
    return datetime.fromtimestamp(of_us // 1_000_000, UTC).date()
