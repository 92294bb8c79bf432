"""Columns: the rows that were accepted from a segment become one Arrow table for `landing`.

Here alone a kind of row fills its columns; `cloud_tier.lake.tables` says what they mean. Pane and
variable rows come packed by column and stay so.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from cloud_tier.lake.tables import ABSENT, MEMBER, PANE, PROMISE, TICK, VARIABLE, landed_schema
from crdts.frontier import Promise
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acceptance import Accepted, EntryRows, MemberRow, PaneRows, Rows
from lasp_edge.protocol.frontier import Tick

RowBatch = tuple[int, dict[str, Any]]
"""Some rows of one kind: how many, and their values by column. A tuple is a column of values, any
other value is the same in each row. What a column holds that is not named is `ABSENT`."""


class LandedColumns:
    """Makes Arrow tables of accepted rows.

    Args:
        plan: of the program whose columns the rows have.
    """

    def __init__(self, plan: Plan) -> None:
        self._schema = landed_schema(plan.columns, plan.stream_results.values())
        self._parts = {each.stream: each.fold.columns_named for each in plan.pane_streams}
        self._parts |= {
            each.stream: each.fold.columns_named for each in plan.published_folds.values()
        }

    def table(self, accepted: Accepted, lander: str, tick: Tick) -> pa.Table:
        """Return the rows of a segment, and the lander's clock at its end."""
        batches = [self._batch(row) for row in accepted.rows]
        batches += [_promise(*each) for each in accepted.promises.entries.items()]
        batches.append(_tick(lander, tick))
        arrays = [_array(field, batches) for field in self._schema]
        return pa.Table.from_arrays(arrays, schema=self._schema)

    def _batch(self, row: Rows) -> RowBatch:
        if isinstance(row, PaneRows):
            return _panes(row, self._parts[row.block.stream])
        if isinstance(row, EntryRows):
            return _entries(row, self._parts[row.frame.stream])
        assert isinstance(row, MemberRow), "a lake takes no parameters yet"
        return _member(row)


def _panes(row: PaneRows, parts: Sequence[str]) -> RowBatch:
    block = row.block
    return len(block.seqs), {
        "kind": PANE,
        "stream": block.stream,
        "key": block.keys,
        "pane_us": block.panes_us,
        "device": row.device,
        "incarnation": block.incarnation,
        "nonce": block.nonce,
        "seq": block.seqs,
        "received_us": row.received_us,
        **dict(zip(parts, block.columns, strict=True)),
    }


def _entries(row: EntryRows, parts: Sequence[str]) -> RowBatch:
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
        return 1, {**entry, "key": None, "changed": frame.number}
    columns = dict(zip(parts, frame.columns, strict=True))
    return len(frame.keys), {**entry, "key": frame.keys, "changed": frame.seqs, **columns}


def _member(row: MemberRow) -> RowBatch:
    control, retired, version = row.member
    return 1, {
        "kind": MEMBER,
        "device": row.device,
        "control": control,
        "retired": retired,
        "received_us": row.received_us,
        **version._asdict(),
    }


def _promise(device: str, promise: Promise) -> RowBatch:
    version, low_us, done, heard_us = promise
    return 1, {
        "kind": PROMISE,
        "device": device,
        "low_us": low_us,
        "done": done,
        "received_us": heard_us,
        **version._asdict(),
    }


def _tick(lander: str, tick: Tick) -> RowBatch:
    now_us, since_us = tick.clock
    return 1, {
        "kind": TICK,
        "lander": lander,
        "seq": tick.number,
        "now_us": now_us,
        "since_us": since_us,
        "received_us": now_us,
    }


def _array(field: pa.Field, batches: Sequence[RowBatch]) -> pa.Array:
    """Return one column of all batches."""
    name, absent = field.name, ABSENT.get(field.name)
    column: list[Any] = []
    # Of most columns only a few rows at the end of a segment make use.
    unused = 0
    for rows, values in batches:
        if name not in values:
            unused += rows
            continue
        column.extend([absent] * unused)
        unused = 0
        value = values[name]
        column.extend(value if isinstance(value, tuple) else [value] * rows)
    rest = pa.repeat(pa.scalar(absent, field.type), unused)
    return pa.chunked_array([pa.array(column, field.type), rest])
