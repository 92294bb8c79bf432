"""Counted outcomes: totals by name, over all incarnations of the agent, and the guard.

A name may hold what a stranger sent or what a user's function raised, which has endless variety.
So the number of names is bounded; what comes after that is counted together, by group: the text
before the first colon.

Whatever comes in, or is the user's, may raise anything, and the agent goes on: a frame, a source, a
key, a handler, a fold, a threshold's reaction and a part of the agent itself run under one rule,
the `Guard`. What they raise is counted by reason, with the file and line that raised it, and
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

from collections.abc import Callable, Mapping
from typing import Any, Final, ParamSpec, TypeVar

from device_agent.agent.changes import Changes, Facts
from device_agent.agent.parts import Part
from lasp_edge.errors import pass_interrupt
from lasp_edge.reasons import reason_of

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

KEPT_NAMES = 200
"""Names that are counted apart: some 40 kB at most, and more than a program and its faults have."""
NAME_BYTES = 200
"""Bytes of a name, at most: an error's type and the beginning of its text."""
OTHER = "other reasons"

FAILED = "failed: "
"""What the counted names of all failures begin with."""

REFUSED: Final = "refused: "
"""What the counted reason of each refused reading begins with."""
_OUT_OF_TIME: Final = {
    "too_late": "older than what is retained (--retain-days; is the file in the order of "
    "its times?)",
    "in_the_future": "ahead of the clock by more than --max-skew (are --time-zone and --time-unit "
    "right? is the clock? timedatectl)",
}
REFUSALS: Final = ("refused", *_OUT_OF_TIME)
"""The outcomes that `Counters.refused` has reasons of."""
OUTCOMES: Final = (
    "accepted",
    "repeated",
    "late",
    "too_late",
    "in_the_future",
    "doubtful",
    "refused",
)
"""What can become of a reading, for reports."""


class Counters(Part):
    """Totals by name.

    Args:
        totals: those of earlier incarnations.
        refused_before: what the store holds of the refusals that are older than the last start.
    """

    name = "counters"

    def __init__(
        self, totals: Mapping[str, int], refused_before: Mapping[str, int] | None = None
    ) -> None:
        self.totals = dict(totals)
        self._before = dict(totals)
        old = {name: total for name, total in totals.items() if name.startswith(REFUSED)}
        self._old = (
            Changes(facts=Facts(refused_before=old)) if old != (refused_before or {}) else None
        )
        self._unwritten: set[str] = set()
        self._pending = False

    def add(self, name: str, by: int = 1) -> None:
        """Count, and let the next commit have it."""
        self.note(name, by)
        self._pending = True

    def note(self, name: str, by: int = 1) -> None:
        """Count; it may wait for another commit."""
        name = _bounded(name.encode("ascii", "backslashreplace").decode())
        if name not in self.totals and len(self.totals) >= KEPT_NAMES:
            group, colon, _ = name.partition(": ")
            name = f"{group}: {OTHER}" if colon else OTHER
        self.totals[name] = self.totals.get(name, 0) + by
        self._unwritten.add(name)

    def take_changes(self) -> Changes | None:
        return self.take_notes() if self._pending else None

    def take_notes(self) -> Changes | None:
        self._pending = False
        changes, self._old = self._old or Changes(), None
        unwritten, self._unwritten = sorted(self._unwritten), set()
        changes.counters = {name: self.totals[name] for name in unwritten}
        return changes or None

    def report(self) -> dict[str, Any]:
        outcomes = {name: self.totals.get(name, 0) for name in OUTCOMES}
        return {**outcomes, "refused_because": self.refused}

    @property
    def refused(self) -> dict[str, int]:
        """How many readings were refused since the start, by reason."""
        found = {}
        for name, total in self.totals.items():
            new = total - self._before.get(name, 0)
            if new and name.startswith(REFUSED):
                found[name.removeprefix(REFUSED)] = new
            elif new and name in _OUT_OF_TIME:
                found[_OUT_OF_TIME[name]] = new
        return found


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


def _bounded(name: str) -> str:
    """Return a name that is not too long; a longer one ends behind a word, and with two dots."""
    if len(name) <= NAME_BYTES:
        return name
    begin = name[: NAME_BYTES - 3]
    return f"{begin if name[len(begin)] == ' ' else begin.rpartition(' ')[0] or begin} .."
