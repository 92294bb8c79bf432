"""From `--source KIND:WHERE`, and the options beside it, to a source."""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from device_agent.sources.csv_file import CsvRows
from device_agent.sources.host import Host
from device_agent.sources.jsonl_file import JsonLines
from device_agent.sources.mapping import FieldMapping
from device_agent.sources.mqtt_topic import MqttTopic
from device_agent.sources.replay import Replay, Rows
from device_agent.sources.source import Source
from device_agent.sources.times import UNITS, Unit
from lasp_edge.link import BrokerUrl


class SourceOptions(NamedTuple):
    """What the command line says about all sources of an agent.

    Attributes:
        events: the names of the program's events.
        device: the device's id.
        jitter: seeded; for the waits of an MQTT source between tries to connect.
        broker: of an MQTT source.
        time, unit, device_field, fields, tags, constant_tags: see `mapping.FieldMapping`; `fields`
            are event names and fields, none: each event under its own name.
        speed: times as fast as recorded; None: as fast as the agent takes it.
        host_period_us: time between two readings of the machine.
        wake: wakes the agent; may be called in any thread.
    """

    events: Sequence[str]
    device: str
    jitter: random.Random
    broker: BrokerUrl | None = None
    time: str | None = None
    unit: Unit | None = None
    device_field: str | None = None
    fields: Mapping[str, str] = {}
    tags: Mapping[str, str] = {}
    constant_tags: Mapping[str, str] = {}
    speed: float | None = None
    host_period_us: int = 1_000_000
    wake: Callable[[], None] | None = None


def source_from_spec(spec: str, options: SourceOptions) -> Source:
    """Return the source that `host`, `jsonl:PATH`, `csv:PATH` or `mqtt:TOPIC` names.

    Raises:
        ValueError: the text, or an option beside it, cannot work.
    """
    kind, _, where = spec.partition(":")
    if spec == "host":
        return Host(options.events, options.host_period_us, tags=options.constant_tags)
    if kind not in ("jsonl", "csv", "mqtt") or not where:
        raise ValueError(
            "--source is host, jsonl:PATH, csv:PATH or mqtt:TOPIC (a PATH may end in .gz), "
            f"not {spec!r}"
        )
    mapping = _mapping(options, of_text=kind == "csv")
    if kind == "mqtt":
        return _mqtt_topic(spec, where, mapping, options)
    path = Path(where)
    if not path.is_file():
        raise ValueError(f"--source {spec}: there is no file {where}")
    open_rows: Callable[[Path, int, int], Rows] = JsonLines
    if kind == "csv":
        open_rows = partial(CsvRows, needed=mapping.needed)
    return Replay(spec, path, open_rows, mapping, options.speed)


def _mapping(options: SourceOptions, *, of_text: bool) -> FieldMapping:
    unknown = [name for name in options.fields if name not in options.events]
    if unknown:
        raise ValueError(
            f"--event {unknown[0]}: the program has only the events {', '.join(options.events)}"
        )
    if options.unit is not None and options.unit not in UNITS:
        raise ValueError(f"--time-unit is one of {', '.join(UNITS)}, not {options.unit!r}")
    if options.unit is not None and options.time is None:
        raise ValueError("--time-unit needs --time, the field that it is the unit of")
    return FieldMapping(
        options.fields or options.events,
        time=options.time,
        unit=options.unit,
        tags=options.tags,
        constant_tags=options.constant_tags,
        device_field=options.device_field,
        device=options.device,
        of_text=of_text,
    )


def _mqtt_topic(spec: str, topic: str, mapping: FieldMapping, options: SourceOptions) -> MqttTopic:
    if options.broker is None:
        raise ValueError(f"--source {spec} needs --broker")
    return MqttTopic(
        spec,
        topic,
        mapping,
        broker=options.broker,
        device=options.device,
        jitter=options.jitter,
        wake=options.wake,
    )
