r"""Run a program on this device.

Readings come from one or more sources, go through the program, and are gossiped over MQTT until
the fleet agrees. SIGTERM stops the agent in order; after a crash it goes on where its data
directory stands. SIGUSR1 stops only the sources: the agent goes on until everything has landed.

  lasp-edge agent lasp_edge.examples.greenhouse:program --device kitchen \
      --broker mqtt://192.168.1.10 --data-dir /var/lib/lasp-edge \
      --source host --with-tag room=kitchen

All of it may stand in a file: lasp-edge agent --config fleet.toml
"""

import argparse
import logging
import os
import re
import signal
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from device_agent.agent.core import Core
from device_agent.agent.durable import Durable
from device_agent.agent.guard import Guard
from device_agent.agent.runtime import Reporter, Runtime, fresh_nonce, write_json
from device_agent.agent.settings import INTERVAL_S, Settings
from device_agent.agent.sources.choice import (
    BrokenSourceError,
    add_source_arguments,
    source_of,
)
from device_agent.agent.sources.source import Source, SourceContext
from device_agent.agent.state.store import Store
from device_agent.agent.state.stored import DROP_OPTION
from device_agent.console.belonging import need_own
from device_agent.console.command.line import nothing_accepted, write_plainly, write_until_done
from device_agent.console.configuration.alert_options import add_alert_arguments, caller_of
from device_agent.console.configuration.arguments import AgentRequest, asked
from device_agent.console.lean import become_lean
from device_agent.storage.damage import DamagedStoreError
from lasp_edge.errors import CommandError, Exit, UsageError
from lasp_edge.language.plan import Plan
from lasp_edge.link import BrokerUrl
from lasp_edge.security.access import Role
from lasp_edge.tool.broker_options import add_broker_arguments, broker_of, seal_of
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.log_options import add_log_arguments, is_json, set_up_logs, tell_as_json
from lasp_edge.units import SECOND_US

SECTION = "a device"
log = logging.getLogger(__name__)

PLAIN_EVERY_S = 10.0
DASHES = r"(?<!\S)--(?=[a-z])"
"""What an option begins with on the command line, and a key of a file does not."""
DEFAULTS: Mapping[str, Any] = {
    "fleet": "",
    "interval": INTERVAL_S,
    "results": 0.0,
    "home_assistant": "",
    "retain_days": 7.0,
    "lateness": 5.0,
    "max_skew": 300.0,
    "clock_wait": 900.0,
    "keep_readings": False,
    "drop_set_aside": False,
    "trust_clock": False,
    "exit_when_done": False,
    "verbose": False,
    "log_level": "",
    "log_format": "",
}
"""What an option is where neither the command line nor the file says it."""
_DEFAULT = {name: f"(default: {value:g})" for name, value in DEFAULTS.items() if value}
_NEEDED = ("program", "device", "data_dir", "broker")

