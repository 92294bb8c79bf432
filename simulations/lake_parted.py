"""A scan with local events in a lake beside a gateway, whose job dies between any two commits.

Devices answer at the events in order that the gateway publishes, in a simulated fleet with loss,
doubling, late readings, kills and lost stores. What lands at the gateway lands in the lake, some
steps later, with the stretches of time that may lack readings.
The law: after each batch no row that is final at both differs, nor whom it names, and once all is
exchanged all rows of the table are the gateway's, with their places, and final where these are.
Meanwhile a gateway may have rows which the lake has not: it saw them whole before something late
came.
The job's own code runs (`cloud_tier.job.streams`), over tables in memory (`lake_order`).

    >>> troubles(7)
    []
"""

from collections.abc import Iterator, Mapping
from random import Random
from types import SimpleNamespace
from typing import Any, Final, cast

from cloud_tier.job.job import Job
from cloud_tier.job.streams import LakeStreams, StepFrontier
from cloud_tier.lake.tables import ABSENT, PANE
from device_agent.gateway.core import WaitingTerms
from lasp_edge import Program
from lasp_edge.evaluation.parted import promises_of
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import plain_parts
from lasp_edge.ordered.places import place_text
from lasp_edge.ordered.synchronised import Synchronised
from lasp_edge.protocol.frontier import awaited, caught_up
from lasp_edge.protocol.lake_columns import ITEMS
from lasp_edge.protocol.limits import EARLIEST_PANE_US, LATEST_PANE_US
from lasp_edge.protocol.lost_stores import LackingStretches, LostStretch
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.window_rows import names_in
from lasp_edge.units import SECOND_US
from simulations.fleet import ROUGH, Fleet
from simulations.lake_order import JobKilledError, MemoryTables
from simulations.world.fleet_streamed import TIMED, Epochs, Since
from simulations.world.gateway import SimulatedGateway
from simulations.world.streamed import METERED

STEPS, BATCH_STEPS = 60, 6
"""Seconds with readings, and those between two batches of the job."""
DEAD_AFTER_S, AWAY_STEPS = 8, 20
"""For how long a silent device is waited for in half of the runs, and how long one is cut off."""
DEVICES: Final = ("pi-0", "pi-1", "pi-2")
_DEATH, _COMMITS = 0.5, 3
"""The part of the batches in which the job dies, and after how many of its commits at most."""
_READS, _ORDERED, _LATE, _AWAY, _LOST = 0.6, 0.15, 0.1, 0.03, 0.02
"""The parts of the steps in which a device reads something, of the readings that are in order, of
those that are late, and of the steps in which a device is cut off for longer, or loses its store.
"""


