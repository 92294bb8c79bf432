"""From a record's fields to readings: which field is the time, which are events, which are tags.

A field is a path of keys with dots (`data.temp`); a key that itself contains the dots is found
first. Without any `--event`, each event of the program is looked up under its own name at the top
level, and a record may hold some of them only; an event that was mapped to a field must be there.

    >>> mapping = FieldMapping({"temperature": "data.temp"}, time="ts", tags={"room": "room"})
    >>> batch = mapping.batch("demo", [{"ts": 12, "data": {"temp": 21.5}, "room": "kitchen"}])
    >>> batch.names, batch.times_us, batch.values, batch.tags
    (['temperature'], [12000000], [21.5], [{'room': 'kitchen'}])
"""

from collections.abc import Iterable, Mapping
from typing import Any

from device_agent.intake.batch import Batch
from device_agent.sources.source import Option, SourceContext, pair_option
from device_agent.sources.times import UNITS, Unit, number, time_us
from lasp_edge.folds.numbers import Refused

NO_EVENT = "no event"
Record = dict[str, Any]
_ABSENT: Any = object()
_KEPT_TAGS = 1_000  # equal tags are one object; a field that never repeats must not fill memory

TIME = Option[str | None]("time", None, str, "own time; else stamped on arrival", "FIELD")
TIME_UNIT = Option[Unit | None](
    "time-unit", None, lambda text: text, "default: told by size", choices=UNITS
)
DEVICE_FIELD = Option[str | None](
    "device-field", None, str, "only records whose field is --device", "FIELD"
)
EVENT = pair_option("event", "NAME=FIELD", "e.g. t=data.temp")
TAG = pair_option("tag", "NAME=FIELD", "e.g. room=data.location")
WITH_TAG = pair_option("with-tag", "NAME=VALUE", "on every reading")
MAPPING_OPTIONS = (TIME, TIME_UNIT, DEVICE_FIELD, EVENT, TAG, WITH_TAG)


class Field:
    """A path into a record.

    >>> Field("a.b").of({"a": {"b": 1}}), Field("a.b").of({"a.b": 2}), Field("a").of({})
    (1, 2, None)
    """

    __slots__ = ("keys", "text")

    def __init__(self, text: str) -> None:
        if not text or not all(text.split(".")):
            raise ValueError(f"a field is needed, such as temp or data.temp, not {text!r}")
        self.text = text
        self.keys = text.split(".")

    def of(self, record: Record, default: Any = None) -> Any:
        """Return what stands there, or `default`."""
        found: Any = record.get(self.text, _ABSENT)
        if found is not _ABSENT:
            return found
        found = record
        for key in self.keys:
            if type(found) is not dict:
                return default
            found = found.get(key, _ABSENT)
            if found is _ABSENT:
                return default
        return found


