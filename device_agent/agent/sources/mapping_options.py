"""The options that say how records become readings, and the mapping that they make."""

from typing import Any

from device_agent.agent.sources.mapping import FieldMapping
from device_agent.agent.sources.nearest import hint, nearest
from device_agent.agent.sources.ready import READY
from device_agent.agent.sources.source import (
    Option,
    SourceContext,
    number_of_toml,
    pair_option,
    table_in_file,
    texts_in_file,
)
from device_agent.agent.sources.time_zones import Zone
from device_agent.agent.sources.times import UNITS, Unit
from device_agent.agent.sources.values import EventRule, rule_of_table


def _event_rules(table: Any) -> dict[str, str | EventRule]:
    """Return the rules of events that a table of a configuration file holds."""
    if not isinstance(table, dict):
        raise ValueError(f"event: a table NAME = FIELD is needed, not {table!r}")
    rules: dict[str, str | EventRule] = {}
    for name, given in table.items():
        if not isinstance(given, str | dict):
            raise ValueError(f"event {name}: a field, or a table, is needed, not {given!r}")
        rules[name] = given if isinstance(given, str) else rule_of_table(name, given)
    return rules


def _ready_name(name: str) -> str:
    if name not in READY:
        raise ValueError(f"--mapping: there is no ready mapping {name!r}; {hint(name, READY)}")
    return name


TIME = Option[str | None](
    "time", None, str, "own time of a reading (default: when it arrives)", "FIELD"
)
TIME_UNIT = Option[Unit | None](
    "time-unit", None, lambda text: text, "what --time counts (default: by its size)", "UNIT"
)
TIME_ZONE = Option[Zone | None](
    "time-zone",
    None,
    Zone,
    "zone of times that name none, such as Europe/Berlin (default: none; they are refused)",
    "ZONE",
)
DEVICE_FIELD = Option[str | None](
    "device-field", None, str, "only records whose field is --device (default: all)", "FIELD"
)
EVENT = pair_option(
    "event",
    "NAME=FIELD",
    "where an event stands, e.g. t=data.temp; may be given several times (default: all, by their "
    "names)",
    _event_rules,
)
TAG = pair_option("tag", "NAME=FIELD", "e.g. room=data.location; may be given several times")
WITH_TAG = pair_option("with-tag", "NAME=VALUE", "on every reading")
MAPPING = Option[str | None](
    "mapping",
    None,
    _ready_name,
    f"a ready mapping: {', '.join(READY)} (default: none)",
    "NAME",
)
DECIMAL_COMMA = Option[bool](
    "decimal-comma",
    default=False,
    parse=bool,
    help='a text such as "21,5" is a number (default: it is refused)',
    is_flag=True,
)
ITEMS = Option[str | None]("items", None, str, "a JSON array of readings", in_files_only=True)
VALUE = Option[str | None](
    "value", None, str, "the value, where {event} is in the topic", in_files_only=True
)
EXPECT = table_in_file("expect", "fields that must say this where they are")
ABSENT_WORDS = texts_in_file("absent", "words that stand for no value")
RETRACT = Option[str | None](
    "retract",
    None,
    str,
    "where it is true, an equal earlier record is taken back (default: none is)",
    "FIELD",
)
MAPPING_OPTIONS: tuple[Option[Any], ...] = (
    *(TIME, TIME_UNIT, TIME_ZONE, DEVICE_FIELD, MAPPING, EVENT, TAG, WITH_TAG, RETRACT),
    DECIMAL_COMMA,
    *(ITEMS, VALUE, EXPECT, ABSENT_WORDS),
)


def _speed(text: str) -> float | None:
    if text == "max":
        return None
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--speed: a number or max is needed, not {text!r}") from None


SPEED = Option[float | None](
    "speed",
    None,
    _speed,
    "replay at N times the recorded pace (default: max)",
    "N|max",
    of_toml=lambda given: _speed(given if type(given) is str else number_of_toml(given)),
)
FOLLOW = Option[bool](
    "follow",
    default=False,
    parse=bool,
    help="read on as the file grows, and a new file that takes its place (default: to its end)",
    is_flag=True,
)
REPLAY_OPTIONS = (*MAPPING_OPTIONS, SPEED, FOLLOW)
TAKE_RETAINED = Option[bool](
    "retained",
    default=False,
    parse=bool,
    help="what the broker retained is a reading, too: each content of a topic once",
    is_flag=True,
)
IGNORE = texts_in_file("ignore", "topic filters of messages that are no readings")
TOPIC_OPTIONS = (*MAPPING_OPTIONS, TAKE_RETAINED, IGNORE)


def ready_context(context: SourceContext) -> SourceContext:
    """Return the context with the options of the ready mapping that it names, below its own."""
    name = context.get(MAPPING)
    if name is None:
        return context
    ready, given = READY[_ready_name(name)], context.options
    events = {event: event for event in context.events}
    known = ready.get("event", {})
    events |= {event: field for event, field in known.items() if event in events}
    options = {**ready, **given, "event": events | dict(given.get("event", {}))}
    return context._replace(options=options)


def mapping_of(
    context: SourceContext, *, passes_others: bool = False, absent: tuple[str, ...] = ()
) -> FieldMapping:
    """Return the mapping that the options ask for.

    Args:
        context: has the options.
        passes_others: see `FieldMapping`.
        absent: texts that stand for no value in such a source.

    Raises:
        ValueError: they cannot work.
    """
    is_ready = context.get(MAPPING) is not None
    context = ready_context(context)
    rules, time, unit = context.get(EVENT), context.get(TIME), context.get(TIME_UNIT)
    unknown = [name for name in rules if name not in context.events]
    if unknown:
        near = nearest(unknown[0], context.events)
        meant = f'; did you mean "{near}"?' if near else ""
        raise ValueError(
            f"--event {unknown[0]}: the program has only the events "
            f"{', '.join(context.events)}{meant}"
        )
    if unit is not None and unit not in UNITS:
        raise ValueError(f"--time-unit is one of {', '.join(UNITS)}, not {unit!r}")
    for name, option in (("--time-unit", unit), ("--time-zone", context.get(TIME_ZONE))):
        if option is not None and time is None:
            raise ValueError(f"{name} needs --time, the field that it is about")
    return FieldMapping(
        rules or context.events,
        time=time,
        unit=unit,
        zone=context.get(TIME_ZONE),
        first_us=context.first_us,
        tags=context.get(TAG),
        constant_tags=context.get(WITH_TAG),
        device_field=context.get(DEVICE_FIELD),
        device=context.device,
        items=context.get(ITEMS),
        value=context.get(VALUE),
        retract=context.get(RETRACT),
        texts=context.texts,
        decimal_comma=context.get(DECIMAL_COMMA),
        expected=context.get(EXPECT),
        absent=(*absent, *context.get(ABSENT_WORDS)),
        passes_others=passes_others or is_ready,
    )
