"""An agent as a process: what was asked for is made, runs, and is reported on."""

import argparse
import logging
import os
import re
import signal
import sqlite3
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from device_agent.agent.core import Core, Durable
from device_agent.agent.notices import Notices
from device_agent.agent.runtime import Reporter, Runtime, fresh_nonce, write_json
from device_agent.agent.settings import Settings
from device_agent.agent.sources.choice import BrokenSourceError, source_of
from device_agent.agent.sources.source import Source
from device_agent.agent.state.counters import Guard
from device_agent.agent.state.store import Store
from device_agent.console.belonging import need_own
from device_agent.console.command.line import (
    nothing_accepted,
    waits_for,
    write_plainly,
    write_until_done,
)
from device_agent.console.configuration.agent_options import (
    DEFAULTS,
    PLAIN_EVERY_S,
    add_arguments,
    settings_of,
)
from device_agent.console.configuration.alert_options import caller_of
from device_agent.console.configuration.arguments import AgentRequest, asked
from device_agent.console.small_process import become_fitting
from device_agent.storage.damage import DamagedStoreError
from device_agent.storage.not_kept import not_kept
from lasp_edge.collecting import collect_rarely
from lasp_edge.errors import CommandError, Exit, UsageError
from lasp_edge.language.plan import Plan
from lasp_edge.link import BrokerUrl
from lasp_edge.security.access import Role
from lasp_edge.tool.broker_options import broker_of, seal_of
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.log_options import is_json, set_up_logs, tell_as_json
from lasp_edge.units import SECOND_US

log = logging.getLogger(__name__)

DASHES = r"(?<!\S)--(?=[a-z])"
"""The beginning of an option on the command line, which a key of a file does not have."""

_NEEDED = ("program", "device", "data_dir", "broker")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    wanted = requested(given)
    arguments = wanted.arguments
    become_fitting(secured=arguments.broker.lower().startswith("mqtts"))
    set_up_logs(arguments, device=arguments.device)
    try:
        stopped = _run(wanted, load_plan(arguments.program))
    except (sqlite3.Error, OSError) as error:
        raise not_kept(arguments.data_dir, error) from error
    return Exit.INTERRUPTED if stopped == signal.SIGINT else Exit.FINE


def requested(given: argparse.Namespace) -> AgentRequest:
    """Return the agent that these arguments, and their file, ask for.

    Raises:
        NotFound: there is no such file.
        UsageError: something is missing, or cannot work.
    """
    wanted = asked(given, add_arguments, DEFAULTS)
    need(wanted)
    return wanted


def need(wanted: AgentRequest) -> None:
    """Check that everything is there without which no agent runs.

    Raises:
        UsageError: something is not.
    """
    arguments = wanted.arguments
    missing = [name for name in _NEEDED if getattr(arguments, name) is None]
    words = [n.upper() if n == "program" else f"--{n.replace('_', '-')}" for n in missing]
    words += [] if wanted.specs else ["--source"]
    if words and arguments.config:
        keys = ", ".join(word.lower().removeprefix("--") for word in words)
        raise UsageError(f"{arguments.config} says no {keys}; add it, or type {' '.join(words)}")
    if words:
        file = "or write them into a file and type --config FILE"
        raise UsageError(f"{' '.join(words)}: needed, and not given; type them, {file}")


def _run(wanted: AgentRequest, program: Plan) -> int:
    """Run the agent, again with an empty store where the store turned out to be damaged."""
    collect_rarely()
    found = ""
    while True:
        try:
            runtime, core = _runtime(wanted, program, found)
            stopped = runtime.run()
        except DamagedStoreError as error:
            found = f"damaged, and put aside: {error}"
            log.warning("the store is %s", found)
            continue
        if wanted.arguments.exit_when_done and not stopped:
            lacking = nothing_accepted(core.report())
            if lacking:
                raise CommandError(lacking)
        return stopped


