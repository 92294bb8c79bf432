"""A line of a log as one JSON object.

>>> record = logging.makeLogRecord(
...     {"created": 1.5, "levelname": "WARNING", "name": "a.b", "msg": "no %s", "args": ("link",)}
... )
>>> line = json.loads(JsonFormatter({"device": "attic"}).format(record))
>>> line["time"], line["level"], line["device"], line["event"], line["logger"]
('1970-01-01T00:00:01.500Z', 'warning', 'attic', 'no link', 'a.b')
"""

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime

_OF_ALL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""The attributes of every record; any other was given by `extra=`."""


class JsonFormatter(logging.Formatter):
    """Writes a record as JSON: time in UTC, level, constant fields, event, and its own fields.

    Args:
        fields: stand in every line.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__()
        self._fields = dict(fields)

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            **self._fields,
            "event": record.getMessage(),
            "logger": record.name,
        }
        own = {name: value for name, value in vars(record).items() if name not in _OF_ALL}
        if record.exc_info:
            own["exception"] = self.formatException(record.exc_info)
        return json.dumps(line | {n: v for n, v in own.items() if n not in line}, default=str)
