"""One simulated device: an agent's real core and store, on a directory that outlives its process.

All that the simulation reads out of a core, it reads here.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

from crdts import Membership
from device_agent.core import Core
from device_agent.durable import Durable
from device_agent.fleet.values import Result
from device_agent.intake.batch import Batch
from device_agent.parts import Publication
from device_agent.settings import Settings
from device_agent.state.damage import DamagedStoreError
from device_agent.state.store import Store
from lasp_edge.language.plan import Plan
from simulations.fleet.decoding import decoded


class _Core(Core):
    """The agent's core; a frame that many devices receive is decoded once."""

    decode = staticmethod(decoded)


class SimulatedDevice:
    """A device that runs, or is switched off.

    Attributes:
        durable: the running agent's core and store; None while it is switched off.
        cut_steps: for how many steps its connection is broken.
        plan: the program of the next start.
    """

    sources: tuple[str, ...] = ("simulated",)

    def __init__(self, name: str, directory: Path, plan: Plan, settings: Settings) -> None:
        self.name = name
        self.durable: Durable | None = None
        self.cut_steps = 0
        self._directory = directory
        self.plan = plan
        self._settings = settings

    def start(self, nonce: int) -> None:
        """Start a process on the directory."""
        store = self.open_store()
        try:
            core = _Core(self.plan, self.name, nonce, store.restored(), self._settings)
            for source in self.sources:
                core.intake.sources.cursor(source)
            self.durable = Durable(core, store)
        except (
            sqlite3.Error,
            DamagedStoreError,
        ):  # as the process would: it ends, and its store is free again
            store.close()
            raise

    def open_store(self) -> Store:
        """Return the store that a process finds."""
        return Store(self._directory)

    def kill(self) -> None:
        """End the process without warning, if there is one."""
        if self.durable is not None:
            self.durable.store.close()
            self.durable = None

    def lose_store(self) -> None:
        """Lose all that a device keeps, while it is switched off."""
        rmtree(self._directory)

    def save_image(self) -> None:
        """Copy all that a device keeps, while it is switched off."""
        copytree(self._directory, self._directory.with_suffix(".image"), dirs_exist_ok=True)

    def restore_image(self) -> None:
        """Put the copy in place of all that a device keeps, while it is switched off."""
        self.lose_store()
        copytree(self._directory.with_suffix(".image"), self._directory)

    @property
    def core(self) -> Core:
        """The running agent's core."""
        assert self.durable is not None, f"{self.name} is switched off"
        return self.durable.core

    def read(self, batch: Batch, now_us: int) -> None:
        """Take in a batch of readings."""
        assert self.durable is not None
        self.durable.read(batch, now_us)

    def hear(self, topic: str, payload: bytes, now_us: int) -> None:
        """Take in a message, if it runs and is connected."""
        if self.durable is not None and not self.cut_steps:
            self.durable.hear(topic, payload, now_us)

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

    def membership(self) -> Membership:
        """Return the member commands that it knows."""
        return self.core.members.membership

    def digests(self) -> tuple[tuple[str, int], ...]:
        """Return what it holds of each variable that travels, as digests."""
        reports = self.core.exchange.reports()
        return tuple((report.variable, report.digest) for report in reports)

    def is_at_rest(self, membership: Membership) -> bool:
        """Return whether it has landed all it may, and agrees with the others."""
        agreements = self.core.agreements.all().values()
        return (
            (self.core.done or self.name in membership.retired)
            and self.membership() == membership
            and not self.core.derived.due
            and all(each.settled and not each.offline for each in agreements)
        )

    def report(self) -> dict[str, Any]:
        """Return how things stand with it."""
        return self.core.report()
