"""A fleet of real cores, an operator, a gateway and a lake: both hear the same messages."""

from cloud_tier.job.maintenance import compact
from cloud_tier.job.repair import repair
from cloud_tier.lake.controls import control_rows
from cloud_tier.lander.columns import LandedColumns
from cloud_tier.lander.landing import Landing
from crdts import ControlLog
from lasp_edge import Event, Program, folds
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.language.regimes import WindowRegimes
from lasp_edge.protocol.acceptance import Acceptance, Record
from lasp_edge.protocol.frontier import Listening, Tick
from lasp_edge.protocol.lake_columns import PANE_DATE
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.topics import Topics
from lasp_edge.units import SECOND_US as S
from simulations.control import plan
from simulations.operated import OperatedFleet
from tests.cloud_tier.job.test_gateway import lake_rows
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import row, tick


class LandedWorld(OperatedFleet):
    """A told fleet whose messages a lander takes into a lake, too, some steps in one batch.

    The gateway joins what came when the lake does, so that the rows of both are the same.
    """

    def __init__(self, spark, directory, seed, *, every=12, size=3, wait_us=0, **options):
        super().__init__(plan(), size=size, seed=seed, wait_us=wait_us, **options)
        self.spark, self.every = spark, every
        self.segments = 0
        patience = {"dead_after_us": 3_600 * S, "tentative_after_us": wait_us}
        self.lake = LakeUnderTest(
            spark, self.plan, directory, roster=tuple(self.devices), **patience
        )
        self.landing = Landing(self.lake.lake, "lander")
        self.start_lander(ControlLog())

    def start_lander(self, log):
        regimes = FleetRegimes(self.plan, log)
        streams = (self.plan.pane_streams, self.plan.published_folds.values())
        at = (Topics(self.plan.name), (DEFAULT_SINK, self.lander.lake))
        self.acceptance = Acceptance(*streams, *at, control=regimes)
        self.columns = LandedColumns(self.plan, regimes)
        self.records, self.since_us = [], self.now_us
        lander = self.lander
        lander.connected(self.now_us)
        self.join, hear = lander.commit, lander.hear

        def recorded(topic, payload, now_us, **more):
            self.records.append(Record(now_us, topic, retained=False, payload=payload))
            return hear(topic, payload, now_us, **more)

        lander.hear = recorded
        lander.connected = lander.commit = lambda _now_us: None  # in `merge`

    def restart(self):
        """Start again everywhere but on the devices: lander, job and gateway."""
        self.merge()
        self.lander.commit = self.join
        self.befall("lander_crash", amount=0)
        self.start_lander(self.landing.control_log())
        self.lake.restart()

    def step(self, steps=1):
        for _ in range(steps):
            super().step()
            if self.world.step_number % self.every == 0:
                self.merge()

    def merge(self):
        """Have the gateway join what came since, and the job merge it, in one batch each."""
        self.join(self.now_us)
        self.segments += 1
        records, self.records = self.records, []
        accepted = self.acceptance.take(records)
        tick = Tick(self.segments, Listening(self.now_us, self.since_us))
        rows = self.columns.table(accepted, "lander", tick)
        self.landing.land(self.segments, rows, accepted.refused)
        self.lake.step(rows.to_pylist())

    def settle(self, steps=600):
        self.merge()
        self.every = 60
        super().settle(steps)
        self.merge()

    def compact(self):
        """Rewrite all partitions of `lattice` as their join."""
        files = self.lake.job.tables.files(self.lake.lake.lattice)
        dates = {str(date) for date in files[f"partition.{PANE_DATE}"].to_pylist()}
        compact(self.spark, self.lake.job, sorted(dates))

    def repaired(self):
        """Return how many rows a repair appends."""
        return repair(self.spark, self.lake.job, self.lake.known)

    def lake_found(self):
        """Return (window, key, start) -> (partial, devices in) of what some device holds."""
        return {at: row for at, row in self.lake.current().items() if row[1]}


def lake_and_gateway(world):
    """Return all rows of the lake and all of the gateway, in one order, after a batch in both."""
    world.merge()
    rows = [tuple(row) for rows in world.lander.revisions.values() for row in rows]
    return lake_rows(world.lake), sorted(rows, key=lambda row: (row[0], row[-3]))


def differing(world):
    """Return the rows of the windows in which lake and gateway differ."""
    lake, gateway = lake_and_gateway(world)
    places = {row[0] for row in set(lake) ^ set(gateway)}
    named = [("lake", row) for row in lake] + [("gateway", row) for row in gateway]
    return [(*row[0], name, *row[1:4], *row[6:]) for name, row in named if row[0] in places]


def offset_program():
    """Return a program that sums readings over 10 s each 5 s, each with an offset."""
    program = Program("example")
    offset = program.parameter("offset", "0", resolution="1")
    return sums(program, uses=(offset,), value=lambda event, at: event.value + at[offset])


def sums(program, *, beside_plain=False, **given):
    """Return the plan of a program that sums readings over 10 s each 5 s; also without `given`."""
    shape = {"source": program.event("level", resolution="1"), "fold": folds.sum()}
    shape |= {"size_s": 10, "slide_s": 5}
    program.window("sums", **shape, **given)
    if beside_plain:
        program.window("plain", **shape)
    return program.plan()


def late_log():
    """Return the log in which each reading from 4.5 s on counts 100 more."""
    return ControlLog().set("offset", "", 4_500_000, "100", "ann")


def rows_of_log(log):
    """Return the rows of a log, as they land."""
    return [row(**({"incarnation": 0} | each)) for each in control_rows(log)]


def sent_under(plan, log, seq):
    """Return the rows of a device that has read 1..10 at 1..10 s; the last ones are its promise."""
    found = {}
    for window in plan.windows.values():
        regimes = WindowRegimes(window, plan.functions, log)
        for value in range(1, 11):
            regime = regimes.regime_at(value * S)
            event = Event("level", value, value * S, "pi-0", {})
            counted = regimes.counted(event, value, regime.at)
            for piece in regime.pieces:
                at = (piece.stream, value * S // piece.span_us * piece.span_us)
                found[at] = found.get(at, 0) + counted
    rows = [
        row("pane", "pi-0", 1, 7, seq + number, stream=stream, pane_us=pane_us, total_q=total)
        for number, ((stream, pane_us), total) in enumerate(sorted(found.items()))
    ]
    digest = log.fingerprint() if log.entries else 0
    low = {"low_us": 20 * S, "done": False, "received_us": 20 * S, "changed": digest}
    return [*rows, tick(seq, 21 * S, 0), row("promise", "pi-0", 1, 7, seq + 50, **low)]
