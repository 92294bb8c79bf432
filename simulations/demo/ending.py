"""How the demo ends: the tables shown, the results checked, the bytes counted."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from lasp_edge.errors import Exit
from lasp_edge.language.declarations import Window
from simulations.demo.checks import Evidence, Row, Verdict, verdicts
from simulations.demo.devices import Value
from simulations.demo.live import aligned, decimals, in_words, number
from simulations.demo.stage import Stage
from simulations.demo.traffic import Pace, Traffic, json_bytes, traffic_lines

CLOUD_S = 120.0
ROWS = 5
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

    Args:
        stage: everything, settled.
        pace: how often was measured.

    Returns:
        The exit code.
    """
    wires = [device.relay for device in stage.devices.values()]
    carried = sum(w.sent_bytes for w in wires), sum(w.received_bytes for w in wires)
    stage.freeze_table()
    stage.say("Cloud: Spark merges what is left ...")
    await stage.wait_for_cloud(CLOUD_S)
    values = {name: d.report.values for name, d in stage.devices.items() if d.report is not None}
    await stage.stop_devices()
    evidence = await _evidence(stage, values)
    statuses = [await stage.commands.status(d.data_dir) for d in stage.devices.values()]
    stage.say("", *_windows_lines(evidence), "", counts_line(statuses))
    found = verdicts(evidence)
    stage.say(*(line for verdict in found for line in verdict.lines()))
    readings = evidence.all_readings()
    as_json = json_bytes(stage.cast.program.name, readings)
    stage.say(*traffic_lines(Traffic(*carried, as_json, len(readings), pace)))
    return _result(stage, found, len(readings))


async def _evidence(stage: Stage, values: Mapping[str, Mapping[str, Value]]) -> Evidence:
    program, commands = stage.cast.program, stage.commands
    readings = {
        name: await commands.readings(device.data_dir) for name, device in stage.devices.items()
    }
    rows = await commands.globals(stage.lake) if program.dynamic_folds else []
    windows = {name: await commands.windows(name, stage.lake) for name in program.windows}
    return Evidence(program, values, readings, rows, windows)


def _windows_lines(evidence: Evidence) -> list[str]:
    """Return the end of the first window's table, and how many rows the others have."""
    first, *others = evidence.program.windows.values() or (None,)
    lines = [] if first is None else window_lines(first, evidence.windows[first.name])
    return lines + [f"{_title(window, evidence.windows[window.name])}." for window in others]


def _title(window: Window, rows: Sequence[Row]) -> str:
    size_s, slide_s = window.size_us / 1_000_000, window.slide_us / 1_000_000
    keyed = ", by key" if any(row["key"] for row in rows) else ""
    return f"{window.name}: {len(rows):,} windows of {size_s:g} s, one every {slide_s:g} s{keyed}"


def window_lines(window: Window, rows: Sequence[Row]) -> list[str]:
    """Return the last windows as a table for people, under a line that says what they are."""
    title = _title(window, rows)
    shown = sorted(rows, key=lambda row: (int(row["start_us"]), row["key"]))[-ROWS:]
    if not shown:
        return [f"{title}."]
    title += f"; the last {len(shown)} (UTC):" if len(rows) > len(shown) else " (UTC):"
    keyed = any(row["key"] for row in rows)
    head = ["", "from", "to", *(["key"] if keyed else []), *map(in_words, window.fold.parts)]
    table = [[*head, "devices", ""], *(_window_row(window, row, keyed=keyed) for row in shown)]
    return [title, *aligned(table, left=(0, 1, 2, 3, -1) if keyed else (0, 1, 2, -1))]


def _window_row(window: Window, row: Row, *, keyed: bool) -> list[str]:
    start, end = (_EPOCH + timedelta(microseconds=int(row[c])) for c in ("start_us", "end_us"))
    places = decimals(window.resolution)
    parts = [_part(row.get(part, ""), places) for part in window.fold.parts]
    devices = f"{row['devices_in']} of {row['devices_expected']}"
    key = [row["key"]] if keyed else []
    when = [f"{start:%Y-%m-%d %H:%M:%S}", f"{end:%H:%M:%S}"]
    return ["", *when, *key, *parts, devices, _STATUS.get(row["status"], row["status"])]


def _part(text: str, places: int) -> str:
    if not text:
        return number(None, places)
    return number(int(text) if text.lstrip("-").isdigit() else float(text), places)


def counts_line(statuses: Iterable[Mapping[str, Any]]) -> str:
    """Return what became of the readings, in one line."""
    counts, reasons = Counter[str](), Counter[str]()
    for status in statuses:
        counts.update({name: status.get(name, 0) for name in ("accepted", *_COUNTED)})
        for reason, count in status.get("refused_by_reason", {}).items():
            of_the_file = reason in _OF_THE_FILE
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
    if stage.cast.lake is not None:
        name = next(iter(stage.cast.program.windows), "NAME")
        stage.say(f"The tables stay; to read them: lasp-edge windows {name} --lake {stage.lake}")
    wrong = [verdict for verdict in found if verdict.ok is False]
    if wrong:
        stage.say(differs("; ".join(f"({verdict.letter}) {verdict.text}" for verdict in wrong)))
        return Exit.DIFFERS
    if not readings:
        stage.say(differs("no reading was accepted, so there is nothing that could agree"))
        return Exit.DIFFERS
    stage.say("RESULT ok")
    return Exit.FINE


def differs(why: str) -> str:
    """Return the last line of a demo that did not reach the right result."""
    return f"RESULT differs: {why}"
