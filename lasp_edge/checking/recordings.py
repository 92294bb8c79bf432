"""A recording as a program's readings: what reaches its streams, and how often.

A record is a line of JSON or CSV. One field has the time, another the device, one for each event
its value; all others are tags.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from lasp_edge.checking.ties import RecordFields, records, unusable, value_in
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


def recording_of(plan: Plan, path: Path, fields: RecordFields) -> Recording:
    """Return the readings of a file.

    Args:
        plan: of the program.
        path: JSON lines, or CSV with a head line where the name says so; `.gz` is understood.
        fields: of its records.

    Raises:
        NotFound: there is no such file.
        UsageError: no record has such a time and an event of the program.
    """
    found: dict[str, dict[str, list[Item]]] = {}
    times_us: list[int] = []
    named = (fields.time, fields.device, *(fields.events.values() or plan.events))
    used = {*named, *(field.partition(".")[0] for field in named), fields.retract}
    for record in records(path):
        at_us, given = _time_us(value_in(record, fields.time)), fields.given(record, plan.events)
        if at_us is None or not given:
            continue
        device = str(value_in(record, fields.device) or "")
        others = record.keys() - used
        tags = tags_text({each: str(record[each]) for each in others if record[each] is not None})
        for name, read in given.items():
            value = _value(plan.events[name], read)
            if value is not None:
                of_device = found.setdefault(name, {}).setdefault(device, [])
                item = Item(at_us, value, tags)
                if not fields.takes_back(record):
                    of_device.append(item)
                    times_us.append(at_us)
                elif item in of_device:
                    of_device.remove(item)
    if not times_us:
        raise UsageError(unusable(path, fields, plan.events))
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
