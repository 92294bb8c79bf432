"""A fleet of real cores, an operator, a gateway and a lake: both hear the same messages."""

from cloud_tier.job.maintenance import maintain
from cloud_tier.job.repair import repair
from cloud_tier.lander.columns import LandedColumns
from cloud_tier.lander.landing import Landing
from crdts import ControlLog
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.protocol.acceptance import Acceptance, Record
from lasp_edge.protocol.frontier import Listening, Tick
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.topics import Topics
from tests.cloud_tier.job.test_gateway import lake_rows
from tests.cloud_tier.lakes import LakeUnderTest
from tests.device_agent.agents import NOW_US
from tests.simulations.test_control import S, ControlWorld

__all__ = ["LandedWorld", "S", "differing", "lake_and_gateway"]


class LandedWorld(ControlWorld):
    """A world whose messages a lander takes into a lake, too, some steps in one batch."""

    def __init__(self, spark, directory, seed, *, every=6, **options):
        super().__init__(directory / "devices", seed, **options)
        self.spark, self.every = spark, every
        self.inbox, self.segments = [], 0
        patience = {"dead_after_us": 600 * S}
        roster = tuple(device.name for device in self.devices)
        root = directory / "lake"
        self.lake = LakeUnderTest(spark, self.plan, root, roster=roster, **patience)
        self.landing = Landing(self.lake.lake, "lander")
        self.start_lander(ControlLog())

    def start_lander(self, log):
        regimes = FleetRegimes(self.plan, log)
        streams = (self.plan.pane_streams, self.plan.published_folds.values())
        at = (Topics(self.plan.name), (DEFAULT_SINK, "gateway-1"))
        self.acceptance = Acceptance(*streams, *at, control=regimes)
        self.columns = LandedColumns(self.plan, regimes)

    def restart(self, process):
        """Begin anew everywhere but on the devices: lander, job and gateway."""
        self.merge()
        self.gateway = self.gateway.restarted(self.plan, process)
        self.gateway.connected(NOW_US)
        self.start_lander(self.landing.control_log())
        self.lake.restart()

    def land(self, topic, payload):
        self.inbox.append(Record(self.now_us, topic, retained=False, payload=payload))
        super().land(topic, payload)

    def live(self, **options):
        commit, self.gateway.commit = self.gateway.commit, lambda now_us: None  # in merge()
        super().live(**options)
        self.gateway.commit = commit
        if self.step % self.every == 0:
            self.merge()

    def merge(self):
        """Have the gateway join what came since, and the job merge it, in one batch each."""
        self.gateway.commit(self.now_us)
        self.segments += 1
        records, self.inbox = self.inbox, []
        accepted = self.acceptance.take(records)
        tick = Tick(self.segments, Listening(self.now_us, NOW_US))
        rows = self.columns.table(accepted, "lander", tick)
        self.landing.land(self.segments, rows, accepted.refused)
        self.lake.step(rows.to_pylist())

    def settle(self):
        self.merge()
        self.every = 50
        super().settle()
        self.merge()

    def maintain(self):
        """Compact the lake."""
        maintain(self.spark, self.lake.job)

    def repaired(self):
        """Return how many rows a repair appends."""
        return repair(self.spark, self.lake.job, self.lake.known)

    def lake_found(self):
        """Return (window, key, start) -> (partial, devices in) of what some device holds."""
        return {at: row for at, row in self.lake.current().items() if row[1]}


def lake_and_gateway(world):
    """Return all rows of the lake and all of the gateway, in one order, after a batch in both."""
    world.merge()
    rows = [tuple(row) for rows in world.gateway.revisions.values() for row in rows]
    return lake_rows(world.lake), sorted(rows, key=lambda row: (row[0], row[7]))


def differing(world):
    """Return the rows of the windows in which lake and gateway differ."""
    lake, gateway = lake_and_gateway(world)
    places = {row[0] for row in set(lake) ^ set(gateway)}
    named = [("lake", row) for row in lake] + [("gateway", row) for row in gateway]
    return [(*row[0], name, *row[1:4], *row[6:]) for name, row in named if row[0] in places]
