"""Rows of `landing` from what a lander accepted, as Arrow."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa

from cloud_tier.lake.tables import ABSENT, MEMBER, PANE, PROMISE, TICK, VARIABLE, landed_schema
from lasp_edge.language.declarations import LocalFold, Window
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acceptance import Accepted, EntryRows, MemberRow, PaneRows, Rows
from lasp_edge.protocol.frontier import Tick


class Group(NamedTuple):
    """Rows of one kind that came together.

    Attributes:
        rows: how many.
        columns: what they hold by column: a tuple has a value for each row, anything else is the
            value of all.
    """

    rows: int
    columns: dict[str, Any]


class RowBuilder:
    """Turns what was accepted into rows, for one program.

    Args:
        plan: of the program.
    """

    def __init__(self, plan: Plan) -> None:
        self._schema = landed_schema(plan.columns)
        made: list[Window | LocalFold] = [*plan.windows.values(), *plan.published_folds.values()]
        self._names = {each.stream: each.fold.columns_named for each in made}

    def table(self, accepted: Accepted, lander: str = "", tick: Tick | None = None) -> pa.Table:
        """Return the rows of a segment.

        Args:
            accepted: what came of its messages.
            lander: whose segment it is.
            tick: the lander's clock at its end, under the segment's number; None for no such row.
        """
        groups = [self._group(rows) for rows in accepted.rows]
        groups += [
            Group(
                1,
                {
                    "kind": PROMISE,
                    "device": device,
                    "low_us": promise.low_us,
                    "done": promise.done,
                    "received_us": promise.heard_us,
                    **promise.version._asdict(),
                },
            )
            for device, promise in accepted.promises.entries.items()
        ]
        if tick is not None:
            groups.append(_tick(lander, tick))
        total = sum(group.rows for group in groups)
        arrays = [_array(field, groups, total) for field in self._schema]
        return pa.Table.from_arrays(arrays, schema=self._schema)

    def _group(self, rows: Rows) -> Group:
        if isinstance(rows, PaneRows):
            return self._panes(rows)
        return self._entries(rows) if isinstance(rows, EntryRows) else _member(rows)

    def _panes(self, rows: PaneRows) -> Group:
        block = rows.block
        columns = {
            "kind": PANE,
            "stream": block.stream,
            "key": block.keys,
            "pane_us": block.panes_us,
            "device": rows.device,
            "incarnation": block.incarnation,
            "nonce": block.nonce,
            "seq": block.seqs,
            "received_us": rows.received_us,
            **dict(zip(self._names[block.stream], block.columns, strict=True)),
        }
        return Group(len(block.seqs), columns)

    def _entries(self, rows: EntryRows) -> Group:
        frame = rows.frame
        columns: dict[str, Any] = {
            "kind": VARIABLE,
            "stream": frame.stream,
            "shard": frame.shard,
            "device": frame.about,
            "received_us": rows.received_us,
            **frame.version._asdict(),
        }
        if not frame.keys:
            return Group(1, {**columns, "key": None, "changed": frame.number})
        columns |= {"key": frame.keys, "changed": frame.seqs}
        columns |= zip(self._names[frame.stream], frame.columns, strict=True)
        return Group(len(frame.keys), columns)


def _member(row: MemberRow) -> Group:
    columns = {
        "kind": MEMBER,
        "device": row.device,
        "control": row.member.control,
        "retired": row.member.retired,
        "received_us": row.received_us,
        **row.member.version._asdict(),
    }
    return Group(1, columns)


def _tick(lander: str, tick: Tick) -> Group:
    columns = {
        "kind": TICK,
        "lander": lander,
        "seq": tick.number,
        "now_us": tick.clock.now_us,
        "since_us": tick.clock.since_us,
        "received_us": tick.clock.now_us,
    }
    return Group(1, columns)


def _array(field: pa.Field, groups: list[Group], total: int) -> pa.Array:
    """Return a column of all groups; what no group has costs no Python object a row."""
    absent = ABSENT.get(field.name)
    if not any(field.name in group.columns for group in groups):
        return pa.repeat(pa.scalar(absent, field.type), total)
    values: list[Any] = []
    for rows, columns in groups:
        value = columns.get(field.name, absent)
        values.extend(value if isinstance(value, tuple) else [value] * rows)
    return pa.array(values, field.type)


@contextmanager
def collector_off() -> Iterator[None]:
    """Decode without the garbage collector: it would walk every new tuple, and none is garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
