"""Core and store in the right order: read, change, commit, and only then publish.

The process on a device and the simulated fleet drive the core through this one class.
"""

from collections.abc import Callable, Iterator

from device_agent.agent.core import Core
from device_agent.agent.intake.batch import Batch
from device_agent.agent.state.store import Store
from lasp_edge.protocol.publication import Publication


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
        self.is_stuck = False
        self._write()

    def read(
        self,
        batch: Batch,
        now_us: int,
        acknowledge: Callable[[], None] | None = None,
        *,
        is_pressing: bool = False,
    ) -> None:
        """Take readings in, at once or with the next commit that is due; see `Core.hold`."""
        if self.core.hold(batch, now_us, acknowledge, is_pressing=is_pressing):
            self.commit(now_us)

    def hear(self, topic: str, payload: bytes, now_us: int) -> None:
        """Take a message in."""
        self.core.handle_message(topic, payload, now_us)

    def tick(self, now_us: int) -> Iterator[Publication]:
        """Do what is due, commit, and yield what may be published now."""
        core = self.core
        if self.is_stuck:
            self._write()
        is_read = core.part_list.is_due(now_us)
        if is_read:
            core.part_list.read(self.store, now_us)
        is_changed = core.handle_tick(now_us)
        if is_changed and not is_read:
            core.part_list.read(self.store, now_us)  # what waits costs little more
        if is_changed or is_read:
            self._write()
        core.part_list.recall(self.store, now_us)
        yield from core.publications(now_us)

    def commit(self, now_us: int) -> None:
        """Make all durable that was read, and whatever else changed; tell the sources."""
        if self.is_stuck:
            self._write()
        self.core.part_list.read(self.store, now_us)
        self._write()

    def _write(self) -> None:
        """Make the core's changes durable; where that fails, nothing is ever published of them."""
        changes = self.core.prepare_commit()
        if changes:
            self.is_stuck = True
            self.store.commit(changes)
            self.is_stuck = False
        self.core.committed()
