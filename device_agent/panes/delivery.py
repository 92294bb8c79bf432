"""Pane entries on their way to the lake: dirty until a frame that holds them has landed.

Due entries leave in frames of bounded size, oldest first, a few frames at a time. An entry is clean
once a frame with its present seq is acknowledged (`flights`). Acknowledgements name their lake:
under another lake, everything is sent again.
"""

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from device_agent.agent import Agent
from device_agent.changes import Changes, PaneId
from device_agent.facts import Facts
from device_agent.panes.cache import PaneCache
from device_agent.panes.flights import Flights
from device_agent.panes.panes import Panes
from device_agent.parts import Handler, Part, Publication
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.fencing import SourceHigh
from lasp_edge.protocol.frames import AckFrame, PaneFrame
from lasp_edge.protocol.sizes import BLOCK_OVERHEAD_BYTES, FRAME_OVERHEAD_BYTES, entry_bytes

FRAME_BYTES = 16_384
"""Bytes of a frame, at most, unless one entry is larger: some hundred entries, and a second on the
slowest link that is of use (128 kbit/s)."""


class PaneDelivery(Part):
    """Sends dirty pane entries until they have landed.

    Args:
        agent: what all parts share.
        panes: the entries in memory.
        is_finished: tells whether all sources are finished: then entries need not be due.
        highs: tells how far the sources have come.

    Attributes:
        memory: the entries in memory.
        cache: chooses which entries are in memory.
        flights: the frames that are not acknowledged.
        lake: the lake that acknowledged last; None before the first acknowledgement.
    """

    name = "panes"

    def __init__(
        self,
        agent: Agent,
        panes: Panes,
        is_finished: Callable[[], bool],
        highs: Callable[[], tuple[SourceHigh, ...]] = tuple,
    ) -> None:
        self._agent = agent
        self.memory = panes
        self.flights = Flights(Random(agent.replica.nonce))
        self._is_finished = is_finished
        self._highs = highs
        self._facts = Facts()
        self.lake = agent.facts.lake
        self.cache = PaneCache(panes, lambda pane: self.flights.seq_of(pane) is not None)

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {AckFrame: self.acknowledged}

    def acknowledged(self, frame: AckFrame, _now_us: int) -> None:
        """Take note of frames that have landed."""
        if frame.about != self._agent.replica.device:
            return
        if frame.lake != self.lake:
            if self.lake is not None:
                self._send_all_again()
            self.lake = self._facts.lake = frame.lake
        if frame.addressee.nonce == self._agent.replica.nonce:
            for pane, seq in self.flights.acknowledge(frame.numbers):
                self.memory.landed(pane, seq)

    def _send_all_again(self) -> None:
        """Send every entry, in memory and in the store, to a lake that has none of them."""
        self.flights.forget()
        self.memory.all_dirty()
        self.cache.ask_again()

    def connected(self, _now_us: int) -> None:
        """Send everything that is not acknowledged again: the broker may have lost it."""
        self.memory.send_again(self.flights.abandon_all())

    def unsent(self, publication: Publication) -> None:
        if publication.pane_frame:
            self.memory.send_again(self.flights.cancel(publication.pane_frame))

    def succeed(self) -> None:
        self.memory.seq = 0  # all entries of the replica before it are frozen

    def take_changes(self) -> Changes | None:
        """Return the entries that changed, and the lake if it did."""
        changes = self.memory.take_changes()
        if self._facts:
            changes = changes or Changes()
            changes.facts, self._facts = self._facts, Facts()
        return changes

    def committed(self) -> None:
        self.cache.evict()

    def publications(self, now_us: int) -> Iterator[Publication]:
        """Yield frames of due entries, oldest first, while few are in flight."""
        for frame in self._frames(now_us):
            yield Publication.of(frame, self._agent.topics)

    def _frames(self, now_us: int) -> Iterator[PaneFrame]:
        panes, flights = self.memory, self.flights
        panes.send_again(flights.abandon_late(now_us))
        if flights.full or not panes.dirty:
            return
        due = panes.due(now_us, everything=self._is_finished())
        due = [pane for pane in due if flights.seq_of(pane) != panes.entries[pane].seq]
        while due and not flights.full:
            together, due = self._split(due)
            yield self._frame(together, now_us)

    def _split(self, due: list[PaneId]) -> tuple[list[PaneId], list[PaneId]]:
        """Split off as many entries as surely fit into one frame; at least one."""
        size = FRAME_OVERHEAD_BYTES
        groups: set[tuple[int, int, int]] = set()
        for index, pane in enumerate(due):
            group = (pane.stream, pane.incarnation, pane.nonce)
            partial = self.memory.entries[pane].partial
            binary = sum([len(part) for part in partial if isinstance(part, bytes)])
            size += entry_bytes(pane.key, len(partial), binary)
            size += 0 if group in groups else BLOCK_OVERHEAD_BYTES
            groups.add(group)
            if index and size > FRAME_BYTES:
                return due[:index], due[index:]
        return due, []

    def _frame(self, panes: list[PaneId], now_us: int) -> PaneFrame:
        """Return a frame of these entries, which is then in flight."""
        groups: dict[tuple[int, int, int], list[PaneId]] = {}
        for pane in panes:
            groups.setdefault((pane.stream, pane.incarnation, pane.nonce), []).append(pane)
        blocks = tuple([self._block(*group, members) for group, members in groups.items()])
        self.memory.was_sent(panes, now_us)
        sent = [(pane, self.memory.entries[pane].seq) for pane in panes]
        number = self.flights.launch(sent, now_us)
        return PaneFrame(self._agent.replica, number, blocks, self._highs())

    def _block(self, stream: int, incarnation: int, nonce: int, panes: list[PaneId]) -> PaneEntries:
        entries = [self.memory.entries[pane] for pane in panes]
        return PaneEntries(
            stream,
            entries[0].end_us - panes[0].pane_us,
            incarnation,
            nonce,
            tuple(zip(*[entry.partial for entry in entries], strict=True)),
            tuple([pane.key for pane in panes]),
            tuple([pane.pane_us for pane in panes]),
            tuple([entry.seq for entry in entries]),
        )

    def report(self) -> dict[str, Any]:
        return {"dirty": len(self.memory.dirty)}
