"""A fleet of real cores, an operator, a gateway and a lake: all hear the same messages."""

from cloud_tier.lander.columns import LandedColumns
from crdts import Replica
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.protocol.acceptance import Acceptance, Record
from lasp_edge.protocol.frontier import Listening, Tick
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.topics import Topics
from tests.cloud_tier.lakes import LakeUnderTest
from tests.device_agent.agents import NOW_US
from tests.simulations.test_control import PLAN, ControlWorld


class LandedWorld(ControlWorld):
    """A world whose messages a lander takes into a lake, too, some steps in one batch."""

    def __init__(self, spark, directory, seed, *, every=4, **options):
        super().__init__(directory / "devices", seed, **options)
        self.every = every
        self.inbox, self.segments = [], 0
        terms = self.gateway._terms
        self.lake = LakeUnderTest(
            spark,
            self.plan,
            directory / "lake",
            roster=tuple(terms.roster),
            dead_after_us=terms.dead_after_us,
        )
        self.start_lander()

    def start_lander(self):
        said = self.lake.job.lake.table(self.lake.lake.landing) and self.landed_log()
        regimes = FleetRegimes(self.plan, said)
        self.acceptance = Acceptance(
            self.plan.pane_streams,
            self.plan.published_folds.values(),
            Topics(self.plan.name),
            (DEFAULT_SINK, "gateway-1"),
            control=regimes,
        )
        self.columns = LandedColumns(self.plan, regimes)

    def landed_log(self):
        return getattr(self, "kept_log", None)

    def land(self, topic, payload):
        self.inbox.append(Record(self.now_us, topic, retained=False, payload=payload))
        super().land(topic, payload)

    def live(self, **options):
        commit = self.gateway.commit
        if (self.step + 1) % self.every:
            self.gateway.commit = lambda now_us: None
        try:
            super().live(**options)
        finally:
            self.gateway.__dict__.pop("commit", None)
        del commit
        if self.step % self.every == 0:
            self.merge()

    def merge(self):
        """Land what came since, and merge it in one batch, as the gateway has just done."""
        self.segments += 1
        records, self.inbox = self.inbox, []
        accepted = self.acceptance.take(records)
        tick = Tick(self.segments, Listening(self.now_us, NOW_US))
        self.lake.step(self.columns.table(accepted, "lander", tick).to_pylist())

    def lake_found(self):
        """Return (window, key, start) -> (partial, devices in) of what some device holds."""
        return {at: row for at, row in self.lake.current().items() if row[1]}


OPERATOR = Replica(1, 5, "operator")
__all__ = ["OPERATOR", "PLAN", "LandedWorld"]
