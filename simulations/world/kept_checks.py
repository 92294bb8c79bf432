"""What must hold of what a device keeps: a process that starts now knows what this one knows.

A process that is about to end is asked for all that it would still write, in notes, too. A store
that takes this up must give back what the process has in memory: as the next one reads it.

- variables, and what operators have commanded
- pane entries with the marks of sinks; and no others are dirty, where memory has all of them
- sinks, with their commits that are not owed to it, sources, totals, and the last block of
  identities of each stream; but who stores that an entry was taken stores after which commit, too
- what was done about values, who is absent, what the fleet agreed on, how far sources came, what is
  doubtful, and which windows have begun
- the time that is trusted, within an hour of that by which the device goes
"""

from collections.abc import Iterator
from typing import Any

from device_agent.agent.acting.records import Records
from device_agent.agent.core import Core
from device_agent.agent.stored_rows import BlockId
from device_agent.agent.timing.timing import KEPT_EVERY_US
from simulations.world.device import VirtualDevice
from simulations.world.disk import MemoryStore, in_memory
from simulations.world.value_checks import own_rows


def forgotten(device: VirtualDevice) -> Iterator[str]:
    """Yield what the next process on a device's store would not know, and this one does.

    The process is over: it is asked for what it has not written.
    """
    durable, store = device.durable, device.disk.store
    if durable is None or durable.is_stuck or not isinstance(store, MemoryStore):
        return
    core, dirty = durable.core, _dirty(store)
    kept = _with_notes(device, core)
    has_landed = _dirty(kept) != dirty
    restored = kept.restored()
    after = Core(core.agent.plan, device.name, 1, restored, core.agent.settings)
    then, now = _known(after), _known(core)
    if core.panes.sinks.has_commits and not has_landed:
        del now["commits"]  # they leave with the next entry that is stored as taken
    if device.forgot:
        del now["times"]  # they are of what other devices reported, who do so again
    for name, known in now.items():
        if then[name] != known:
            yield f"{device.name} knows {name} {known}, and its store {then[name]}"
    for place in restored.last_blocks:
        if not core.intake.identities.may_be_stored(BlockId(*place)):
            yield f"{device.name} takes the stored block of identities {place} for a new one"
    yield from _other_panes(device, core, kept)
    yield from _another_time(device, core, restored.facts.trusted_us)


def _dirty(store: MemoryStore) -> int:
    """Return how many entries are dirty in a store, each for each sink."""
    return sum(each.entries * each.dirty.bit_count() for each in store.undelivered())


def _another_time(device: VirtualDevice, core: Core, kept_us: int | None) -> Iterator[str]:
    """Yield that the time which is stored is not that by which a process goes."""
    time_us = core.agent.clock.time_us(core.agent.now_us)
    if core.timing.state == "waiting" or not core.agent.now_us:
        return
    if kept_us is None or not time_us - KEPT_EVERY_US <= kept_us <= time_us:
        yield f"{device.name} goes by {time_us}, and its store by {kept_us}"


def _with_notes(device: VirtualDevice, core: Core) -> MemoryStore:
    """Return a copy of the store of a device that has all that its process would write."""
    core.prepare_commit(with_notes=True)
    changes = core.prepare_commit()  # some notes are changes of what is stored
    kept = MemoryStore(in_memory(device.disk.image()))
    if changes:
        kept.commit(changes)
    return kept


def _known(core: Core) -> dict[str, Any]:
    """Return what a process knows that outlives it."""
    return {
        "samples": core.samples.sets.held,
        "bounds": [
            (name, key, core.samples.sets.bound((name, key)))
            for name, held in core.samples.sets.held.items()
            for key in sorted(held)
        ],
        "shared": {name: state.whole for name, state in core.variables.shared_states.items()},
        "commands": core.commands.known,
        "counts": core.counters.totals,
        "sinks": [
            (row.name, row.store, row.former, row.ancestors) for row in core.panes.sinks.rows()
        ],
        "commits": [(row.commit, row.landed) for row in core.panes.sinks.rows()],
        "times": core.intake.progress.facts(),
        "promise": core.intake.progress.promised_us,
        "highs": core.intake.highs.published(),
        "doubts": core.intake.highs.doubts,
        "begun": {
            stream: from_us
            for stream, from_us in core.panes.memory.begun.items()
            if from_us > core.intake.progress.floor_us  # else no pane lacks anything any more
        },
        "waiting readings": core.agent.clock.waiting,
        "boots": core.timing.boots,
        "settled": core.agreements._settled,  # noqa: SLF001 - no one else has it
        "acted": [each._records for each in core.acting.parts if isinstance(each, Records)],  # noqa: SLF001
        "absent": {
            fold.absence.name: dict(own_rows(core, fold.absence.name))
            for fold in core.agent.plan.dynamic_folds.values()
            if fold.absence is not None
        },
    }


def _other_panes(device: VirtualDevice, core: Core, kept: MemoryStore) -> Iterator[str]:
    memory = core.panes.memory
    stored, pruned_us = dict(kept.panes_named(memory.entries)), core.intake.progress.pruned_us
    for pane, entry in memory.entries.items():
        is_pruned = pane not in stored and not entry.dirty and entry.end_us <= pruned_us
        if stored.get(pane) != entry.row() and not is_pruned:
            yield f"{device.name} has {pane} {entry.row()}, and its store {stored.get(pane)}"
    if core.panes.cache.is_complete:
        dirty = sum(each.entries for each in kept.undelivered())
        if dirty != len(memory.dirty):
            yield f"{device.name} has {len(memory.dirty)} dirty entries, and its store {dirty}"