class LakeBeside:
    """A lake that gets what a gateway gets, and the process of its job.

    Args:
        fleet: with the gateway.
        random: draws where the job dies.
        tables: of the lake; None: in memory.
        retain_us: for how long late readings are taken.
        result: whose rows are compared.

    Attributes:
        retired: the devices that count no longer.
    """

    def __init__(
        self,
        fleet: Fleet,
        random: Random,
        tables: Any = None,
        retain_us: int = 10**15,
        result: str = "made",
    ) -> None:
        self._fleet, self._random, self.plan = fleet, random, fleet.plan
        self.tables = tables or MemoryTables(self.plan)
        self._retain_us, self._result = retain_us, result
        self.retired: frozenset[str] = frozenset()
        self._put: dict[Any, int] = {}
        self._before_us: int | None = None
        self._known = self.gateway.core._liveness  # noqa: SLF001 - what a lake joins of promises
        self._lost: Mapping[str, LostStretch] = {}
        self.begin()

    def begin(self) -> None:
        """Begin a process of the job; what the one before held in memory is gone."""
        job = SimpleNamespace(
            plan=self.plan,
            lake=self.tables.lake,
            tables=self.tables,
            retain_us=self._retain_us,
            tentative_after_us=0,
        )
        self._streams, self._is_first = LakeStreams(cast("Job", job)), True

    @property
    def gateway(self) -> SimulatedGateway:
        """What the gateway holds."""
        found = self._fleet.world.sinks[0].lander
        assert isinstance(found, SimulatedGateway)
        return found

    def batch(self) -> None:
        """Let land what the gateway has taken since the last batch, and evaluate it."""
        streams = {each.stream for each in self.plan.item_streams.values()}
        landed = self.gateway.panes.items()
        new = {
            at: each for at, each in landed if at[0] in streams and self._put.get(at, 0) < each[0]
        }
        rows = [_row(at, seq, partial) for at, (seq, partial) in sorted(new.items())]
        if rows:
            self.tables.put(self.tables.lake.lattice, rows)
        self._put |= {at: seq for at, (seq, _) in new.items()}
        touched: dict[int, dict[int, int]] = {}
        for stream, _, cell_us, *_ in new:
            touched.setdefault(stream, {})[cell_us] = 1
        if self._random.random() < _DEATH:
            self.tables.left = self._random.randint(1, _COMMITS)
        try:
            self._evaluate(touched)
        except JobKilledError:
            self.begin()
            self.tables.left = None
            self._evaluate(touched)
        self.tables.left, self._is_first = None, False
        self._before_us = self.gateway.core.coverage.frontier
        self._known = self.gateway.core._liveness  # noqa: SLF001 - see above
        self._lost = self.gateway.core._lost  # noqa: SLF001

    def _evaluate(self, touched: dict[int, dict[int, int]]) -> None:
        core = self.gateway.core
        counting = promises_of(core.promises, core.coverage)
        promises = {device: each for device, each in counting.items() if device not in self.retired}
        known = [core.promises.get(each) for each in promises]
        over = bool(known) and all(each is not None and each.done for each in known)
        now_us = core.coverage.frontier
        liveness, (roster, dead_after_us, *_) = core._liveness, core._terms  # noqa: SLF001
        every = range(EARLIEST_PANE_US, LATEST_PANE_US)
        ends_us = (self._before_us, self._streams.frontier_us)
        passed_us = max((each for each in ends_us if each is not None), default=None)
        frontier = StepFrontier(
            self._before_us,
            now_us,
            2**62,
            over,
            promises,
            awaited=awaited(liveness, roster, dead_after_us),
            known=core.promises,
            caught_up=every
            if self._is_first
            else caught_up(self._known, liveness, roster, dead_after_us, passed_us),
            clock_us=self._fleet.world.now_us,
            lacking=LackingStretches.of(
                core._lost,  # noqa: SLF001 - see above
                {} if self._is_first else self._lost,
                core._earlier,  # noqa: SLF001
                core.coverage.expected,
            ),
        )
        self._streams.advance(touched, frontier)

    def words(self) -> list[str]:
        """Return what the job prints of scans that stand."""
        return list(self._streams.stalls.words())

    def wrong(self, *, is_settled: bool, least_us: int = 0) -> Iterator[str]:
        """Yield where the rows of the table are not the gateway's.

        Args:
            is_settled: all is exchanged; else only rows count that are final at both.
            least_us: rows before it do not count.
        """
        streams = self.gateway.core.streams
        assert streams is not None
        frontier_us = self._before_us or 0
        result, ours = self.plan.fleet_results[self._result], dict[str, Any]()
        for place, row in streams.stored(self._result):
            if row.event is not None and place[0] >= least_us:
                parts = tuple(plain_parts(result, row.event.value))
                ours[place_text(place)] = (
                    row.event.key,
                    parts,
                    row.excluded,
                    _is_open(row.status, is_passed=place[0] < frontier_us),
                )
        query = "SELECT * FROM source ORDER BY revision"
        kept: dict[str, Any] = {}
        for row in self.tables.select(self.tables.lake.results, query).to_pylist():
            if row["time_us"] < least_us:
                continue
            parts = tuple(row[column] for column in result.columns)
            is_open = _is_open(row["status"], is_passed=row["time_us"] < frontier_us)
            names = names_in(row["excluded"])
            kept[row["place"]] = (row["key"], parts, names, is_open) if row["present"] else None
        kept = {at: each for at, each in kept.items() if each is not None}
        for at in sorted(kept.keys() | ours.keys()):
            both_final = at in kept and at in ours and not (kept[at][-1] or ours[at][-1])
            if kept.get(at) != ours.get(at) and (is_settled or both_final):
                yield f"at {at}: {kept.get(at)}, and the gateway has {ours.get(at)}"


def _is_open(status: str, *, is_passed: bool) -> bool:
    """Return whether a row is not final; behind F it is so only where all was over before."""
    return status == TENTATIVE or not is_passed


def _row(at: Any, seq: int, partial: Any) -> dict[str, Any]:
    """Return an entry as a row of `lattice`."""
    stream, _, pane_us, device, incarnation, nonce = at
    named = {"kind": PANE, "device": device, "incarnation": incarnation, "nonce": nonce}
    where = {"seq": seq, "stream": stream, "pane_us": pane_us, ITEMS: partial[0]}
    return {**ABSENT, "received_us": 0, **named, **where}


def plan_of(scan: Synchronised[Any]) -> Plan:
    """Return a program of a scan over the fleet whose timed readings stay on their devices."""
    program = Program("parted")
    metered = program.event(METERED, resolution="1")
    timed = program.event(TIMED, resolution="1")
    program.result(program.scan("made", source=[metered, timed], scan=scan, local=timed))
    return program.plan()


def read(fleet: Fleet, random: Random) -> None:
    """Let devices read something, and a second pass."""
    for device in DEVICES:
        if random.random() < _READS:
            name = METERED if random.random() < _ORDERED else TIMED
            late_s = random.randint(1, 30) if random.random() < _LATE else 0
            at_us = fleet.now_us - late_s * SECOND_US
            fleet.read(device, name, random.randrange(9), {}, at_us)
    fleet.step()


def troubles(seed: int) -> list[str]:
    """Return how a run breaks the law."""
    random = Random(seed)
    plan = plan_of(random.choice((Epochs(), Since())))
    dead_after_s = random.choice((3_600, DEAD_AFTER_S))
    terms = WaitingTerms(roster=DEVICES, dead_after_us=dead_after_s * SECOND_US)
    fleet = Fleet(plan, size=3, seed=seed, faults=ROUGH, terms=terms, names=DEVICES)
    lake = LakeBeside(fleet, random)
    try:
        for step in range(STEPS):
            read(fleet, random)
            if random.random() < _AWAY:
                fleet.cut(random.choice(DEVICES), AWAY_STEPS)
            if random.random() < _LOST:
                device = random.choice(DEVICES)
                fleet.befall("store_lost", device, 0)
                fleet.world.wake(device, fleet.devices[device])
            if step % BATCH_STEPS == 0:
                lake.batch()
                if wrong := list(lake.wrong(is_settled=False)):
                    return [f"after {step} seconds {each}" for each in wrong]
        fleet.settle()
        lake.batch()
        return list(lake.wrong(is_settled=True))
    finally:
        fleet.close()
