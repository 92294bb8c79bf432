"""Core and store in the right order: recall, change, commit, and only then publish.

The process on a device and the simulated fleet drive the core through this one class.
"""

from collections.abc import Iterator

from device_agent.batch import Batch
from device_agent.core import Core, Publication
from device_agent.panes import PAGE
from device_agent.store import Store
from lasp_edge.messages import (
    AckFrame,
    AskFrame,
    BeatFrame,
    FrameError,
    PresenceFrame,
    VariableFrame,
    decode,
)

PRUNE_US = 3_600_000_000

_KINDS = {
    "var": VariableFrame.kind,
    "beat": BeatFrame.kind,
    "presence": PresenceFrame.kind,
    "ack": AckFrame.kind,
    "inbox": AskFrame.kind,
}


class Durable:
    """A core whose every change is in its store before anything leaves.

    Args:
        core: the state machine, made from what `store` held.
        store: where its changes go.
    """

    def __init__(self, core: Core, store: Store) -> None:
        self.core = core
        self.store = store
        self._prune_us: int | None = None
        self._commit()

    def read(self, batch: Batch, now_us: int) -> None:
        """Take readings in; when this returns they are durable and may be acknowledged."""
        core = self.core
        for block in core.wanted(batch):
            replica = (core.replica.incarnation, core.replica.nonce)
            panes = [
                found
                for stream, least_us, end_us in core.intake.pane_starts(block)
                for found in self.store.panes(stream, replica, least_us, end_us)
            ]
            core.recall(block, self.store.identities(block), panes)
        core.handle_batch(batch, now_us)
        self._commit()

    def hear(self, topic: str, payload: bytes, now_us: int) -> None:
        """Take a message in; what is no frame, or not its topic's, is counted and left aside."""
        if not payload:
            return
        try:
            frame = decode(payload)
            address = self.core.topics.address(topic)
        except (FrameError, ValueError) as error:
            self.core.refuse_frame(str(error))
            return
        told = frame.replica.device == address.device or address.kind == "inbox"
        if told and _KINDS.get(address.kind) == frame.kind:
            self.core.handle_frame(frame, now_us)
        else:
            self.core.refuse_frame("on another's topic")

    def tick(self, now_us: int) -> Iterator[Publication]:
        """Do what is due, commit, and yield what may be published now."""
        core = self.core
        core.handle_tick(now_us)
        self._commit()
        if core.panes.page_wanted():
            core.panes.paged(self.store.dirty_panes(core.panes.streams, PAGE), now_us)
        if self._prune_us is None or now_us >= self._prune_us:
            self._prune_us = now_us + PRUNE_US
            self.store.prune(core.intake.floor_us)
        yield from core.publications(now_us)

    def _commit(self) -> None:
        changes = self.core.take_changes()
        if changes:
            self.store.commit(changes)
