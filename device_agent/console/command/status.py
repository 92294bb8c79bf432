r"""Print the counts of a device: readings accepted and refused, entries still to be sent.

Reads the agent's data directory; the agent may be running. With the program, prints the last rows
of its results; with --windows its last windows, too: those over this device's own readings alone.

  lasp-edge status --data-dir ~/lasp/data
  lasp-edge status greenhouse:program --data-dir ~/lasp/data --windows
"""

import argparse
import json
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from shutil import disk_usage
from typing import Any, Final

from device_agent.agent.changes import Facts, SinkRow
from device_agent.agent.intake.peer_reports import TWICE
from device_agent.agent.notices import TWIN
from device_agent.agent.panes.undelivered import undelivered_by_sink
from device_agent.agent.state.counters import OUTCOMES
from device_agent.agent.state.store import Store, existing_store
from device_agent.agent.state.stored import set_aside
from device_agent.console.own_windows import own_windows
from device_agent.storage.damage import damaged_files, deletion_line, kept_bytes
from lasp_edge.errors import Exit, UsageError
from lasp_edge.folds.numbers import Resolution, decimals
from lasp_edge.language.declarations import TEXT
from lasp_edge.language.plan import Plan
from lasp_edge.language.shown_names import shown_names
from lasp_edge.language.summary import ProgramSummary
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.screen import aligned, number

