"""How the demo ends: the tables shown, the results checked, the bytes counted."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from lasp_edge.errors import Exit
from lasp_edge.folds.numbers import decimals
from lasp_edge.language.declarations import Window
from lasp_edge.tool.screen import aligned, in_words, number
from simulations.demo.checks import Verdict, lowered, verdicts
from simulations.demo.devices import Value
from simulations.demo.evidence import Evidence
from simulations.demo.lake import Row
from simulations.demo.stage import Stage
from simulations.demo.traffic import Pace, Traffic, json_bytes, traffic_lines
from simulations.demo.what_next import next_lines

CLOUD_S = 240.0
"""Seconds in which Spark must say or commit something: to plan many windows takes it a minute."""
ROWS = 2
BYTES = "e"
"""The letter of what is counted beside the checks."""
_MOST_PARTS = 4
_STATUS = {"tentative": "not final yet", "final": "final", "revised": "corrected"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COUNTED = {
    "repeated": "seen before and dropped",
    "late": "late, placed by their own time",
    "too_late": "older than what is kept, and refused",
    "in_the_future": "ahead of the clock, and refused",
}
# Every agent reads the whole file, so each counts the lines that are nobody's.
_OF_THE_FILE = {
    "no device",
    "not JSON",
    "not a JSON object",
    "not CSV",
    "not as many fields as the header",
    "unreadable rest of the file",
}


async def finish(stage: Stage, pace: Pace) -> int:
    """Wait for Spark, end the devices, and say what came of it.

    Returns:
        The exit code.
    """
    wires = [device.relay for device in stage.devices.values()]
    carried = sum(w.sent_bytes for w in wires), sum(w.received_bytes for w in wires)
    stage.freeze_table()
    who = stage.cast.merging.name.capitalize()
    stage.say(f"{who} merges what is left (a pane: what one device adds to a window) ...")
    await stage.wait_for_cloud(CLOUD_S)
    values = {name: d.report.values for name, d in stage.devices.items() if d.report is not None}
    silent_us = stage.silent_us()
    away_s = stage.outages.longest_s(stage.devices)
    await stage.stop_devices()
    spec, devices = stage.cast.spec, stage.devices.items()
    asked = await asyncio.gather(*(stage.commands.status(spec, d.data_dir) for _, d in devices))
    statuses = dict(zip(stage.devices, asked, strict=True))
    evidence = await _evidence(stage, values, silent_us, away_s)
    told = {name: status.get("results", {}) for name, status in statuses.items()}
    evidence = evidence._replace(device_rows=told)
    stage.say("", *_windows_lines(evidence), *rows_lines(evidence))
    stage.say("", counts_line(statuses.values()))
    found = verdicts(evidence)
    stage.say(*_lines(each for each in found if each.letter < BYTES))
    readings = evidence.all_readings()
    as_json = json_bytes(stage.cast.plan.name, readings)
    stage.say(*traffic_lines(Traffic(*carried, as_json, len(readings), pace)))
    stage.say(*_lines(each for each in found if each.letter > BYTES))
    return _result(stage, found, len(readings))


def _lines(found: Iterable[Verdict]) -> list[str]:
    return [line for verdict in found for line in verdict.lines()]


async def _evidence(
    stage: Stage,
    values: Mapping[str, Mapping[str, Value]],
    silent_us: Mapping[str, int],
    away_s: Mapping[str, float],
) -> Evidence:
    plan, commands = stage.cast.plan, stage.commands
    asked = (commands.readings(device.data_dir) for device in stage.devices.values())
    readings = dict(zip(stage.devices, await asyncio.gather(*asked), strict=True))
    merging, windows = stage.cast.merging, plan.windows.items()
    in_globals = merging.globals(stage.lake, plan.dynamic_folds)
    in_windows = {name: merging.windows(stage.lake, window) for name, window in windows}
    found = (plan, values, readings, in_globals, in_windows)
    in_results = merging.results(stage.lake, plan.stream_results)
    return Evidence(
        *found,
        stage.lasted_s(),
        silent_us,
        in_results,
        told=tuple(stage.told),
        wait_s=stage.cast.wait_s,
        complete_us=stage.complete_us,
        away_s=away_s,
        revisions={name: merging.revisions(stage.lake, window) for name, window in windows},
    )


def _windows_lines(evidence: Evidence) -> list[str]:
    """Return the end of the first window's table, and how many rows the others have."""
    first, *others = evidence.plan.windows.values() or (None,)
    lines = [] if first is None else window_lines(first, evidence.windows[first.name])
    return lines + [f"{_title(window, evidence.windows[window.name])}." for window in others]


