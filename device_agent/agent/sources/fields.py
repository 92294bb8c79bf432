"""Where a value stands in a record: a path of keys with dots, such as `data.list[0].temp`.

`[0]` is the place in a JSON array. A key that itself contains the dots is found first. A level in
braces stands for any key, and the key becomes a tag: `{sensor}.Temperature` finds every sensor
of a Tasmota device.

    >>> Field("a.b").of({"a": {"b": 1}}), Field("a.b").of({"a.b": 2}), Field("a").of({})
    (1, 2, None)
    >>> Field("a[1].b").of({"a": [0, {"b": 3}]})
    3
    >>> record = {"AM2301": {"Temperature": 24.6}, "DS18B20": {"Temperature": 21}, "Time": "..."}
    >>> SpreadField("{sensor}.Temperature").all_of(record)
    [({'sensor': 'AM2301'}, 24.6), ({'sensor': 'DS18B20'}, 21)]
"""

import re
from typing import Any

Record = dict[str, Any]
ABSENT: Any = object()
"""What `of` returns where it is asked to tell "not there" from null."""

_LEVEL = re.compile(r"([^\[\]]+)((?:\[\d{1,6}\])*)", re.ASCII)
_ANY_KEY = re.compile(r"\{(\w+)\}")


class Field:
    """A path into a record, without braces.

    Raises:
        ValueError: the text is not a path.
    """

    __slots__ = ("keys", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.keys = _steps(text)

    def of(self, record: Record, default: Any = None) -> Any:
        """Return what stands there, or `default`."""
        found: Any = record.get(self.text, ABSENT)
        if found is not ABSENT:
            return found
        found = record
        for key in self.keys:
            if type(found) is dict:
                found = found.get(key, ABSENT)
                if found is ABSENT:
                    return default
            elif type(found) is list and type(key) is int and key < len(found):
                found = found[key]
            else:
                return default
        return found


class SpreadField:
    """A path with braces: it may find several values in a record, each with tags of its own.

    Raises:
        ValueError: the text is not a path.
    """

    __slots__ = ("_steps", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._steps: list[str | int | re.Match[str]] = []
        for step in _steps(text):
            found = _ANY_KEY.fullmatch(step) if type(step) is str else None
            self._steps.append(found or step)

    def all_of(self, record: Record) -> list[tuple[dict[str, str], Any]]:
        """Return each value that stands there, with its tags, in the order of the record."""
        found: list[tuple[dict[str, str], Any]] = [({}, record)]
        for step in self._steps:
            found = [below for tags, value in found for below in _below(tags, value, step)]
        return found


def _below(
    tags: dict[str, str], value: Any, step: str | int | re.Match[str]
) -> list[tuple[dict[str, str], Any]]:
    if type(value) is list:
        return [(tags, value[step])] if isinstance(step, int) and step < len(value) else []
    if type(value) is not dict:
        return []
    if isinstance(step, re.Match):
        return [(tags | {step[1]: key}, below) for key, below in value.items()]
    return [(tags, value[step])] if step in value else []


def field_of(text: str) -> Field | SpreadField:
    """Return the field that a text names.

    Raises:
        ValueError: it is not a path.
    """
    return SpreadField(text) if "{" in text else Field(text)


def _steps(text: str) -> list[str | int]:
    steps: list[str | int] = []
    for level in text.split("."):
        found = _LEVEL.fullmatch(level)
        if found is None:
            raise ValueError(
                f"a field is needed, such as temp, data.temp or list[0].temp, not {text!r}"
            )
        steps += [found[1], *map(int, re.findall(r"\d+", found[2]))]
    return steps
