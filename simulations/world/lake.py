"""A lake and a lander's log in a simulated world: both outlive the process that writes to them.

A commit to the lake happens at once and as a whole, or not at all; so does what a job makes of it.
What the log holds and was not synced goes with the power. A lake may be put back to an earlier
state, as by somebody who restores a copy of its tables.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import NamedTuple

from crdts import ControlLog, Lattice, Membership, Replica
from device_agent.gateway.core import GatewayCore, WaitingTerms
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acceptance import (
    Acceptance,
    Accepted,
    PaneRows,
    Record,
    Refusal,
    Rows,
    SharedNews,
)
from lasp_edge.protocol.frontier import Listening, Liveness, Tick
from lasp_edge.protocol.topics import Topics
from simulations.world.grown_checks import ended_otherwise
from simulations.world.keeper import PaneKey, SimulatedKeeper
from simulations.world.landed import LandedState
from simulations.world.power import Power

JOB = Replica(1, 1, "job")


class SegmentRows(NamedTuple):
    """What was accepted of a segment, and the lander's clock at its end."""

    accepted: Accepted
    tick: Tick


class RowsAsTheyAre:
    """Makes no tables: a simulated lake takes what was accepted."""

    def table(self, accepted: Accepted, lander: str, tick: Tick) -> SegmentRows:
        """Return the rows of a segment."""
        del lander
        return SegmentRows(accepted, tick)


class SimulatedLake(LandedState):
    """The lake's tables with what a job has made of them; see `LandedState`.

    Args:
        file: what tells it from others, and its first id as a store.
        plan: of the program.
        sink: under which name devices deliver to it.
        terms: for whom windows wait.
        power: of the machine of its lander; each commit spends some.
        membership: the commands that it knows already.

    Attributes:
        true_us: the true time, by which a job counts.
        newest: the number of the last commit.
        landed: the number of the last segment that has landed.
        lake_id: its id as a store.
    """

    def __init__(
        self,
        file: str,
        plan: Plan,
        sink: str,
        terms: WaitingTerms,
        power: Power,
        membership: Membership | None = None,
    ) -> None:
        self.file = self.lake_id = file
        self.shared: dict[str, Lattice] = {}
        self.true_us = self.newest = self.landed = 0
        self._sink, self._terms, self._power = sink, terms, power
        self._keeper = SimulatedKeeper(membership, terms.roster)
        self._lost: dict[PaneKey, int] = {}
        self.run_program(plan)

    def run_program(self, plan: Plan) -> None:
        """Let a job with this program go on with what is kept."""
        self.plan, self.commits_before = plan, self._keeper.commits
        streams = (plan.sent_streams, plan.published_folds.values())
        self._acceptance = Acceptance(*streams, Topics(plan.name), (self._sink, self.lake_id))
        self.core = GatewayCore(plan, self._acceptance, self._keeper, JOB, self._terms)
        self._results = {result.stream for result in plan.stream_results.values()}

    def copied(self, file: str) -> "SimulatedLake":
        """Return another one with the same content, which goes on by itself."""
        after = copy(self)
        after.file, after.shared = file, dict(self.shared)
        after._keeper = self._keeper.copy()  # noqa: SLF001 - a copy of itself
        after.run_program(self.plan)
        return after

    def put_back(self, file: str, image: "SimulatedLake") -> "SimulatedLake":
        """Return an earlier state of it, which has its id and lacks what came since."""
        after = image.copied(file)
        had = {at: seq for at, (seq, _) in self.panes.items()}
        lost = {at: max(had.get(at, 0), self._lost.get(at, 0)) for at in {*had, *self._lost}}
        after._lost = lost  # noqa: SLF001 - the same
        return after

    @property
    def lake(self) -> str:
        """The id of its store; another one while it lacks what it had, and nobody has found out."""
        panes = self._keeper.panes
        if any(at not in panes or panes[at][0] < seq for at, seq in self._lost.items()):
            return f"{self.lake_id}, put back"
        return self.lake_id

    def give_up(self, seq_of: Callable[[PaneKey], int]) -> None:
        """Lack no more what nobody can bring again: devices have lost it, too.

        Args:
            seq_of: gives the greatest version of an entry that a device has; 0 for none.
        """
        if self.lake != self.lake_id:
            had = {at: min(seq, seq_of(at)) for at, seq in self._lost.items()}
            self._lost = {at: seq for at, seq in had.items() if seq}

    def refresh(self) -> None:
        """Nobody else writes to it."""

    def lacks(self, _commit: int) -> bool:
        """Return whether it lacks a commit that its lander has not acknowledged: no other did."""
        return True

    def begin_store(self) -> None:
        """Take another id."""
        self._power.use()
        self.newest += 1
        self.lake_id, self._lost = f"{self.file}~{self.newest}", {}

    def land(
        self,
        number: int,
        table: SegmentRows,
        refused: Mapping[tuple[str, str], Refusal],
        shared: Iterable[SharedNews] = (),
    ) -> None:
        """Take a segment's rows, after what is news of variables; and let a job merge them."""
        del refused
        if number <= self.landed:  # its tick would not count, nor its variables
            raise AssertionError(f"a segment has landed as number {number} before")
        self._power.use()
        for name, _, news, _ in shared:
            self.shared[name] = self.shared.get(name, news.bottom()) | news
        self._power.use()
        self.newest += 1
        self.landed = number
        self._merge(table.accepted, table.tick)

    def _merge(self, accepted: Accepted, tick: Tick) -> None:
        known = self._acceptance
        known.membership |= accepted.commands.membership
        if known.control is not None and accepted.commands.control.entries:
            known.control.hear(accepted.commands.control)
        others: list[Rows] = []
        for rows in accepted.rows:
            if isinstance(rows, PaneRows) and rows.block.stream in self._results:
                self._keeper.keep(rows)
            else:
                others.append(rows)
        accepted.rows = others
        promises = self._keeper.state.promises | accepted.promises
        clock = Liveness(promises, {"": tick}, host_us=self.true_us).listening
        self.listening = clock
        self._keeper.commit(self.core.join(accepted, clock).changes)

    def incarnations(self) -> dict[str, int]:
        """Return the greatest incarnation of each device that has landed."""
        promises = self._keeper.state.promises.entries
        return {device: each.version.incarnation for device, each in promises.items()}

    def control_log(self) -> ControlLog:
        """Return the log of parameters, as far as it has landed."""
        return self.commands.control


