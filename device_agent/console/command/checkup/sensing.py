"""The sources: whether they are there, and whether their readings have the tags that keys ask for.

Sensors are read once, as an agent reads them. Topics are listened to for some seconds: their
messages may come in an hour, so silence is a warning, with the topics that are like them.
"""

import time
from collections.abc import Iterator
from random import Random
from types import MappingProxyType

from device_agent.agent.intake.batch import Batch
from device_agent.agent.sources.choice import BrokenSourceError, SourceSpec, kind_of, source_of
from device_agent.agent.sources.periods import EVERY
from device_agent.agent.sources.source import Source
from device_agent.agent.sources.topic_pattern import TopicPattern
from device_agent.agent.timing.system_clock import wall_us
from device_agent.console.command.checkup.result import CheckResult, Level, Subject, skipped
from device_agent.console.command.checkup.topics import outcome, published
from lasp_edge.errors import CommandError
from lasp_edge.event import Event
from lasp_edge.language.plan import Plan
from lasp_edge.link import BrokerUrl
from lasp_edge.reasons import reason_of
from lasp_edge.tool.broker_options import broker_of

PATIENCE_S = 3.0
"""Seconds in which sensors have to answer: 1-wire takes one for each."""
_FILE = "file"
"""The key of a kind whose place is a file."""


def sensors(subject: Subject) -> Iterator[CheckResult]:
    """Whether the files and sensors of the sources are there."""
    if not subject.wanted.specs:
        yield skipped("--source KIND")
        return
    if subject.plan is None:
        yield skipped("MODULE:PROGRAM")
        return
    arguments = subject.wanted.arguments
    try:
        broker = broker_of(arguments, subject.wanted.environment) if arguments.broker else None
    except CommandError:  # the check of the broker says why
        yield skipped("a --broker whose options can be used")
        return
    for spec in subject.wanted.specs:
        try:
            source = source_of(spec, subject.wanted.context(spec, subject.plan, broker, Random(0)))
            if spec.kind == "mqtt":
                found = [_listened(subject, spec, subject.plan, broker)]
            else:
                found = list(_looked_at(spec, source, subject.plan))
        except (ValueError, OSError, BrokenSourceError) as error:
            found = [CheckResult(Level.WRONG, str(error))]
        yield from (each._replace(says=f"{spec.name}: {each.says}") for each in found)


def _listened(
    subject: Subject, spec: SourceSpec, plan: Plan, broker: BrokerUrl | None
) -> CheckResult:
    """Return whether messages come on a topic; silence may be as it should be."""
    if broker is None or subject.contact.trouble:
        return CheckResult(Level.SKIPPED, "not listened to: the broker does not take us")
    device = subject.wanted.arguments.device or "device"
    topic_filter = TopicPattern(spec.place, device, tuple(plan.events)).filter
    count, words = outcome(topic_filter, published(broker, [topic_filter]))
    return CheckResult(Level.OK if count else Level.WARNING, words)


def _looked_at(spec: SourceSpec, source: Source, plan: Plan) -> Iterator[CheckResult]:
    kind = kind_of(spec.kind)
    if kind is not None and kind.key == _FILE:
        source.open(None)
        source.close()
        yield CheckResult(Level.OK, "the file is there and can be read")
        return
    if kind is None or EVERY not in kind.options:  # it is not asked for readings at a pace
        yield CheckResult(Level.OK, "can be asked for; whether a reading arrives is not tried")
        return
    source.open(None)
    batches = list(_polled(source))
    says = source.says()
    source.close()
    yield _given(spec, batches, says)
    for reason in sorted({reason for batch in batches for reason in batch.refused}):
        yield CheckResult(Level.WARNING, reason)
    for reason in sorted({each for batch in batches for each in _unkeyed(batch, plan)}):
        yield CheckResult(Level.WRONG, reason)


def _polled(source: Source) -> Iterator[Batch]:
    """Yield two batches of a source of sensors: some values are differences of two."""
    now_s = time.monotonic  # noqa: TID251 - sensors answer in real time
    ends_s, at_us, given = now_s() + PATIENCE_S, wall_us(), 0
    while given < 2 and now_s() < ends_s:  # noqa: PLR2004 - see above
        batch = source.poll(at_us)
        if batch is None:
            time.sleep(0.05)
        else:
            given += 1
            yield batch
            time.sleep(0.2)
        at_us = max(at_us + 1, source.due_us(at_us) or 0)


def _given(spec: SourceSpec, batches: list[Batch], says: str) -> CheckResult:
    given = {name: float(v) for batch in batches for name, v in zip(batch.names, batch.values)}  # noqa: B905
    if not given:
        return CheckResult(Level.WRONG, says or "no sensor gives anything")
    words = ", ".join(f"{name} {value:g}" for name, value in given.items())
    lacks = spec.kind == "host" and says
    return CheckResult(Level.WARNING if lacks else Level.OK, f"{words}; {says}" if says else words)


def _unkeyed(batch: Batch, plan: Plan) -> Iterator[str]:
    """Yield why readings of a source have no key; keys do nothing but return one."""
    for name, tags in zip(batch.names, batch.tags, strict=True):
        event = Event(name, 0.0, wall_us(), "device", MappingProxyType(tags))
        keyed = [w.name for w in plan.windows.values() if w.keyed and w.source.name == name]
        keyed += [v.name for v in plan.collections.get(name, ()) if v.keyed]
        for each in keyed:
            try:
                plan.functions.key(each, event)
            except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
                has = ", ".join(f"{tag}={text}" for tag, text in tags.items()) or "no tags"
                text = f"readings of {name} are refused, for the key of {each} fails"
                more = f"--with-tag {error.args[0]}=..." if isinstance(error, KeyError) else ""
                yield f"{text}: {reason_of(error)}; they have {has}{'; add ' * bool(more)}{more}"
