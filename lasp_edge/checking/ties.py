"""Records of a file, and those that have the time of another one: their order is not the file's.

Equal times of one event and device are put in order by tags and values. Where that is seldom,
nobody minds; whole seconds of a sensor that is read ten times a second are another thing.
"""

import gzip
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from lasp_edge.errors import NotFound, UsageError
from lasp_edge.language.plan import Plan
from lasp_edge.tool.csv_header import csv_records

PER_CENT = 100
"""More than one reading of this number with the time of another one is worth a warning."""

_TRUE = frozenset({"true", "1", "yes", "on"})
_LOOKED_AT = 1000
"""Records whose fields are named where none can be used."""


class RecordFields(NamedTuple):
    """Which fields of a record hold what; `data.temp` is the field `temp` in the object `data`.

    Attributes:
        time: seconds since 1970, or ISO 8601.
        device: the device's name; records without it are of one device.
        events: event -> its field; empty: each event has the field of its name.
        retract: says, where it is true, that an equal earlier record is taken back; "": none does.
    """

    time: str = "ts"
    device: str = "device"
    events: Mapping[str, str] = MappingProxyType({})
    retract: str = ""

    def takes_back(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record takes back an earlier one.

        >>> fields = RecordFields(retract="wrong")
        >>> [fields.takes_back({"wrong": each}) for each in (True, "1", 0, "false", None)]
        [True, True, False, False, False]
        """
        given = value_in(record, self.retract) if self.retract else None
        return str(given).strip().lower() in _TRUE

    def given(self, record: Mapping[str, Any], events: Collection[str]) -> dict[str, Any]:
        """Return event -> its value, of those events that a record has."""
        values = {
            event: value_in(record, self.events.get(event, event))
            for event in events
            if not self.events or event in self.events
        }
        return {event: value for event, value in values.items() if value not in (None, "")}


def ties(plan: Plan, path: Path, fields: RecordFields) -> list[str]:
    """Return a line for each event that streams read, if too many of its readings share a time.

    Args:
        plan: of the program.
        path: JSON lines, or CSV with a head line where the name says so; `.gz` is understood.
        fields: of its records.

    Raises:
        NotFound: there is no such file.
        UsageError: no record has such a time and an event of the program.
    """
    events = sorted(plan.streamed_events)
    seen: dict[str, Counter[tuple[str, str]]] = {event: Counter() for event in events}
    for record in records(path):
        time = value_in(record, fields.time)
        if time is None:
            continue
        at = (str(value_in(record, fields.device)), str(time))
        for event in fields.given(record, events):
            seen[event][at] += -1 if fields.takes_back(record) else 1
    if not any(seen.values()):
        raise UsageError(unusable(path, fields, events))
    found = []
    for event, times in ((event, +times) for event, times in seen.items()):
        count, same = times.total(), times.total() - len(times)
        if same * PER_CENT > count:
            found.append(
                f"event {event}: {same:,} of {count:,} readings have the time of another one, so "
                "their order is that of tags and values; finer times would tell them apart"
            )
    return found


def unusable(path: Path, fields: RecordFields, events: Collection[str]) -> str:
    """Return why no record of a file is a reading, and what to type."""
    few = list(islice(records(path), _LOOKED_AT))
    there = ", ".join(dict.fromkeys(name for record in few for name in record)) or "none"
    why = f"--recording {path}: "
    if not any(value_in(record, fields.time) not in (None, "") for record in records(path)):
        return f'{why}no record has the time "{fields.time}"; name its field by --time: {there}'
    if not any(fields.given(record, events) for record in records(path)):
        asked = [event for event in events if event in (fields.events or events)]
        named = ", ".join(fields.events.get(event, event) for event in asked)
        return (
            f"{why}no record has {named}; name the field of an event by "
            f"--event {next(iter(asked), 'NAME')}=FIELD: {there}"
        )
    return (
        f'{why}no record has both a time in "{fields.time}" (seconds since 1970, or ISO 8601) and '
        f"a value of {', '.join(events)}"
    )


def need_device(path: Path, field: str) -> None:
    """Check that some record has the field of the device that somebody named.

    Raises:
        UsageError: none has: all readings would be those of one device.
    """
    few = list(islice(records(path), _LOOKED_AT))
    if few and not any(value_in(record, field) not in (None, "") for record in records(path)):
        there = ", ".join(dict.fromkeys(name for record in few for name in record))
        raise UsageError(
            f'--recording {path}: no record has the device field "{field}"; there are {there}'
        )


def value_in(record: Mapping[str, Any], field: str) -> Any:
    """Return the value of a field; None where a record lacks it.

    >>> value_in({"data": {"temp": 21.5}}, "data.temp"), value_in({"a.b": 1}, "a.b")
    (21.5, 1)
    """
    if field in record or "." not in field:
        return record.get(field)
    first, _, rest = field.partition(".")
    inner = record.get(first)
    return value_in(inner, rest) if isinstance(inner, Mapping) else None


def records(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the records of a file; other lines are left out."""
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
            if path.name.removesuffix(".gz").endswith(".csv"):
                yield from csv_records(lines)
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
