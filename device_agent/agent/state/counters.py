"""Counted outcomes: totals by name, over all incarnations of the agent.

A name may hold what a stranger sent or what a user's function raised, which has endless variety.
So the number of names is bounded; what comes after that is counted together, by group: the text
before the first colon.
"""

from collections.abc import Mapping
from typing import Any, Final

from device_agent.agent.changes import Changes, Facts
from device_agent.agent.parts import Part

KEPT_NAMES = 200
"""Names that are counted apart: some 40 kB at most, and more than a program and its faults have."""
NAME_BYTES = 200
"""Bytes of a name, at most: an error's type and the beginning of its text."""
OTHER = "other reasons"

REFUSED: Final = "refused: "
"""What the counted reason of each refused reading begins with."""
_OUT_OF_TIME: Final = {
    "too_late": "older than what is retained (--retain-days; is the file in the order of "
    "its times?)",
    "in_the_future": "ahead of the clock by more than --max-skew (are --time-zone and --time-unit "
    "right? is the clock? timedatectl)",
}
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


def _bounded(name: str) -> str:
    """Return a name that is not too long; a longer one ends behind a word, and with two dots."""
    if len(name) <= NAME_BYTES:
        return name
    begin = name[: NAME_BYTES - 3]
    return f"{begin if name[len(begin)] == ' ' else begin.rpartition(' ')[0] or begin} .."
