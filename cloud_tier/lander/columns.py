"""Columns: the rows that were accepted from a segment become one Arrow table for `landing`.

Here alone a kind of row fills its columns; `cloud_tier.lake.tables` says what they mean. Pane and
variable rows come packed by column and stay so.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from cloud_tier.lake.controls import control_rows
from cloud_tier.lake.tables import (
    ABSENT,
    BEGUN,
    MEMBER,
    PANE,
    PROMISE,
    TICK,
    VARIABLE,
    landed_schema,
)
from crdts.frontier import Promise
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acceptance import Accepted, Begun, CommandRows, EntryRows, PaneRows, Rows
from lasp_edge.protocol.frames import EVERY_WINDOW
from lasp_edge.protocol.frontier import Tick

RowBatch = tuple[int, dict[str, Any]]
"""Some rows of one kind: how many, and their values by column. A tuple is a column of values, any
other value is the same in each row. What a column holds that is not named is `ABSENT`."""


class LandedColumns:
    """Makes Arrow tables of accepted rows.

    Args:
        plan: of the program whose columns the rows have.
        regimes: what panes mean under the log of parameters; None without parameters.
    """

    def __init__(self, plan: Plan, regimes: FleetRegimes | None = None) -> None:
        self._regimes = regimes
        own = (plan.stream_results.values(), plan.parameters, plan.item_streams.values())
        self._schema = landed_schema(plan.columns, *own)
        self._parts = {each.stream: each.fold.columns_named for each in plan.sent_streams}
        self._parts |= {
            each.stream: each.fold.columns_named for each in plan.published_folds.values()
        }

    def table(self, accepted: Accepted, lander: str, tick: Tick) -> pa.Table:
        """Return the rows of a segment, and the lander's clock at its end."""
        batches = [each for row in accepted.rows for each in self._batches(row)]
        control = None if self._regimes is None else self._regimes.control
        promises = accepted.promises.entries.items()
        stated = {device: dict(each).get(EVERY_WINDOW) for device, each in accepted.begun.items()}
        batches += [_promise(*each, stated.get(each[0]), control) for each in promises]
        batches += [_begun(*each, accepted.begun.get(each[0], ())) for each in promises]
        batches.append(_tick(lander, tick))
        arrays = [_array(field, batches) for field in self._schema]
        return pa.Table.from_arrays(arrays, schema=self._schema)

    def _batches(self, row: Rows) -> Iterable[RowBatch]:
        if isinstance(row, PaneRows):
            parts = self._parts_of(row.block.stream)
            return [] if parts is None else [_panes(row, parts)]
        if isinstance(row, EntryRows):
            return [_entries(row, self._parts[row.frame.stream])]
        return _commands(row)

    def _parts_of(self, stream: int) -> Sequence[str] | None:
        """Return the columns of a stream's partials, or of a piece's of a window with parameters.

        None where an entry of the same segment took its meaning from a piece: no id comes back.
        """
        window = None if self._regimes is None else self._regimes.window_of(stream)
        return self._parts.get(stream) if window is None else window.fold.columns_named


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


def _commands(row: CommandRows) -> Iterable[RowBatch]:
    for device, (control, retired, version) in row.commands.membership.entries.items():
        yield (
            1,
            {
                "kind": MEMBER,
                "device": device,
                "control": control,
                "retired": retired,
                "low_us": row.owed_us.get(device),
                "received_us": row.received_us,
                **version._asdict(),
            },
        )
    for columns in control_rows(row.commands.control):
        yield 1, {**columns, "received_us": row.received_us}


def _begun(device: str, promise: Promise, stated: Begun) -> RowBatch:
    windows = [each for each in stated if each[0] != EVERY_WINDOW]
    return len(windows), {
        "kind": BEGUN,
        "device": device,
        "stream": tuple(stream for stream, _ in windows),
        "since_us": tuple(since_us for _, since_us in windows),
        "received_us": promise.heard_us,
        **promise.version._asdict(),
    }


def _promise(device: str, promise: Promise, since_us: int | None, control: int | None) -> RowBatch:
    version, low_us, done, heard_us = promise
    return 1, {
        "kind": PROMISE,
        "device": device,
        "low_us": low_us,
        "done": done,
        "since_us": since_us,
        "changed": control,
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
