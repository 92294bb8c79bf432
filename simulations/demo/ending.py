"""How the demo ends: the windows shown, the results checked, the bytes counted."""

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lasp_edge.errors import Exit
from lasp_edge.folds.numbers import decimals
from lasp_edge.language.declarations import Window
from lasp_edge.tool.screen import aligned, in_words, number
from lasp_edge.tool.typed import typed_in
from simulations.demo.checks import verdicts
from simulations.demo.evidence import Evidence, Row, newest
from simulations.demo.site import Site
from simulations.oracle import Reading

ROWS = 2
EXAMPLE = "lasp_edge.examples.greenhouse:program"
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
_SEVEN_BITS = 7


def finish(site: Site, measured_s: float | None, pace: str) -> int:
    """Wait until all is merged, end the devices, and say what came of it.

    Args:
        site: settled.
        measured_s: how long the devices measured; None for a recording.
        pace: of a recording, in words.

    Returns:
        The exit code.
    """
    relays = [device.relay for device in site.devices.values()]
    carried = sum(r.sent_bytes for r in relays), sum(r.received_bytes for r in relays)
    site.freeze_table()
    who = site.merger.who[:1].upper() + site.merger.who[1:]
    site.say(f"{who} merges what is left (a pane: what one device adds to a window) ...")
    site.wait_for_merger()
    evidence = Evidence.of(site)
    site.say("", *windows_lines(evidence), *rows_lines(evidence), "")
    site.say(counts_line(device.report for device in site.devices.values()))
    found = verdicts(evidence)
    site.say(*(line for verdict in found[:4] for line in verdict.lines()))
    readings = evidence.all_readings()
    per_second = measured_s and len(readings) / len(relays) / measured_s
    as_json = json_bytes(site.cast.plan.name, readings)
    site.say(*traffic_lines(*carried, as_json, len(readings), per_second, pace))
    site.say(*(line for verdict in found[4:] for line in verdict.lines()))
    wrong = [f"({verdict.letter}) {verdict.text}" for verdict in found if verdict.ok is False]
    if not readings:
        wrong.append("no reading was accepted, so there is nothing that could agree")
    if wrong:
        site.say(differs("; ".join(wrong)))
        return Exit.DIFFERS
    window = next(iter(site.cast.plan.windows), "")
    site.say(*next_lines(window, site.cast.lake, has_spark=site.cast.has_spark), "RESULT ok")
    return Exit.FINE


def differs(why: str) -> str:
    """Return the last line of a demo that did not reach the right result."""
    return f"RESULT differs: {why}"


def windows_lines(evidence: Evidence) -> list[str]:
    """Return the end of the first window's table, and how many rows the others have."""
    lines = []
    for number_, (name, window) in enumerate(evidence.plan.windows.items()):
        rows = newest(evidence.windows[name], "key", "start_us")
        lines += window_lines(window, rows if number_ == 0 else [], len(rows))
    return lines


def window_lines(window: Window, rows: Sequence[Row], count: int) -> list[str]:
    """Return a window's last rows as a table for people, under a line that counts all."""
    size_s, slide_s = window.size_us / 1_000_000, window.slide_us / 1_000_000
    title = f"{window.name}: {count:,} windows of {size_s:g} s, one every {slide_s:g} s"
    title += ", by key" if window.keyed else ""
    shown = sorted(rows, key=lambda row: (row["start_us"], row["key"]))[-ROWS:]
    if not shown:
        return [f"{title}."]
    title += f"; the last {len(shown)} (UTC)" if count > len(shown) else " (UTC)"
    parts = window.fold.parts
    several = f", {_MOST_PARTS} of {len(parts)} values" if len(parts) > _MOST_PARTS else ""
    head = ["", "from", "to", *["key"] * window.keyed, *map(in_words, parts[:_MOST_PARTS])]
    table = [[*head, "devices", ""], *(_window_row(window, row) for row in shown)]
    left = (0, 1, 2, 3, -1) if window.keyed else (0, 1, 2, -1)
    return [f"{title}{several}:", *aligned(table, left=left)]


def _window_row(window: Window, row: Row) -> list[str]:
    start, end = (_EPOCH + timedelta(microseconds=row[c]) for c in ("start_us", "end_us"))
    partial = tuple(
        bytes.fromhex(row[column.name]) if column.binary else row[column.name]
        for column in window.fold.columns
    )
    values, places = window.fold.lower(partial, window.resolution), decimals(window.resolution)
    parts = [number(values[part], places) for part in window.fold.parts[:_MOST_PARTS]]
    devices = f"{row['devices_in']} of {row['devices_expected']}"
    when = [f"{start:%Y-%m-%d %H:%M:%S}", f"{end:%H:%M:%S}"]
    return ["", *when, *[row["key"]] * window.keyed, *parts, devices, _STATUS[row["status"]]]


