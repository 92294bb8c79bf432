"""Frontier: the time before which no device will say anything more.

Each device promises a **low watermark**: it will send nothing older. The frontier is the least
promise of the devices that count, and a result about an earlier time is final. A promise is an
owned entry, so a repeated, late or overtaken one changes nothing; a frontier that counted events up
and down (or XOR-ed them, as stream processors on reliable links do) would be wrong for ever after
one duplicate.

A device never takes a promise back: one below its standing promise is raised to it.

Cost: a device's name, 9 B for the time and 8 to 20 B for the version; nothing grows but the number
of devices.

>>> from crdts import Frontier, Replica
>>> kitchen, cellar = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")
>>> frontier = Frontier()
>>> frontier |= frontier.promise(kitchen, 1, low_us=60_000_000)
>>> frontier.low(["kitchen", "cellar"])
>>> frontier |= frontier.promise(cellar, 1, low_us=50_000_000)
>>> frontier.low(["kitchen", "cellar"])
50000000

Source: Tyler Akidau et al., "The Dataflow Model", VLDB 2015 (watermarks); Derek Murray et al.,
"Naiad: A Timely Dataflow System", SOSP 2013 (frontiers).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from crdts.owned_map import OwnedMap
from crdts.plain import INTEGERS, need_int
from crdts.replica import Replica


@dataclass(slots=True)
class Frontier(OwnedMap):
    """Device -> its newest low watermark, in µs since the epoch."""

    def promise(self, replica: Replica, seq: int, low_us: int) -> Self:
        """Return the delta in which `replica` promises nothing older than `low_us`."""
        standing = self.entries.get(replica.device)
        low_us = self.need_payload(low_us)
        return self.put(replica, seq, max(low_us, standing.payload) if standing else low_us)

    def low(self, devices: Iterable[str]) -> int | None:
        """Return the least promise of `devices`; None while one of them has promised nothing.

        No devices, no promise: also None.
        """
        entries = [self.entries.get(device) for device in devices]
        if not entries or None in entries:
            return None
        lows: list[int] = [entry.payload for entry in entries if entry is not None]
        return min(lows)

    @staticmethod
    def need_payload(payload: Any) -> int:
        return need_int(payload, "a low watermark", least=-INTEGERS)
