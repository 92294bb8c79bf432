r"""Print the first messages of a source, and the readings that they make, or why none.

Takes the words of `lasp-edge agent`, or its file, as far as they are known. Nothing is stored, here
or at the broker, and an agent that runs is not disturbed. Without a program it prints the messages
alone.

  lasp-edge try --source 'mqtt:zigbee2mqtt/#' --broker mqtt://192.168.1.10
  lasp-edge try greenhouse:program --source csv:attic.csv --time ts --event temperature=temp
  lasp-edge try --config fleet.toml

Ends with 1 if a source made no reading that counts; without a program, if nothing came.
"""

import argparse
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random
from types import MappingProxyType
from typing import Any

from device_agent.agent.intake.batch import Batch
from device_agent.agent.intake.routes import text_number
from device_agent.agent.runtime import fresh_nonce
from device_agent.agent.sources.choice import BrokenSourceError, SourceSpec, source_of
from device_agent.agent.sources.source import Source
from device_agent.agent.sources.topic_pattern import TopicPattern
from device_agent.agent.stored_rows import Retraction
from device_agent.agent.timing.system_clock import wall_us
from device_agent.console.command.checkup.topics import outcome, published
from device_agent.console.configuration import agent_options
from device_agent.console.configuration.arguments import AgentRequest, asked
from lasp_edge.errors import Exit, UsageError
from lasp_edge.event import Event
from lasp_edge.folds.numbers import Refused
from lasp_edge.language.plan import Plan
from lasp_edge.link import BrokerUrl
from lasp_edge.reasons import reason_of
from lasp_edge.tool.broker_options import broker_of
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.log_options import set_up_logs
from lasp_edge.units import SECOND_US

