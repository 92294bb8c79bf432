"""Run a scan over the fleet again, on the readings of a lake or gateway, and compare.

Each row is printed once, with where it is: in `both`, in the `replay` alone, or `kept` alone; what
has changed is there twice. With --with another program is run over the same readings, so you see
what a changed scan would have given. Nothing is written.

  lasp-edge replay entrance:program visits --lake ./lake --since 2026-01-05 --until 2026-01-12
  lasp-edge replay entrance:program visits --gateway ~/lasp/gateway --with changed:program

A scan goes over all readings that are there before --until; --since says from when on its rows are
printed. Without --until it ends now. A gateway has the readings of a week, so a row that goes back
to older ones may differ.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cloud_tier.command.places import RESULTS, add_kept, cells, find
from lasp_edge.errors import Exit, NotFound, UsageError
from lasp_edge.evaluation.replaying import replayed
from lasp_edge.language.declarations import StreamResult
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import parts_of, shown_parts
from lasp_edge.ordered.cells import CellId
from lasp_edge.ordered.inputs import InputCell
from lasp_edge.ordered.places import place_text
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.printing import FoundRows, RowPrinter, RowsWanted
from lasp_edge.tool.times import typed_time

SECTION = "windows of a fleet"
EXTRA = "lake"
BOTH, REPLAY, KEPT = "both", "replay", "kept"
_WHERE: Final = "where"
Row = dict[str, Any]
Cells = Mapping[CellId, InputCell]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("program", metavar="MODULE:PROGRAM", help="the program that ran")
    parser.add_argument("name", metavar="NAME", help="the result of a scan over the fleet")
    add_kept(parser)
    other = "run this program in place of the one that ran"
    parser.add_argument("--with", dest="other", metavar="MODULE:PROGRAM", help=other)
    parser.add_argument("--key", help="only this key")
    for option, rows in (("--since", "rows then or later"), ("--until", "rows before then")):
        words = f"only {rows}: ISO 8601, in UTC unless it says otherwise"
        parser.add_argument(option, metavar="TIME", help=words)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print comma-separated values")
    form.add_argument("--json", action="store_true", help="print a JSON object for each row")


def run(arguments: argparse.Namespace) -> Exit:
    """Run the command."""
    plan = load_plan(arguments.program)
    _result(plan, arguments.program, arguments.name)
    spec = arguments.other or arguments.program
    other = load_plan(spec)
    result = _result(other, spec, arguments.name)
    since_us, until_us = _time(arguments, "since"), _time(arguments, "until")
    until_us = time.time_ns() // 1_000 if until_us is None else until_us  # noqa: TID251 - a command
    items = _items(arguments, plan, other, until_us)
    times_us = [item.time_us for cell in items.values() for item in cell]
    if not times_us:
        raise NotFound(f"{arguments.name}: there are no readings of it to replay, at that time")
    first_us = max(min(times_us), min(times_us) if since_us is None else since_us)
    made = [
        row
        for row in _rows(other, result, items, until_us)
        if row["time_us"] >= first_us and arguments.key in (None, row["key"])
    ]
    wanted = RowsWanted(arguments.name, arguments.key, first_us, until_us)
    kept = _kept(arguments, wanted)
    _print(arguments, result, _compared(kept, made, _columns(result)))
    return Exit.FINE


def _result(plan: Plan, spec: str, name: str) -> StreamResult:
    """Return a result over the fleet.

    Raises:
        NotFound: there is no such result, or it is one of each device.
    """
    found = plan.fleet_results.get(name)
    if found is None:
        known = ", ".join(plan.fleet_results) or "none"
        why = "it is of each device by itself" if name in plan.device_results else "it is not there"
        raise NotFound(
            f"{spec}: a result of a scan over the fleet is needed, not {name!r}, for {why}; "
            f"there are: {known}"
        )
    return found


def _time(arguments: argparse.Namespace, option: str) -> int | None:
    text = getattr(arguments, option)
    try:
        return None if text is None else typed_time(text)
    except ValueError:
        raise UsageError(f"--{option}: a time such as 2026-01-05T08:00, not {text!r}") from None


def _items(
    arguments: argparse.Namespace, plan: Plan, other: Plan, until_us: int
) -> dict[CellId, InputCell]:
    """Return the cells that are kept of what a result is made from, of those that were sent.

    Raises:
        UsageError: the other program needs readings that were not sent.
    """
    needed = _inputs(other, arguments.name)
    unsent = sorted(needed - plan.item_streams.keys())
    if unsent:
        raise UsageError(
            f"--with {arguments.other}: it needs {', '.join(unsent)}, and devices that run "
            f"{arguments.program} send no readings of that; "
            f"they send: {', '.join(plan.item_streams)}"
        )
    return {
        at: cell for name in sorted(needed) for at, cell in cells(arguments, plan, name, until_us)
    }


def _inputs(plan: Plan, name: str) -> set[str]:
    """Return the events, and streams of devices, that a stream over the fleet is made from."""
    made = plan.fleet_streams.get(name)
    if made is None:
        return {name}
    if made.local:
        return set(made.events)
    return {each for source in made.sources for each in _inputs(plan, source)}


def _rows(plan: Plan, result: StreamResult, items: Cells, until_us: int) -> Iterator[Row]:
    """Yield the rows of a replay; what has not the parts of its result has none."""
    for place, event in replayed(plan, result.name, items, until_us).items():
        try:
            parts = parts_of(result, event.value)
        except ValueError:
            continue
        at = {"key": event.key, "time_us": place[0], "place": place_text(place)}
        yield {**at, **shown_parts(result, parts), **parts}


def _kept(arguments: argparse.Namespace, wanted: RowsWanted) -> list[Row]:
    """Return the rows that are kept; none where there never were any of this result."""
    try:
        found = find(RESULTS, arguments, wanted)
    except NotFound as error:
        print(f"no rows are kept: {error}", file=sys.stderr)  # noqa: T201 - a command
        return []
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def _columns(result: StreamResult) -> list[str]:
    """Return the columns of a result's values: as people read them, and as they are stored."""
    stored = [name if step == "text" else f"{name}_q" for name, step in result.parts]
    return list(dict.fromkeys([*(name for name, _ in result.parts), *stored]))


