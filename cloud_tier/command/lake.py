r"""Print how a lake is; write its current rows as a table; delete from it.

`status`: its tables, how far results are final and who holds them, what was refused. Give
--roster, --dead-after and --tentative-after the job's values: by these it waits for devices.
`current`: a Delta table of the current rows of a window or a stream's result, for tools that know
nothing of a lake: timestamps, doubles in the unit, a partition a day. Typed again it renews that.
`shared`: the values of the variables that all devices share, or of one: a set's elements, a map's
keys, a counter's number, values as JSON.

`forget`: delete all that is of a device or a key from all tables and their files. The job must not
run; at its next start it makes the windows from the rest. `retain`: delete what is old; the job may
run.

`plan`: what a new version of the program changes, before it is started: which windows go on, and
which begin with a part of their readings.

`upgrade`: carry a lake of the former format over. Neither job nor lander may run.

All work without Spark.

  lasp-edge lake status --lake ./lake
  lasp-edge lake status --lake ./lake --json
  lasp-edge lake status --lake ./lake --fail-if-behind 900
  lasp-edge lake shared --lake ./lake
  lasp-edge lake shared NAME --lake ./lake --csv
  lasp-edge lake current NAME --lake ./lake --to ./tables/NAME
  lasp-edge lake forget --lake ./lake --device attic
  lasp-edge lake forget --lake ./lake --key attic --before 2025-01-01
  lasp-edge lake retain --lake ./lake --days 400
  lasp-edge lake plan --lake ./lake --program greenhouse:program
  lasp-edge lake upgrade --lake ./lake
"""

import argparse
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from cloud_tier.command import table
from cloud_tier.command.behind import (
    MOST_DEVICES,
    finished,
    first_batch,
    landed_us,
    processes,
    waiting,
    why_behind,
)
from cloud_tier.command.deletion import (
    add_deletion_arguments,
    forget_rows,
    retain_days,
    upgraded,
)
from cloud_tier.command.planned import add_plan_arguments, show_plan
from cloud_tier.lake.coverage import host_us
from cloud_tier.lake.current import write_current
from cloud_tier.lake.lake import Lake
from cloud_tier.lake.status import status
from cloud_tier.lake.tables import LakeTables
from lasp_edge.errors import CommandError, Exit, NotFound, UsageError
from lasp_edge.tool.screen import UNKNOWN, ago, aligned
from lasp_edge.tool.times import shown_time
from lasp_edge.tool.waiting_options import Patience, add_waiting_arguments

SECTION = "windows of a fleet"
EXTRA = "lake"

