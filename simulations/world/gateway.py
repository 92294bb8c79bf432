"""A gateway's process in a simulated world: its real run and file, on a disk that outlives it.

The run is that of the process (`device_agent.gateway.run`), with a link, a clock and a file of the
world's. Its power may go **between any two calls**: before a message leaves, before a commit, and
in the middle of one. Then all that it had in memory is gone, and the next run finds what was
durable. What was ever made durable is held beside it, so that what it forgets too soon shows.
"""

import sqlite3
from collections import deque
from collections.abc import Collection, Iterator
from copy import copy
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from crdts import Lattice
from device_agent.gateway.core import WaitingTerms
from device_agent.gateway.kept import FleetChanges
from device_agent.gateway.run import SHORT_OUTAGE, GatewayRun, GatewaySettings
from device_agent.gateway.store import FleetStore
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.frontier import Coverage
from lasp_edge.protocol.listening import ListeningClock
from lasp_edge.protocol.topics import Topics
from lasp_edge.units import SECOND_US
from simulations.world.decoding import decoded
from simulations.world.disk import DiskInMemory, without_log
from simulations.world.gathered_checks import gathered_otherwise
from simulations.world.keeper import SimulatedKeeper
from simulations.world.landed import LandedState
from simulations.world.landing import Inbox
from simulations.world.power import Power
from simulations.world.programs import WINDOW_HIGH
from simulations.world.sent_checks import ShownWatch, unnamed_stores, wrong_answer
from simulations.world.sink_process import SinkProcess

COMMIT_US = SECOND_US
"""For how long messages wait for a commit; its beats wait for three times as long."""


RESULTS_US = SECOND_US
"""How often a row for people is published at most, where there are any."""
SHOWN_EVERY = 4
"""Every fourth world's gateways publish them, and those whose windows operators change."""


class MemoryFleetStore(FleetStore):
    """The gateway's store, on a database in memory.

    Args:
        db: holds what is durable.
        power: is spent by each commit.
        kept: takes all that was ever made durable.
    """

    def __init__(self, db: sqlite3.Connection, power: Power, kept: SimulatedKeeper) -> None:
        self.path, self.read_only = Path(":memory:"), False
        self.quarantined, self.news, self._lock = None, "", None
        self._db, self._power, self._kept = db, power, kept

    @property
    def database(self) -> sqlite3.Connection:
        """The connection on which it works."""
        return self._db

    def need_file(self) -> None:
        """There is no file that somebody could delete."""

    def close(self) -> None:
        """End an open transaction: the process is gone, the disk is not."""
        self._db.set_trace_callback(None)
        self._db.set_progress_handler(None, 1)
        if self._db.in_transaction:
            self._db.rollback()

    def commit(self, changes: FleetChanges) -> None:
        self._power.use()
        super().commit(changes)
        self._kept.commit(changes)

    def put_facts(self, facts: dict[str, str]) -> None:
        self._power.use()
        super().put_facts(facts)


class GatewayDisk(DiskInMemory[MemoryFleetStore]):
    """A gateway's disk.

    Args:
        power: of its machine.
        roster: the devices that its gateway expects; None for whichever were heard.

    Attributes:
        kept: all that was ever made durable on it.
        copies: older contents of it, each with what was durable then.
    """

    def __init__(self, power: Power, roster: Collection[str] | None) -> None:
        super().__init__()
        self.kept = SimulatedKeeper(roster=roster)
        self.copies: deque[tuple[bytes, SimulatedKeeper]] = deque(maxlen=4)
        self._power = power

    @classmethod
    @cache
    def empty(cls) -> bytes:
        with TemporaryDirectory(prefix="store-") as name:
            FleetStore(Path(name)).close()
            return without_log((Path(name) / FleetStore.names.file).read_bytes())

    def found(self) -> MemoryFleetStore:
        return MemoryFleetStore(self._db, self._power, self.kept)

    def keep_image(self) -> None:
        self.copies.append((self.image(), self.kept.copy()))


class SimulatedGateway(LandedState):
    """What a gateway holds: all that it ever made durable, as its run knows it.

    Args:
        run: that which made it.
        file: what tells its disk from others.
    """

    keeps_all = False

    def __init__(self, run: GatewayRun, kept: SimulatedKeeper, plan: Plan, file: str) -> None:
        self._acceptance, self.core, self._keeper = run.acceptance, run.core, kept
        self.alerts = run.alerts
        self.plan, self.file = plan, file
        self.shared: dict[str, Lattice] = {}
        self.commits_before = kept.commits

    @property
    def coverage(self) -> Coverage:
        """How far results are final for good: the rest may be lost with the power."""
        return self.core.coverage._replace(frontier=self._keeper.state.frontier_us)

    def frozen(self) -> "SimulatedGateway":
        """Return it as it is now, for good."""
        after = copy(self)
        after._keeper = self._keeper.copy()  # noqa: SLF001 - a copy of itself
        return after


