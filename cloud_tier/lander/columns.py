"""Columns: the rows that were accepted from a segment become one Arrow table for `landing`.

Here alone a kind of row fills its columns; `cloud_tier.lake.tables` says what they mean. Pane and
variable rows come packed by column and stay so.
"""

from typing import Any

import pyarrow as pa

from cloud_tier.lake.tables import ABSENT, MEMBER, PANE, PROMISE, TICK, VARIABLE, landed_schema
from crdts.frontier import Promise
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acceptance import Accepted, EntryRows, MemberRow, PaneRows
from lasp_edge.protocol.frontier import Tick
from lasp_edge.protocol.lake_columns import LANDED


class LandedColumns:
    """Makes Arrow tables of accepted rows.

    Args:
        plan: of the program whose columns the rows have.
    """

    def __init__(self, plan: Plan) -> None:
        self._columns = plan.columns
        self._parts = {each.stream: each.fold.columns_named for each in plan.windows.values()}
        self._parts |= {each.stream: each.fold.columns_named for each in plan.local_folds.values()}

    def table(self, accepted: Accepted, lander: str, tick: Tick) -> pa.Table:
        """Return the rows of a segment, and the lander's clock at its end."""
        columns: dict[str, list[Any]] = {name: [] for name in (*LANDED, *self._columns)}
        for row in accepted.rows:
            if isinstance(row, PaneRows):
                self._add_panes(columns, row)
            elif isinstance(row, EntryRows):
                self._add_entries(columns, row)
            else:
                _add_member(columns, row)
        for device, promise in accepted.promises.entries.items():
            _add_promise(columns, device, promise)
        (now_us, since_us), number = tick.clock, tick.number
        clock = {"now_us": now_us, "since_us": since_us, "received_us": now_us}
        _extend(columns, 1, kind=TICK, lander=lander, seq=number, **clock)
        return pa.table(columns, schema=landed_schema(self._columns))

    def _add_panes(self, columns: dict[str, list[Any]], row: PaneRows) -> None:
        block = row.block
        _extend(
            columns,
            len(block.seqs),
            kind=PANE,
            stream=block.stream,
            key=block.keys,
            pane_us=block.panes_us,
            device=row.device,
            incarnation=block.incarnation,
            nonce=block.nonce,
            seq=block.seqs,
            received_us=row.received_us,
            **dict(zip(self._parts[block.stream], block.columns, strict=True)),
        )

    def _add_entries(self, columns: dict[str, list[Any]], row: EntryRows) -> None:
        frame = row.frame
        entry = {
            "kind": VARIABLE,
            "stream": frame.stream,
            "shard": frame.shard,
            "device": frame.about,
            "received_us": row.received_us,
            **frame.version._asdict(),
        }
        if not frame.keys:
            _extend(columns, 1, **entry, key=None, changed=frame.number)
            return
        parts = dict(zip(self._parts[frame.stream], frame.columns, strict=True))
        count = len(frame.keys)
        _extend(columns, count, **entry, key=frame.keys, changed=frame.seqs, **parts)


def _add_member(columns: dict[str, list[Any]], row: MemberRow) -> None:
    control, retired, version = row.member
    _extend(
        columns,
        1,
        kind=MEMBER,
        device=row.device,
        control=control,
        retired=retired,
        received_us=row.received_us,
        **version._asdict(),
    )


def _add_promise(columns: dict[str, list[Any]], device: str, promise: Promise) -> None:
    version, low_us, done, heard_us = promise
    _extend(
        columns,
        1,
        kind=PROMISE,
        device=device,
        low_us=low_us,
        done=done,
        received_us=heard_us,
        **version._asdict(),
    )


def _extend(columns: dict[str, list[Any]], rows: int, **values: Any) -> None:
    """Add rows: a tuple is a column of them, any other value is the same in each row."""
    for name, column in columns.items():
        value = values.get(name, ABSENT.get(name))
        column.extend(value if isinstance(value, tuple) else [value] * rows)
