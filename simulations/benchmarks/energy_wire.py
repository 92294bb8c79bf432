"""The bytes of a fleet with the energy program on virtual time, by kind of frame.

The agents are the real cores, the gateway is its real run, and all that they publish is counted as
it would cross each device's connection: topic, MQTT's head and acknowledgements, in both
directions. What a client and a broker say of a connection itself is not in it.
"""

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any, Final, NamedTuple

from device_agent.agent.intake.batch import Batch
from device_agent.agent.settings import Settings
from device_agent.gateway.core import WaitingTerms
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.kinds import FRAME_KINDS
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.waiting import DEAD_AFTER_US
from lasp_edge.units import SECOND_US
from simulations.benchmarks.economy import wire_bytes
from simulations.world.decoding import decoded
from simulations.world.device import VirtualDevice
from simulations.world.gateway import SimulatedGateway
from simulations.world.programs import LIVE
from simulations.world.scenario import Scenario
from simulations.world.sensors import Sensors
from simulations.world.world import World

MOST_STEPS: Final = 1_000
"""Seconds until all rows are final, at most, once nothing more is read."""
READINGS: Final = 600
"""Readings of a device between two ends of slices."""
ANSWERS, SHARES = "sent PaneFrame", "received SharesFrame"
"""What travels of an event in order: what devices have made, and where it stands."""
PUBACK_BYTES: Final = 4
_HEAD, _LENGTHS, _SHORT = 1, 2, 128
_QOS: Final = {row.topic: row.qos for row in FRAME_KINDS.values()}


class Plugs(Sensors):
    """Plugs of one house; the first device ends the slices.

    Args:
        plan: the program.
        rate_hz: readings of a device in a second.
    """

    def __init__(self, plan: Plan, rate_hz: int) -> None:
        super().__init__(plan, 1)
        self._rate_hz, self._slice_s = rate_hz, READINGS // rate_hz

    def batch(self, place: int, step: int, now_us: int, random: Random) -> Batch:
        """Return what a device has read in the second before."""
        every_us = SECOND_US // self._rate_hz
        times_us = [now_us - n * every_us for n in range(self._rate_hz, 0, -1)]
        names = ["power"] * len(times_us)
        values: list[Any] = [round(random.gauss(200, 60)) for _ in times_us]
        if not place and step % self._slice_s == 0:
            names, times_us, values = [*names, "slice"], [*times_us, now_us - 1], [*values, 1]
        return Batch(LIVE, names, list(times_us), values, [{"house": "h"}] * len(names))


class Tapped(World):
    """A world that counts what crosses each device's connection.

    Attributes:
        sizes: bytes by direction and kind of frame, of all devices.
        frames: those of the frames alone.
        counts: messages.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        self.sizes, self.frames, self.counts = Counter[str](), Counter[str](), Counter[str]()
        super().__init__(*args, **more)

    def published(self, _world: World, _device: VirtualDevice, publication: Publication) -> None:
        """Count what a device sends: its topic has an alias."""
        size = wire_bytes(publication) + PUBACK_BYTES * bool(publication.qos)
        self._count("sent", publication.payload, size)

    def _hear(self, key: str, topic: str, payload: bytes) -> None:
        super()._hear(key, topic, payload)
        kind = topic.split("/")[4]
        rest = 2 + len(topic.encode()) + 2 * bool(_QOS[kind]) + 1 + len(payload)
        size = _HEAD + 1 + (rest >= _SHORT) + rest
        self._count("received", payload, size + PUBACK_BYTES * bool(_QOS[kind]))

    def _count(self, way: str, payload: bytes, size: int) -> None:
        kind = f"{way} {type(decoded(payload)).__name__}"
        self.sizes[kind] += size
        self.frames[kind] += len(payload)
        self.counts[kind] += 1

    def ticked(self, world: World, device: VirtualDevice, unsent: Publication | None) -> None:
        """Look at nothing."""

    def connected(self, world: World, device: VirtualDevice) -> None:
        """Look at nothing."""

    def ended(self, world: World, device: VirtualDevice) -> None:
        """Look at nothing."""

    def stepped(self, world: World) -> None:
        """Look at nothing."""


class WireCost(NamedTuple):
    """What a run has sent, and what came of it.

    Attributes:
        sizes: bytes by direction and kind of frame, of all devices.
        frames: those of the frames alone, in the same way.
        counts: messages, in the same way.
        rows: of the result, by place; all are final.
    """

    sizes: Mapping[str, int]
    frames: Mapping[str, int]
    counts: Mapping[str, int]
    rows: Mapping[Any, Any]


def cost_of(plan: Plan, devices: int, slices: int, rate_hz: int, interval_s: float) -> WireCost:
    """Run a fleet until all rows are final, and return what it has cost."""
    world = _tapped(plan, devices, rate_hz, interval_s)
    try:
        for _ in range(60):
            world.step()
        for _ in range(slices * READINGS // rate_hz):
            world.step(reading=True)
        for _ in range(MOST_STEPS):
            world.step()
            rows = final_rows(world)
            if len(rows) == slices:
                assert not world.trouble, world.trouble
                return WireCost(world.sizes, world.frames, world.counts, rows)
        raise AssertionError(f"there are not {slices} final rows after {MOST_STEPS} s")
    finally:
        world.close()


class WireDelay(NamedTuple):
    """How long rows took to be final, and what was published for them.

    Attributes:
        seconds: of virtual time, from each event in order to its final row.
        publications: of an event, one after the other: the event up, its place with the share of it
            down, what each device has made up; those of other kinds are not in it.
    """

    seconds: list[int]
    publications: float


def delays_of(plan: Plan, devices: int, slices: int, rate_hz: int, interval_s: float) -> WireDelay:
    """Run a fleet live until the rows of some slices are final."""
    world = _tapped(plan, devices, rate_hz, interval_s)
    found: dict[Any, int] = {}
    try:
        for _ in range(60):
            world.step()
        while len(found) < slices:
            world.step(reading=True)
            for place in final_rows(world):
                found.setdefault(place, round((world.now_us - place[0]) / SECOND_US))
        ups, downs = (world.counts[kind] / slices for kind in (ANSWERS, SHARES))
        return WireDelay(list(found.values()), 1 + (ups - 1 + downs) / devices)
    finally:
        world.close()


def _tapped(plan: Plan, devices: int, rate_hz: int, interval_s: float) -> Tapped:
    """Return a fleet of plugs with a gateway that waits for all of them."""
    scenario = Scenario(1, devices, 0, gateways=(DEFAULT_SINK,))
    terms = WaitingTerms(roster=scenario.names, dead_after_us=DEAD_AFTER_US)
    settings, plugs = Settings.paced(interval_s), Plugs(plan, rate_hz)
    world = Tapped(scenario, None, plan, plugs, settings, terms)
    world.observer = world
    return world


def final_rows(world: World) -> dict[Any, Any]:
    """Return the rows that are final, by place."""
    gateway = world.sinks[0].lander
    assert isinstance(gateway, SimulatedGateway)
    assert gateway.core.streams is not None
    rows = gateway.core.streams.stored("load")
    return {place: row.event and row.event.value for place, row in rows if row.status != TENTATIVE}
