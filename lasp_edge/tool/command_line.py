"""The `lasp-edge` command: finds its sub-commands by entry points, and runs one of them.

A sub-command is a module with `add_arguments(parser)` and `run(arguments) -> int`, registered in
the entry point group `lasp_edge.commands`. Only the one that was asked for is imported, so a device
never imports Spark.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

from lasp_edge.errors import CommandError, EnvironmentLacks, Exit
from lasp_edge.release import RELEASE
from lasp_edge.tool.installing import install_line
from lasp_edge.tool.log_options import asks_for_json, begin_json, write_error
from lasp_edge.tool.parser import CommandParser

GROUP = "lasp_edge.commands"
ORDER = (
    "demo",
    "new",
    "check",
    "simulate",
    "agent",
    "watch",
    "dashboard",
    "get",
    "service",
    "doctor",
    "status",
    "members",
    "retire",
    "admit",
    "set",
    "schedule",
    "broker",
    "keys",
    "readings",
    "gateway",
    "cloud",
    "lander",
    "lake",
    "windows",
    "results",
    "globals",
    "completion",
)

OURS = frozenset({"crdts", "lasp_edge", "device_agent", "cloud_tier", "simulations"})
EXTRAS = {"amqtt": "demo", "cryptography": "signed"}
"""The extra that installs a package; a package that is not listed here comes with `cloud`."""
WITHOUT_SPARK = frozenset({"lander", "lake", "windows", "results", "globals", "dashboard"})
"""Commands for which the small extra `lake` is enough where others need `cloud`."""

SUMMARY = {
    "demo": "five devices on this machine agree on a fleet average, and Spark confirms it",
    "check": "try the laws on a program's folds; warn of functions changed without a new version",
    "simulate": "run a program in a virtual fleet, with faults, and compare it with the truth",
    "new": "make the files of a program of your own, ready to run",
    "agent": "run a program on this device",
    "watch": "a live table of a fleet: what each device holds, and how far it is behind",
    "dashboard": "a page for the browser: a fleet's values, devices and windows, live",
    "get": "print one value of a fleet",
    "service": "have systemd start an agent with the machine, and watch over it",
    "doctor": "look whether an agent can do its work here; say what to type where not",
    "status": "what a device's agent has accepted, refused and still has to send",
    "members": "the devices of a fleet: who is connected, and who was retired",
    "retire": "count a device no more: it is broken, sold or cloned",
    "admit": "count a retired device again",
    "set": "change a parameter of a running program, from a time on",
    "schedule": "what was said of a program's parameters, by whom, and who knows it",
    "broker": "write the configuration of a broker with rights for each device",
    "keys": "make a key that signs a device's messages",
    "readings": "the readings that an agent kept, as JSON lines",
    "gateway": "keep a fleet's windows on this machine, a Pi for example, without Spark",
    "cloud": "merge a fleet into Delta tables and keep its windows, in Spark",
    "lander": "only take the fleet's messages into the lake, without Spark",
    "lake": "how a lake is: its tables, how far results are final, who holds them",
    "windows": "print a window of a lake or of a gateway, without Spark",
    "results": "print the rows of a program's result in a lake, without Spark",
    "globals": "print the fleet-wide values of the lake, without Spark",
    "completion": "print what lets bash or zsh complete these commands",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code (see `lasp_edge.errors.Exit`)."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in {"--version", "-V", "version"}:
        print(f"lasp-edge {RELEASE}, Python {sys.version.split()[0]}")  # noqa: T201
        return Exit.FINE
    known = commands()
    if words and words[0] in known:
        return run_command(words[0], known[words[0]], words[1:])
    if words and words[0] not in {"-h", "--help", "help"}:
        return _unknown(known, words)
    print(_overview(known))  # noqa: T201
    return Exit.FINE if words else Exit.USAGE


def commands() -> dict[str, str]:
    """Return each command's name and module."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - 4 MiB that an agent does without

    return {point.name: point.value for point in entry_points(group=GROUP)}


def run_command(name: str, module: str, words: Sequence[str]) -> int:
    """Run the command `name`, which is in `module`, with these arguments; return its exit code."""
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # no letter of a name ends a command
    if asks_for_json(words):
        begin_json({})
    try:
        return _run(name, module, words)
    except CommandError as error:
        write_error(name, error, error.exit_code)
        return error.exit_code
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:  # the reader (`| head`) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FINE


def _run(name: str, module: str, words: Sequence[str]) -> int:
    try:
        command = import_module(module)
        parser = CommandParser(name, command.__doc__)
        command.add_arguments(parser)
        code: int = command.run(parser.parse_args(words))
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        if missing in OURS:
            raise
        what = f"the Python package {missing!r} is not installed"
        extra = EXTRAS.get(missing, "lake" if name in WITHOUT_SPARK else "cloud")
        raise EnvironmentLacks(what, install_line(extra)) from None
    return code


def _overview(known: dict[str, str]) -> str:
    names = sorted(known, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    lines = [f"  {name:10} {SUMMARY.get(name, '')}" for name in names]
    ending = "`lasp-edge COMMAND --help` says more; `lasp-edge --version` names the release."
    return "\n".join(["usage: lasp-edge COMMAND ...", "", *lines, "", ending])


def _unknown(known: dict[str, str], words: Sequence[str]) -> int:
    from difflib import get_close_matches  # noqa: PLC0415 - rarely needed

    word, command = words[0], next((each for each in words if each in known), "")
    if word.startswith("-") and command:
        text = f"options stand after the command, as in `lasp-edge {command} {word}`"
        print(f"lasp-edge: {text}", file=sys.stderr)  # noqa: T201
        return Exit.USAGE
    near = get_close_matches(word, known, 1)
    hint = f"did you mean `lasp-edge {near[0]}`?" if near else "`lasp-edge help` lists them all"
    print(f"lasp-edge: no command {word!r}; {hint}", file=sys.stderr)  # noqa: T201
    return Exit.USAGE
