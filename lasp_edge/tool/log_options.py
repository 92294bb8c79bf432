"""The logs of commands that run for long: how much they log, as text or as JSON.

All lines go through Python's logging, to standard error. As text it is for people; as JSON each
line is one object for a collector of logs, and lines for people that go to standard output
otherwise, such as an agent's reports, are among them. So is the last line of a command
that ends with an error, even one that is found before all options are known.
"""

import argparse
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, TextIO

LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")
TEXT: Final = "%(asctime)s %(message)s"
_REPORT: Final = "lasp_edge.report"
_FORMAT_OPTION: Final = "--log-format"
_SHORTEST: Final = "--log-f"
"""The shortest word that argparse takes for the option."""


class _Log(logging.StreamHandler[TextIO]):
    """Where a command's own log goes; who embeds one has handlers of its own."""

    is_json = False


LEVEL_HELP = "log what is at least this important (default: warning)"
FORMAT_HELP = (
    "log lines of text, or a JSON object a line, with time, level, event and more (default: text)"
)


def add_log_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how much is logged, and how; None stands for an option that was not given."""
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
    level = arguments.log_level or ("info" if arguments.verbose else "warning")
    if is_json(arguments):
        begin_json(fields, level)
        return
    _log_to(logging.Formatter(text), level)


def begin_json(fields: Mapping[str, str], level: str = "warning") -> None:
    """Have the process write nothing but lines of JSON to standard error.

    Args:
        fields: stand in every line.
        level: the least that is logged.
    """
    from lasp_edge.tool.json_lines import JsonFormatter  # noqa: PLC0415 - most log text

    _log_to(JsonFormatter(fields), level, is_json=True)
    logging.captureWarnings(capture=True)
    sys.excepthook = _log_end


def _log_to(formatter: logging.Formatter, level: str, *, is_json: bool = False) -> None:
    """Have the process log in one form, in place of the one before."""
    for handler in [each for each in logging.root.handlers if isinstance(each, _Log)]:
        logging.root.removeHandler(handler)
    handler = _Log(sys.stderr)
    handler.is_json = is_json
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=level.upper())


def asks_for_json(words: Sequence[str]) -> bool:
    """Return whether a command line asks for JSON, before anybody has parsed it.

    >>> asks_for_json(["agent", "--log-format", "json"]), asks_for_json(["--log-format=text"])
    (True, False)
    >>> asks_for_json([]), asks_for_json(["agent", "--log-format"])
    (False, False)
    """
    format_name = ""
    for word, after in zip(words, [*words, ""][1:], strict=True):
        option, has_value, value = word.partition("=")
        if option.startswith(_SHORTEST) and _FORMAT_OPTION.startswith(option):
            format_name = value if has_value else after
    return format_name == "json"


def write_error(command: str, error: Exception, exit_code: int) -> None:
    """Write why a command ends, as the last line of its log."""
    if any(isinstance(handler, _Log) and handler.is_json for handler in logging.root.handlers):
        extra = {"command": command, "exit_code": int(exit_code)}
        logging.getLogger(_REPORT).error("%s", error, extra=extra)
    else:
        print(f"lasp-edge {command}: {error}", file=sys.stderr)  # noqa: T201


def _log_end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Log the uncaught error that ends the process."""
    logging.getLogger(_REPORT).critical(
        "%s: %s", kind.__name__, error, exc_info=(kind, error, trace)
    )


def is_json(arguments: argparse.Namespace) -> bool:
    """Return whether the arguments ask for lines of JSON."""
    return bool(arguments.log_format == "json")


def words_of(arguments: argparse.Namespace) -> list[str]:
    """Return the options with which a child process logs in the same way."""
    words = [f"--log-level={arguments.log_level}"] if arguments.log_level else []
    words += [f"--log-format={arguments.log_format}"] if arguments.log_format else []
    return words + (["--verbose"] if arguments.verbose else [])


def teller(arguments: argparse.Namespace) -> Callable[[str], None]:
    """Return a function that writes a line for people: on standard output, or as JSON."""
    return tell_as_json if is_json(arguments) else _print


def tell_as_json(line: str, **fields: Any) -> None:
    """Write a line of JSON, however little is logged otherwise."""
    log = logging.getLogger(_REPORT)
    log.setLevel(logging.INFO)
    log.info("%s", line, extra=fields)


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201
