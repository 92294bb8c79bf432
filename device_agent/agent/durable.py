"""Core and store in the right order: recall, change, commit, and only then publish.

The process on a device and the simulated fleet drive the core through this one class.
"""

import sqlite3
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from device_agent.agent.core import Core
from device_agent.agent.intake.batch import Batch
from device_agent.agent.intake.held import HeldBatch, HeldBatches
from device_agent.agent.panes.cache import PAGE
from device_agent.agent.state.store import Store
from device_agent.agent.timing.waiting import PAGE_BYTES
from device_agent.storage.damage import DamagedStoreError
from lasp_edge.protocol.publication import Publication
from lasp_edge.timers import Timer

if TYPE_CHECKING:
    from device_agent.agent.controlled.windows import ControlledWindows
    from device_agent.agent.scans.streams import Streams

PRUNE_US = 3_600_000_000
"""Microseconds between two deletions of what is older than the retention: one hour."""


class Durable:
    """A core whose every change is in its store before anything leaves.

    Args:
        core: the state machine, made from what `store` held.
        store: where its changes go.

    Attributes:
        is_stuck: the last commit failed. Its changes are kept, and are tried again before anything
            else is taken in or leaves: until then the store knows less than memory.
    """

    def __init__(self, core: Core, store: Store) -> None:
        self.core = core
        self.store = store
        self._prune = Timer(PRUNE_US)
        self._held = HeldBatches(core.agent.settings.commit_every_us)
        self._taken: list[HeldBatch] = []  # and not committed yet
        self.is_stuck = False
        self._commit()

    def read(
        self,
        batch: Batch,
        now_us: int,
        acknowledge: Callable[[], None] | None = None,
        *,
        is_pressing: bool = False,
    ) -> None:
        """Take readings in, at once or with the next commit that is due.

        Args:
            batch: the readings.
            now_us: the time.
            acknowledge: is called when they are durable.
            is_pressing: the source gives nothing more before that.
        """
        self._held.add(HeldBatch(batch, now_us, acknowledge), is_pressing=is_pressing)
        if self._held.is_pressing:
            self.commit(now_us)
        self.core.intake.held_since_us = self._held.since_us
        self.core.intake.read_us = now_us

    def _take_in(self, batch: Batch, at_us: int) -> None:
        """Let the core have a batch; what is wrong with one reading refuses no other."""
        if self._takes(batch, at_us):
            return
        several = batch.split() if len(batch) > 1 else []
        refuse, guard = self.core.intake.refuse, self.core.agent.guard
        if not several:
            guard.run("a batch", refuse, batch)
        for one in several:
            if not self._takes(one, at_us):
                guard.run("a batch", refuse, one)

    def _takes(self, batch: Batch, at_us: int) -> bool:
        """Recall what a batch needs, and let the core have it; False if it cannot even be read."""
        core, store = self.core, self.store
        wanted = core.wanted(batch, at_us)
        if wanted is None:
            return False
        for block in wanted.blocks:
            core.intake.identities.recall(block, store.identities(block))
        core.panes.cache.restore(store.panes_named(wanted.panes))
        core.handle_batch(batch, at_us)
        return True

    def hear(self, topic: str, payload: bytes, now_us: int) -> None:
        """Take a message in."""
        self.core.handle_message(topic, payload, now_us)

    def tick(self, now_us: int) -> Iterator[Publication]:
        """Do what is due, commit, and yield what may be published now."""
        core = self.core
        if self.is_stuck:
            self._commit()
        if self._held.is_due(now_us):
            self._take_in_held(now_us)
        # A part that raised when it was asked for its changes may have some now.
        is_changed = bool(core.handle_tick(now_us)) or bool(self._taken)
        is_over = any(each.waits for each in core.evaluating)
        if is_changed or is_over or (core.ensemble.owes_changes and core.prepare_commit()):
            self.commit(now_us)  # what is held costs little more in a commit that comes anyway
        self._place_waiting(now_us)
        self._page(now_us)
        if self._prune.is_due(now_us):
            self._forget()
        yield from core.publications(now_us)

    def _page(self, now_us: int) -> None:
        """Give the core the dirty entries that it wants to look at, right after a commit."""
        cache, store = self.core.panes.cache, self.store
        if cache.wants_answer(now_us):
            self.core.prepare_commit(with_notes=True)
            self._commit()  # the store is to say no more of an entry than memory knows
            cache.add_answer(store.undelivered())
        if cache.wants_page(now_us):
            page = store.dirty_panes(cache.after, PAGE, refused_too=cache.refused_too)
            cache.add_page(page, now_us)

    def _place_waiting(self, now_us: int) -> None:
        """Take in a page of readings that waited for the clock, in one transaction.

        A store that is an older image gives them again, so the fence is to let them pass.
        """
        waiting = self.core.waiting
        if waiting.may_be_placed and self.core.fence.lets_read:
            for row in self.store.waiting(PAGE_BYTES):
                batch = self.core.agent.guard.run("waiting readings", waiting.take, row, now_us)
                if batch is not None:
                    self._take_in(batch, now_us)
            self._commit()

    def _forget(self) -> None:
        """Delete what is older than the retention, by a clock that is trusted."""
        floor_us = self.core.intake.prunable_us()
        if floor_us is not None:
            progress = self.core.intake.progress
            progress.pruned_us = self.store.prune(floor_us, progress.pruned_us)

    def commit(self, now_us: int) -> None:
        """Make all durable that was read, and whatever else changed; tell the sources."""
        self._take_in_held(now_us)
        self._commit()
        taken, self._taken = self._taken, []
        for held in taken:
            if held.acknowledge is not None:
                held.acknowledge()

    def _take_in_held(self, now_us: int) -> None:
        if self._held and self.is_stuck:
            self._commit()
        held = self._held.take(now_us)
        for batch, at_us, _ in held:
            self._take_in(batch, at_us)
        self._taken += held
        self.core.intake.held_since_us = None

    def _evaluate(self, part: "Streams | ControlledWindows") -> None:
        """Let a part take what is about to be committed; it reads the store for that."""
        try:
            part.evaluate(self.store)
        except (sqlite3.Error, DamagedStoreError):
            raise  # what was read from the store would be missing: the process begins anew
        except BaseException as error:  # noqa: BLE001 - one part's bug may not end an agent
            self.core.agent.guard.failed(part.name, error)
            part.give_up()

    def _commit(self) -> None:
        """Make the core's changes durable; where that fails, nothing is ever published of them."""
        for part in () if self.is_stuck else self.core.evaluating:
            self._evaluate(part)
        changes = self.core.prepare_commit()
        if changes:
            self.is_stuck = True
            self.store.commit(changes)
            self.is_stuck = False
            self.core.committed()
