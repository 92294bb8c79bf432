"""Kept readings as rows of the store, and as people see them: `--keep-readings`.

>>> row = ReadingRow(9, "litres", 5, Retraction(310), 620, "", "meter")
>>> shown = shown_reading(1, *stored_reading(row))
>>> shown["value"], shown["retracted"]
(310, True)
"""

import json
from typing import Any

from device_agent.agent.changes import ReadingRow, Retraction

_RETRACTED = "retracted"


def stored_reading(row: ReadingRow) -> ReadingRow:
    """Return a row with its value as JSON: of a reading that is taken back, an object of it."""
    return row._replace(value=json.dumps(row.value, default=_as_json))


def shown_reading(
    n: int,
    accepted_us: int,
    event: str,
    time_us: int,
    value: str,
    quantised: int,
    tags: str,
    source: str,
) -> dict[str, Any]:
    """Return a stored row for people; where an equal reading was taken back, that is said."""
    read = json.loads(value)
    shown = {
        "n": n,
        "event": event,
        "time_us": time_us,
        "value": read,
        "q": quantised,
        "tags": json.loads(tags) if tags else {},
        "accepted_us": accepted_us,
        "source": source,
    }
    return shown | {"value": read[_RETRACTED], _RETRACTED: True} if type(read) is dict else shown


def _as_json(value: Any) -> Any:
    if isinstance(value, Retraction):
        return {_RETRACTED: value.value}
    try:
        return str(value)
    except ValueError:  # a fraction of more digits than can be printed; it is in range
        return float(value)
