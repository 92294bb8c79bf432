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

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from device_agent.agent.state.counters import Counters
from lasp_edge.errors import pass_interrupt
from lasp_edge.reasons import reason_of

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

FAILED = "failed: "
"""What the counted names of all failures begin with."""


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
        """Return the function, whose every error reaches its caller as a `UserError`.

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