class VirtualGateway(SinkProcess[SimulatedGateway, GatewayRun]):
    """One gateway with its disk, which is one sink.

    Args:
        plan: the program whose windows it keeps.
        sink: the sink's name.
        terms: for whom windows wait.
        seed: of the ids that it draws.
        start_us: when it begins.

    Attributes:
        shows_results: it publishes its rows for people.
        forgotten: what its runs went by when they ended between two turns, and its file had not.
    """

    trouble = None
    """Nothing keeps messages from passing: it is the run's link, too."""

    def __init__(
        self, plan: Plan, sink: str, terms: WaitingTerms, seed: int | str, start_us: int
    ) -> None:
        super().__init__(plan, sink, f"gateway-{sink}", terms, start_us)
        self._random, self._disks = Random(f"{seed} {sink}"), 0
        is_drawn = isinstance(seed, int) and seed % SHOWN_EVERY == SHOWN_EVERY - 1
        self.shows_results = is_drawn or bool(plan.parameters)
        self.forgotten: list[str] = []
        self._forgets_alerts = False
        self._shown = ShownWatch(Topics(plan.name))
        self._new_disk()

    def _new_disk(self) -> None:
        self._disks += 1
        self.disk = GatewayDisk(self.power, self.terms.roster)
        self._run = self._begin()

    def _begin(self) -> GatewayRun:
        store, draw = self.disk.open(), self._random.getrandbits
        short_us = self.terms.dead_after_us // SHORT_OUTAGE
        clock = ListeningClock(short_us, self._wall_us, lambda: self._true_us)
        results_us = RESULTS_US if self.shows_results else 0
        settings = GatewaySettings(
            self.sink, terms=self.terms, commit_us=COMMIT_US, results_us=results_us
        )
        ids = draw(32), f"{draw(64):016x}"
        run = GatewayRun(self.running, store, settings, clock, *ids, say=_say_nothing)
        run.acceptance.decode = decoded
        file = f"{self.sink}-{self._disks}"
        self.lander = SimulatedGateway(run, self.disk.kept, self.running, file)
        return run

    def misread(self) -> Iterator[str]:
        """Yield the rows that its file does not give back as they were written."""
        yield from self.forgotten
        store = self.disk.found()
        for at, (*_, written) in self.disk.kept.revisions.items():
            read = store.row(at)
            if read is not None and read != written:  # it may be pruned
                yield f"{self.name} wrote {written}, and its file has {read}"
        yield from self._not_kept(store)

    def _not_kept(self, store: MemoryFleetStore) -> Iterator[str]:
        """Yield what its run goes by, and the next one would not: each turn ends with a commit."""
        if self._run is None:
            return
        yield from self.lander.not_kept(store.restored())
        streams = self._run.core.streams
        if streams is not None:
            yield from gathered_otherwise(self.lander.plan, streams, store, self.terms.retain_us)

    @property
    def is_running(self) -> bool:
        return self._run is not None

    def _turn(self, run: GatewayRun, inbox: Inbox) -> None:
        self._hear(run, inbox)
        run.turn(self)
        self.wrong += self._wrong_messages(run)
        self.wrong += self._misjudged(run)
        self.lander.listening = run.core.listening
        if run.must_restart:
            run.stop(self)
            self.end()

    def _wrong_messages(self, run: GatewayRun) -> Iterator[str]:
        """Yield what is wrong in the messages of a turn."""
        commits = 1 + self.lander.kept.commits - self.lander.commits_before
        store = run.acceptance.sink[1]
        for message in self._sent:
            if isinstance(message.frame, AckFrame):
                at = (message.frame, store, self._wall_us(), (commits, 0))
                yield from wrong_answer(self, *at)
                if run.acceptance.ancestors:
                    yield from unnamed_stores(self, message.frame)
            yield from self._shown.wrong(self, self.lander, message)

    def _misjudged(self, run: GatewayRun) -> Iterator[str]:
        """Yield the alerts that are not as its rows have them; another program forgets them."""
        if WINDOW_HIGH not in self.running.alerts:
            self._forgets_alerts = True
        if not self._forgets_alerts:
            yield from self.disk.kept.judged.misjudged(run.alerts.statuses)

    def crash(self, until: int) -> int:
        if not self.disk.fails:
            self.forgotten += self._not_kept(self.disk.found())
        return super().crash(until)

    def _lose_memory(self) -> None:
        if self.disk.store is not None:
            self.disk.store.close()

    def lose_store(self) -> None:
        """Put an empty disk in place of this one."""
        self.not_taken.clear()
        self._change_disk()
        self._new_disk()
        self.end()

    def keep_image(self) -> None:
        self.disk.keep_image()

    def go_back(self) -> bool:
        """Put an older image of its disk in place of it; return whether there is one."""
        if not self.disk.copies:
            return False
        image, kept = self._random.choice((self.disk.copies[0], self.disk.copies[-1]))
        self._change_disk()
        self._disks += 1
        self.disk.restore(image)
        self.disk.kept = kept.copy()
        self._begin()
        self.end()
        return True

    def _change_disk(self) -> None:
        self.former.append(self.lander.frozen())
        self.inbox.clear()
        self.end()


def _say_nothing(_line: str) -> None:
    """Nobody reads what it prints."""
