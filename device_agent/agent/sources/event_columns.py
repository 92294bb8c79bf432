"""Readings of records by column: what `FieldMapping.batch` gives where nothing but events is asked.

No function is called for a record. Where one gives no reading, all are left to the path that finds
out why.
"""

from collections.abc import Sequence
from itertools import chain, compress
from typing import Any

from device_agent.agent.intake.batch import Batch
from device_agent.agent.sources.fields import ABSENT, Field, Record

EventField = tuple[str, Field, Any]
"""An event, where it stands, and what it is where that is not there: `ABSENT` gives no reading."""


def are_plain(events: Sequence[EventField]) -> bool:
    """Return whether each event stands under a key of its own, of the record itself."""
    return bool(events) and all(field.keys == [field.text] for _, field, _ in events)


def event_columns(
    records: Sequence[Record | str], times_us: Sequence[int], events: Sequence[EventField]
) -> tuple[list[str], list[int | None], list[Any]]:
    """Return names, times and values of readings; none at all where a record gives none.

    Args:
        records: records alone: each has a time.
        times_us: theirs.
        events: each under a key of its own.

    >>> events = [(name, Field(name), ABSENT) for name in ("power", "slice")]
    >>> event_columns([{"power": 1}, {"slice": 2, "power": 3}], [10, 20], events)
    (['power', 'power', 'slice'], [10, 20, 20], [1, 3, 2])
    >>> event_columns([{"power": 1}, {}], [10, 20], events)
    ([], [], [])
    """
    columns = [
        [record.get(field.text, missing) for record in records]  # type: ignore[union-attr]
        for _, field, missing in events
    ]
    absent = [column.count(ABSENT) for column in columns]
    count = len(records)
    if sum(absent) == count * (len(events) - 1) and 0 in absent:  # all are of one event
        at = absent.index(0)
        return [events[at][0]] * count, list(times_us), columns[at]
    rows = list(zip(*columns, strict=True))
    if any(row.count(ABSENT) == len(row) for row in rows):
        return [], [], []
    values = list(chain.from_iterable(rows))
    kept = [value is not ABSENT for value in values]
    names = [name for name, _, _ in events] * count
    of_each = [time_us for time_us in times_us for _ in events]
    return list(compress(names, kept)), list(compress(of_each, kept)), list(compress(values, kept))


def keep(batch: Batch, kept: list[bool]) -> None:
    """Leave in a batch only the readings that are kept."""
    columns: list[list[Any]] = [batch.names, batch.times_us, batch.values, batch.tags]
    for column in (*columns, batch.places):
        column[:] = compress(column, kept)
