"""What commands that run for long write of themselves: how much of it, as text or as JSON.

All of it goes through Python's logging, to standard error. As text it is for people; as JSON each
line is one object for a collector of logs, and what a command tells people at other times on
standard output, such as an agent's reports, is among these lines.
"""

import argparse
import logging
import sys
from collections.abc import Callable
from typing import Any, Final

LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")
TEXT: Final = "%(asctime)s %(message)s"
_TOLD: Final = "lasp_edge.told"

LEVEL_HELP = "log what is at least this important (default: warning)"
FORMAT_HELP = (
    "log lines of text, or a JSON object a line, with time, level, event and more (default: text)"
)


def add_log_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how much is logged, and how; None stands for what was not given."""
    add = parser.add_argument
    add("--log-level", choices=LEVELS, help=LEVEL_HELP)
    add("--log-format", choices=FORMATS, help=FORMAT_HELP)
    verbose = "the same as --log-level info (default: no)"
    add("--verbose", action="store_const", const=True, help=verbose)


def set_up_logs(arguments: argparse.Namespace, text: str = TEXT, **fields: str) -> None:
    """Have the process log as the arguments say.

    Args:
        arguments: of `add_log_arguments`.
        text: the format of a line of text.
        fields: stand in every line of JSON, such as the device.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(text))
    if is_json(arguments):
        from lasp_edge.tool.json_lines import JsonFormatter  # noqa: PLC0415 - most log text

        handler.setFormatter(JsonFormatter(fields))
    level = arguments.log_level or ("info" if arguments.verbose else "warning")
    logging.basicConfig(handlers=[handler], level=level.upper())


def is_json(arguments: argparse.Namespace) -> bool:
    """Return whether the arguments ask for lines of JSON."""
    return bool(arguments.log_format == "json")


def words_of(arguments: argparse.Namespace) -> list[str]:
    """Return the options with which a child process logs in the same way."""
    words = [f"--log-level={arguments.log_level}"] if arguments.log_level else []
    words += [f"--log-format={arguments.log_format}"] if arguments.log_format else []
    return words + (["--verbose"] if arguments.verbose else [])


def teller(arguments: argparse.Namespace) -> Callable[[str], None]:
    """Return what tells people a line: on standard output, or among the lines of JSON."""
    return tell_as_json if is_json(arguments) else _print


def tell_as_json(line: str, **fields: Any) -> None:
    """Write a line of JSON, however little is logged otherwise."""
    log = logging.getLogger(_TOLD)
    log.setLevel(logging.INFO)
    log.info("%s", line, extra=fields)


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201
