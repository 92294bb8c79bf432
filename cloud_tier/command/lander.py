"""Take a fleet's messages into the lake, without Spark.

Runs near the broker, where Spark runs elsewhere; `lasp-edge cloud` starts one by itself. What it
has acknowledged to the broker is in its log on disk, so it may be killed at any moment.
"""

import argparse
import sys
from pathlib import Path

from cloud_tier.command.table import leave_pandas_out
from cloud_tier.lake.tables import LakeTables
from cloud_tier.lander.process import LanderProcess
from lasp_edge.errors import CommandError, UsageError
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.topics import Topics
from lasp_edge.security.access import Role
from lasp_edge.tool.broker_options import add_broker_arguments, broker_of, seal_of, sink_option
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.log_options import add_log_arguments, set_up_logs, write_error
from lasp_edge.tool.signals import run_until_signalled
from lasp_edge.tool.waiting_options import Patience, add_patience_arguments
from lasp_edge.units import SECOND_US

SECTION = "windows of a fleet"
EXTRA = "lake"
LONGEST_TICK_S = 15.0
"""Seconds in which the lander tells the job how late it is, at most, also where nothing comes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_lake_arguments(parser)
    add = parser.add_argument
    add_patience_arguments(parser)  # as given to `cloud`
    shares = "divide the panes with the other landers of this lake that name the same group"
    add("--share", default="", metavar="GROUP", help=shares)
    add("--parent", type=int, metavar="PID", help="end when this process is not the parent")
    add_log_arguments(parser)
    add_broker_arguments(parser)


def add_lake_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `cloud` and `lander` both must know: the program, the lake, the names."""
    add = parser.add_argument
    add("program", metavar="MODULE:PROGRAM", help="the program, found as uvicorn finds an app")
    add("--lake", required=True, metavar="DIR", help="the lake: a directory or a URL")
    add("--log-dir", type=Path, help="the lander's log, a local directory (default: LAKE/log)")
    add("--fleet", default="", help="the fleet's name on the broker (default: the program's)")
    add(
        "--sink",
        default=DEFAULT_SINK,
        metavar="NAME",
        help="devices deliver to this lake under this name (default: lake)",
    )


def _group_of(arguments: argparse.Namespace) -> str:
    group: str = arguments.share
    if any(letter in group for letter in "/+#\0") or not group.isprintable():
        raise UsageError(f"--share: a name without /, + and #, not {group!r}")
    return group


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    set_up_logs(arguments, "%(asctime)s lander: %(message)s", program="lander")
    leave_pandas_out()
    plan = load_plan(arguments.program)
    patience = Patience.of(arguments, plan.windows.values())
    lake = LakeTables(arguments.lake)
    if arguments.log_dir is None and "://" in lake.root:
        raise UsageError("a lake that is no local directory needs --log-dir DIR for the log")
    broker = broker_of(arguments)
    topics = Topics(arguments.fleet or plan.name)
    process = LanderProcess(
        plan,
        broker,
        lake,
        arguments.log_dir or Path(lake.log),
        fleet=arguments.fleet,
        sink=sink_option("--sink", arguments.sink),
        group=_group_of(arguments),
        tick_us=min(patience.tick_us, round(LONGEST_TICK_S * SECOND_US)),
        parent=arguments.parent,
        seal=seal_of(arguments, topics, Role.LANDER),
    )
    return run_until_signalled(process)


def main() -> int:
    """Run the command by itself, as the job does."""
    parser = argparse.ArgumentParser("lasp-edge lander", description=__doc__)
    add_arguments(parser)
    try:
        return run(parser.parse_args())
    except CommandError as error:
        write_error("lander", error, error.exit_code)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