SECTION = "a device"
FULL_BYTES = 1 << 20
"""Free bytes of a disk below which it is full: a commit may not fit any more."""
ROWS = 8
"""Rows of each result that are printed, the newest ones."""
FENCED: Final = {
    "fence: started alone": ("starts", "at which no gateway, lander or other device answered"),
    "fence: later lives met": (
        "starts",
        "of this name that this store lacks: another card, or a second device",
    ),
    TWICE: ("MAYBE TWICE", "readings that may count twice, at most, since this store began"),
}
"""What is counted of former starts -> how its line begins, and what it is."""
DOUBTFUL = (
    "refused: read by an earlier life, perhaps, which this store does not know. If this is another "
    "machine, give it a name of its own: --device OTHER and an empty "
    "--data-dir; it reads its files from their beginning then"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    program = "the agent's program; needed for results and --windows"
    parser.add_argument("program", metavar="MODULE:PROGRAM", nargs="?", help=program)
    parser.add_argument("--data-dir", type=Path, required=True, help="the agent's data directory")
    last = "print the windows of the last N starts (without N: 3)"
    parser.add_argument("--windows", type=int, nargs="?", const=3, metavar="N", help=last)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    plan, last = None, arguments.windows
    if last is not None:
        if not arguments.program:
            raise UsageError("--windows needs the program: lasp-edge status MODULE:PROGRAM ...")
        if last < 1:
            raise UsageError(f"--windows: a number from 1, not {last}")
    if arguments.program:
        plan = load_plan(arguments.program)
    store = existing_store(arguments.data_dir)
    status = status_of(store) | {"free_bytes": disk_usage(arguments.data_dir).free}
    if plan is not None and plan.device_results:
        status["results"] = _results(store, plan)
    if plan is not None and last is not None:
        status["windows"] = {
            name: [each.plain(window) for each in own_windows(store, plan, window, last)]
            for name, window in plan.windows.items()
        }
    store.close()
    if arguments.json:
        print(json.dumps(status))  # noqa: T201
        return Exit.FINE
    windows = status.get("windows", {}).items()
    lines = [plainly(status), *_of_disk(status["free_bytes"], arguments.data_dir)]
    results = plan.device_results if plan is not None else {}
    lines += [
        line
        for name, result in results.items()
        for line in _rows(name, status["results"][name], dict(result.parts))
    ]
    lines += [line for window in windows for line in _windows(*window)]
    print("\n".join(lines))  # noqa: T201
    return Exit.FINE


def status_of(store: Store) -> dict[str, Any]:
    """Return what a store tells of its device, as JSON has it."""
    restored = store.restored()
    facts = restored.facts
    incarnation, nonce, device = store.replica() or (0, 0, "")
    waiting, streams = store.undelivered(), facts.streams or ()
    ours = sum(each.entries for each in waiting if each.stream in streams)
    sinks = facts.sinks or (SinkRow(DEFAULT_SINK),)
    return {
        "device": device,
        "program": facts.program or "",
        "replica": {"incarnation": incarnation, "nonce": nonce},
        **{name: restored.counters.get(name, 0) for name in OUTCOMES},
        "refused_by_reason": _counted(restored.counters, "refused: "),
        "refused_before_the_start": _counted(facts.refused_before or {}, "refused: "),
        "frames_left_aside": _counted(restored.counters, "frame: "),
        "failures": _counted(restored.counters, "failed: "),
        "fence": _counted(restored.counters, "fence: "),
        "clone_alarms": restored.counters.get("clone_alarms", 0),
        "clock": facts.clock or "",
        "notices": facts.notices or [],
        "mixed": facts.mixed or [],
        "waiting_for_the_clock": restored.waiting.readings,
        "undated": restored.counters.get("undated", 0),
        "dirty_panes": ours,
        "panes_of_former_programs": sum(each.entries for each in waiting) - ours,
        "sinks": undelivered_by_sink(sinks, waiting, streams),
        "sink_alarms": _counted(restored.counters, "sink: "),
        "last_settled": {
            name: settled._asdict() for name, settled in (facts.settled or {}).items()
        },
        "alerts": _alerts(facts.acted or {}),
        "windows_whole_from": _whole_from(facts),
        "retired": list(facts.membership.retired) if facts.membership else [],
        "set_aside": list(set_aside(restored.meanings, restored.variables, facts.meanings or {})),
        "damaged_stores": [_damaged(files) for files in damaged_files(store.path)],
        "other_programs": facts.other_programs or {},
        "floor_us": facts.floor_us,
        "high_us": facts.high_us,
        "sources": {name: row._asdict() for name, row in sorted(restored.sources.items())},
    }


def _whole_from(facts: Facts) -> dict[str, str]:
    """Return the windows that lack earlier readings, and from when on all are in them."""
    if not facts.begun or facts.summary is None:
        return {}
    windows, begun = ProgramSummary.from_text(facts.summary).windows, dict(facts.begun)
    return {
        name: _at(begun[window.stream])
        for name, window in windows.items()
        if window.stream in begun
    }


def _counted(counters: Mapping[str, int], group: str) -> dict[str, int]:
    """Return the counts of a group by reason, sorted."""
    return {
        name.removeprefix(group): total
        for name, total in sorted(counters.items())
        if name.startswith(group)
    }


def _damaged(files: list[Path]) -> dict[str, Any]:
    """Return a damaged store as its files and their size."""
    return {"files": list(map(str, files)), "bytes": kept_bytes(files)}


def _of_damaged(damaged: dict[str, Any]) -> str:
    path, *_ = files = damaged["files"]
    return (
        f"  DAMAGED        {path}, {damaged['bytes']:,} bytes: put aside, and read by "
        f"no agent; to delete it, type: {deletion_line(list(map(Path, files)))}"
    )


def _of_fence(counted: str, number: int) -> str:
    """Return the line of what is counted of former starts.

    >>> _of_fence("started alone", 1)
    '  starts         1 at which no gateway, lander or other device answered'
    """
    label, words = FENCED.get(f"fence: {counted}", ("starts", counted))
    return f"  {label:<15}{number} {words}"


def _of_disk(free_bytes: int, directory: Path) -> list[str]:
    if free_bytes >= FULL_BYTES:
        return []
    typed = f"df -h {shlex.quote(str(directory))}"
    until = "nothing is read or sent until there is room"
    return [f"  DISK FULL      {free_bytes:,} bytes are free: {until}; type: {typed}"]


def _alerts(acted: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the state of each alert that has ever turned, sorted."""
    found = [
        record["said"]
        for _, records in sorted(acted.items())
        for _, record in sorted(records.items())
        if isinstance(record, dict)
    ]
    return sorted(found, key=lambda alert: (alert["alert"], alert.get("key", "")))


def _of_alert(alert: Mapping[str, Any]) -> str:
    where = f" ({alert['key']})" if alert.get("key") else ""
    shown = "-" if alert["value"] is None else f"{alert['value']:.6g}"
    since = f" since {alert['since']}" if alert["since"] else ""
    value = f"{alert['fold']} {alert['part']} was {shown}"
    return f"{alert['alert']}{where}: {alert['state']}{since}, when {value}"


def _of_sink(name: str, sink: dict[str, Any]) -> list[str]:
    if not sink["store"] and not sink["waiting"]:
        return []  # nobody keeps windows, and none is to be kept
    to = f"to {name}" if sink["store"] else "and no gateway or lander has answered yet"
    lines = [f"  to be sent     {sink['waiting']} pane entries, {to}"]
    if sink["of_former_programs"]:
        lines.append(f"      {sink['of_former_programs']} of them of a former program")
    return lines + [f"      {n} not taken: {reason}" for reason, n in sink["not_taken"].items()]


def _of_source(name: str, row: dict[str, Any]) -> list[str]:
    """Return how far a source with own times has come: windows wait for it, until it ends."""
    newest = [] if row["high_us"] is None else [f"newest reading of {_at(row['high_us'])} UTC"]
    words = ["read to its end"] * bool(row["done"]) + newest
    return [f"  source         {name}: {', '.join(words)}"] if words else []


def plainly(status: dict[str, Any]) -> str:
    """Return the same for people."""
    replica, program = status["replica"], status["program"] or "(none yet)"
    lives = f"incarnation {replica['incarnation']} (starts, and meetings with another of its name)"
    lines = [
        f"device {status['device']}, program {program}, {lives}",
        f"  accepted       {status['accepted']}",
        f"  repeated       {status['repeated']} (dropped: the same reading came before)",
        f"  late           {status['late']} (accepted; windows were revised)",
        f"  too late       {status['too_late']} (refused: older than --retain-days allows)",
        f"  in the future  {status['in_the_future']} (refused: ahead of the clock)",
        f"  refused        {status['refused']} (for other reasons)",
    ]
    lines += _reasons(status)
    if status["doubtful"]:
        lines.append(f"  doubtful       {status['doubtful']} ({DOUBTFUL})")
    lines += [_of_fence(what, n) for what, n in status["fence"].items()]
    if status["clock"]:
        lines.append(f"  CLOCK          {status['clock']}")
    if status["waiting_for_the_clock"]:
        lines.append(f"  waiting        {status['waiting_for_the_clock']} (for a clock to trust)")
    if status["undated"]:
        lines.append(f"  undated        {status['undated']} (lost: they came before any clock)")
    lines += [line for sink in status["sinks"].items() for line in _of_sink(*sink)]
    lines += [
        *(line for source in status["sources"].items() for line in _of_source(*source)),
        *(f"  ALARM          {reason} ({n})" for reason, n in status["sink_alarms"].items()),
    ]
    lines += [
        *(f"  ALERT          {_of_alert(alert)}" for alert in status["alerts"]),
        *(
            f"  last agreed    {name}, {settled['devices']} "
            f"device{'s' * (settled['devices'] != 1)}, inputs {settled['inputs']}"
            for name, settled in status["last_settled"].items()
        ),
    ]
    lines += [
        f"  left aside     {total} messages: {reason}"
        for reason, total in status["frames_left_aside"].items()
    ]
    lines += [f"  FAILED         {total} {reason}" for reason, total in status["failures"].items()]
    lines += [
        f"  LACKS          window {name} has all readings since {time} UTC: of earlier ones this "
        "device may not know all, so rows that begin before may be without some"
        for name, time in status["windows_whole_from"].items()
    ]
    lines += [f"  SET ASIDE      {line}" for line in status["set_aside"]]
    lines += map(_of_damaged, status["damaged_stores"])
    lines += [
        f"  OTHER PROGRAM  {device} runs program {program}, release {release}"
        for device, (program, release) in sorted(status["other_programs"].items())
    ] + [f"  ALARM          {text}" for text in status["mixed"]]
    if status["retired"]:
        lines.append(f"  retired        {', '.join(status['retired'])} (no longer counted)")
    return "\n".join(lines + _notices(status))


def _reasons(status: dict[str, Any]) -> list[str]:
    """Return the reasons of refusals, and of each how much of it is of the present process."""
    before, lines = status["refused_before_the_start"], []
    for reason, total in status["refused_by_reason"].items():
        new = total - before.get(reason, 0)
        old = "" if new == total else f" ({new or 'none'} since the last start)"
        lines.append(f"      {total} {reason}{old}")
    return lines


def _notices(status: dict[str, Any]) -> list[str]:
    """Return the lines of what is accepted, and probably a mistake."""
    texts, clones = status["notices"], status["clone_alarms"]
    twins = [text for text in texts if text.startswith(TWIN)]
    lines = [f"  {'ALARM ' if text in twins else 'NOTICE'}         {text}" for text in texts]
    if clones and not twins:
        lines.append(f"  former clone   sent {clones} messages; none lately")
    return lines


def _results(store: Store, plan: Plan) -> dict[str, list[dict[str, Any]]]:
    """Return the last rows of each result."""
    from lasp_edge.evaluation.history import stored_rows  # noqa: PLC0415 - of programs with streams

    high_us = store.restored().facts.high_us or 0
    return {
        name: [row.plain() for row in stored_rows(store.history, result, high_us, ROWS)]
        for name, result in plan.device_results.items()
    }


def _rows(name: str, rows: list[dict[str, Any]], steps: Mapping[str, str]) -> list[str]:
    """Return the lines of one result's rows; `steps` are those of its parts."""
    if not rows:
        return [f"result {name}: nothing yet"]
    titled = ("key", "time_us", "status", "revision")
    parts = list(dict.fromkeys(part for row in rows for part in row if part not in titled))
    lines = [
        (
            row["key"],
            _at(row["time_us"]),
            *(_part(part, row.get(part), steps.get(part, TEXT)) for part in parts),
            row["status"] if any(part in row for part in parts) else "taken back",
        )
        for row in rows
    ]
    head = ("key", "time (UTC)", *shown_names(parts).values(), "")
    shown = aligned([head, *lines], left=(0, -1))
    return [f"result {name}, of this device:", *(f"  {line}" for line in shown)]


def _part(name: str, value: Any, step: str) -> str:
    if name.endswith("_us") and isinstance(value, int):
        return _at(value)
    places = 2 if step == TEXT else max(2, decimals(Resolution(step)))
    return value if isinstance(value, str) else number(value, places)


def _windows(name: str, windows: list[dict[str, Any]]) -> list[str]:
    """Return the lines of one window's rows."""
    if not windows:
        return [f"window {name}: no readings yet"]
    rows = [
        (
            each["key"],
            _at(each["start_us"]),
            _at(each["end_us"]),
            *(number(part, 2) for part in each["parts"].values()),
            "" if each["closed"] else "so far",
        )
        for each in windows
    ]
    head = ("key", "from (UTC)", "to", *windows[0]["parts"], "")
    lines = aligned([head, *rows], left=(0, -1))
    failed = dict.fromkeys(each["failed"] for each in windows if "failed" in each)
    lines += [f"FAILED: {reason}" for reason in failed]
    return [f"window {name}, over this device's own readings:", *(f"  {line}" for line in lines)]


def _at(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