class FieldMapping:
    """How records become readings.

    Args:
        events: event name -> field; or only names, each of which is its own optional field.
        time: the field of the reading's own time; None: the agent stamps readings.
        unit: what the time counts; None: told by its size.
        tags: tag name -> field. A field that is missing, or no plain value, gives no tag.
        constant_tags: tags of every reading; a field of the same name comes first.
        device_field: records whose field is not `device` are passed over.
        device: the device's id.
        of_text: values are text, as in CSV: what looks like a number is one, empty is missing.

    Raises:
        ValueError: a field is empty.
    """

    def __init__(
        self,
        events: Mapping[str, str] | Iterable[str],
        *,
        time: str | None = None,
        unit: Unit | None = None,
        tags: Mapping[str, str] | None = None,
        constant_tags: Mapping[str, str] | None = None,
        device_field: str | None = None,
        device: str = "",
        of_text: bool = False,
    ) -> None:
        absent = None if isinstance(events, Mapping) else _ABSENT
        fields = events if isinstance(events, Mapping) else {name: name for name in events}
        self._absent = absent
        self._events = [(name, Field(field)) for name, field in fields.items()]
        self._time = None if time is None else Field(time)
        self._unit = unit
        self._tags = [(name, Field(field)) for name, field in (tags or {}).items()]
        self._constant_tags = dict(constant_tags or {})
        self._device_field = None if device_field is None else Field(device_field)
        self._device = device
        self._of_text = of_text
        self._known_tags: dict[tuple[str | None, ...], Mapping[str, str]] = {}

    @property
    def needed(self) -> list[str]:
        """The fields that are asked for by name."""
        asked = [self._time, self._device_field, *(field for _, field in self._tags)]
        if self._absent is None:
            asked += [field for _, field in self._events]
        return [field.text for field in asked if field is not None]

    @property
    def names(self) -> list[str]:
        """The events that this mapping can give."""
        return [name for name, _ in self._events]

    @property
    def has_times(self) -> bool:
        """Whether readings carry their own time."""
        return self._time is not None

    def record_of_number(self, level: str, value: float) -> Record | str:
        """Return a bare number as a record: of the only `--event`, else of the event `level`."""
        mapped = self._absent is None
        for name, field in self._events:
            if name == level or (mapped and len(self._events) == 1):
                return {field.text: value}
        return NO_EVENT

    def time_of(self, record: Record) -> int | None:
        """Return the own time of a record; None if the record lacks it, or it cannot be used.

        Raises:
            Refused: the time is unusable.
        """
        return None if self._time is None else time_us(self._time.of(record), self._unit)

    def batch(  # noqa: C901, PLR0915 the path that every replayed row takes
        self, source: str, records: Iterable[Record | str]
    ) -> Batch:
        """Return the readings of records by column; a text among them is refused as such."""
        names: list[str] = []
        times_us: list[int | None] = []
        values: list[Any] = []
        tags: list[Mapping[str, str]] = []
        refused: dict[str, int] = {}
        events, absent, time, unit = self._events, self._absent, self._time, self._unit
        device_field, device, of_text = self._device_field, self._device, self._of_text
        for record in records:
            if isinstance(record, str):
                refused[record] = refused.get(record, 0) + 1
                continue
            if device_field is not None:
                owner = device_field.of(record)
                if owner is None:
                    refused["no device"] = refused.get("no device", 0) + 1
                if owner != device and plain_text(owner) != device:
                    continue
            own_us = None
            if time is not None:
                try:
                    own_us = time_us(time.of(record), unit)
                except Refused as error:
                    refused[str(error)] = refused.get(str(error), 0) + 1
                    continue
            labels = self._tags_of(record)
            before = len(names)
            for name, field in events:
                value = field.of(record, absent)
                if value is not _ABSENT:
                    if of_text and type(value) is str:
                        value = value_of(value)
                    names.append(name)
                    times_us.append(own_us)
                    values.append(value)
                    tags.append(labels)
            if len(names) == before:
                refused[NO_EVENT] = refused.get(NO_EVENT, 0) + 1
        return Batch(source, names, times_us, values, tags, refused=refused)

    def _tags_of(self, record: Record) -> Mapping[str, str]:
        if not self._tags:
            return self._constant_tags
        texts = tuple(plain_text(field.of(record)) for _, field in self._tags)
        known = self._known_tags.get(texts)
        if known is None:
            named = zip(self._tags, texts, strict=True)
            known = self._constant_tags | {
                name: text for (name, _), text in named if text is not None
            }
            if len(self._known_tags) < _KEPT_TAGS:
                self._known_tags[texts] = known
        return known


def mapping_of(context: SourceContext, *, of_text: bool = False) -> FieldMapping:
    """Return the mapping that the options ask for.

    Raises:
        ValueError: they cannot work.
    """
    fields, time, unit = context.get(EVENT), context.get(TIME), context.get(TIME_UNIT)
    unknown = [name for name in fields if name not in context.events]
    if unknown:
        raise ValueError(
            f"--event {unknown[0]}: the program has only the events {', '.join(context.events)}"
        )
    if unit is not None and unit not in UNITS:
        raise ValueError(f"--time-unit is one of {', '.join(UNITS)}, not {unit!r}")
    if unit is not None and time is None:
        raise ValueError("--time-unit needs --time, the field that it is the unit of")
    return FieldMapping(
        fields or context.events,
        time=time,
        unit=unit,
        tags=context.get(TAG),
        constant_tags=context.get(WITH_TAG),
        device_field=context.get(DEVICE_FIELD),
        device=context.device,
        of_text=of_text,
    )


def value_of(text: str) -> float | str | None:
    """Return the number that a text is; else the text itself, and None if it is blank."""
    value = number(text)
    return (text.strip() or None) if value is None else value


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
