"""What devices tell people as JSON, checked: a stranger may publish anything on these topics.

Who shows a result may rely on its shape: parts are numbers, words or None by name, counts are whole
numbers, names can be printed. What is not of that shape is refused whole.

    >>> result_told(b'{"parts": {"mean": 21.5}, "count": 2}')
    {'parts': {'mean': 21.5}, 'count': 2}
    >>> result_told(b'{"parts": {"mean": NaN}}')
    Traceback (most recent call last):
    ValueError: NaN is no JSON
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from lasp_edge.tool.times import read_time

Plain = dict[str, Any]

LONGEST_TEXT = 500
"""Characters of a text, at most; an alarm has 200."""
GREATEST = 1 << 1_000
"""Numbers are below it: as a float it is finite, and exact totals are far from it."""
MOST_PARTS = 200
"""Parts, reasons or names that stand together, at most."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def result_told(payload: bytes) -> Plain:
    """Return a result, or what an agent tells of itself.

    Raises:
        ValueError: it has not the shape of one.
    """
    return _object(payload, _RESULT)


def alert_told(payload: bytes) -> Plain:
    """Return what an alert says.

    Raises:
        ValueError: it has not the shape of one.
    """
    found = _object(payload, _ALERT)
    if found.get("state") not in {"on", "off"}:
        raise ValueError("an alert is on or off")
    return found


def window_told(payload: bytes) -> Plain:
    """Return what a gateway tells of a window.

    Raises:
        ValueError: it has not the shape of that.
    """
    found = _object(payload, _WINDOW)
    for row in (found, found.get("tentative")):
        if row is not None:
            for name in ("start", "end"):
                read_time(row[name])
            if not {"parts", "status"} <= row.keys():
                raise ValueError("a window has parts and a status")
    return found


def _object(payload: bytes, shape: "Mapping[str, Callable[[Any], bool]]") -> Plain:
    plain = json.loads(payload, parse_constant=_refuse)
    if type(plain) is not dict:
        raise ValueError("not a JSON object")
    wrong = _wrong(plain, shape)
    if wrong:
        raise ValueError(f"{wrong[0]} is of another kind")
    return plain


def _wrong(plain: Plain, shape: "Mapping[str, Callable[[Any], bool]]") -> list[str]:
    return [name for name, is_right in shape.items() if name in plain and not is_right(plain[name])]


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _is_text(value: Any) -> bool:
    """Return whether it is a text that can be printed: half of a surrogate pair cannot."""
    return type(value) is str and len(value) <= LONGEST_TEXT and not _SURROGATE.search(value)


def _is_part(value: Any) -> bool:
    if type(value) is int:
        return abs(value) < GREATEST
    return value is None or type(value) in {float, bool} or _is_text(value)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _are_parts(value: Any) -> bool:
    return _is_table(value, _is_part)


def _are_counts(value: Any) -> bool:
    return _is_table(value, _is_count)


def _is_table(value: Any, is_right: Callable[[Any], bool]) -> bool:
    return (
        type(value) is dict
        and len(value) <= MOST_PARTS
        and all(_is_text(name) and is_right(each) for name, each in value.items())
    )


def _are_texts(value: Any) -> bool:
    return type(value) is list and len(value) <= MOST_PARTS and all(map(_is_text, value))


def _is_flag(value: Any) -> bool:
    return type(value) is bool


_RESULT: Mapping[str, Callable[[Any], bool]] = {
    "parts": _are_parts,
    "inputs": _is_text,
    "settled": _is_flag,
    "devices": _is_count,
    "except": _are_texts,
    "readings": _is_count,
    "refused": _is_count,
    "refused_because": _are_counts,
    "sent_bytes": _is_count,
    "alarms": _are_texts,
    "clock": _is_text,
}
_ALERT: Mapping[str, Callable[[Any], bool]] = {
    "state": _is_text,
    "fold": _is_text,
    "part": _is_text,
    "value": _is_part,
    "since": lambda value: value is None or _is_text(value),
}
_ROW: Mapping[str, Callable[[Any], bool]] = {
    "parts": _are_parts,
    "start": _is_text,
    "end": _is_text,
    "status": _is_text,
    "revision": _is_count,
    "devices": _is_count,
    "expected": _is_count,
    "except": _are_texts,
    "waiting_for": _are_texts,
}
_WINDOW: Mapping[str, Callable[[Any], bool]] = {
    **_ROW,
    "tentative": lambda value: type(value) is dict and not _wrong(value, _ROW),
}
