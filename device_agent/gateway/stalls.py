"""Scans with local events that stand: since when, by the gateway's clock, and who holds them."""

from collections.abc import Iterator
from typing import Final

from lasp_edge.evaluation.parted import PartedScans
from lasp_edge.ordered.item_store import FOR_EVER_US
from lasp_edge.ordered.stalls import held_by, refused_parts
from lasp_edge.tool.local_events import refused_part, stands

STANDS_S: Final = 120
"""Seconds after which a scan stands whose first open event in order is the same: an answer leaves
at once, and what was lost is published again after a minute."""


class ScanStalls:
    """Looks which scans go on.

    Args:
        parted: the scans.
    """

    def __init__(self, parted: PartedScans) -> None:
        self._parted = parted
        self._since: dict[str, tuple[int, int]] = {}
        self._frontier_us: int | None = None

    def look(self, frontier_us: int | None) -> None:
        """Note at which event in order each scan is, at the time that the scans know."""
        self._frontier_us, now_s = frontier_us, self._parted.least
        for name, gathering in self._parted.gathered.items():
            first_us = gathering.settled_us(FOR_EVER_US)
            if self._since.get(name, (None, 0))[0] != first_us:
                self._since[name] = (first_us, now_s)

    def words(self) -> Iterator[str]:
        """Yield what people are to know, with what to type."""
        for name, gathering in self._parted.gathered.items():
            for part in refused_parts(gathering):
                yield refused_part(name, part)
            first_us, since_s = self._since.get(name, (FOR_EVER_US, 0))
            if first_us >= (self._frontier_us or 0) or self._parted.least - since_s < STANDS_S:
                continue
            if devices := held_by(gathering, first_us):
                yield stands(name, first_us, devices)
