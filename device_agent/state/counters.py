"""Counted outcomes: totals by name, over all lives of the agent.

What strangers or a user's function say may have endless variety, so that only so many names are
kept; the rest is counted together.
"""

from collections.abc import Mapping

from device_agent.state.changes import Changes

KEPT_NAMES = 200
NAME_BYTES = 200
OTHER = "other reasons"


class Counters:
    """Totals by name.

    Args:
        totals: those of earlier lives.
    """

    __slots__ = ("_unwritten", "totals")

    def __init__(self, totals: Mapping[str, int]) -> None:
        self.totals = dict(totals)
        self._unwritten: set[str] = set()

    def add(self, name: str, changes: Changes, by: int = 1) -> None:
        """Count, in the next commit."""
        self.note(name, by)
        self.write(changes)

    def note(self, name: str, by: int = 1) -> None:
        """Count; it alone is worth no commit, and waits for `write`."""
        name = name.encode("ascii", "backslashreplace")[:NAME_BYTES].decode()
        if name not in self.totals and len(self.totals) >= KEPT_NAMES:
            group, colon, _ = name.partition(": ")
            name = f"{group}: {OTHER}" if colon else OTHER
        self.totals[name] = self.totals.get(name, 0) + by
        self._unwritten.add(name)

    def write(self, changes: Changes) -> None:
        """Put what was only noted into the changes."""
        for name in sorted(self._unwritten):
            changes.counters[name] = self.totals[name]
        self._unwritten.clear()
