"""Who holds up results, in the words of a gateway and a job: devices, and scans that stand.

>>> waiting_for(["attic", "cellar", "hall", "shed"])
['waiting for attic, cellar, hall, 1 more']
"""

from collections.abc import Iterator, Sequence
from typing import Final

from lasp_edge.evaluation.parted import PartedScans
from lasp_edge.ordered.stalls import HeldPlace, first_held, refused_parts
from lasp_edge.tool.local_events import MOST_NAMED, refused_part, stands

STANDS_S: Final = 120
"""Seconds for which devices hold an event in order until its scan stands: an answer leaves at once,
and what was lost is published again after a minute."""


def waiting_for(devices: Sequence[str]) -> list[str]:
    """Return that results wait for devices; nothing where they wait for none."""
    return [f"waiting for {several(devices)}"] if devices else []


def several(named: Sequence[str]) -> str:
    """Return the first of some names, and how many more there are."""
    more = [f"{len(named) - MOST_NAMED} more"] if len(named) > MOST_NAMED else []
    return ", ".join([*named[:MOST_NAMED], *more])


class ScanStalls:
    """Looks which scans with local events go on, and since when they do not.

    Args:
        parted: the scans.
    """

    def __init__(self, parted: PartedScans) -> None:
        self._parted = parted
        self._held: dict[str, tuple[HeldPlace, int]] = {}
        self._now_s = 0

    def look(self, frontier_us: int | None, now_s: int) -> None:
        """Note which event in order devices hold of each scan, at a time of any clock."""
        self._now_s = now_s
        for name, gathering in self._parted.gathered.items():
            held = None if frontier_us is None else first_held(gathering, frontier_us)
            before, since_s = self._held.pop(name, (None, 0))
            if held is not None:
                is_same = before is not None and before.time_us == held.time_us
                self._held[name] = (held, since_s if is_same else now_s)

    def words(self) -> Iterator[str]:
        """Yield what people are to know, with what to type."""
        for name, gathering in self._parted.gathered.items():
            for part in refused_parts(gathering):
                yield refused_part(name, part)
        for name, (held, since_s) in self._held.items():
            if self._now_s - since_s >= STANDS_S:
                yield stands(name, *held)
