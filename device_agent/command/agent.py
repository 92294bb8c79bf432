r"""Run a program on this device.

Readings come from one or more sources, go through the program, and are gossiped over MQTT until
the fleet agrees. SIGTERM stops the agent in order; after a crash it goes on where its data
directory stands. SIGUSR1 stops only the sources: the agent goes on until everything has landed.

  lasp-edge agent lasp_edge.examples.greenhouse:program --device kitchen \
      --broker mqtt://192.168.1.10 --data-dir /var/lib/lasp-edge \
      --source host --with-tag room=kitchen
"""

import argparse
import logging
import os
import signal
import sqlite3
import sys
from pathlib import Path
from random import Random

from device_agent.command.line import write_plainly
from device_agent.core import Core
from device_agent.durable import Durable
from device_agent.lean import become_lean
from device_agent.runtime import Reporter, Runtime, fresh_nonce, write_json
from device_agent.settings import INTERVAL_S, SECOND_US, Settings
from device_agent.sources.choice import add_source_arguments, source_from_spec, source_options
from device_agent.sources.source import Source, SourceContext
from device_agent.state.damage import DamagedStoreError
from device_agent.state.store import Store
from lasp_edge.errors import EnvironmentLacks, Exit, UsageError
from lasp_edge.language.plan import Plan
from lasp_edge.link import BrokerUrl
from lasp_edge.security.access import Role
from lasp_edge.tool.broker_options import add_broker_arguments, broker_of, seal_of
from lasp_edge.tool.loading import load_plan

log = logging.getLogger(__name__)