_LANDS_S: Final = 300
"""In seconds: a lander that runs lands something every 15 s; as in the alert NothingLands."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("action", choices=list(_ACTIONS), help="what to do")
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="a window or result (current); one shared variable (default: all)",
    )
    table.add_lake_argument(parser)
    add_waiting_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object (status)")
    parser.add_argument("--csv", action="store_true", help="print comma-separated values (shared)")
    parser.add_argument(
        "--fail-if-behind",
        type=float,
        metavar="S",
        help="print only what is wrong, and end with 1, where results are final up to more than S "
        "seconds ago and more is to come or to merge (status)",
    )
    parser.add_argument("--to", metavar="DIR", help="where the table is written (current)")
    parser.add_argument(
        "--replace", action="store_true", help="also a table of another lake (current)"
    )
    add_deletion_arguments(parser)
    add_plan_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if arguments.action not in {"shared", "current"} and arguments.name is not None:
        raise UsageError(f"lake {arguments.action}: it takes no NAME; `lake shared NAME` does")
    table.leave_pandas_out()
    return _ACTIONS[arguments.action](arguments)


def _show_status(arguments: argparse.Namespace) -> int:
    dead_after_us = Patience.of(arguments).dead_after_us
    found = status(LakeTables(arguments.lake), roster=arguments.roster, dead_after_us=dead_after_us)
    now_us = host_us()
    if arguments.fail_if_behind is not None:
        if why := why_behind(found, arguments.fail_if_behind, now_us):
            raise CommandError(f"{arguments.lake}: {why}")
        if done := finished(found):
            print(f"{arguments.lake}: {done}")  # noqa: T201
        return Exit.FINE
    print(json.dumps(found) if arguments.json else "\n".join(_plainly(found, now_us)))  # noqa: T201
    return Exit.FINE


def _forget(arguments: argparse.Namespace) -> int:
    print(forget_rows(arguments))  # noqa: T201
    return Exit.FINE


def _retain(arguments: argparse.Namespace) -> int:
    print(retain_days(arguments))  # noqa: T201
    return Exit.FINE


def _plan(arguments: argparse.Namespace) -> int:
    print(show_plan(arguments))  # noqa: T201
    return Exit.FINE


def _upgrade(arguments: argparse.Namespace) -> int:
    print(upgraded(arguments))  # noqa: T201
    return Exit.FINE


def _write_current(arguments: argparse.Namespace) -> int:
    if arguments.name is None or arguments.to is None:
        raise UsageError("lake current: NAME, of a window or a result, and --to DIR are needed")
    lake, name = Lake(arguments.lake), arguments.name
    windows, results = lake.window_names(), lake.result_names()
    if name not in (*windows, *results):
        listed = ", ".join((*windows, *results))
        raise NotFound(f"{arguments.lake} has no window or result {name!r}; there are: {listed}")
    rows = lake.windows(name) if name in windows else lake.results(name)
    written = write_current(rows, arguments.to, replaces=arguments.replace)
    days = "day" if written.days == 1 else "days"
    what = f"{written.rows:,} rows of {written.days:,} {days}" if written.is_new else "nothing new"
    print(f"{arguments.to}: {what}")  # noqa: T201
    return Exit.FINE


def _show_shared(arguments: argparse.Namespace) -> int:
    lake = Lake(arguments.lake)
    names = lake.shared_names() if arguments.name is None else [arguments.name]
    found = []
    for name in names:
        rows = lake.shared(name).current()
        names_of_rows = pa.array([name] * rows.num_rows, pa.string())
        found.append(rows.add_column(0, "name", names_of_rows))
    if found:
        table.show(pa.concat_tables(found), as_csv=arguments.csv)
    elif not arguments.csv:
        print(f"{arguments.lake}: no device has sent a shared variable yet")  # noqa: T201
    return Exit.FINE


def _plainly(found: dict[str, Any], now_us: int) -> list[str]:
    """Return what people read: first what stands still, if job or landers do."""
    runs, frontier, stands = found["runs"], found["frontier"], processes(found, _LANDS_S, now_us)
    first = first_batch(found)
    blames = not (stands or first)
    of = f"program {found['program'] or UNKNOWN}, format {found['format']}"
    lines = [
        *(f"wrong    {each}" for each in stands),
        f"lake     {found['lake']}, {of}",
        f"job      {_running(runs['job'])}{_doing(found, first)}",
        *_failed(found["failure"]),
        *(f"held     {each}" for each in found["held"]),
        f"lander   {_running(runs['lander'])}",
        f"final    {_final(found, now_us, blames=blames)}",
        "",
        *_tables(found["tables"]),
    ]
    if found["windows"]:
        lines += ["", *_windows(found["windows"])]
    if found["results"]:
        lines += ["", *_results(found["results"])]
    if frontier["devices"]:
        lines += ["", *_merged(found, now_us), *_devices(frontier, now_us, blames=blames)]
    if frontier["landers"]:
        lines += ["", *_landers(frontier["landers"])]
    if found["rejects"]:
        lines += ["", *_rejects(found["rejects"])]
    return lines


def _running(runs: bool | None) -> str:  # noqa: FBT001 - None: unknown
    if runs is None:
        return "not to be seen in the lake's directory"
    return "runs" if runs else "does not run"


def _doing(found: dict[str, Any], first: str) -> str:
    if first:
        return f"; {first}"
    merged = found["merged"]
    if merged is None:
        return ""
    behind, begun = merged["commits_behind"], merged["unfinished"]
    text = f"; {behind:,} commits are not merged yet" if behind else "; all that landed is merged"
    if begun and not found["runs"]["job"]:
        text += "; a batch was begun and is done again at the next start"
    return text


def _failed(failure: dict[str, Any] | None) -> list[str]:
    if failure is None:
        return []
    return [f"failure  {shown_time(failure['last_us'])} UTC: {failure['why']}"]


def _final(found: dict[str, Any], now_us: int, *, blames: bool) -> str:
    final_us, held = found["frontier"]["frontier_us"], found["frontier"]["held_by"]
    text = "nothing yet"
    if final_us is not None:
        text = f"up to {shown_time(final_us)} UTC, {_age(final_us, now_us)}"
    if done := finished(found):
        return f"{text}; {done}"
    return f"{text}; waits for {', '.join(held)}" if held and blames else text


def _merged(found: dict[str, Any], now_us: int) -> list[str]:
    """Return that more is known of devices than is shown, where commits wait."""
    commits, merged = waiting(found), found["merged"]
    if not commits:
        return []
    begun = merged and merged["last_us"]
    last = "" if begun is None else f", begun {_ago(begun, now_us)}"
    later = "a later commit is" if commits == 1 else f"{commits:,} later commits are"
    return [f"as of the last merged batch{last}; {later} not in it:"]


def _tables(tables: dict[str, dict[str, int]]) -> list[str]:
    fields = ("rows", "files", "bytes", "version")
    rows = [(name, *(f"{size[field]:,}" for field in fields)) for name, size in tables.items()]
    return aligned([("table", *fields), *rows], left=(0,))


def _windows(windows: dict[str, dict[str, Any]]) -> list[str]:
    rows = [
        (name, _time(newest["end_us"]), _time(newest["final_end_us"]))
        for name, newest in windows.items()
    ]
    return aligned([("window", "newest ends", "final up to"), *rows], left=(0, 1, 2))


def _results(results: dict[str, dict[str, Any]]) -> list[str]:
    rows = [
        (name, _time(newest["time_us"]), _time(newest["final_time_us"]))
        for name, newest in results.items()
    ]
    return aligned([("result", "newest row", "newest final"), *rows], left=(0, 1, 2))


def _devices(frontier: dict[str, Any], now_us: int, *, blames: bool) -> list[str]:
    first = sorted(frontier["devices"], key=lambda each: (not each["holds"], each["device"]))
    rows = []
    for each in first[:MOST_DEVICES]:
        silence = UNKNOWN if each["heard_us"] is None else _ago(each["heard_us"], now_us)
        holds = "results wait for it" if each["holds"] and blames else ""
        rows.append((each["device"], each["state"], _time(each["low_us"]), silence, holds))
    head = ("device", "state", "nothing older than", "reported", "")
    lines = aligned([head, *rows], left=range(5))
    if len(first) > MOST_DEVICES:
        lines.append(f"... and {len(first) - MOST_DEVICES:,} more; --json has all")
    return lines


def _landers(landers: dict[str, dict[str, Any]]) -> list[str]:
    rows = [
        (name, _time(landed_us(each)), _time(each["since_us"])) for name, each in landers.items()
    ]
    return aligned([("lander", "last landed", "listens since"), *rows], left=range(3))


def _rejects(rejects: list[dict[str, Any]]) -> list[str]:
    rows = [(each["reason"], f"{each['frames']:,}", _time(each["last_us"])) for each in rejects]
    return aligned([("not taken, because", "frames", "the last"), *rows], left=(0, 2))


def _age(time_us: int, now_us: int) -> str:
    """As a time ago; devices with readings of their own times may be ahead."""
    if time_us > now_us:
        return f"{ago((time_us - now_us) / 1e6)} ahead of this machine's clock"
    return _ago(time_us, now_us)


def _ago(time_us: int, now_us: int) -> str:
    return f"{ago(max(0, now_us - time_us) / 1e6)} ago"


def _time(time_us: int | None) -> str:
    return UNKNOWN if time_us is None else shown_time(time_us)


_ACTIONS: Final[Mapping[str, Callable[[argparse.Namespace], int]]] = {
    "status": _show_status,
    "shared": _show_shared,
    "current": _write_current,
    "forget": _forget,
    "retain": _retain,
    "plan": _plan,
    "upgrade": _upgrade,
}
