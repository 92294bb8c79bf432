"""The sources: whether they are there, and whether their readings have the tags that keys ask for.

Sensors are read once, as an agent reads them. Topics are listened to for some seconds: their
messages may come in an hour, so silence is a warning, with the topics that are like them.
"""

import time
from collections.abc import Iterator
from random import Random
from types import MappingProxyType

from device_agent.agent.intake.batch import Batch
from device_agent.agent.runtime import fresh_nonce
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
            context = subject.wanted.context(spec, subject.plan, broker, Random(fresh_nonce()))
            if spec.kind == "mqtt":  # tried: it leaves no session at the broker
                source = source_of(spec, context._replace(show=lambda _: None))
                found = list(_listened(subject, spec, source, broker))
            else:
                source = source_of(spec, context)
                found = list(_looked_at(spec, source, subject.plan))
        except (ValueError, OSError, BrokenSourceError) as error:
            found = [CheckResult(Level.WRONG, str(error))]
        yield from (each._replace(says=f"{spec.name}: {each.says}") for each in found)


def _listened(
    subject: Subject, spec: SourceSpec, source: Source, broker: BrokerUrl | None
) -> Iterator[CheckResult]:
    """Yield whether messages come on a topic, and make readings; silence may be as it should be."""
    plan = subject.plan
    assert plan is not None, "the caller has looked"
    if broker is None or subject.contact.trouble:
        yield CheckResult(Level.SKIPPED, "not listened to: the broker does not take us")
        return
    device = subject.wanted.arguments.device or "device"
    topic_filter = TopicPattern(spec.place, device, tuple(plan.events)).filter
    count, words = outcome(topic_filter, published(broker, [topic_filter]))
    yield CheckResult(Level.OK if count else Level.WARNING, words)
    if count:
        yield from _first_read(source, plan)


def _first_read(source: Source, plan: Plan) -> Iterator[CheckResult]:
    """Yield why the first message or rows of a source make no reading that counts."""
    source.open(None)
    batch = next(_polled(source), None)
    source.close()
    if batch is None:
        return
    yield from _refusals([batch], plan)
    if not (batch.names or batch.refused or batch.done):
        says = "a message made no reading; lasp-edge try with the same options prints both"
        yield CheckResult(Level.WARNING, says)


def _refusals(batches: list[Batch], plan: Plan) -> Iterator[CheckResult]:
    """Yield why nothing became a reading, and why readings have no key."""
    for reason in sorted({reason for batch in batches for reason in batch.refused}):
        yield CheckResult(Level.WARNING, f"no reading: {reason}")
    for reason in sorted({each for batch in batches for each in _unkeyed(batch, plan)}):
        yield CheckResult(Level.WRONG, reason)


def _looked_at(spec: SourceSpec, source: Source, plan: Plan) -> Iterator[CheckResult]:
    kind = kind_of(spec.kind)
    if kind is not None and kind.key == _FILE:
        found = list(_first_read(source, plan))
        yield CheckResult(Level.OK, "the file is there and can be read")
        yield from found
        return
    if kind is None or EVERY not in kind.options:  # it is not asked for readings at a pace
        yield CheckResult(Level.OK, "can be asked for; whether a reading arrives is not tried")
        return
    source.open(None)
    batches = list(_polled(source))
    says = source.says()
    source.close()
    yield _given(spec, batches, says)
    yield from _refusals(batches, plan)


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
                more = f"--with-tag {error.args[0]}=..." if type(error) is KeyError else ""
                yield f"{text}: {reason_of(error)}; they have {has}{'; add ' * bool(more)}{more}"
