"""The guard: whatever comes in, or is the user's, may raise anything, and the agent goes on.

A frame, a source, a key, a handler, a fold, a threshold's reaction and a part of the agent itself
run under one rule. What they raise is counted by reason, with the file and line that raised it, and
it stands in `status` under FAILED. `SystemExit` and the like count as errors: no function of a
program ends the agent that runs it. A person's Ctrl-C alone passes (`lasp_edge.errors`).

What must not be half done stands in the order of the code, and not here: a function of the user's
is asked before anything is changed, and what it gave is then taken whole.

    >>> guard = Guard(Counters({}))
    >>> guard.run("key of window by_room", lambda: 1 // 0)
    >>> [reason] = guard.reasons
    >>> reason.startswith("failed: key of window by_room: ZeroDivisionError: ")
    True
"""

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from device_agent.state.counters import Counters
from lasp_edge.errors import pass_interrupt

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

FAILED = "failed: "
"""What the counted names of all failures begin with."""
_TEXT = 110
"""Characters of an error's own text, at most: with its place it stays within a counted name."""
_PLACE = 60
"""Characters of a place, at most: the end of a long path tells more than its beginning."""
_INSTALLED = str(Path(__file__).resolve().parent.parent)
_OURS = tuple(f"{_INSTALLED}/{package}/" for package in ("crdts", "device_agent", "lasp_edge"))
_PACKAGES = ("site-packages", "dist-packages")
_LIBRARIES = (
    str(Path(os.__file__).parent),
    *(place for place in sys.path if place.endswith(_PACKAGES)),
)


class Guard:
    """Runs what may raise anything, and counts what it raised.

    Args:
        counters: where failures are counted.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def run(
        self,
        what: str,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result | None:
        """Return what a function returns; None where it raised, which is counted."""
        try:
            return function(*arguments, **named)
        except BaseException as error:  # noqa: BLE001 - see the module
            self.failed(what, error)
            return None

    def failed(self, what: str, error: BaseException, times: int = 1) -> None:
        """Count what something raised; a person's Ctrl-C is raised again."""
        pass_interrupt(error)
        self._counters.note(f"{FAILED}{what}: {reason_of(error)}", times)

    def watched(
        self, function: Callable[..., Any], notice: Callable[[BaseException], None]
    ) -> Callable[..., Any]:
        """Return the function, whose caller is told of every error as a `UserError`.

        Args:
            function: a function of the user's.
            notice: is given what it raised.
        """

        def asked(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except BaseException as error:
                pass_interrupt(error)
                notice(error)
                raise UserError from error

        return asked

    def say(self, what: str) -> None:
        """Count something that went wrong though nothing raised an error here."""
        self._counters.note(f"{FAILED}{what}")

    @property
    def reasons(self) -> list[str]:
        """What was counted, sorted."""
        return sorted(name for name in self._counters.totals if name.startswith(FAILED))


class UserError(Exception):
    """A function of the user's raised something, which was noted."""


def reason_of(error: BaseException) -> str:
    """Return an error's type, its text, and where it was raised, as one short line.

    The place is the innermost line of the user's, or ours where none of the user's is in it.
    """
    kind, place = type(error).__name__, place_of(error)
    try:
        text = str(error)
    except BaseException as worse:  # noqa: BLE001 - a user's exception may raise when it is printed
        pass_interrupt(worse)
        text = ""
    words = f"{kind}: {_short(text)}" if text else kind
    return f"{words} ({place})" if place else words


def place_of(error: BaseException) -> str:
    """Return the file and line that raised an error; empty text where that is unknown."""
    found = ""
    users = False
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        theirs = not file.startswith((*_OURS, *_LIBRARIES, "<frozen"))
        if theirs or not users:
            found, users = f"{file}:{line}", users or theirs
    return found[-_PLACE:] if len(found) <= _PLACE else f"..{found[2 - _PLACE :]}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT else f"{line[: _TEXT - 2]}.."