def rows_lines(evidence: Evidence) -> list[str]:
    """Return how many rows each result has in the lake."""
    lines = []
    for name, rows in (evidence.results or {}).items():
        there = [row for row in rows if row["present"]]
        corrected = sum(row["status"] == "revised" for row in there)
        taken_back = len(rows) - len(there)
        words = [f"{len(there):,} rows"]
        words += [f"{corrected:,} of them corrected"] if corrected else []
        words += [f"{taken_back:,} taken back"] if taken_back else []
        lines.append(f"{name}: {', '.join(words)}.")
    return lines


def _title(window: Window, rows: Sequence[Row]) -> str:
    size_s, slide_s = window.size_us / 1_000_000, window.slide_us / 1_000_000
    keyed = ", by key" if window.keyed else ""
    return f"{window.name}: {len(rows):,} windows of {size_s:g} s, one every {slide_s:g} s{keyed}"


def window_lines(window: Window, rows: Sequence[Row]) -> list[str]:
    """Return the last windows as a table for people, under a line that says what they are."""
    title = _title(window, rows)
    shown = sorted(rows, key=lambda row: (row["start_us"], row["key"]))[-ROWS:]
    if not shown:
        return [f"{title}."]
    title += f"; the last {len(shown)} (UTC)" if len(rows) > len(shown) else " (UTC)"
    several = len(window.fold.parts)
    title += f", {_MOST_PARTS} of {several} values:" if several > _MOST_PARTS else ":"
    head = ["", "from", "to", *(["key"] if window.keyed else []), *map(in_words, _parts(window))]
    table = [[*head, "devices", ""], *(_window_row(window, row) for row in shown)]
    return [title, *aligned(table, left=(0, 1, 2, 3, -1) if window.keyed else (0, 1, 2, -1))]


def _parts(window: Window) -> tuple[str, ...]:
    """Return the parts that fit on a line."""
    return window.fold.parts[:_MOST_PARTS]


def _window_row(window: Window, row: Row) -> list[str]:
    start, end = (_EPOCH + timedelta(microseconds=row[c]) for c in ("start_us", "end_us"))
    values, places = lowered(window, row), decimals(window.resolution)
    parts = [number(values[part], places) for part in _parts(window)]
    devices = f"{row['devices_in']} of {row['devices_expected']}"
    key = [row["key"]] if window.keyed else []
    when = [f"{start:%Y-%m-%d %H:%M:%S}", f"{end:%H:%M:%S}"]
    return ["", *when, *key, *parts, devices, _STATUS.get(row["status"], row["status"])]


def counts_line(statuses: Iterable[Mapping[str, Any]]) -> str:
    """Return what became of the readings, in one line."""
    counts, reasons = Counter[str](), Counter[str]()
    for status in statuses:
        counts.update({name: status.get(name, 0) for name in ("accepted", *_COUNTED)})
        for reason, count in status.get("refused_by_reason", {}).items():
            of_the_file = reason.partition(":")[0] in _OF_THE_FILE
            reasons[reason] = (
                max(reasons[reason], count) if of_the_file else reasons[reason] + count
            )
    parts = [f"{counts['accepted']:,} accepted"]
    parts += [f"{counts[name]:,} {words}" for name, words in _COUNTED.items() if counts[name]]
    if reasons:
        why = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))
        parts.append(f"{reasons.total():,} refused ({why})")
    return f"Readings: {'; '.join(parts)}."


def _result(stage: Stage, found: Sequence[Verdict], readings: int) -> int:
    wrong = [verdict for verdict in found if verdict.ok is False]
    if wrong:
        stage.say(differs("; ".join(f"({verdict.letter}) {verdict.text}" for verdict in wrong)))
        return Exit.DIFFERS
    if not readings:
        stage.say(differs("no reading was accepted, so there is nothing that could agree"))
        return Exit.DIFFERS
    window = next(iter(stage.cast.plan.windows), "")
    stage.say(
        *next_lines(window, stage.cast.lake, is_spark=stage.cast.merging.is_spark), "RESULT ok"
    )
    return Exit.FINE


def differs(why: str) -> str:
    """Return the last line of a demo that did not reach the right result."""
    return f"RESULT differs: {why}"
