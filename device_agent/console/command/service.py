r"""Have systemd start an agent with the machine, and watch over it.

What comes after `--` are the words of `lasp-edge agent`, as you would type them here; they are
checked first. Files are found from the current directory, as now. Without --print, root writes
/etc/systemd/system/NAME.service, and the next command to type is printed:

  sudo ~/lasp/bin/lasp-edge service install -- greenhouse:program --device kitchen \
      --broker mqtt://192.168.1.10 --data-dir ~/lasp/data --source host
"""

import argparse
import getpass
import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from device_agent.console.command import run_agent
from device_agent.console.configuration import agent_options
from lasp_edge.errors import EnvironmentLacks, Exit, UsageError
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.parser import CommandParser

SECTION = "a device"
UNITS = Path("/etc/systemd/system")
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.@-]{0,200}")
_PLAIN = re.compile(r"[\w@%+=:,./-]+")

# Each line is in systemd.exec(5), systemd.service(5) or systemd.unit(5). The agent reads sensors
# and files, talks to the broker, and writes in its data directory: nothing else is left to it.
_UNIT = """\
[Unit]
Description=lasp-edge {what}
# A Pi has no clock of its own; the agent waits for a right one anyway.
After=network-online.target time-sync.target
Wants=network-online.target
# It is started again for ever, not only five times.
StartLimitIntervalSec=0

[Service]
ExecStart={line}
WorkingDirectory={directory}
User={user}
# The agent says that it is well. One that stands still for five minutes is started again.
Type=notify
WatchdogSec=300
TimeoutStartSec=300
Restart=always
RestartSec=5
# It may read the machine, and write its data.
ProtectSystem=strict
ProtectHome=read-only
ReadWritePaths={data}
PrivateTmp=yes
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
MemoryMax=256M

[Install]
WantedBy=multi-user.target
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    if isinstance(parser, CommandParser):
        parser.advice = "the words of `lasp-edge agent` stand after --"
    add("action", choices=["install"], help="what to do: write the unit")
    add("agent", nargs="+", metavar="WORD", help="after `--`: the words of `lasp-edge agent`")
    add("--name", default="lasp-edge", help="of the unit; each agent of a machine has its own")
    add("--user", help="who runs it (default: you, also where you type sudo)")
    add("--print", action="store_true", help="print the unit, and write nothing")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if not _NAME.fullmatch(arguments.name):
        raise UsageError(f"--name: letters, digits and _.@- are needed, not {arguments.name!r}")
    parser = CommandParser("agent", None)
    agent_options.add_arguments(parser)
    wanted = run_agent.requested(parser.parse_args(arguments.agent)).arguments
    load_plan(wanted.program)
    user = arguments.user or os.environ.get("SUDO_USER") or getpass.getuser()
    data = wanted.data_dir.absolute()
    what = f"agent {wanted.device} of {wanted.program}"
    unit = unit_of(what, arguments.agent, Path.cwd(), user, data)
    if arguments.print:
        print(unit, end="")  # noqa: T201
        return Exit.FINE
    path = UNITS / f"{arguments.name}.service"
    _write(path, unit, data, user)
    start = f"sudo systemctl daemon-reload && sudo systemctl enable --now {arguments.name}"
    print(f"{path} is written. To start it now and with the machine, type: {start}")  # noqa: T201
    print(f"To see what it says, type: journalctl -fu {arguments.name}")  # noqa: T201
    return Exit.FINE


def unit_of(what: str, words: Sequence[str], directory: Path, user: str, data: Path) -> str:
    """Return the text of a unit.

    Args:
        what: which agent it is, for people.
        words: of `lasp-edge agent`.
        directory: from which files are found.
        user: who runs it.
        data: the agent's data directory.

    Raises:
        UsageError: a unit cannot hold one of these.
    """
    return _UNIT.format(
        what=_literal(what),
        line=" ".join(map(_word, (sys.executable, "-m", "lasp_edge", "agent", *words))),
        directory=_literal(str(directory)),
        user=user,
        data=_word(str(data)),
    )


def _write(path: Path, unit: str, data: Path, user: str) -> None:
    """Write the unit, and make the data directory, without which systemd does not start it."""
    try:
        path.write_text(unit, encoding="utf-8")
        if not data.exists():
            data.mkdir(parents=True)
            shutil.chown(data, user)
    except PermissionError as error:
        again = shlex.join([sys.executable, "-m", "lasp_edge", *sys.argv[1:]])
        raise EnvironmentLacks(f"only root may write {error.filename}", f"sudo {again}") from None
    except (OSError, LookupError) as error:
        raise UsageError(f"{path}: {error}") from None


def _literal(text: str) -> str:
    """Return a text in which systemd replaces nothing."""
    if not text.isprintable():
        raise UsageError(f"a unit cannot hold {text!r}")
    return text.replace("%", "%%")


def _word(text: str) -> str:
    """Return one word of a line, as systemd.syntax(7) quotes it."""
    literal = _literal(text).replace("$", "$$")
    if _PLAIN.fullmatch(literal):
        return literal
    return '"' + literal.replace("\\", "\\\\").replace('"', '\\"') + '"'
