r"""Look whether an agent can do its work here, and say what to type where it cannot.

Takes the words of `lasp-edge agent`, or its file, as far as they are known; nothing is changed, and
an agent may be running. Each line says ok, warning or wrong, or which words were missing. Sensors
are read once, and the program's functions for keys are run with what they give.

  lasp-edge doctor --config fleet.toml
  lasp-edge doctor greenhouse:program --device kitchen --broker mqtt://192.168.1.10 \
      --data-dir ~/lasp/data --source host

Ends with 1 if anything is wrong, with 0 if not.
"""

import argparse
import json

from device_agent.console.command.checkup.checks import examined
from device_agent.console.command.checkup.result import CheckResult, Level, Subject
from device_agent.console.configuration import agent_options
from device_agent.console.configuration.arguments import asked
from lasp_edge.errors import Exit
from lasp_edge.tool.log_options import set_up_logs

SECTION = "a device"
_WIDTH = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments: those of an agent, and two."""
    agent_options.add_arguments(parser)
    add = parser.add_argument
    add("--unit", default="lasp-edge", metavar="NAME", help="the agent's unit for systemd")
    add("--json", action="store_true", help="print one JSON object")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    wanted = asked(given, agent_options.add_arguments, agent_options.DEFAULTS)
    wanted.arguments.log_level = wanted.arguments.log_level or "error"  # the lines say it
    set_up_logs(wanted.arguments)
    found = []
    for name, result in examined(Subject(wanted, given.unit)):
        found.append((name, result))
        if not given.json:
            print(_line(name, result), flush=True)  # noqa: T201
    wrong, warnings = (sum(each.level is level for _, each in found) for level in _COUNTED)
    if given.json:
        checks = [{"check": name, **result._asdict()} for name, result in found]
        print(json.dumps({"wrong": wrong, "warnings": warnings, "checks": checks}))  # noqa: T201
    else:
        print(f"{wrong} wrong, {warnings} warning{'s' * (warnings != 1)}")  # noqa: T201
    return Exit.DIFFERS if wrong else Exit.FINE


_COUNTED = (Level.WRONG, Level.WARNING)


def _line(name: str, result: CheckResult) -> str:
    line = f"{result.level.value:{_WIDTH}} {name:{_WIDTH}} {result.says}"
    return f"{line}\n{'':{2 * _WIDTH + 2}}type: {result.type}" if result.type else line