SECTION = "a device"
MESSAGES, PATIENCE_S = 3, 30.0
LONGEST = 400
"""Characters of a message that are printed, at most."""
DAY_S = 86_400
REFUSED = "refused: "


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments: those of an agent, and two."""
    agent_options.add_arguments(parser)
    add = parser.add_argument
    add("--messages", type=int, default=MESSAGES, metavar="N", help="of each source (default: 3)")
    wait = f"wait for them at most this long (default: {PATIENCE_S:g})"
    add("--patience", type=float, default=PATIENCE_S, metavar="S", help=wait)


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    wanted = asked(given, agent_options.add_arguments, agent_options.DEFAULTS)
    arguments = wanted.arguments
    set_up_logs(arguments)
    if not wanted.specs:
        raise UsageError("--source: needed, and not given; such as 'mqtt:zigbee2mqtt/#'")
    if arguments.messages < 1 or not arguments.patience > 0:
        raise UsageError("--messages and --patience: numbers above 0 are needed")
    plan = load_plan(arguments.program) if arguments.program else None
    broker = broker_of(arguments, wanted.environment) if arguments.broker else None
    made = [_tried(wanted, spec, plan, broker) for spec in wanted.specs]
    if plan is None:
        print("with MODULE:PROGRAM, the readings that they make are printed, too")  # noqa: T201
    return Exit.FINE if all(made) else Exit.DIFFERS


def _tried(
    wanted: AgentRequest, spec: SourceSpec, plan: Plan | None, broker: BrokerUrl | None
) -> int:
    """Print what comes from one source; return how many readings of it count.

    Without a program it is how many messages came.
    """
    context = wanted.context(spec, plan, broker, Random(fresh_nonce()))
    print(f"{spec.name}:")  # noqa: T201
    try:
        source = source_of(spec, context._replace(show=_show))
        source.open(None)
    except (ValueError, BrokenSourceError) as error:
        raise UsageError(wanted.placed(str(error))) from None
    made = came = 0
    for batch in _batches(source, wanted.arguments.messages, wanted.arguments.patience):
        came += 1
        readings = [] if plan is None else list(_readings(batch, plan, wanted.arguments.max_skew))
        made += sum(counts for _, counts in readings)
        print("".join(f"    {line}\n" for line, _ in readings), end="")  # noqa: T201
    says = source.says()
    source.close()
    print(f"  {says}\n" if says else "", end="")  # noqa: T201
    if not came:
        print(f"  {_silence(wanted, spec, plan, broker)}")  # noqa: T201
    return made if plan else came


def _show(text: str) -> None:
    cut = f"{text[:LONGEST]}.." if len(text) > LONGEST else text
    print(f"  {cut}", flush=True)  # noqa: T201


def _batches(source: Source, messages: int, patience_s: float) -> Iterator[Batch]:
    """Yield what comes, some batches at most, until patience ends or the source does."""
    now_s = time.monotonic  # noqa: TID251 - sensors publish in real time
    ends_s = now_s() + patience_s
    while messages and now_s() < ends_s:
        at_us = wall_us()
        batch = source.poll(at_us)
        if batch is not None and (batch.names or batch.refused or not batch.done):
            messages -= 1
            source.acknowledge(batch.cursor)
            yield batch
        if batch is None:
            if source.due_us(at_us) is None:
                return
            time.sleep(0.05)


def _readings(batch: Batch, plan: Plan, max_skew_s: float) -> Iterator[tuple[str, bool]]:
    """Yield a line for each reading of a message, and for each reason that refuses one.

    Beside it stands whether it is that of a reading which counts.
    """
    columns = zip(batch.names, batch.times_us, batch.values, batch.tags, strict=True)
    for name, own_us, value, tags in columns:
        try:
            shown = _value(plan, name, value)
        except Refused as error:
            yield f"{name} {value!r} is refused: {error}", False
            continue
        ahead_s = 0.0 if own_us is None else (own_us - wall_us()) / SECOND_US
        keys = list(_keys(plan, name, value, tags))
        counts = ahead_s <= max_skew_s and not any(REFUSED in line for line in keys)
        refused = f", {REFUSED}{ahead_s:.0f} s ahead of the clock" if ahead_s > max_skew_s else ""
        yield f"{shown}, {_time(own_us, -ahead_s)}{refused}, {_of(tags)}", counts
        yield from ((line, False) for line in keys)
    for reason in batch.refused:
        yield f"no reading: {reason}", False
    if not (batch.names or batch.refused):
        yield "no reading, and no mistake: it is passed over", False


def _value(plan: Plan, name: str, value: Any) -> str:
    """Return a reading's value as it counts.

    Raises:
        Refused: it does not count.
    """
    event = plan.events[name]
    if type(value) is Retraction:
        return f"{_value(plan, name, value.value)}, taken back"
    if event.text:
        text_number(value)  # as an agent refuses what is no text, or a long one
        return f"{name} {value!r}"
    counts = float(event.resolution.exact * event.scale.quantise(value))
    unit = f" {event.unit}" if event.unit else ""
    rounded = "" if counts == value else f", counted as {counts:.12g}"
    shown = f"{float(value):.12g}" if not isinstance(value, str) else value
    return f"{name} {shown}{unit}{rounded}"


def _time(own_us: int | None, age_s: float) -> str:
    if own_us is None:
        return "at the time when it arrives"
    at = f"at {datetime.fromtimestamp(own_us / SECOND_US, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"{at} ({age_s // DAY_S:,.0f} days ago)" if age_s >= 2 * DAY_S else at


def _of(tags: Any) -> str:
    return f"with {', '.join(f'{tag}={text}' for tag, text in tags.items())}" if tags else "no tags"


def _keys(plan: Plan, name: str, value: Any, tags: Any) -> Iterator[str]:
    """Yield the keys that a reading has, or why it has none."""
    event = Event(name, value, wall_us(), "device", MappingProxyType(tags))
    keyed = [w.name for w in plan.windows.values() if w.keyed and w.source.name == name]
    keyed += [v.name for v in plan.collections.get(name, ()) if v.keyed]
    for each in keyed:
        try:
            yield f"  its key in {each}: {plan.functions.key(each, event)}"
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            yield f"  {REFUSED}the key of {each} fails: {reason_of(error)}"


def _silence(
    wanted: AgentRequest, spec: SourceSpec, plan: Plan | None, broker: BrokerUrl | None
) -> str:
    """Return that nothing came, and what comes instead."""
    nothing = f"nothing came within {wanted.arguments.patience:g} s"
    if spec.kind != "mqtt" or broker is None:
        return nothing
    events = tuple(plan.events) if plan else ()
    topics = TopicPattern(spec.place, wanted.arguments.device or "device", events)
    return outcome(topics.filter, published(broker, [topics.filter]))[1]