PLAIN_EVERY_S = 10.0
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
    "publish what changed at most this often (default: %(default)g). The others know a change at"
    " most this much later, and whether all agree after twice that; 1 shows everything live,"
    " writes 50 times as much to the card and sends 25 times as much"
)
COMMIT_HELP = (
    "write readings to the card at most this often (default: as --interval). A crash loses at most"
    " this many seconds of readings that the agent stamps itself; none of them was published. A"
    " file, or a broker with QoS 1, gives again what was not acknowledged, so nothing of it is lost"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    add("program", metavar="MODULE:PROGRAM", help="the program, found as uvicorn finds an app")
    add("--device", required=True, help="this device's name, unique in the fleet")
    add("--data-dir", type=Path, required=True, help="where the agent keeps its state")
    add_broker_arguments(parser)
    add_source_arguments(parser)
    add("--fleet", default="", help="the fleet's name on the broker (default: the program's)")
    add("--interval", type=float, default=INTERVAL_S, metavar="S", help=INTERVAL_HELP)
    add("--commit-every", type=float, metavar="S", help=COMMIT_HELP)
    add("--results", type=float, default=0.0, metavar="S", help=RESULTS_HELP)
    add("--home-assistant", nargs="?", const=HOME, default="", metavar="PREFIX", help=HOME_HELP)
    add("--keep-readings", action="store_true", help="keep each accepted reading, as read")
    add("--retain-days", type=float, default=7.0, metavar="D", help="refuse readings older than")
    add("--lateness", type=float, default=5.0, metavar="S", help="readings may be out of order by")
    add("--max-skew", type=float, default=300.0, metavar="S", help="refuse readings ahead by")
    add(
        "--clock-wait",
        type=float,
        default=900.0,
        metavar="S",
        help="trust a clock that jumped after",
    )
    add("--trust-clock", action="store_true", help="this machine's clock is right, always")
    add("--report", type=float, metavar="S", help="print a JSON line this often, for programs")
    add("--exit-when-done", action="store_true", help="end when a replay has landed")
    add("--metrics", metavar="[HOST:]PORT", help="serve /metrics and /healthz, on this machine")
    add("--verbose", action="store_true", help="log what the link and the sources do")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if not arguments.broker.startswith("mqtts"):
        become_lean()
    logging.basicConfig(
        format="%(asctime)s %(message)s",
        stream=sys.stderr,
        level=logging.INFO if arguments.verbose else logging.WARNING,
    )
    try:
        stopped = _run(arguments, load_plan(arguments.program))
    except (sqlite3.Error, OSError) as error:
        what = f"the agent's data cannot be kept in {arguments.data_dir}: {error}"
        raise EnvironmentLacks(what, f"df -h {arguments.data_dir}") from error
    return Exit.INTERRUPTED if stopped == signal.SIGINT else Exit.FINE


def _run(arguments: argparse.Namespace, program: Plan) -> int:
    """Run the agent, again with an empty store where the store turned out to be damaged."""
    found = ""
    while True:
        try:
            runtime = _runtime(arguments, program, found)
            return runtime.run()
        except DamagedStoreError as error:
            found = f"damaged, and put aside: {error}"
            log.warning("the store is %s", found)


def _runtime(arguments: argparse.Namespace, program: Plan, found: str) -> Runtime:
    """Return the agent that was asked for, ready to run; `found`: why the last store was given up.

    Raises:
        UsageError: the arguments cannot work.
    """
    try:
        broker = broker_of(arguments)
        settings = _settings(arguments)
        sources = _sources(arguments, program, broker)
        durable = _durable(arguments, program, settings, found)
        reporter, ends = _reporter(arguments), arguments.exit_when_done
        seal = seal_of(arguments, durable.core.agent.topics, Role.DEVICE, arguments.device)
        runtime = Runtime(durable, broker, sources, reporter, exit_when_done=ends, seal=seal)
        _watch(runtime, durable, arguments.metrics)
        runtime.open()
    except BlockingIOError:
        raise UsageError(f"another agent runs on {arguments.data_dir}") from None
    except ValueError as error:
        raise UsageError(str(error)) from None
    return runtime


def _watch(runtime: Runtime, durable: Durable, page: str | None) -> None:
    """Have the agent watched where somebody asked for it."""
    if page is None and "NOTIFY_SOCKET" not in os.environ:
        return
    from device_agent.watching.watching import Watching  # noqa: PLC0415 - most agents do without

    runtime.watch(Watching(durable.core, runtime.link, os.environ, page))


def _settings(arguments: argparse.Namespace) -> Settings:
    numbers = ("interval", "commit_every", "results", "retain_days", "lateness", "max_skew")
    for name in (*numbers, "clock_wait"):
        value = getattr(arguments, name)
        if value is None:
            continue
        least = 1e-6 if name in {"interval", "retain_days"} else 0
        if not least <= value < 1e9:  # noqa: PLR2004 - three decades of seconds
            raise ValueError(f"--{name.replace('_', '-')}: seconds or days from 0, not {value}")
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


def _sources(arguments: argparse.Namespace, program: Plan, broker: BrokerUrl) -> list[Source]:
    context = SourceContext(
        events=tuple(program.events),
        device=arguments.device,
        jitter=Random(fresh_nonce()),
        broker=broker,
        options=source_options(arguments),
    )
    return [source_from_spec(spec, context) for spec in dict.fromkeys(arguments.source)]


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
    known = store.replica()
    if known and known[2] != arguments.device:
        raise ValueError(
            f"{arguments.data_dir} belongs to device {known[2]!r}; give {arguments.device!r} a "
            "--data-dir of its own"
        )
    if restored.facts.program not in {None, program.name}:
        raise ValueError(
            f"{arguments.data_dir} holds readings of the program {restored.facts.program!r}; give "
            f"{program.name!r} a --data-dir of its own"
        )
    core = Core(program, arguments.device, fresh_nonce(), restored, settings, arguments.fleet)
    for news in filter(None, (found, store.news)):
        core.agent.guard.say(f"store: {news}")
    return Durable(core, store)


def _reporter(arguments: argparse.Namespace) -> Reporter:
    if arguments.report is not None:
        return Reporter(round(arguments.report * SECOND_US), write_json)
    return Reporter(round(PLAIN_EVERY_S * SECOND_US), write_plainly)