RESULTS_HELP = (
    "publish each value as JSON for people and other programs, under lasp/v1/FLEET/out/, when it"
    " changed, at most this often (default: never: it costs 250 bytes a value)"
)
HOME = "homeassistant"
HOME_HELP = (
    "let Home Assistant discover this device and the fleet, under this topic (default: not;"
    f" without PREFIX: {HOME}); turns on --results, once an --interval unless it says otherwise"
)
INTERVAL_HELP = (
    f"publish what changed at most this often {_DEFAULT['interval']}. The others know a change at"
    " most this much later, and whether all agree after twice that; 1 shows everything live,"
    " writes 50 times as much to the card and sends 25 times as much"
)
COMMIT_HELP = (
    "write readings to the card at most this often (default: as --interval). A crash loses at most"
    " this many seconds of readings that the agent stamps itself; none of them was published. A"
    " file, or a broker with QoS 1, gives again what was not acknowledged, so nothing of it is lost"
)
PAGE_HELP = "serve /metrics and /healthz, on this machine (default: no)"
CONFIG_HELP = (
    "a TOML file with any of these options by their names, and tables [[source]] (default: none);"
    " the command line wins"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments; None stands for what was not given."""
    add = parser.add_argument
    name = "MODULE:PROGRAM"
    add("program", nargs="?", metavar=name, help="the program, found as uvicorn finds an app")
    add("--config", type=Path, metavar="FILE", help=CONFIG_HELP)
    add("--device", help="this device's name, unique in the fleet")
    add("--data-dir", type=Path, help="where the agent keeps its state")
    add_broker_arguments(parser, required=False, unless="--config names it")
    add_source_arguments(parser)
    add_alert_arguments(parser)
    add("--fleet", help="the fleet's name on the broker (default: the program's)")
    add("--interval", type=float, metavar="S", help=INTERVAL_HELP)
    add("--commit-every", type=float, metavar="S", help=COMMIT_HELP)
    _add_results(parser)
    _flag(parser, "--keep-readings", "keep each accepted reading, as read (default: no)")
    _flag(parser, DROP_OPTION, "delete what a former program stored of variables (default: no)")
    seconds = {
        "--retain-days": ("D", "refuse readings that are older than this many days"),
        "--lateness": ("S", "readings may be out of order by this many seconds"),
        "--max-skew": ("S", "refuse readings that are ahead of the clock by more seconds"),
        "--clock-wait": ("S", "trust a clock that jumped after this many seconds"),
    }
    for option, (unit, text) in seconds.items():
        default = _DEFAULT[option[2:].replace("-", "_")]
        add(option, type=float, metavar=unit, help=f"{text} {default}")
    _flag(parser, "--trust-clock", "this machine's clock is right, always (default: no)")
    every = f"print a JSON line this often (default: one line in words every {PLAIN_EVERY_S:g} s)"
    add("--report", type=float, metavar="S", help=every)
    _flag(parser, "--exit-when-done", "end when a replay has landed (default: no)")
    add("--metrics", metavar="[HOST:]PORT", help=PAGE_HELP)
    add_log_arguments(parser)


def _add_results(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--results", type=float, metavar="S", help=RESULTS_HELP)
    add("--home-assistant", nargs="?", const=HOME, metavar="PREFIX", help=HOME_HELP)


def _flag(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    parser.add_argument(name, action="store_const", const=True, help=text)


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    wanted = requested(given)
    arguments = wanted.arguments
    if not arguments.broker.lower().startswith("mqtts"):
        become_lean()
    set_up_logs(arguments, device=arguments.device)
    try:
        stopped = _run(wanted, load_plan(arguments.program))
    except (sqlite3.Error, OSError) as error:
        from device_agent.console.command.keeping import not_kept  # noqa: PLC0415 - only after a mistake

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
        settings = settings_of(arguments)
        caller = caller_of(arguments, Random(fresh_nonce()))
        sources, broken = _sources(wanted, program, broker)
        durable = _durable(arguments, program, settings, found)
        for what in broken:
            log.warning("%s; the others go on", what)
            durable.core.agent.guard.say(what)
        reporter, ends = _reporter(arguments), arguments.exit_when_done
        seal = seal_of(arguments, durable.core.agent.topics, Role.DEVICE, arguments.device)
        runtime = Runtime(
            durable, broker, sources, reporter, exit_when_done=ends, seal=seal, caller=caller
        )
        _watch(runtime, durable, arguments.metrics)
        runtime.open()
        for source in sources:
            _say(source, durable.core.agent.guard)
    except BlockingIOError:
        raise UsageError(f"another agent runs on {arguments.data_dir}") from None
    except (ValueError, UsageError) as error:
        raise UsageError(wanted.placed(str(error))) from None
    return runtime, durable.core


def _say(source: Source, guard: Guard) -> None:
    """Tell people what a source found, or lacks, or what was wrong."""
    news = getattr(source, "news", "")
    if news:
        log.warning("source %s: %s", source.name, news, extra={"source": source.name})
        guard.say(f"source {source.name}: {news}")
    says = guard.run(f"source {source.name}", lambda: source.says())  # noqa: PLW0108 - may lack it
    if says:
        log.warning("%s: %s", source.name, says, extra={"source": source.name})


def _watch(runtime: Runtime, durable: Durable, page: str | None) -> None:
    """Have the agent watched where somebody asked for it."""
    if page is None and "NOTIFY_SOCKET" not in os.environ:
        return
    from device_agent.agent.watching.watching import Watching  # noqa: PLC0415 - most agents do without

    runtime.watch(Watching(durable, runtime.link, os.environ, page))


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Return the settings that the arguments ask for.

    Raises:
        ValueError: a number, or a topic, cannot be one.
    """
    numbers = ("interval", "commit_every", "results", "retain_days", "lateness", "max_skew")
    for name in (*numbers, "clock_wait", "report"):
        value = getattr(arguments, name)
        if value is None:
            continue
        least = 1e-6 if name in {"interval", "retain_days", "report"} else 0
        if not least <= value < 1e9:  # noqa: PLR2004 - three decades of seconds
            unit = "days" if name == "retain_days" else "seconds"
            bound = "above 0" if least else "from 0"
            raise ValueError(
                f"--{name.replace('_', '-')}: {unit} {bound} are needed, not {value:g}"
            )
    return Settings.paced(
        arguments.interval,
        arguments.commit_every,
        results_us=round(_results_s(arguments) * SECOND_US),
        home_assistant=_home_assistant(arguments),
        retain_us=round(arguments.retain_days * 86_400 * SECOND_US),
        lateness_us=round(arguments.lateness * SECOND_US),
        max_skew_us=round(arguments.max_skew * SECOND_US),
        clock_wait_us=round(arguments.clock_wait * SECOND_US),
        trust_clock=arguments.trust_clock,
        keep_readings=arguments.keep_readings,
        drop_set_aside=arguments.drop_set_aside,
    )


def _results_s(arguments: argparse.Namespace) -> float:
    """Return the seconds between results; Home Assistant needs some."""
    if arguments.home_assistant and not arguments.results:
        return float(arguments.interval)
    return float(arguments.results)


def _home_assistant(arguments: argparse.Namespace) -> str:
    prefix: str = arguments.home_assistant
    levels = prefix.split("/")
    if prefix and (not all(levels) or set("+#:\0") & set(prefix)):
        raise ValueError(f"--home-assistant: a topic such as {HOME} is needed, not {prefix!r}")
    return prefix


def _sources(
    wanted: AgentRequest, program: Plan, broker: BrokerUrl
) -> tuple[list[Source], list[str]]:
    """Return the sources, and what is wrong with those of others that cannot be made.

    Raises:
        ValueError: one cannot work as it is asked for, or none is left.
    """
    sources: list[Source] = []
    broken: list[str] = []
    for spec in wanted.specs:
        context = SourceContext(
            events=tuple(program.events),
            device=wanted.arguments.device,
            jitter=Random(fresh_nonce()),
            broker=broker,
            options=spec.options,
            texts=tuple(program.text_events),
        )
        try:
            sources.append(source_of(spec, context))
        except BrokenSourceError as error:
            broken.append(f"source {spec.name}: {error}")
        except ValueError as error:
            in_file = wanted.arguments.config and not wanted.arguments.source
            text = str(error)
            text = f"{spec.said_in}: {re.sub(DASHES, '', text)}" if in_file else text
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


def _reporter(arguments: argparse.Namespace) -> Reporter:
    if arguments.report is not None:
        return Reporter(round(arguments.report * SECOND_US), write_json)
    plainly = write_until_done if arguments.exit_when_done else write_plainly
    write = _log_report if is_json(arguments) else plainly
    return Reporter(round(PLAIN_EVERY_S * SECOND_US), write)


def _log_report(report: dict[str, Any]) -> None:
    tell_as_json("report", report=report)
