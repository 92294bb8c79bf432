"""Core and store in the right order: recall, change, commit, and only then publish.

The process on a device and the simulated fleet drive the core through this one class.
"""

from collections.abc import Iterator

from device_agent.clock import Timer
from device_agent.core import Core
from device_agent.intake.batch import Batch
from device_agent.panes.cache import PAGE
from device_agent.parts import Publication
from device_agent.state.store import Store

PRUNE_US = 3_600_000_000
"""Microseconds between two deletions of what is older than the retention: one hour."""


class Durable:
    """A core whose every change is in its store before anything leaves.

    Args:
        core: the state machine, made from what `store` held.
        store: where its changes go.
    """

    def __init__(self, core: Core, store: Store) -> None:
        self.core = core
        self.store = store
        self._prune = Timer(PRUNE_US)
        self._commit()

    def read(self, batch: Batch, now_us: int) -> None:
        """Take readings in; when this returns they are durable and may be acknowledged."""
        if not self._take(batch, now_us):
            several = batch.split() if len(batch) > 1 else []
            if not several:
                self.core.refuse(batch)
            for one in several:  # what is wrong with one reading refuses no other
                if not self._take(one, now_us):
                    self.core.refuse(one)
        self._commit()

    def _take(self, batch: Batch, now_us: int) -> bool:
        """Recall what a batch needs, and let the core have it; False if it cannot even be read."""
        core, store = self.core, self.store
        wanted = core.wanted(batch, now_us)
        if wanted is None:
            return False
        for block in wanted.blocks:
            core.intake.identities.recall(block, store.identities(block))
        for place in wanted.panes:
            core.panes.memory.restore(store.panes(core.replica, *place))
        core.handle_batch(batch, now_us)
        return True

    def hear(self, topic: str, payload: bytes, now_us: int) -> None:
        """Take a message in."""
        self.core.handle_message(topic, payload, now_us)

    def tick(self, now_us: int) -> Iterator[Publication]:
        """Do what is due, commit, and yield what may be published now."""
        core = self.core
        core.handle_tick(now_us)
        self._commit()
        if core.panes.cache.wants_page():
            core.panes.cache.add_page(self.store.dirty_panes(core.panes.memory.streams, PAGE))
        if self._prune.is_due(now_us):
            self.store.prune(core.intake.progress.floor_us)
        yield from core.publications(now_us)

    def _commit(self) -> None:
        """Make the core's changes durable; where that fails, nothing is ever published of them."""
        changes = self.core.prepare_commit()
        if changes:
            self.store.commit(changes)
            self.core.committed()
