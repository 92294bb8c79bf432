"""From a record's fields, and from what it came on, to the tags of its readings.

>>> tags = TagFields({"room": "data.location"}, {"site": "home"})
>>> tags.of({"data": {"location": "attic"}})
{'room': 'attic', 'site': 'home'}
>>> tags.of({"data": {"t": 21}})["room"]
Traceback (most recent call last):
...
device_agent.agent.sources.tags.MissingTagError: no tag "room": --tag looked for \
"data.location", the message has "data"
"""

from collections.abc import Mapping
from typing import Any

from device_agent.agent.sources.fields import Field, Record
from device_agent.agent.sources.nearest import quoted
from lasp_edge.folds.numbers import Refused

_KEPT_TAGS = 1_000  # equal tags are one object; a field that never repeats must not fill memory
_SHOWN_KEYS, _SHOWN_CHARACTERS = 6, 24
Tags = Mapping[str, str]


class MissingTagError(KeyError):
    """A program asks for a tag that a record does not have; the text says where it was sought."""

    def __str__(self) -> str:
        return str(self.args[0])


class KnownTags(dict[str, str]):
    """The tags of a record, and why others are missing, for a program that asks for them.

    They stand in the order of their names.

    Attributes:
        missing: tag -> why a record lacks it.
    """

    __slots__ = ("missing",)

    def __init__(self, tags: Tags, missing: Mapping[str, str]) -> None:
        super().__init__(sorted(tags.items()))
        self.missing = missing

    def __missing__(self, name: str) -> str:
        ways = f"--tag {name}=FIELD, {{{name}}} in a topic or --with-tag {name}=TEXT"
        why = self.missing.get(name, f"{ways} gives it")
        raise MissingTagError(f'no tag "{name}": {why}')


class TagFields:
    """Which fields are tags. Equal tags are one object.

    Args:
        fields: tag name -> field. A field that is missing, or no plain value, gives no tag.
        constant: tags of every record; a field of the same name comes first.
    """

    def __init__(self, fields: Tags, constant: Tags) -> None:
        self._fields = [(name, Field(field)) for name, field in fields.items()]
        self._missing: dict[str, str] = {}
        self._constant = KnownTags(constant, self._missing)
        self._known: dict[tuple[str | None, ...], Tags] = {}
        self._joined: dict[tuple[tuple[str, str], ...], Tags] = {}

    @property
    def asked(self) -> list[str]:
        """The fields that are asked for."""
        return [field.text for _, field in self._fields]

    def of(self, record: Record) -> Tags:
        """Return the tags of a record.

        Raises:
            Refused: one of them is no text that can be stored.
        """
        if not self._fields:
            return self._constant
        texts = tuple(plain_text(field.of(record)) for _, field in self._fields)
        known = self._known.get(texts)
        if known is None:
            found = dict(self._constant)
            for (name, field), text in zip(self._fields, texts, strict=True):
                if text is not None:
                    found[name] = _whole(name, text)
                elif name not in self._missing:  # the first message is an example for all
                    has = f"the message has {keys_of(record)}"
                    self._missing[name] = f'--tag looked for "{field.text}", {has}'
            known = KnownTags(found, self._missing)
            if len(self._known) < _KEPT_TAGS:
                self._known[texts] = known
        return known

    def joined(self, more: Tags, tags: Tags) -> Tags:
        """Return both; those of a record come first."""
        both = {**more, **tags}
        known = self._joined.get(tuple(both.items()))
        if known is not None:
            return known
        joined = KnownTags(both, self._missing)
        if len(self._joined) < _KEPT_TAGS:
            self._joined[tuple(both.items())] = joined
        return joined


def _whole(tag: str, text: str) -> str:
    """Return the text of a tag.

    Raises:
        Refused: a half of a surrogate pair is in it, as JSON may have.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused(f'tag "{tag}" is no text: half of a surrogate pair is in it') from None
    return text


def keys_of(record: Record) -> str:
    """Return the first fields of a record, for people."""
    keys = [shortened(key) for key in list(record)[:_SHOWN_KEYS]]
    more = ", ..." if len(record) > _SHOWN_KEYS else ""
    return f"{quoted(keys)}{more}" if keys else "no fields"


def shortened(text: str) -> str:
    """Return the two ends of a text that is long."""
    # Both ends: a topic's last level says what was measured, its first where.
    half = _SHOWN_CHARACTERS // 2 - 1
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:half]}..{text[-half:]}"


def plain_text(value: Any) -> str | None:
    """Return a plain JSON value as text; None for null, lists and objects.

    >>> plain_text("a"), plain_text(True), plain_text(7), plain_text(0.5), plain_text(None)
    ('a', 'true', '7', '0.5', None)
    """
    if type(value) is str:
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int or type(value) is float:
        return repr(value)
    return None
