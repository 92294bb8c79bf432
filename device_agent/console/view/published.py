"""JSON that devices publish for people, checked: a stranger may publish anything on these topics.

A command may rely on the shape of a result: parts are numbers, words or None by name, counts are
whole numbers, names can be printed. A message of another shape is refused whole.

    >>> result_of(b'{"parts": {"mean": 21.5}, "count": 2}')
    {'parts': {'mean': 21.5}, 'count': 2}
    >>> result_of(b'{"parts": {"mean": NaN}}')
    Traceback (most recent call last):
    ValueError: NaN is no JSON
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from lasp_edge.tool.times import read_time

Plain = dict[str, Any]
_Check = Callable[[Any], bool]

LONGEST_TEXT = 500
"""Characters of a text, at most; an alarm has 200."""
GREATEST = 1 << 1_000
"""Numbers are below it: as a float it is finite, and exact totals are far from it."""
MOST_PARTS = 200
"""Parts, reasons or names that stand together, at most."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def _is_text(value: Any) -> bool:
    """Return whether it is a text that can be printed: half of a surrogate pair cannot."""
    return type(value) is str and len(value) <= LONGEST_TEXT and not _SURROGATE.search(value)


def _is_part(value: Any) -> bool:
    if type(value) is int:
        return abs(value) < GREATEST
    return value is None or type(value) in {float, bool} or _is_text(value)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _is_flag(value: Any) -> bool:
    return type(value) is bool


def _are_texts(value: Any) -> bool:
    return type(value) is list and len(value) <= MOST_PARTS and all(map(_is_text, value))


def _table(is_right: _Check) -> _Check:
    return lambda value: (
        type(value) is dict
        and len(value) <= MOST_PARTS
        and all(_is_text(name) and is_right(each) for name, each in value.items())
    )


_ANY: Mapping[str, _Check] = {"parts": _table(_is_part), "devices": _is_count, "except": _are_texts}
_RESULT: Mapping[str, _Check] = {
    **_ANY,
    **dict.fromkeys(("inputs", "clock"), _is_text),
    **dict.fromkeys(("readings", "refused", "sent_bytes"), _is_count),
    "settled": _is_flag,
    "refused_because": _table(_is_count),
    "alarms": _are_texts,
    "notices": _are_texts,
}
_ALERT: Mapping[str, _Check] = {
    **dict.fromkeys(("state", "fold", "part"), _is_text),
    "value": _is_part,
    "since": lambda value: value is None or _is_text(value),
}
_ROW: Mapping[str, _Check] = {
    **_ANY,
    **dict.fromkeys(("start", "end", "status"), _is_text),
    **dict.fromkeys(("revision", "expected"), _is_count),
    "waiting_for": _are_texts,
}
_WINDOW: Mapping[str, _Check] = {
    **_ROW,
    "tentative": lambda value: type(value) is dict and not _wrong(value, _ROW),
}


def result_of(payload: bytes) -> Plain:
    """Return a result, or an agent's report about itself.

    Raises:
        ValueError: it has not the shape of one.
    """
    return _object(payload, _RESULT)


def waiting_of(payload: bytes) -> list[str]:
    """Return the reasons for which a gateway waits, in words, from its own topic.

    Raises:
        ValueError: it has not the shape of that.
    """
    found = _object(payload, {"waiting": _are_texts, "online": _is_flag})
    return ["away"] if found.get("online") is False else found.get("waiting", [])


def gateway_lines(gateways: Mapping[str, list[str]]) -> list[str]:
    """Return a line for each gateway that waits for something, or refuses it; see `waiting_of`."""
    return [f"gateway {at}: {', '.join(of)}" for at, of in sorted(gateways.items()) if of]


def alert_of(payload: bytes) -> Plain:
    """Return the state of an alert.

    Raises:
        ValueError: it has not the shape of one.
    """
    found = _object(payload, _ALERT)
    if found.get("state") not in {"on", "off"}:
        raise ValueError("an alert is on or off")
    return found


def window_of(payload: bytes) -> Plain:
    """Return a gateway's newest row of a window.

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


def _object(payload: bytes, shape: Mapping[str, _Check]) -> Plain:
    plain = json.loads(payload, parse_constant=_refuse)
    if type(plain) is not dict:
        raise ValueError("not a JSON object")
    wrong = _wrong(plain, shape)
    if wrong:
        raise ValueError(f"{wrong[0]} is of another kind")
    return plain


def _wrong(plain: Plain, shape: Mapping[str, _Check]) -> list[str]:
    return [name for name, is_right in shape.items() if name in plain and not is_right(plain[name])]


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
