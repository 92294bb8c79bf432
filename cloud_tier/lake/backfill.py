"""Panes of one window that count for another one, which is new: history for it.

A window that a program adds, renames or cuts otherwise is a stream of its own, so devices have its
panes from their next start on. What landed of another window of the same readings can count for it:
an operator who knows that both have the same event, key and functions states it once, and the table
`programs` keeps it. From then on each landed pane of the former stream is a pane of the new one:

    pane_us    the start of the pane of the new window that it is a part of
    nonce      the same, where panes are as long: then it is the very entry that the device itself
               makes of these readings, in an older or newer version. Where they are shorter, one of
               its own for each part of a pane, above the 32 bits that replicas have: as if each
               part had another writer, so that the parts of a pane are added up

So it does not matter when such a pane lands, how often, and which program the device runs: a device
whose program has only the former window makes no panes of the new one. Where panes are shorter, no
program may have both: a replica that makes both would count twice, and such a pair is refused.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import gcd
from typing import Any, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from cloud_tier.lake.definitions import BACKFILL, Known, newest_definitions
from cloud_tier.lake.tables import PROGRAMS, LakeTables, arrow_schema
from lasp_edge.errors import NotFound, UsageError
from lasp_edge.language.declarations import Window
from lasp_edge.language.described import WINDOW
from lasp_edge.language.plan import Plan


class Backfill(NamedTuple):
    """A stream whose panes count for a window.

    Attributes:
        window: the name of the window.
        stream: of its panes.
        former: the name of the window that the panes are of.
        former_stream: of these panes.
        size_us, slide_us: of that window.
        span_us, former_span_us: the length of a pane of both.
    """

    window: str
    stream: int
    former: str
    former_stream: int
    size_us: int
    slide_us: int
    span_us: int
    former_span_us: int


def backfills(plan: Plan, tables: LakeTables) -> tuple[Backfill, ...]:
    """Return the streams whose panes count for windows of a program, as it defines them."""
    if not DeltaTable.is_deltatable(tables.programs):
        return ()
    known = newest_definitions(tables)
    found = [
        Backfill(name, **{field: plain[field] for field in Backfill._fields[1:]})
        for (kind, name), (_, text) in sorted(known.items())
        if kind == BACKFILL and (plain := json.loads(text))
    ]
    streams = {(window.name, window.stream) for window in plan.windows.values()}
    return tuple(each for each in found if (each.window, each.stream) in streams)


def former_windows(plan: Plan, tables: LakeTables) -> tuple[Window, ...]:
    """Return windows that are in no program any more, and whose panes are taken for others."""
    streams = {window.stream for window in plan.windows.values()}
    return tuple(
        replace(
            plan.windows[each.window],
            name=each.former,
            stream=each.former_stream,
            size_us=each.size_us,
            slide_us=each.slide_us,
        )
        for each in backfills(plan, tables)
        if each.former_stream not in streams
    )


def candidates(plan: Plan, window: Window, known: Known) -> Iterator[str]:
    """Yield the windows of a lake whose panes may count for a window of a program."""
    for kind, name in sorted(known):
        if kind == WINDOW and _refusal(plan, window, json.loads(known[kind, name][1])) is None:
            yield name


def let_count(plan: Plan, tables: LakeTables, name: str, former: str) -> Backfill:
    """Have the panes of a former window count for a window, from the job's next start on.

    Args:
        plan: of the program with the window; the lake may not know it yet.
        tables: of the lake.
        name: of the window.
        former: the name of the other one: the same name stands for its definition before.

    Raises:
        NotFound: the program, or the lake, has no such window.
        UsageError: the panes cannot count for it.
    """
    window = plan.windows.get(name)
    if window is None:
        raise NotFound(f"the program has no window {name!r}; it has: {', '.join(plan.windows)}")
    defined = _definitions(tables, former)
    others = [plain for plain in defined if plain["stream"] != window.stream]
    if not others:
        raise NotFound(f"no window {former!r} of another definition in {tables.root}")
    plain = others[-1]
    if (reason := _refusal(plan, window, plain)) is not None:
        raise UsageError(f"panes of {former!r} cannot count for {name!r}: {reason}")
    sizes = (plain["size_us"], plain["slide_us"])
    made = Backfill(
        name, window.stream, former, plain["stream"], *sizes, window.span_us, gcd(*sizes)
    )
    known = newest_definitions(tables)
    revision, _ = known.get((BACKFILL, name), (-1, ""))
    described = {"program": plan.name, **made._asdict()}
    rows = [(BACKFILL, name, revision + 1, json.dumps(described), None)]
    if (WINDOW, name) in known and _stream(known, name) == window.stream:
        revision, text = known[WINDOW, name]
        rows.append((WINDOW, name, revision + 1, text, None))  # all is covered from now on
    columns = dict(zip(PROGRAMS, map(list, zip(*rows, strict=True)), strict=True))
    table = pa.table(columns, schema=arrow_schema(PROGRAMS))
    write_deltalake(tables.programs, table, mode="append")
    return made


def _refusal(plan: Plan, window: Window, former: Mapping[str, Any]) -> str | None:
    """Return why panes of a definition cannot count for a window; None where they can."""
    span_us, own_us = gcd(former["size_us"], former["slide_us"]), window.span_us
    both = ", not {:g}, and devices make both: readings would count twice. slide_s={:g} fits"
    lasts = f"its panes last {span_us / 1e6:g} s"
    has_both = former["stream"] in {each.stream for each in plan.windows.values()}
    step = (former["resolution"], former["columns"])
    reasons = (
        (former["stream"] == window.stream, "they are the same panes"),
        (not window.is_fixed or "folds" in former, "parameters change it"),
        (former["fold"] != window.fold.description(), "it has another fold"),
        (
            step != (window.resolution.text, list(window.fold.columns_named)),
            "its values have another step",
        ),
        (own_us % span_us != 0, f"{lasts}, which does not divide {own_us / 1e6:g}"),
        (
            span_us != own_us and has_both,
            lasts + both.format(own_us / 1e6, span_us / 1e6),
        ),
    )
    return next((reason for applies, reason in reasons if applies), None)


def _stream(known: Known, name: str) -> int | None:
    found = known.get((WINDOW, name))
    return None if found is None else json.loads(found[1])["stream"]


def _definitions(tables: LakeTables, name: str) -> list[dict[str, Any]]:
    """Return all definitions of a window that the lake has had, the newest one at the end."""
    rows = tables.table(tables.programs).to_pyarrow_table().to_pylist()
    found = [row for row in rows if (row["kind"], row["name"]) == (WINDOW, name)]
    return [
        json.loads(row["description"]) for row in sorted(found, key=lambda row: row["revision"])
    ]