def _compared(kept: list[Row], made: list[Row], columns: list[str]) -> list[Row]:
    """Return all rows in order, each with where it is.

    Of one item there may be several rows. Those that say the same are one, whatever their numbers.
    """
    stored = [name for name in columns if name.endswith("_q") or f"{name}_q" not in columns]
    left: dict[tuple[Any, ...], list[Row]] = {}
    for row in kept:
        left.setdefault(_content(row, stored), []).append(row)
    found: list[Row] = []
    for row in made:
        same = left.get(_content(row, stored))
        found.append({**row, _WHERE: BOTH if same else REPLAY})
        if same:
            del same[0]
    found += [{**row, _WHERE: KEPT} for rows in left.values() for row in rows]
    return sorted(found, key=lambda row: (row["key"], row["time_us"], row["place"], row[_WHERE]))


def _content(row: Row, stored: list[str]) -> tuple[Any, ...]:
    """Return what a row says, and of which item: its place without the number of the output."""
    item = row["place"].rpartition("!!")[0]
    return (item, row["key"], *map(row.get, stored))


def _print(arguments: argparse.Namespace, result: StreamResult, rows: list[Row]) -> None:
    is_for_people = not (arguments.csv or arguments.json)
    values = [name for name, _ in result.parts] if is_for_people else _columns(result)
    columns = ["key", "time_us", "place", *values, _WHERE]
    printer = RowPrinter(as_csv=arguments.csv, as_json=arguments.json)
    printer.show(FoundRows(columns, [[row.get(name) for name in columns] for row in rows]))
    if is_for_people:
        count = {where: sum(row[_WHERE] == where for row in rows) for where in (BOTH, REPLAY, KEPT)}
        print(  # noqa: T201 - a command
            f"{count[BOTH]:,} rows as kept, {count[REPLAY]:,} in the replay alone, "
            f"{count[KEPT]:,} kept alone"
        )
