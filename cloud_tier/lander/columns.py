"""Columns: the rows that were accepted from a segment become one Arrow table for `landing`.

Here alone a kind of row fills its columns; `cloud_tier.lake.tables` says what they mean. Pane and
variable rows come packed by column and stay so.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from cloud_tier.lake.tables import ABSENT, MEMBER, PANE, PROMISE, TICK, VARIABLE, landed_schema
from crdts.frontier import Promise
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acceptance import Accepted, EntryRows, MemberRow, PaneRows
from lasp_edge.protocol.frontier import Tick


class Block(NamedTuple):
    """Rows of one kind that came together.

    Attributes:
        rows: how many.
        columns: a tuple has a value for each row, any other value is the same in each.
    """

    rows: int
    columns: dict[str, Any]


class LandedColumns:
    """Makes Arrow tables of accepted rows.

    Args:
        plan: of the program whose columns the rows have.
    """

    def __init__(self, plan: Plan) -> None:
        self._schema = landed_schema(plan.columns)
        self._parts = {each.stream: each.fold.columns_named for each in plan.windows.values()}
        self._parts |= {each.stream: each.fold.columns_named for each in plan.local_folds.values()}

    def table(self, accepted: Accepted, lander: str, tick: Tick) -> pa.Table:
        """Return the rows of a segment, and the lander's clock at its end."""
        blocks = [*self._blocks(accepted), _tick(lander, tick)]
        total = sum(block.rows for block in blocks)
        arrays = [_array(field, blocks, total) for field in self._schema]
        return pa.Table.from_arrays(arrays, schema=self._schema)

    def _blocks(self, accepted: Accepted) -> Iterator[Block]:
        for row in accepted.rows:
            if isinstance(row, PaneRows):
                yield self._panes(row)
            elif isinstance(row, EntryRows):
                yield self._entries(row)
            else:
                yield _member(row)
        for device, promise in accepted.promises.entries.items():
            yield _promise(device, promise)

    def _panes(self, row: PaneRows) -> Block:
        block = row.block
        columns = {
            "kind": PANE,
            "stream": block.stream,
            "key": block.keys,
            "pane_us": block.panes_us,
            "device": row.device,
            "incarnation": block.incarnation,
            "nonce": block.nonce,
            "seq": block.seqs,
            "received_us": row.received_us,
        }
        columns |= zip(self._parts[block.stream], block.columns, strict=True)
        return Block(len(block.seqs), columns)

    def _entries(self, row: EntryRows) -> Block:
        frame = row.frame
        columns: dict[str, Any] = {
            "kind": VARIABLE,
            "stream": frame.stream,
            "shard": frame.shard,
            "device": frame.about,
            "received_us": row.received_us,
            **frame.version._asdict(),
        }
        if not frame.keys:
            return Block(1, {**columns, "key": None, "changed": frame.number})
        columns |= {"key": frame.keys, "changed": frame.seqs}
        columns |= zip(self._parts[frame.stream], frame.columns, strict=True)
        return Block(len(frame.keys), columns)


def _member(row: MemberRow) -> Block:
    control, retired, version = row.member
    columns = {
        "kind": MEMBER,
        "device": row.device,
        "control": control,
        "retired": retired,
        "received_us": row.received_us,
        **version._asdict(),
    }
    return Block(1, columns)


def _promise(device: str, promise: Promise) -> Block:
    version, low_us, done, heard_us = promise
    columns = {
        "kind": PROMISE,
        "device": device,
        "low_us": low_us,
        "done": done,
        "received_us": heard_us,
        **version._asdict(),
    }
    return Block(1, columns)


def _tick(lander: str, tick: Tick) -> Block:
    (now_us, since_us), number = tick.clock, tick.number
    clock = {"now_us": now_us, "since_us": since_us, "received_us": now_us}
    return Block(1, {"kind": TICK, "lander": lander, "seq": number, **clock})


def _array(field: pa.Field, blocks: Sequence[Block], total: int) -> pa.Array:
    """Return a column of all rows; one that no block fills costs no Python object a row."""
    absent = ABSENT.get(field.name)
    if not any(field.name in block.columns for block in blocks):
        return pa.repeat(pa.scalar(absent, field.type), total)
    values: list[Any] = []
    for rows, columns in blocks:
        value = columns.get(field.name, absent)
        values.extend(value if isinstance(value, tuple) else [value] * rows)
    return pa.array(values, field.type)
