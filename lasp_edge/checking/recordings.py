"""A recording as a program's readings: what reaches its streams, and how often.

A record is a line of JSON or CSV. An event's field has its name, one field has the time, another
the device; all others are tags.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from lasp_edge.checking.ties import records
from lasp_edge.errors import UsageError
from lasp_edge.event import tags_text
from lasp_edge.folds.numbers import Refused
from lasp_edge.language.declarations import EventType
from lasp_edge.language.plan import Plan
from lasp_edge.ordered.cells import Item
from lasp_edge.ordered.deltas import Delta
from lasp_edge.tool.times import read_time
from lasp_edge.units import SECOND_US


class Recording(NamedTuple):
    """The readings of a recording.

    Attributes:
        items: event -> device -> its items.
        devices: the names of all devices.
        span_us: from the first to the last reading; at least a second.
    """

    items: Mapping[str, Mapping[str, list[Item]]]
    devices: frozenset[str]
    span_us: int

    def changes(self, plan: Plan) -> dict[str, Delta]:
        """Return the readings as what streams take."""
        return {
            name: {
                item.place(name, device): (None, item.event(name, device, event.resolution))
                for device, items in self.items.get(name, {}).items()
                for item in items
            }
            for name, event in plan.events.items()
        }


def recording_of(plan: Plan, path: Path, time: str, device: str) -> Recording:
    """Return the readings of a file.

    Args:
        plan: of the program.
        path: JSON lines, or CSV with a head line where the name says so; `.gz` is understood.
        time: the field of a record's time: seconds since 1970, or ISO 8601.
        device: the field of the device's name; records without it are of one device.

    Raises:
        NotFound: there is no such file.
        UsageError: no record has such a time and an event of the program.
    """
    found: dict[str, dict[str, list[Item]]] = {}
    times_us: list[int] = []
    for record in records(path):
        at_us = _time_us(record.get(time))
        names = [name for name in plan.events if record.get(name) not in (None, "")]
        if at_us is None or not names:
            continue
        others = record.keys() - plan.events.keys() - {time, device}
        tags = tags_text({each: str(record[each]) for each in others if record[each] is not None})
        for name in names:
            value = _value(plan.events[name], record[name])
            if value is not None:
                of_device = found.setdefault(name, {}).setdefault(str(record.get(device, "")), [])
                of_device.append(Item(at_us, value, tags))
                times_us.append(at_us)
    if not times_us:
        raise UsageError(
            f'--recording {path}: no record has the time "{time}" and one of '
            f"{', '.join(plan.events)}; name the field of the time by --time"
        )
    devices = frozenset(each for of_event in found.values() for each in of_event)
    return Recording(found, devices, max(SECOND_US, max(times_us) - min(times_us)))


def _time_us(given: Any) -> int | None:
    with suppress(TypeError, ValueError, OverflowError):
        return round(float(given) * SECOND_US)
    with suppress(TypeError, ValueError):
        return read_time(str(given))
    return None


def _value(event: EventType, given: Any) -> int | str | None:
    """Return what a field is worth in steps, or its text; None where it is neither."""
    if event.text:
        return str(given)
    with suppress(TypeError, ValueError, OverflowError, Refused):
        return event.resolution.quantise(float(given))
    return None