def rows_lines(evidence: Evidence) -> list[str]:
    """Return how many rows each result has in the lake."""
    lines = []
    for name, revisions in (evidence.results or {}).items():
        rows = newest(revisions, "device", "time_us", "place")
        there = [row for row in rows if row["present"]]
        corrected = sum(row["status"] == "revised" for row in there)
        words = [f"{len(there):,} rows"]
        words += [f"{corrected:,} of them corrected"] if corrected else []
        words += [f"{len(rows) - len(there):,} taken back"] if len(rows) > len(there) else []
        lines.append(f"{name}: {', '.join(words)}.")
    return lines


def counts_line(reports: Iterable[Mapping[str, Any]]) -> str:
    """Return what became of the readings, in one line."""
    counts, reasons = Counter[str](), Counter[str]()
    for report in reports:
        counts.update({name: report.get(name, 0) for name in ("accepted", *_COUNTED)})
        for reason, count in report.get("refused_because", {}).items():
            of_the_file = reason.partition(":")[0] in _OF_THE_FILE
            before = reasons[reason]
            reasons[reason] = max(before, count) if of_the_file else before + count
    parts = [f"{counts['accepted']:,} accepted"]
    parts += [f"{counts[name]:,} {words}" for name, words in _COUNTED.items() if counts[name]]
    if reasons:
        why = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))
        parts.append(f"{reasons.total():,} refused ({why})")
    return f"Readings: {'; '.join(parts)}."


def traffic_lines(
    sent: int, received: int, as_json: int, readings: int, per_second: float | None, pace: str
) -> list[str]:
    """Return finding (e): the bytes of the devices' sockets beside those of JSON over MQTT.

    Args:
        sent: bytes, by the devices.
        received: bytes, by the devices.
        as_json: what `json_bytes` returns.
        readings: of all devices.
        per_second: readings of each device; None for a recording, which has no rate of its own.
        pace: of a recording, in words.
    """
    indent, carried = " " * 12, sent + received
    on_wires = f"{carried:,} over the devices' sockets ({sent:,} sent, {received:,} received):"
    lines = [f"(e) bytes   {on_wires}"]
    if not as_json:
        return [*lines, f"{indent}no reading was accepted, so JSON would have sent nothing"]
    ratio = carried / as_json
    compared = (
        f"{100 * (1 - ratio):.0f} % less than" if ratio < 1 else f"{ratio:.2f} times as much as"
    )
    lines.append(f"{indent}{compared} the {as_json:,} of JSON over MQTT")
    if per_second is None:
        lines.append(f"{indent}({readings:,} readings, {pace}).")
        return [*lines, f"{indent}At the recorded pace the agents would run longer and send more."]
    rate = f"({readings:,} readings, {per_second:.1f} a second each)"
    return [*lines, f"{indent}{rate}; below {per_second * ratio:.0f}, JSON is smaller."]


def json_bytes(program: str, readings: Iterable[Reading]) -> int:
    """Return what shipping every reading as JSON would cost, one by one.

    A reading would be one MQTT 3.1.1 PUBLISH of quality 1, as the devices use it, and its PUBACK;
    the connection and what TCP and IP add are left out:

        1 B type + 1..4 B remaining length + 2 B + topic `PROGRAM/DEVICE/EVENT` + 2 B packet id
        + payload {"device":...,"event":...,"time_us":...,"value":...}, compact, and "tags" if any
        + 4 B PUBACK
    """
    return sum(_publish_bytes(program, reading) for reading in readings)


def _publish_bytes(program: str, reading: Reading) -> int:
    plain = {name: getattr(reading, name) for name in ("device", "event", "time_us", "value")}
    plain |= {"tags": reading.tags} if reading.tags else {}
    payload = json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode()
    topic = f"{program}/{reading.device}/{reading.event}".encode()
    remaining = 2 + len(topic) + 2 + len(payload)
    return 1 + max(1, -(-remaining.bit_length() // _SEVEN_BITS)) + remaining + 4


def next_lines(window: str, lake: Path | None, *, has_spark: bool = True) -> list[str]:
    """Return what a newcomer types next: commands that work as they stand, in this folder.

    Args:
        window: a window of the program; empty where it has none.
        lake: where the tables stay; None where they go with the demo.
        has_spark: they are a lake; else a gateway's.
    """
    typed = typed_in(Path())
    lines = [f"  {typed} new {_free('house')}", f"  {typed} simulate {EXAMPLE}"]
    if lake is None:
        option = "" if has_spark else "--no-cloud "
        lines.append(f"  {typed} demo {option}--lake {_free('tables')}")
    elif window:
        where = "--lake" if has_spark else "--gateway"
        lines.append(f"  {typed} windows {window} {where} {shlex.quote(str(lake))}")
    return ["What to type next, in this folder (README.md goes on from there):", *lines]


def _free(name: str) -> str:
    """Return a folder's name that is not taken here."""
    names = [name, *(f"{name}-{number}" for number in range(2, 100))]
    return next((each for each in names if not Path(each).exists()), name)