class MemorySegment(NamedTuple):
    """A closed segment; see `cloud_tier.lander.segments.Segment`."""

    number: int
    clock: Listening
    records: list[Record]


class MemoryLog:
    """A lander's log, and what it keeps beside it; see `cloud_tier.lander.segments.Log`.

    Args:
        power: each call that makes something durable spends some.
        landed: returns the number of the last segment that is in the lake.

    Attributes:
        wrong: what was written, and should not have been; whoever looks clears it.
    """

    lander = "lander"

    def __init__(self, power: Power, landed: Callable[[], int]) -> None:
        self._power, self._landed = power, landed
        self._segments: dict[int, list[Listening | Record]] = {}
        self._synced: dict[int, int] = {}
        self._devices: list[str] = []
        self.wrong: list[str] = []
        self._number, self.is_open = 0, False

    def crash(self) -> None:
        """Lose what was not synced."""
        for number, written in self._segments.items():
            del written[self._synced.get(number, 0) :]
        self.release()

    def lose(self) -> None:
        """Lose all segments: the next process finds its id alone, and what it kept of devices."""
        self._segments.clear()
        self._synced.clear()
        self.release()

    def closed(self) -> list[int]:
        return sorted(each for each in self._segments if not self.is_open or each != self._number)

    def start_after(self, number: int) -> None:
        self._number = max(self._number, number)

    def append(self, record: Record, since_us: int) -> None:
        self._open(Listening(record.received_us, since_us))
        self._segments[self._number].append(record)

    def _open(self, clock: Listening) -> None:
        if not self.is_open:
            self._number, self.is_open = self._number + 1, True
            self._segments[self._number] = [clock]

    def sync(self) -> None:
        if self.is_open and self._synced.get(self._number) != len(self._segments[self._number]):
            self._power.use()
            self._synced[self._number] = len(self._segments[self._number])

    def close_segment(self, clock: Listening) -> int:
        self._open(clock)
        records = (each for each in self._segments[self._number] if isinstance(each, Record))
        self.wrong += ended_otherwise(clock, records)
        self._segments[self._number].append(clock)
        self.sync()
        self.is_open = False
        return self._number

    def read(self, number: int) -> MemorySegment:
        clock, records = Listening(0, 0), []
        for each in self._segments[number]:
            if isinstance(each, Listening):
                clock = each
                continue
            clock = clock._replace(now_us=max(clock.now_us, each.received_us))
            records.append(each)
        return MemorySegment(number, clock, records)

    def drop(self, number: int) -> None:
        if number > self._landed() and self.read(number).records:
            raise AssertionError(f"segment {number} leaves the log before it is in the lake")
        self._power.use()
        self._segments.pop(number, None)
        self._synced.pop(number, None)

    def devices(self) -> list[str]:
        return self._devices

    def keep_devices(self, lines: Sequence[str]) -> None:
        self._power.use()
        self._devices = list(lines)

    def release(self) -> None:
        self._number, self.is_open = max(self._segments, default=0), False
