"""Exit codes of the commands, and the errors that a command prints as one line."""

from enum import IntEnum
from signal import SIGINT, default_int_handler, getsignal
from typing import Any


class Exit(IntEnum):
    """Exit codes of every command."""

    FINE = 0
    DIFFERS = 1
    USAGE = 2
    NOT_FOUND = 3
    ENVIRONMENT = 4
    NOT_CONFIRMED = 5
    NOTHING_COMPARED = 6
    INTERRUPTED = 130


class CommandError(Exception):
    """An error that the command line prints as one line, without a traceback."""

    exit_code = Exit.DIFFERS


class UsageError(CommandError):
    """The command was called with arguments that cannot work."""

    exit_code = Exit.USAGE


class NotFound(CommandError):  # noqa: N818 - it says what happened
    """The lake, program, window or data directory that was named is not there."""

    exit_code = Exit.NOT_FOUND


class BrokerUnreachable(CommandError):  # noqa: N818 - it says what happened
    """There is no connection to the broker; the text says why, and what to type."""

    exit_code = Exit.ENVIRONMENT


class EnvironmentLacks(CommandError):  # noqa: N818 - reads as what happened
    """The machine lacks something that the command needs.

    Args:
        what: what is missing, as a sentence part ("Java 17 or later is not installed").
        line_to_type: the command that installs it; "" where nothing does.
    """

    exit_code = Exit.ENVIRONMENT

    def __init__(self, what: str, line_to_type: str = "") -> None:
        super().__init__(f"{what}; to bring it, type: {line_to_type}" if line_to_type else what)
        self.what = what
        self.line_to_type = line_to_type


class WrongAnswer(ValueError):  # noqa: N818 - it says what happened
    """A function of the user's returned what it must not, as a key that is no text.

    Attributes:
        function: it returned without raising, so no traceback names its file and line.
    """

    def __init__(self, text: str, function: Any) -> None:
        super().__init__(text)
        self.function = function


ENDS_PROCESS = "the process ends: who goes on would lack what its store holds"
"""The note of an error that no guard counts as the fault of a function."""


def pass_interrupt(error: BaseException) -> None:
    """Raise a person's Ctrl-C again, and what ends the process; all else is an error of a function.

    A process that handles SIGINT itself, as the agent's does, gets no `KeyboardInterrupt` from a
    person: then one can only come from a function.
    """
    if ENDS_PROCESS in getattr(error, "__notes__", ()):
        raise error
    if isinstance(error, KeyboardInterrupt) and getsignal(SIGINT) is default_int_handler:
        raise error
