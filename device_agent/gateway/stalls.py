"""Scans with local events that stand: since when, by the gateway's clock, and who holds them."""

from collections.abc import Iterator
from typing import Final

from lasp_edge.evaluation.parted import PartedScans
from lasp_edge.ordered.stalls import HeldPlace, first_held, refused_parts
from lasp_edge.tool.local_events import refused_part, stands

STANDS_S: Final = 120
"""Seconds for which devices hold an event in order until its scan stands: an answer leaves at once,
and what was lost is published again after a minute."""


class ScanStalls:
    """Looks which scans go on.

    Args:
        parted: the scans.
    """

    def __init__(self, parted: PartedScans) -> None:
        self._parted = parted
        self._held: dict[str, tuple[HeldPlace, int]] = {}

    def look(self, frontier_us: int | None) -> None:
        """Note which event in order devices hold of each scan, at the time that the scans know."""
        for name, gathering in self._parted.gathered.items():
            held = None if frontier_us is None else first_held(gathering, frontier_us)
            before, since_s = self._held.pop(name, (None, 0))
            if held is not None:
                is_same = before is not None and before.time_us == held.time_us
                self._held[name] = (held, since_s if is_same else self._parted.least)

    def words(self) -> Iterator[str]:
        """Yield what people are to know, with what to type."""
        for name, gathering in self._parted.gathered.items():
            for part in refused_parts(gathering):
                yield refused_part(name, part)
        for name, (held, since_s) in self._held.items():
            if self._parted.least - since_s >= STANDS_S:
                yield stands(name, *held)
