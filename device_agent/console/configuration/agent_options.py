"""The options of an agent, each stated once: on the command line, in a file, and as a setting."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from device_agent.agent.settings import INTERVAL_S, Settings
from device_agent.agent.sources.choice import add_source_arguments
from device_agent.agent.state.stored import DROP_OPTION
from device_agent.console.configuration.alert_options import add_alert_arguments
from lasp_edge.errors import UsageError
from lasp_edge.tool.broker_options import add_broker_arguments
from lasp_edge.tool.log_options import add_log_arguments
from lasp_edge.units import SECOND_US

PLAIN_EVERY_S = 10.0
HOME = "homeassistant"
RESULTS_HELP = (
    "publish each value as JSON for people and other programs, under lasp/v1/FLEET/out/, when it"
    " changed, at most this often (default: never: it costs 250 bytes a value)"
)
HOME_HELP = (
    "let Home Assistant discover this device and the fleet, under this topic (default: not;"
    f" without PREFIX: {HOME}); turns on --results, once an --interval unless it says otherwise"
)
DASHBOARD_HELP = (
    "where the dashboard is, such as http://pi:8700/: Home Assistant links to it (default: none)"
)
INTERVAL_HELP = (
    "publish what changed at most this often {}. The others know a change at most this much later,"
    " and whether all agree after twice that; 1 shows everything live, writes 50 times as much to"
    " the card and sends 25 times as much"
)
COMMIT_HELP = (
    "write readings to the card at most this often (default: as --interval). A crash loses at most"
    " this many seconds of readings that the agent stamps itself; none of them was published. A"
    " file, or a broker with QoS 1, gives again what was not acknowledged, so nothing of it is lost"
)
LIMIT_HELP = "end a function of the program that does not return after this long; 0: never {}"
SILENT_HELP = (
    "windows wait this long for a silent source whose readings have their own time, and what comes"
    " later revises them; 0: for ever {}"
)
REPORT_HELP = f"print a JSON line this often (default: one line in words every {PLAIN_EVERY_S:g} s)"
CONFIG_HELP = (
    "a TOML file with any of these options by their names, and tables [[source]] (default: none);"
    " the command line wins"
)
_ABOVE_0 = 1e-6
_MOST = 1e9  # three decades of seconds


class NumberOption(NamedTuple):
    """An option that is a number of seconds or days.

    Attributes:
        name: with its dashes.
        default: None where it depends on others.
        help: `{}` stands for the default.
        least: the number is not below it.
    """

    name: str
    default: float | None
    help: str
    least: float = 0

    @property
    def unit(self) -> str:
        """Of the number, in plain words."""
        return "days" if self.name.endswith("-days") else "seconds"

    def check(self, value: float | None) -> None:
        """Check a value; None stands for one that depends on others.

        Raises:
            ValueError: it is too small or too great.
        """
        if value is not None and not self.least <= value < _MOST:
            bound = "above 0" if self.least else "from 0"
            raise ValueError(f"{self.name}: {self.unit} {bound} are needed, not {value:g}")


NUMBERS = (
    NumberOption("--interval", INTERVAL_S, INTERVAL_HELP, _ABOVE_0),
    NumberOption("--commit-every", None, COMMIT_HELP),
    NumberOption("--results", 0.0, RESULTS_HELP),
    NumberOption("--retain-days", 7.0, "refuse readings older than this many days {}", _ABOVE_0),
    NumberOption("--lateness", 5.0, "readings may be out of order by this many seconds {}"),
    NumberOption("--source-silent-after", 600.0, SILENT_HELP),
    NumberOption("--max-skew", 300.0, "refuse readings ahead of the clock by more seconds {}"),
    NumberOption("--clock-wait", 900.0, "trust a clock that jumped after this many seconds {}"),
    NumberOption("--handler-limit", 30.0, LIMIT_HELP),
    NumberOption("--report", None, REPORT_HELP, _ABOVE_0),
)
FLAGS: Mapping[str, str] = {
    "--keep-readings": "keep each accepted reading, as read (default: no)",
    DROP_OPTION: "delete what a former program stored of variables (default: no)",
    "--trust-clock": "this machine's clock is right, always (default: no)",
    "--exit-when-done": "end when a replay has landed, windows with a lander or gateway and "
    "results of each device with a lander, and those who are connected agree on the fleet's "
    "values; not where events stay on their device, by local=: gateways may ask for them "
    "(default: no)",
}


def _dest(name: str) -> str:
    """Return an option's place in a namespace."""
    return name.removeprefix("--").replace("-", "_")


DEFAULTS: Mapping[str, Any] = {
    **{_dest(each.name): each.default for each in NUMBERS},
    **{_dest(name): False for name in FLAGS},
    **dict.fromkeys(("fleet", "home_assistant", "dashboard_url", "log_level", "log_format"), ""),
    "verbose": False,
}
"""The value of an option that neither the command line nor the file gives."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments; None stands for an option that is not given."""
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
    for each in NUMBERS:
        text = each.help.format(f"(default: {each.default:g})" if each.default else "")
        add(each.name, type=float, metavar=each.unit[0].upper(), help=text)
    add("--home-assistant", nargs="?", const=HOME, metavar="PREFIX", help=HOME_HELP)
    add("--dashboard-url", metavar="URL", help=DASHBOARD_HELP)
    for name, text in FLAGS.items():
        add(name, action="store_const", const=True, help=text)
    add(
        "--metrics",
        metavar="[HOST:]PORT",
        help="serve /metrics and /healthz, on this machine (default: no)",
    )
    add_log_arguments(parser)


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Return the settings that the arguments ask for.

    Raises:
        ValueError: a number, or a topic, cannot be one.
    """
    for each in NUMBERS:
        each.check(getattr(arguments, _dest(each.name)))
    return Settings.paced(
        arguments.interval,
        arguments.commit_every,
        results_us=round(_results_s(arguments) * SECOND_US),
        home_assistant=_home_assistant(arguments),
        dashboard_url=dashboard_url(arguments.dashboard_url),
        retain_us=round(arguments.retain_days * 86_400 * SECOND_US),
        lateness_us=round(arguments.lateness * SECOND_US),
        source_silent_us=round(arguments.source_silent_after * SECOND_US),
        max_skew_us=round(arguments.max_skew * SECOND_US),
        clock_wait_us=round(arguments.clock_wait * SECOND_US),
        handler_limit_us=round(arguments.handler_limit * SECOND_US),
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


def dashboard_url(given: str) -> str:
    """Return the address of a dashboard, which Home Assistant would refuse with its whole device.

    Raises:
        UsageError: it is not the address of a page, or has a password in it.
    """
    found = urlsplit(given)
    if given and (found.scheme not in {"http", "https"} or not found.hostname):
        raise UsageError(f"--dashboard-url: http://HOST:PORT/ is needed, not {given!r}")
    if "@" in found.netloc:
        raise UsageError(
            "--dashboard-url: the broker shows it to everybody, so leave out user and password: "
            f"{found.scheme}://{found.netloc.rpartition('@')[2]}{found.path}"
        )
    return given
