r"""Keep the windows of a whole fleet on this machine, a Pi for example, without Spark.

Devices deliver to it as they do to a lake, and it has the rows that Spark's tables would have: each
window's newest result as retained JSON under lasp/v1/FLEET/out/WINDOW/NAME, and all rows in its
data directory. It may be killed at any moment.

  lasp-edge gateway lasp_edge.examples.greenhouse:program \
      --broker mqtt://192.168.1.10 --data-dir ~/lasp/gateway
  lasp-edge windows temperature_by_room --gateway ~/lasp/gateway
"""

import argparse
from pathlib import Path

from device_agent.console.configuration.agent_options import (
    DASHBOARD_HELP,
    HOME,
    dashboard_url,
)
from device_agent.gateway.core import WaitingTerms
from device_agent.gateway.process import GatewayProcess
from device_agent.gateway.run import GatewaySettings
from lasp_edge.collecting import OF_A_FLEET, collect_rarely
from lasp_edge.errors import UsageError
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.topics import Topics
from lasp_edge.security.access import Role
from lasp_edge.tool.broker_options import add_broker_arguments, broker_of, seal_of, sink_option
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.log_options import add_log_arguments, set_up_logs
from lasp_edge.tool.signals import run_until_signalled
from lasp_edge.tool.waiting_options import Patience, add_waiting_arguments, need_numbers
from lasp_edge.units import SECOND_US

SECTION = "windows of a fleet"
_DAY_US = 86_400 * SECOND_US


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    add("program", metavar="MODULE:PROGRAM", help="the program, found as uvicorn finds an app")
    add("--data-dir", type=Path, required=True, metavar="DIR", help="where it keeps its windows")
    name = "its name; two gateways of a fleet need two (default: %(default)s)"
    add("--name", default="gateway", help=name)
    add("--fleet", default="", help="the fleet's name on the broker (default: the program's)")
    add_waiting_arguments(parser)
    days = "windows take late readings until this many days after their end (default: 7)"
    add("--retain-days", type=float, default=7.0, metavar="D", help=days)
    history = "rows are kept for this many days (default: 31)"
    add("--history-days", type=float, default=31.0, metavar="D", help=history)
    commit = "hold messages for this long, and write them to the card together (default: 2)"
    add("--commit-every", type=float, default=2.0, metavar="S", help=commit)
    results = "publish a result as JSON at most this often; 0 for never (default: 5)"
    add("--results", type=float, default=5.0, metavar="S", help=results)
    home = f"let Home Assistant discover the windows, under this topic (without PREFIX: {HOME})"
    add("--home-assistant", nargs="?", const=HOME, default="", metavar="PREFIX", help=home)
    add("--dashboard-url", default="", metavar="URL", help=DASHBOARD_HELP)
    add("--until-idle", type=float, metavar="S", help="end after S seconds without anything new")
    add_log_arguments(parser)
    add_broker_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    set_up_logs(arguments, "%(asctime)s gateway: %(message)s", program="gateway")
    plan = load_plan(arguments.program)
    if not plan.windows and not plan.fleet_results:
        of_devices = "; results of each device are for a lander: type lasp-edge lander --help"
        raise UsageError(
            f"{arguments.program} declares no window, and no result of a scan over the fleet, so "
            f"there is nothing to keep{of_devices * bool(plan.stream_results)}"
        )
    if plan.fleet_results:
        collect_rarely(OF_A_FLEET)
    patience = Patience.of(arguments, plan.windows.values())
    settings = _settings(arguments, patience)
    broker = broker_of(arguments)
    seal = seal_of(arguments, Topics(settings.fleet or plan.name), Role.LANDER)
    process = GatewayProcess(
        plan, broker, arguments.data_dir, settings, seal=seal, say=_say_at_once
    )
    if waiting := patience.in_words():
        _say_at_once(f"{settings.name}: {waiting}")
    return run_until_signalled(process)


def _say_at_once(line: str) -> None:
    print(line, flush=True)  # noqa: T201


def _settings(arguments: argparse.Namespace, patience: Patience) -> GatewaySettings:
    """Return the settings of the gateway.

    Raises:
        UsageError: they cannot work.
    """
    name = sink_option("--name", arguments.name)
    if name == DEFAULT_SINK:
        raise UsageError(f"--name: {DEFAULT_SINK!r} is the lake's name; choose another one")
    need_numbers(arguments, "--retain-days", "--history-days", "--commit-every", "--results")
    need_numbers(arguments, "--until-idle")
    terms = WaitingTerms(
        arguments.roster,
        patience.dead_after_us,
        round(arguments.retain_days * _DAY_US),
        round(arguments.history_days * _DAY_US),
        patience.tentative_after_us,
    )
    until_idle = arguments.until_idle
    return GatewaySettings(
        name,
        arguments.fleet,
        terms,
        round(arguments.commit_every * SECOND_US),
        round(arguments.results * SECOND_US),
        arguments.home_assistant,
        dashboard_url(arguments.dashboard_url),
        None if until_idle is None else round(until_idle * SECOND_US),
    )
