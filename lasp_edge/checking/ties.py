"""Readings of a recording that have the time of another one: their order is not that of the file.

Equal times of one event and device are put in order by tags and values. Where that is seldom,
nobody minds; whole seconds of a sensor that is read ten times a second are another thing.
"""

import csv
import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lasp_edge.errors import NotFound, UsageError
from lasp_edge.language.plan import Plan

PER_CENT = 100
"""More than one reading of this number with the time of another one is worth a warning."""


def ties(plan: Plan, path: Path, time: str, device: str) -> list[str]:
    """Return a line for each event that streams read, if too many of its readings share a time.

    Args:
        plan: of the program.
        path: JSON lines, or CSV with a head line where the name says so; `.gz` is understood.
        time: the field of a record's time; an event's field has its name.
        device: the field of the device's name; records without it are of one device.

    Raises:
        NotFound: there is no such file.
        UsageError: no record has such a time and an event of the program.
    """
    events = sorted(plan.streamed_events)
    seen: dict[str, Counter[tuple[str, str]]] = {event: Counter() for event in events}
    for record in records(path):
        if record.get(time) is None:
            continue
        at = (str(record.get(device)), str(record[time]))
        for event in events:
            if record.get(event) not in (None, ""):
                seen[event][at] += 1
    if not any(seen.values()):
        raise UsageError(
            f"--recording {path}: no record has {json.dumps(time)} and one of {', '.join(events)}; "
            "name the field of the time by --time"
        )
    found = []
    for event, times in seen.items():
        count, same = times.total(), times.total() - len(times)
        if same * PER_CENT > count:
            found.append(
                f"event {event}: {same:,} of {count:,} readings have the time of another one, so "
                "their order is that of tags and values; finer times would tell them apart"
            )
    return found


def records(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the records of a file; other lines are left out."""
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
            if path.name.removesuffix(".gz").endswith(".csv"):
                yield from csv.DictReader(lines)
                return
            for line in lines:
                try:
                    record = json.loads(line)
                except ValueError:
                    continue
                if isinstance(record, dict):
                    yield record
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(f"--recording {path} cannot be read: {error}") from None
