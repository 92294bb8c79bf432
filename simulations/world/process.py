"""An agent's process on a device: its real core and store, on a disk that outlives it.

All that the simulation reads out of a core, it reads here.
"""

import sqlite3
from collections.abc import Iterator
from typing import Any

from device_agent.agent.core import Core, Durable
from device_agent.agent.fleet.values import Result
from device_agent.agent.intake.batch import Batch
from device_agent.agent.settings import Settings
from device_agent.storage.damage import DamagedStoreError
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.commands import CommandLog
from lasp_edge.protocol.publication import Publication
from simulations.world.decoding import decoded
from simulations.world.disk import AgentDisk
from simulations.world.streams_held import StreamsHeld, streams_held

STORE_ERRORS = (sqlite3.Error, DamagedStoreError)
"""What ends a process in order: its store says that it cannot go on."""


class _Core(Core):
    """The agent's core; a frame that many devices receive is decoded once."""

    decode = staticmethod(decoded)


class AgentProcess:
    """An agent that runs, or is switched off.

    Args:
        name: of its device.
        disk: what outlives the process.
        plan: the program.
        settings: of the agent.
        sources: what it reads.

    Attributes:
        durable: the running agent's core and store; None while it is switched off.
        core: of the running agent; not set while it is switched off.
        plan: the program of the next start.
        heard_us: when other devices were heard last, of which it was noted.
    """

    def __init__(
        self, name: str, disk: AgentDisk, plan: Plan, settings: Settings, sources: tuple[str, ...]
    ) -> None:
        self.name = name
        self.disk = disk
        self.plan = plan
        self.durable: Durable | None = None
        self.core: Core
        self._settings = settings
        self.heard_us: dict[str, int] = {}
        self._sources = sources

    def start(self, nonce: int) -> None:
        """Start a process on the disk.

        Raises:
            sqlite3.Error, DamagedStoreError: the store cannot be read or written.
        """
        store = self.disk.open()
        try:
            core = _Core(self.plan, self.name, nonce, store.restored(), self._settings)
            for source in self._sources:
                core.intake.sources.cursor(source)
            self.durable, self.core = Durable(core, store), core
        except STORE_ERRORS:  # as the process would: it ends, and its store is free again
            store.close()
            raise

    def kill(self) -> None:
        """End the process without warning, if there is one."""
        if self.durable is not None:
            self.durable.store.close()
            self.durable = None
            del self.core

    def read(self, batch: Batch, now_us: int) -> None:
        """Take in a batch of readings."""
        assert self.durable is not None, f"{self.name} is switched off"
        self.durable.read(batch, now_us)

    def tick(self, now_us: int) -> Iterator[Publication]:
        """Do what is due, and yield what is to be published."""
        assert self.durable is not None
        return self.durable.tick(now_us)

    def results(self, name: str) -> dict[str, Result]:
        """Return key -> result of a dynamic fold; without `key=` the one key is ""."""
        return self.core.results.fleet()[name]

    def inputs(self, name: str) -> str:
        """Return what a dynamic fold's value was made from, all keys together."""
        return self.core.agreements.all()[name].inputs

    def commands(self) -> CommandLog:
        """Return the commands of operators that it knows."""
        return self.core.commands.known

    def digests(self) -> tuple[tuple[str, int], ...]:
        """Return what it holds of each variable that travels, as digests."""
        reports = self.core.exchange.reports()
        return tuple((report.variable, report.digest) for report in reports)

    @property
    def has_landed(self) -> bool:
        """Whether all has landed that its program has a stream for.

        What a former release sent and every sink refused stays until it is too old.
        """
        core = self.core
        if core.done or not core.intake.finished or core.agent.clock.waiting:
            return core.done
        memory, plan = core.panes.memory, core.agent.plan
        known = {each.stream for each in plan.sent_streams}
        of_former = all(
            pane.stream not in known and memory.entries[pane].refused for pane in memory.dirty
        )
        if core.builds_panes():
            return False  # what is built lands later
        return of_former and core.panes.cache.is_complete and not core.fence.closed

    def is_at_rest(self, commands: CommandLog) -> bool:
        """Return whether it has landed all it may, and agrees with the others."""
        agreements = self.core.agreements.all().values()
        return (
            (self.has_landed or self.name in commands.membership.retired)
            and self.commands() == commands
            and not self.core.derived.due
            and all(each.settled and not each.offline for each in agreements)
        )

    def streams_held(self) -> StreamsHeld | None:
        """Return what its store holds of its program's streams; None before there is anything."""
        if self.durable is None:
            return None
        assert self.disk.store is not None, "a running process has opened its store"
        return streams_held(self.disk.store, self.core.agent.plan)

    def report(self) -> dict[str, Any]:
        """Return how things stand with it."""
        return self.core.report()
