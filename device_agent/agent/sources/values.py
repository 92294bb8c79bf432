"""From a message's value to a number, exactly.

Booleans, quoted numbers, and the words that switches and doors publish are numbers. What is scaled
is taken as the decimal that it prints as, and no double is multiplied: 2.15 times 10 is 21.5.

    >>> [as_number(value) for value in (True, "21.5", "ON", "closed", " ", "warm", 7)]
    [1, 21.5, 1, 0, None, 'warm', 7]
    >>> Conversion(scale=exact("5/9", "scale"), offset=exact("-160/9", "offset")).of("70.7")
    Fraction(43, 2)
    >>> Conversion(words={"tilted": 2}).of("tilted"), Conversion(words={"tilted": 2}).of("open")
    (2, 1)
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any, NamedTuple

from device_agent.agent.sources.times import number
from lasp_edge.folds.decimals import exact

WORDS = {"on": 1, "off": 0, "open": 1, "closed": 0, "true": 1, "false": 0}
"""The numbers of words, in any case; a mapping's `values` come first."""
UNREAD = "{}: {!r} has a decimal comma: --decimal-comma reads it"
_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
_ONE, _ZERO = Fraction(1), Fraction(0)


def has_comma(text: str) -> bool:
    """Return whether a text is a number with a decimal comma."""
    return _COMMA.fullmatch(text.strip()) is not None


def as_number(value: Any) -> Any:
    """Return the number that a plain value means; else the value itself, and None for a blank."""
    if type(value) is bool:
        return int(value)
    if type(value) is not str:
        return value
    found = number(value)
    if found is not None:
        return found
    text = value.strip()
    return WORDS.get(text.lower(), text) if text else None


class Conversion(NamedTuple):
    """How an event's values become numbers: a word by `words`, all else times scale plus offset."""

    scale: Fraction = _ONE
    offset: Fraction = _ZERO
    words: Mapping[str, int | float | Fraction] = {}

    @property
    def is_plain(self) -> bool:
        """Whether it is no more than `as_number`."""
        return not self.words and self.scale == _ONE and self.offset == _ZERO

    def of(self, value: Any) -> Any:
        """Return the number; what is not a number comes back as it is."""
        if self.words:
            text = str(value).lower() if type(value) is bool else str(value).strip()
            known = self.words.get(text)
            if known is not None:
                return known
        found = as_number(value)
        if (self.scale == _ONE and self.offset == _ZERO) or type(found) not in (int, float):
            return found
        if type(found) is float:
            if not isfinite(found):
                return found
            found = Decimal(repr(found))
        return Fraction(found) * self.scale + self.offset


class EventRule(NamedTuple):
    """The mapping of one event.

    Attributes:
        field: where its value stands.
        conversion: how it becomes a number.
        required: a record without it is refused, instead of having no reading of this event.
    """

    field: str
    conversion: Conversion = Conversion()
    required: bool = False


def rule_of(rule: "str | EventRule") -> EventRule:
    """Return the rule; a text is the field alone."""
    return EventRule(rule) if isinstance(rule, str) else rule


RULE_KEYS = ("field", "scale", "offset", "values", "required")


def rule_of_table(name: str, table: Mapping[str, Any]) -> EventRule:
    """Return the rule of an event that is written as a table in a configuration file.

    Raises:
        ValueError: a key or a value of it cannot be.
    """
    from device_agent.agent.sources.nearest import hint  # noqa: PLC0415 - only for files

    unknown = [key for key in table if key not in RULE_KEYS]
    if unknown:
        raise ValueError(f'event {name} has no key "{unknown[0]}"; {hint(unknown[0], RULE_KEYS)}')
    field, required = table.get("field", name), table.get("required", False)
    if type(field) is not str:
        raise ValueError(f"event {name}, field: a text is needed, not {field!r}")
    if type(required) is not bool:
        raise ValueError(f"event {name}, required: true or false is needed, not {required!r}")
    conversion = Conversion(
        exact(table.get("scale", 1), f"event {name}, scale"),
        exact(table.get("offset", 0), f"event {name}, offset"),
        _words(name, table.get("values", {})),
    )
    return EventRule(field, conversion, required)


def _words(name: str, table: Any) -> dict[str, Fraction]:
    if type(table) is not dict:
        raise ValueError(f"event {name}, values: a table WORD = NUMBER is needed, not {table!r}")
    return {
        str(word).strip(): exact(value, f"event {name}, values, {word}")
        for word, value in table.items()
    }
