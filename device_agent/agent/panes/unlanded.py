"""How old a reading that has not landed can be: the sharpest low watermark that is safe.

An entry that grows is dirty from its first reading to its last, though it is sent and lands again
and again. Were its pane's start all that is known of it, nothing would be final before the longest
pane of the program is over. But a version that has landed holds every reading until it left:

    W(v)     the time before which no source had more when version v left
    since    of an entry and a sink: the greatest W(v) of the versions that have landed there, and
             the pane's start before the first; lowered to the time of each reading that came after
             v and is older than W(v)

A low watermark is at most `since` of every dirty entry.

It is safe: let it be L, and let an accepted reading at t < L lie in an entry. Say it has not
landed. A reading makes its entry dirty, and only the acknowledgement of the newest version makes it
clean; so the entry is dirty, and L <= `since`. If no version has landed, that is the pane's start,
which is at most t: no. Else some v has landed with W(v) >= `since` > t. A version holds all that
was read before it left, so the reading came after v, and is older than W(v): then `since` was
lowered to t. So it has landed. Readings that were not accepted yet are the sources' part of the
promise.

Nothing of this is stored. A process that starts again knows of no version that has landed, promises
less for a while, and the frontier stays where it is.

Source: Akidau et al., "MillWheel", VLDB 2013 (a low watermark is that of the oldest pending work).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from crdts.frontier import BOTTOM_US
from device_agent.agent.stored_rows import PaneId
from lasp_edge.protocol.acks import Seqs

_KEPT: Final = 4
"""Versions of an entry whose acknowledgement is waited for: as many as frames are in flight."""
_NOTHING: Final[Mapping[PaneId, int]] = {}


class Unlanded:
    """What is known of the entries whose pane is not over.

    Args:
        promised_us: the greatest low watermark that was published; None before the first.

    Attributes:
        watched_us: readings that are older must be passed to `came`.
    """

    __slots__ = ("_latest_us", "_sent", "_since", "watched_us")

    def __init__(self, promised_us: int | None) -> None:
        self.watched_us = BOTTOM_US if promised_us is None else promised_us
        self._latest_us = BOTTOM_US
        self._sent: dict[PaneId, dict[int, int]] = {}
        self._since: dict[int, dict[PaneId, int]] = {}

    def watch(self, promised_us: int) -> None:
        """Have readings before this time passed to `came`: they are behind a promise."""
        self.watched_us = max(self.watched_us, promised_us)

    def sent(self, pane: PaneId, seq: int, low_us: int) -> None:
        """Note that a version leaves, when no source has more before `low_us`."""
        versions = self._sent.setdefault(pane, {})
        versions[seq] = low_us
        if len(versions) > _KEPT:
            del versions[min(versions)]
        self._latest_us = max(self._latest_us, low_us)
        self.watch(low_us)

    def landed(self, bit: int, seqs: Seqs) -> None:
        """Note that a sink has taken these versions."""
        since = self._since.setdefault(bit, {})
        replica = (seqs.incarnation, seqs.nonce)
        for pane, versions in self._sent.items():
            if pane[3:] == replica:
                lows_us = [low_us for seq, low_us in versions.items() if seq in seqs]
                since[pane] = max([*lows_us, since.get(pane, pane.pane_us)])

    def add(self, time_us: int, promised_us: int) -> None:
        """Note a reading that is perhaps older than the sources had promised.

        Args:
            time_us: of the reading.
            promised_us: the greatest low watermark that was published.
        """
        if time_us >= self._latest_us:
            return
        for lows_us in self._sent.values():
            for seq, low_us in lows_us.items():
                lows_us[seq] = min(low_us, time_us)
        for since in self._since.values():
            for pane, since_us in since.items():
                since[pane] = max(pane.pane_us, min(since_us, time_us))
        self._latest_us, self.watched_us = time_us, max(time_us, promised_us)

    def since(self, bit: int) -> Mapping[PaneId, int]:
        """Return before which time an entry's readings have landed, if later than its start."""
        return self._since.get(bit, _NOTHING)

    def forget(self, bits: int) -> None:
        """Take what has landed in these sinks back: another store is empty."""
        for bit in [bit for bit in self._since if bit & bits]:
            del self._since[bit]

    def keep(self, may_grow: Callable[[PaneId], bool]) -> None:
        """Forget the entries of which nothing more is to be known."""
        every: list[dict[PaneId, Any]] = [self._sent, *self._since.values()]
        for known in every:
            for pane in [pane for pane in known if not may_grow(pane)]:
                del known[pane]
