"""How the demo ends: the windows shown, the results checked, the bytes counted."""

import json
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from lasp_edge.errors import Exit
from lasp_edge.folds.numbers import decimals
from lasp_edge.language.declarations import Window
from lasp_edge.tool.screen import aligned, in_words, number
from lasp_edge.tool.times import shown_time
from lasp_edge.tool.typed import typed_in
from lasp_edge.units import SECOND_US
from simulations.demo.checks import verdicts
from simulations.demo.devices import Device
from simulations.demo.evidence import Evidence, Row, newest
from simulations.demo.site import WIDTH, Site
from simulations.oracle import Reading

ROWS = 2
EXAMPLE = "lasp_edge.examples.greenhouse:program"
_MOST_PARTS = 4
_MOST_FAILURES = 10
_STATUS = {"tentative": "not final yet", "final": "final", "revised": "corrected"}
_COUNTED = {
    "repeated": "seen before and dropped",
    "late": "late, placed by their own time",
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


def finish(site: Site, measured_s: float, pace: str = "") -> int:
    """Wait until all is merged, end the devices, and print the result.

    Args:
        site: settled.
        measured_s: how long the devices measured; 0 for a recording.
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
    site.say(*counts_lines(site.devices.values()))
    found = verdicts(evidence)
    site.say(*(line for verdict in found[:4] for line in verdict.lines()))
    readings = evidence.all_readings()
    per_second = len(readings) / len(relays) / measured_s if measured_s else 0.0
    pace = f"{len(readings):,} readings, {pace or f'{per_second:.1f} a second each'}"
    as_json = json_bytes(site.cast.plan.name, readings)
    site.say(*traffic_lines(carried, as_json, pace, per_second))
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
    lines: list[str] = []
    for name, window in evidence.plan.windows.items():
        rows = newest(evidence.windows[name], "key", "start_us")
        lines += window_lines(window, rows, shown=0 if lines else ROWS)
    return lines


def window_lines(window: Window, rows: Sequence[Row], shown: int) -> list[str]:
    """Return a window's last rows as a table for people, under a line that counts all."""
    size_s, slide_s = window.size_us / SECOND_US, window.slide_us / SECOND_US
    title = f"{window.name}: {len(rows):,} windows of {size_s:g} s, one every {slide_s:g} s"
    title += ", by key" * window.keyed
    last = sorted(rows, key=lambda row: (row["start_us"], row["key"]))[-shown:]
    if not shown or not last:
        return [f"{title}."]
    parts, places = window.fold.parts[:_MOST_PARTS], decimals(window.resolution)
    title += f"; the last {shown}" * (len(rows) > shown) + " (UTC)"
    several = len(window.fold.parts)
    title += f", {_MOST_PARTS} of {several} values:" if several > _MOST_PARTS else ":"
    table = [["", "from", "to", *["key"] * window.keyed, *map(in_words, parts), "devices", ""]]
    for row in last:
        start, end = (shown_time(row[name]) for name in ("start_us", "end_us"))
        values = [number(row[part], places) for part in parts]
        devices = f"{row['devices_in']} of {row['devices_expected']}"
        key = [row["key"]] * window.keyed
        when = ["", start, end.partition(" ")[2]]
        table.append([*when, *key, *values, devices, _STATUS[row["status"]]])
    return [title, *aligned(table, left=(0, 1, 2, 3, -1) if window.keyed else (0, 1, 2, -1))]


def rows_lines(evidence: Evidence) -> list[str]:
    """Return how many rows each result has in the table."""
    lines = []
    for name, revisions in evidence.results.items():
        rows = newest(revisions, "device", "time_us", "place")
        there = [row for row in rows if row["present"]]
        corrected = sum(row["status"] == "revised" for row in there)
        words = [f"{len(there):,} rows"]
        words += [f"{corrected:,} of them corrected"] if corrected else []
        words += [f"{len(rows) - len(there):,} taken back"] if len(rows) > len(there) else []
        lines.append(f"{name}: {', '.join(words)}.")
    return lines


def counts_lines(devices: Collection[Device]) -> list[str]:
    """Return the counts of readings, and what failed on devices."""
    return [counts_line(device.report for device in devices), *failure_lines(devices)]


def counts_line(reports: Iterable[Mapping[str, Any]]) -> str:
    """Return the counts of accepted, late and refused readings, in one line."""
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


def failure_lines(devices: Iterable[Device]) -> list[str]:
    """Return what failed, and on which devices, on lines that fit a terminal."""
    names: dict[str, list[str]] = {}
    for device in devices:
        for reason in device.failures:
            names.setdefault(reason, []).append(device.name)
    texts = [f"FAILED      {', '.join(each)}: {reason}" for reason, each in names.items()]
    more = len(texts) - _MOST_FAILURES
    texts[_MOST_FAILURES:] = [f"FAILED      {more} more"] if more > 0 else []
    form: dict[str, Any] = {"subsequent_indent": " " * 12, "break_long_words": False}
    return [line for text in texts for line in wrap(text, WIDTH, **form)]


def traffic_lines(
    carried: tuple[int, int], as_json: int, pace: str, per_second: float
) -> list[str]:
    """Return finding (e): the bytes of the devices' sockets beside those of JSON over MQTT.

    Args:
        carried: bytes that the devices sent, and received.
        as_json: the result of `json_bytes`.
        pace: how many readings there were, and how fast.
        per_second: of each device; 0 for a recording, which has no rate of its own.
    """
    (sent, received), total = carried, sum(carried)
    lines = [f"{total:,} over the devices' sockets ({sent:,} sent, {received:,} received):"]
    if not as_json:
        lines.append("no reading was accepted, so JSON would have sent nothing")
    else:
        ratio = total / as_json
        less = f"{100 * (1 - ratio):.0f} % less than"
        compared = less if ratio < 1 else f"{ratio:.2f} times as much as"
        lines.append(f"{compared} the {as_json:,} of JSON over MQTT")
        pays = f"; below {per_second * ratio:.0f}, JSON is smaller." if per_second else "."
        lines.append(f"({pace}){pays}")
    return [f"(e) bytes   {lines[0]}", *(f"{' ' * 12}{line}" for line in lines[1:])]


def json_bytes(program: str, readings: Iterable[Reading]) -> int:
    """Return the bytes of shipping every reading as JSON, one by one.

    A reading would be one MQTT 3.1.1 PUBLISH of quality 1, as the devices use it, and its PUBACK;
    the connection, TCP and IP are left out:

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
    """Return a newcomer's next commands, which work as they stand, in this folder.

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
