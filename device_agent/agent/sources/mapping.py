"""From a record's fields to readings: which field is the time, which are events, which are tags.

Without any `--event`, each event of the program is looked up under its own name at the top level.
A record may hold some of the events only; one that holds none is refused, and the reason names what
it has. A rule may say that an event must be there.

    >>> mapping = FieldMapping({"temperature": "data.temp"}, time="ts", tags={"room": "room"})
    >>> batch = mapping.batch("demo", [{"ts": 12, "data": {"temp": 21.5}, "room": "kitchen"}])
    >>> batch.names, batch.times_us, batch.values, batch.tags
    (['temperature'], [12000000], [21.5], [{'room': 'kitchen'}])
    >>> mapping.batch("demo", [{"ts": 12, "temp": 21.5}]).refused
    {'no field "data.temp": the message has "ts", "temp"': 1}
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any, NamedTuple

from device_agent.agent.intake.batch import Batch
from device_agent.agent.sources.event_columns import are_plain, event_columns, keep
from device_agent.agent.sources.fields import ABSENT, Field, Record, SpreadField, field_of
from device_agent.agent.sources.nearest import quoted
from device_agent.agent.sources.tags import TagFields, Tags, keys_of, plain_text, shortened
from device_agent.agent.sources.time_zones import Zone
from device_agent.agent.sources.times import Unit, column_us, time_us
from device_agent.agent.sources.values import UNREAD, EventRule, as_number, has_comma, rule_of
from device_agent.agent.stored_rows import Retraction
from lasp_edge.folds.numbers import Refused

NO_RECORD = "neither a JSON object nor a value"
NO_DEVICE = "no device"
_PLAIN = frozenset((float, int))
_KEPT_TEXTS = 4
"""Different texts of one kind of refusal that are counted apart: strangers choose the texts."""


class Origin(NamedTuple):
    """The surroundings of a record, such as the levels of its topic.

    Attributes:
        tags: of its readings; its own fields come first.
        event: the only event that it can be; None: any.
        place: what it came on, where the tags do not tell that.
    """

    tags: Tags
    event: str | None = None
    place: str = ""


NO_ORIGIN = Origin({})


class FieldMapping:
    """How records become readings.

    Args:
        events: event name -> its rule or field; or only names, each its own field.
        time: the field of the reading's own time; None: the agent stamps readings.
        unit: what the time counts; None: judged by its size.
        zone: where a time without an offset was written; None: such a time is refused.
        first_us: a number that means an earlier time is refused.
        tags: tag name -> field. A field that is missing, or no plain value, gives no tag.
        constant_tags: tags of every reading; a field of the same name comes first.
        device_field: records whose field is not `device` are passed over.
        device: the device's id.
        items: the field of a JSON array; each of its objects is a record with the fields around it.
        value: the field of the value, where the topic names the event.
        retract: the field that says, where it is true, that an equal earlier record is taken back.
        expected: field -> text: records in which it says something else are refused.
        absent: texts that stand for "no value": no reading.
        texts: events whose values are texts, and stay as they are.
        decimal_comma: a text such as "21,5" is a number.
        passes_others: once it has given a reading, records without any event are no mistake.

    Attributes:
        names: the events that it can give.
        chooses: whether it passes over records by what stands in them.

    Raises:
        ValueError: a field is not a path.
    """

    def __init__(  # noqa: PLR0913 - one argument for each thing that a mapping can say
        self,
        events: Mapping[str, str | EventRule] | Iterable[str],
        *,
        time: str | None = None,
        unit: Unit | None = None,
        zone: Zone | None = None,
        first_us: int = 0,
        tags: Mapping[str, str] | None = None,
        constant_tags: Mapping[str, str] | None = None,
        device_field: str | None = None,
        device: str = "",
        items: str | None = None,
        value: str | None = None,
        retract: str | None = None,
        expected: Mapping[str, str] | None = None,
        absent: Iterable[str] = (),
        passes_others: bool = False,
        texts: Collection[str] = (),
        decimal_comma: bool = False,
    ) -> None:
        self._is_mapped = isinstance(events, Mapping)
        given = events if isinstance(events, Mapping) else {name: name for name in events}
        rules = {name: rule_of(rule) for name, rule in given.items()}
        fields = {name: field_of(rule.field) for name, rule in rules.items()}
        self._events = [
            (name, field, None if rules[name].required else ABSENT)
            for name, field in fields.items()
            if isinstance(field, Field)
        ]
        self._spread = [
            (name, field) for name, field in fields.items() if isinstance(field, SpreadField)
        ]
        for name, _ in self._spread:
            if rules[name].required:
                raise ValueError(f"event {name}: a field with braces may be missing")
        self.names = list(rules)
        self._conversions = {
            name: rule.conversion for name, rule in rules.items() if not rule.conversion.is_plain
        }
        self._time, self._unit, self._zone = _field(time), unit, zone
        self._first_us = first_us
        self._tags = TagFields(tags or {}, constant_tags or {})
        self._device_field, self._device = _field(device_field), device
        self._items, self._value, self._retract = _field(items), _field(value), _field(retract)
        self._alone: dict[str, list[tuple[str, Field, Any]]] = {}
        self._expected = [(Field(name), text) for name, text in (expected or {}).items()]
        self._absent, self._texts = frozenset(absent), frozenset(texts)
        self._decimal_comma = decimal_comma
        self._passes_others, self._has_read = passes_others, False
        self._texts_of: dict[str, list[str]] = {}
        others = (self._device_field, self._items, self._retract, self._spread, self._expected)
        self.chooses = bool(self._expected or self._device_field)
        self._by_column = not (any(others) or self._tags.asked) and are_plain(self._events)

    @property
    def needed(self) -> list[str]:
        """The fields that are asked for by name."""
        asked = [self._time, self._device_field]
        if self._is_mapped:
            asked += [field for _, field, _ in self._events]
        return [*(field.text for field in asked if field is not None), *self._tags.asked]

    @property
    def has_times(self) -> bool:
        """Whether readings carry their own time."""
        return self._time is not None

    def record_of_value(self, value: Any, level: str, event: str | None = None) -> Record | str:
        """Return a bare value as a record, or why it is not one.

        Args:
            value: what the message is.
            level: the last one of its topic: the event, unless there is only one `--event`.
            event: what the topic says that it is; None: nothing.
        """
        if type(value) is dict or type(value) is list or value is None:
            return NO_RECORD
        alone = self._is_mapped and len(self.names) == 1
        name = event or (self.names[0] if alone else level)
        if name in self.names:
            return {self._only(name)[0][1].text: value}
        return self.no_event(name)

    def no_event(self, name: str) -> str:
        """Return why a message of an event that the program does not have gives no reading."""
        if self._passes_others and self._has_read:
            return ""
        there = quoted(self.names)
        return self._bounded("topic", f'no event "{shortened(name)}": the program has {there}')

    def time_of(self, record: Record) -> int | None:
        """Return the own time of a record; None if the record lacks it, or it cannot be used.

        Raises:
            Refused: the time is unusable.
        """
        if self._time is None:
            return None
        return time_us(self._time.of(record), self._unit, self._zone, self._first_us)

    def batch(  # noqa: C901, PLR0912, PLR0915 the path that every replayed row takes
        self,
        source: str,
        records: Iterable[Record | str],
        origins: Iterable[Origin] | None = None,
    ) -> Batch:
        """Return the readings of records by column.

        A text among the records is refused as such; an empty one is passed over.
        """
        names: list[str] = []
        times_us: list[int | None] = []
        values: list[Any] = []
        tags: list[Tags] = []
        places: list[str] = []
        refused: dict[str, int] = {}
        time, unit, zone, first_us = self._time, self._unit, self._zone, self._first_us
        device_field, device, spread = self._device_field, self._device, self._spread
        rows = list(records)
        together = None if self._items else column_us(rows, time, unit, first_us)
        if together is not None and origins is None and self._by_column:
            names, times_us, values = event_columns(rows, together, self._events)
            tags, rows = [self._tags.of({})] * len(names), [] if names else rows
        found = zip(rows, repeat(NO_ORIGIN) if origins is None else origins)  # noqa: B905
        each = found if self._items is None else self._each(found)
        for (record, origin), known_us in zip(each, together or repeat(None)):  # noqa: B905
            if isinstance(record, str):
                if record:
                    refused[record] = refused.get(record, 0) + 1
                continue
            if device_field is not None:
                owner = device_field.of(record)
                if owner is None:
                    refused[NO_DEVICE] = refused.get(NO_DEVICE, 0) + 1
                if owner != device and plain_text(owner) != device:
                    continue
            own_us = known_us
            try:
                if self._expected:
                    self._check(record)
                if own_us is None and time is not None:
                    moment = time.of(record)
                    if moment is None:
                        raise Refused(self._no_field("time", time.text, record))  # noqa: TRY301
                    own_us = time_us(moment, unit, zone, first_us)
                labels = self._tags.of(record)
            except Refused as error:
                refused[str(error)] = refused.get(str(error), 0) + 1
                continue
            if origin.tags:
                labels = self._tags.joined(origin.tags, labels)
            before = len(names)
            for name, field, missing in (
                self._events if origin.event is None else self._only(origin.event)
            ):
                value = field.of(record, missing)
                if value is not ABSENT:
                    names.append(name)
                    times_us.append(own_us)
                    values.append(value)
                    tags.append(labels)
            if spread and origin.event is None:
                for name, more, value in self._spread_of(record):
                    names.append(name)
                    times_us.append(own_us)
                    values.append(value)
                    tags.append(self._tags.joined(more, labels))
            if self._retract is not None and as_number(self._retract.of(record)):
                values[before:] = map(self._taken_back, values[before:])
            if origin.place:
                places += [origin.place] * (len(names) - before)
            if len(names) == before:
                self._has_read = self._has_read or bool(names)
                reason = self._nothing_in(record)
                if reason:
                    refused[reason] = refused.get(reason, 0) + 1
        self._has_read = self._has_read or bool(names)
        batch = Batch(source, names, times_us, values, tags, refused=refused, places=places)
        if self._conversions or not _PLAIN.issuperset(map(type, values)):
            self._convert(batch)
        return batch

    def _convert(self, batch: Batch) -> None:
        """Turn booleans, texts and what is scaled into numbers."""
        conversions = self._conversions
        if self._absent:
            texts = (type(value) is str and value.strip().lower() for value in batch.values)
            keep(batch, [text not in self._absent for text in texts])
        self._read_commas(batch)
        if self._texts or Retraction in set(map(type, batch.values)):
            batch.values = list(map(self._number, batch.names, batch.values))
            return
        batch.values = [
            conversions[name].of(value) if name in conversions else as_number(value)
            for name, value in zip(batch.names, batch.values, strict=True)
        ]

    def _taken_back(self, value: Any) -> Retraction:
        """Return the retraction of a value, whose text is read as that of any other record."""
        if self._decimal_comma and type(value) is str and has_comma(value):
            value = value.replace(",", ".")
        return Retraction(value)

    def _read_commas(self, batch: Batch) -> None:
        """Read decimal commas where that is asked for; else refuse the texts that may have one."""
        found = {
            at: value
            for at, value in enumerate(batch.values)
            if type(value) is str and "," in value and has_comma(value)
        }
        if self._decimal_comma:
            for at, text in found.items():
                batch.values[at] = text.replace(",", ".")
            return
        kept = [True] * len(batch)
        for at, text in found.items():
            if batch.names[at] not in self._texts:
                kept[at] = False
                reason = self._bounded("comma", UNREAD.format(batch.names[at], shortened(text)))
                batch.refused[reason] = batch.refused.get(reason, 0) + 1
        keep(batch, kept)

    def _number(self, name: str, value: Any) -> Any:
        if type(value) is Retraction:
            return Retraction(self._number(name, value.value))
        if name in self._texts:
            return value
        known = self._conversions.get(name)
        return as_number(value) if known is None else known.of(value)

    def _each(
        self, records: Iterable[tuple[Record | str, Origin]]
    ) -> Iterator[tuple[Record | str, Origin]]:
        """Yield each object of the arrays in records, with the fields around the array."""
        assert self._items is not None
        for record, origin in records:
            if isinstance(record, str):
                yield record, origin
                continue
            items = self._items.of(record)
            if type(items) is not list:
                yield self._no_field("items", self._items.text, record), origin
                continue
            around = {key: value for key, value in record.items() if value is not items}
            for item in items:
                yield (around | item if type(item) is dict else NO_RECORD), origin

    def _spread_of(self, record: Record) -> Iterator[tuple[str, dict[str, str], Any]]:
        for name, field in self._spread:
            for tags, value in field.all_of(record):
                yield name, tags, value

    def _only(self, event: str) -> list[tuple[str, Field, Any]]:
        """Return the one event that the topic names, and where its value stands."""
        known = self._alone.get(event)
        if known is None:
            own = next((field for name, field, _ in self._events if name == event), None)
            known = [(event, self._value or own or Field("value"), ABSENT)]
            self._alone[event] = known  # there are no more of them than events
        return known

    def _check(self, record: Record) -> None:
        for field, text in self._expected:
            value = field.of(record)
            if value is not None and plain_text(value) != text:
                raise Refused(f'field "{field.text}" is not "{text}"')

    def _nothing_in(self, record: Record) -> str:
        """Return why a record gives no reading; an empty text where that is as it should be."""
        if self._passes_others and self._has_read:
            return ""
        if self._is_mapped and len(self.names) == 1 and self._events:
            return self._no_field("event", self._events[0][1].text, record)
        wanted = ", ".join(self.names)
        below = next(_below(record, frozenset(self.names)), None)
        meant = "" if below is None else f"; did you mean --event {below[1]}={below[0]}?"
        has = f"the message has {keys_of(record)}"
        return self._bounded("event", f"no event of {wanted}: {has}{meant}")

    def _no_field(self, what: str, text: str, record: Record) -> str:
        """Return that a field is missing or of no use, and what the record has instead."""
        found = Field(text).of(record, ABSENT)
        if found is not ABSENT:
            return self._bounded(
                what, f'field "{text}" is {"null" if found is None else "no list"}'
            )
        return self._bounded(what, f'no field "{text}": the message has {keys_of(record)}')

    def _bounded(self, what: str, text: str) -> str:
        """Return a text; an earlier one where there are too many to count each."""
        known = self._texts_of.setdefault(what, [])
        if text in known:
            return text
        if len(known) < _KEPT_TEXTS:
            known.append(text)
        return known[-1]


def _field(text: str | None) -> Field | None:
    return None if text is None else Field(text)


def _below(
    record: Record, names: Collection[str], path: str = "", depth: int = 3
) -> Iterator[tuple[str, str]]:
    """Yield path and name of each field inside of a record that is called like an event.

    >>> next(_below({"data": {"power": 3}}, {"power"}))
    ('data.power', 'power')
    """
    for key, value in record.items():
        if path and key in names:
            yield f"{path}{key}", key
        if type(value) is dict and depth:
            yield from _below(value, names, f"{path}{key}.", depth - 1)
