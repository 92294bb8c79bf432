"""The `lasp-edge` command: finds its sub-commands by entry points, and runs one of them.

A sub-command is a module with `add_arguments(parser)` and `run(arguments) -> int`, registered in
the entry point group `lasp_edge.commands`. The first line of its docstring is its line in the
overview. It may state the `SECTION` in which it stands there, and the `EXTRA` that installs the
packages it needs. Only the one that was asked for is imported, so a device never imports Spark.
"""

import ast
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path

from lasp_edge.errors import CommandError, EnvironmentLacks, Exit
from lasp_edge.release import RELEASE
from lasp_edge.tool.installing import install_line
from lasp_edge.tool.log_options import asks_for_json, begin_json, write_error
from lasp_edge.tool.parser import CommandParser

GROUP = "lasp_edge.commands"
SECTIONS = ("begin", "a device", "a fleet", "windows of a fleet", "more")
"""The headings of the overview; a command's module states its own as `SECTION`, or it is last."""
OURS = frozenset({"crdts", "lasp_edge", "device_agent", "cloud_tier", "simulations"})
EXTRAS = {"amqtt": "demo", "cryptography": "signed", "dateutil": "plot", "matplotlib": "plot"}
"""The extra that installs a package; others come with the `EXTRA` of the command, or `cloud`."""

_ONLY_64_BIT = frozenset({"deltalake", "pyarrow", "pyspark"})
"""Packages that nobody builds for 32 bit."""
_LEAST_64_BIT = 2**32
_HELP = {"-h", "--help"}


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
        if sys.maxsize < _LEAST_64_BIT and missing in _ONLY_64_BIT:
            what = f"the Python package {missing!r} needs a 64-bit system, and this one has 32"
            raise EnvironmentLacks(what) from None
        extra = EXTRAS.get(missing) or stated(module).get("EXTRA", "cloud")
        if _HELP & set(words):
            text = stated(module).get("__doc__", "")
            print(f"{text}\n\nIts options are printed after: {install_line(extra)}")  # noqa: T201
            return Exit.FINE
        raise EnvironmentLacks(what, install_line(extra)) from None
    return code


def stated(module: str) -> dict[str, str]:
    """Return the texts that a module states by name, and its `__doc__`, without importing it."""
    try:
        spec = find_spec(module)
        source = Path((spec and spec.origin) or "").read_text(encoding="utf-8")
    except (ImportError, ValueError, OSError):  # a module that is not installed states nothing
        return {}
    tree = ast.parse(source)
    found = {"__doc__": ast.get_docstring(tree) or ""}
    for each in tree.body:
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                found[name] = text
    return found


def _overview(known: dict[str, str]) -> str:
    """Return the commands by section, each with the first line of its module's docstring."""
    sections: dict[str, list[str]] = {section: [] for section in SECTIONS}
    for name, module in sorted(known.items()):
        texts = stated(module)
        summary = texts.get("__doc__", "").partition("\n")[0].removesuffix(".")
        line = f"  {name:10} {summary[:1].lower()}{summary[1:]}".rstrip()
        sections.get(texts.get("SECTION", ""), sections[SECTIONS[-1]]).append(line)
    lines = [line for title, found in sections.items() if found for line in ("", title, *found)]
    ending = "`lasp-edge COMMAND --help` says more; `lasp-edge --version` names the release."
    return "\n".join(["usage: lasp-edge COMMAND ...", *lines, "", ending])


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
