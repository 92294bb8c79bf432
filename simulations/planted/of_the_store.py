"""Bugs of the way to the disk and back: what is durable, when, and together with what."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from device_agent.agent.changes import Changes
from device_agent.agent.core import Durable
from device_agent.agent.intake.identities import Identities
from device_agent.agent.intake.intake import Intake
from device_agent.agent.panes.cache import PaneCache
from device_agent.agent.panes.panes import PaneEntry, Panes
from device_agent.agent.parts import StoreReader
from device_agent.agent.state.counters import Counters
from device_agent.agent.state.store import NEVER_US, Store
from device_agent.agent.state.stored import Stored
from device_agent.agent.stored_rows import BlockId, PaneId
from device_agent.storage.sealed_file import Transaction, finding_damage
from lasp_edge.folds.columns import Partial
from simulations.planted.bug import planted, replaced

_of_narrow = partial(planted, needs="narrow")


@planted
def the_cursor_is_committed_apart_from_panes() -> Iterator[None]:
    """The power goes between two commits: the source goes on behind readings that no pane has."""
    right = Store.commit

    def commit(self: Store, changes: Changes) -> None:
        if changes.sources:
            right(self, Changes(sources=changes.sources))
            changes = replace(changes, sources={})
        right(self, changes)

    with replaced(Store, "commit", commit):
        yield


@planted
def what_is_too_old_is_deleted_though_no_sink_has_it() -> Iterator[None]:
    """A sink is away for longer than readings are kept: what waits for it leaves the store."""
    right = Store.prune

    @finding_damage
    def prune(self: Store, floor_us: int, pruned_us: int = NEVER_US) -> int:
        db = self._db
        with Transaction(db):
            db.execute("DELETE FROM pane WHERE end_us <= ? AND incarnation > 0", (floor_us,))
        return right(self, floor_us, pruned_us)

    with replaced(Store, "prune", prune):
        yield


@_of_narrow
def a_block_that_changes_late_counts_as_the_last_of_its_stream() -> Iterator[None]:
    """A reading comes late, newer ones have left memory, and come again: they count twice."""
    right = Identities.take_changed

    def take_changed(self: Identities) -> dict[BlockId, bytes]:
        taken = right(self)
        self._highs |= {(event, tags): block for event, tags, block in taken}
        return taken

    with replaced(Identities, "take_changed", take_changed):
        yield


@_of_narrow
def an_entry_that_left_memory_begins_again() -> Iterator[None]:
    """A reading comes late to a pane that memory has let go: all that it held counts no more."""

    def held(self: Panes, pane: PaneId, _store: StoreReader) -> Partial | None:
        entry = self.entries.get(pane)
        return None if entry is None else entry.partial

    def held_column(self: Panes, panes: Sequence[PaneId], _store: StoreReader) -> list[Partial]:
        return [self.entries[pane].partial for pane in panes if pane in self.entries]

    with replaced(Panes, "held", held), replaced(Panes, "held_column", held_column):
        yield


@_of_narrow
def the_newest_of_what_leaves_memory_bounds_the_promise() -> Iterator[None]:
    """Entries leave memory before they have landed, and the promise passes the oldest of them."""
    right = PaneCache._note_evicted  # noqa: SLF001 - a bug is planted from outside

    def note_evicted(self: PaneCache, dirty: Sequence[tuple[PaneId, PaneEntry]]) -> None:
        before_us = self._oldest_us
        right(self, dirty)
        self._oldest_us = max([before_us, *[pane.pane_us for pane, _ in dirty]])

    with replaced(PaneCache, "_note_evicted", note_evicted):
        yield


@planted
def a_pane_is_stored_once_only() -> Iterator[None]:
    """An agent restarts, and what a pane got after its first commit is gone."""
    right = Panes.take_changes
    stored: set[Any] = set()

    def take_changes(self: Panes, *, with_answers: bool = False) -> Changes | None:
        changes = right(self, with_answers=with_answers)
        if changes is not None:
            changes.panes = {at: row for at, row in changes.panes.items() if at not in stored}
            stored.update(changes.panes)
        return changes

    with replaced(Panes, "take_changes", take_changes):
        yield


@planted
def samples_are_not_stored() -> Iterator[None]:
    """An agent restarts, and its average begins again."""

    def put_delta(self: Stored, where: Any, state: Any, delta: Any) -> None:
        del self, where, state, delta

    def put_whole(self: Stored, where: Any, state: Any) -> None:
        del self, where, state

    with replaced(Stored, "put_delta", put_delta), replaced(Stored, "put_whole", put_whole):
        yield


@planted
def what_is_published_is_committed_later() -> Iterator[None]:
    """The power goes after a frame has left: its dots are given to other readings."""

    def tick(self: Durable, now_us: int) -> Iterator[Any]:
        core = self.core
        core.part_list.read(self.store, now_us)
        core.intake.committed()
        core.handle_tick(now_us)
        changes = core.prepare_commit()
        core._uncommitted = Changes()  # noqa: SLF001 - so that the core lets it pass
        yield from core.publications(now_us)
        if changes:
            self.store.commit(changes)
            core.committed()

    with replaced(Durable, "tick", tick):
        yield


@planted
def the_last_commits_are_undone_at_a_restart() -> Iterator[None]:
    """The disk lies about what is on it, as with `synchronous=OFF`: a cursor outlives its panes."""
    right = Store.restored

    def restored(self: Store) -> Any:
        self._db.execute("DELETE FROM pane WHERE seq = (SELECT max(seq) FROM pane) AND dirty")
        return right(self)

    with replaced(Store, "restored", restored):
        yield


@planted
def sources_are_told_before_the_commit() -> Iterator[None]:
    """The power goes before a commit: a source learns that all is durable, and forgets."""

    def write(self: Durable) -> None:
        changes, core = self.core.prepare_commit(), self.core
        core.committed()
        if changes:
            self.store.commit(changes)

    with replaced(Durable, "_write", write):
        yield


@planted
def a_commit_comes_before_a_batch_is_taken_in() -> Iterator[None]:
    """The power goes between two commits: the source's cursor is behind readings that no pane has.

    The cursors of all batches that are held are stored before the readings are taken in.
    """
    right = Intake.read

    def read(self: Intake, store: Any, now_us: int) -> None:
        for batch, _, _ in self._held._batches:  # noqa: SLF001
            self.sources.advance(batch, None, stamped=False)
        store.commit(Changes(sources=self.sources.take_changed()))
        right(self, store, now_us)

    with replaced(Intake, "read", read):
        yield


@planted
def counts_are_stored_as_of_this_process() -> Iterator[None]:
    """An agent restarts twice, and what its first process had counted is forgotten."""
    right = Counters.take_notes

    def take_notes(self: Counters) -> Changes | None:
        notes = right(self)
        if notes is not None:
            notes.counters = {n: t - self._before.get(n, 0) for n, t in notes.counters.items()}
        return notes

    with replaced(Counters, "take_notes", take_notes):
        yield