def _runtime(wanted: AgentRequest, program: Plan, found: str) -> tuple[Runtime, Core]:
    """Return the agent that was asked for, ready to run; `found`: why the last store was given up.

    Raises:
        UsageError: the arguments cannot work.
    """
    arguments = wanted.arguments
    try:
        broker = broker_of(arguments, wanted.environment)
        caller = caller_of(arguments, Random(fresh_nonce()))
        settings = replace(settings_of(arguments), calls_out=caller is not None, area=wanted.area)
        sources, broken = opened_sources(wanted, program, broker)
        durable = _durable(arguments, program, settings, found)
        for what in broken:
            log.warning("%s; the others go on", what)
            durable.core.agent.guard.say(what)
        reporter, ends = _reporter(arguments, program), arguments.exit_when_done
        seal = seal_of(arguments, durable.core.agent.topics, Role.DEVICE, arguments.device)
        runtime = Runtime(
            durable, broker, sources, reporter, exit_when_done=ends, seal=seal, caller=caller
        )
        _watch(runtime, durable, arguments.metrics)
        runtime.open()
        for source in sources:
            _report(source, durable.core.agent.guard)
        if len(sources) > 1:
            _name_doubles(sources, durable.core.agent.notices)
    except BlockingIOError:
        raise UsageError(f"another agent runs on {arguments.data_dir}") from None
    except (ValueError, UsageError) as error:
        raise UsageError(wanted.placed(str(error))) from None
    return runtime, durable.core


def _report(source: Source, guard: Guard) -> None:
    """Report the news and the findings of a source."""
    news = getattr(source, "news", "")
    if news:
        log.warning("source %s: %s", source.name, news, extra={"source": source.name})
        guard.say(f"source {source.name}: {news}")
    says = guard.run(f"source {source.name}", lambda: source.says())  # noqa: PLW0108 - may lack it
    if says:
        log.warning("%s: %s", source.name, says, extra={"source": source.name})


def _name_doubles(sources: list[Source], notices: Notices) -> None:
    """Name the sources that read the same messages."""
    from device_agent.agent.sources.mqtt_topic import read_twice  # noqa: PLC0415 - one is usual

    for found in read_twice(sources):
        log.warning("%s", found)
        notices.begin(found, found)


def _watch(runtime: Runtime, durable: Durable, page: str | None) -> None:
    """Have the agent watched where somebody asked for it."""
    if page is None and "NOTIFY_SOCKET" not in os.environ:
        return
    from device_agent.agent.watching.watching import Watching  # noqa: PLC0415 - most agents do without

    runtime.watch(Watching(durable, runtime.link, os.environ, page))


def opened_sources(
    wanted: AgentRequest, program: Plan, broker: BrokerUrl
) -> tuple[list[Source], list[str]]:
    """Return the sources, and the errors of other people's that cannot be made.

    Raises:
        ValueError: one cannot work as it is asked for, or none is left.
    """
    sources: list[Source] = []
    broken: list[str] = []
    for spec in wanted.specs:
        context = wanted.context(spec, program, broker, Random(fresh_nonce()))
        try:
            sources.append(source_of(spec, context))
        except BrokenSourceError as error:
            broken.append(f"source {spec.name}: {error}")
        except ValueError as error:
            for source in sources:
                source.close()
            in_file = wanted.arguments.config and not wanted.arguments.source
            text = str(error)
            text = f"{spec.found_at}: {re.sub(DASHES, '', text)}" if in_file else text
            raise ValueError(text) from None
    names = [source.name for source in sources]
    twins = sorted({name for name in names if names.count(name) > 1})
    if twins:
        raise ValueError(f"two sources are named {twins[0]!r}: each keeps its place under its name")
    if not sources:
        raise ValueError(broken[0])
    return sources, broken


def _durable(
    arguments: argparse.Namespace, program: Plan, settings: Settings, found: str
) -> Durable:
    store = Store(arguments.data_dir)
    if store.news:
        log.warning("the store: %s", store.news)
    try:
        return _on(store, arguments, program, settings, found)
    except DamagedStoreError:
        store.put_aside()
        raise
    except BaseException:
        store.close()
        raise


def _on(
    store: Store, arguments: argparse.Namespace, program: Plan, settings: Settings, found: str
) -> Durable:
    restored = store.restored()
    known, holds = store.replica(), restored.facts.program
    need_own(arguments.data_dir, known, holds, arguments.device, program)
    core = Core(program, arguments.device, fresh_nonce(), restored, settings, arguments.fleet)
    for news in filter(None, (found, store.news)):
        core.agent.guard.say(f"store: {news}")
    return Durable(core, store)


def _reporter(arguments: argparse.Namespace, plan: Plan) -> Reporter:
    if arguments.report is not None:
        return Reporter(round(arguments.report * SECOND_US), write_json)
    ends = plan if arguments.exit_when_done else None
    plainly = write_plainly if ends is None else partial(write_until_done, plan=ends)
    write = partial(_log_report, plan=ends) if is_json(arguments) else plainly
    return Reporter(round(PLAIN_EVERY_S * SECOND_US), write)


def _log_report(report: dict[str, Any], plan: Plan | None) -> None:
    waits = {} if plan is None else {"waits_for": waits_for(report, plan)}
    tell_as_json("report", report=report | waits)
