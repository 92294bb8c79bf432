"""A fleet in a test: a simulated world (`simulations.world`) that is led by hand.

The agents are the real cores and stores, on virtual time; what goes wrong is drawn from one seed,
and the same seed gives the same run.

    >>> from lasp_edge.examples.greenhouse import program
    >>> fleet = Fleet(program.plan(), size=2, seed=7)
    >>> fleet.read("pi-0", "temperature", 21.5, {"room": "kitchen"})
    >>> fleet.read("pi-1", "temperature", 22.5, {"room": "cellar"})
    >>> fleet.settle()
    >>> fleet.values("global_average")
    {'pi-0': {'': (2, 4400)}, 'pi-1': {'': (2, 4400)}}
    >>> fleet.close()
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from crdts import Membership, Version
from device_agent.agent.fleet.values import Result
from device_agent.agent.intake.batch import Batch
from device_agent.agent.settings import Settings
from device_agent.gateway.core import WaitingTerms
from lasp_edge.folds.columns import Partial
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.frames import VariableFrame
from lasp_edge.protocol.publication import Publication
from simulations.oracle import PublishedPartial
from simulations.world.broker import NOWHERE
from simulations.world.decoding import decoded
from simulations.world.device import VirtualDevice
from simulations.world.faults import CALM, START_US, STEP_US, Fault, FaultRates
from simulations.world.landed import LandedState
from simulations.world.lander import TERMS
from simulations.world.misfortunes import befall, heal
from simulations.world.programs import LIVE
from simulations.world.run import at_rest, settling, unsettled
from simulations.world.scenario import Scenario
from simulations.world.world import World

GENTLE = CALM
ROUGH = FaultRates(
    loss=0.2,
    doubled=0.2,
    delayed=0.8,
    unanswered=0.2,
    unsent=0.02,
    kill=180,
    cut=180,
    broker_forgets=72,
)
"""Much goes wrong: each agent is killed and cut off some three times a minute."""


class _Entries:
    """Notes the newest entry of each (variable, shard, device) that was published."""

    def __init__(self) -> None:
        self.newest: dict[tuple[str, int, str], VariableFrame] = {}

    def published(self, world: World, device: VirtualDevice, publication: Publication) -> None:
        """Note what a device publishes."""
        if not publication.payload or world.broker.route(publication.topic) == NOWHERE:
            return  # taken back, or for people
        frame = decoded(publication.payload)
        if isinstance(frame, VariableFrame):
            self.newest[frame.variable, frame.shard, device.name] = frame

    def ticked(self, world: World, device: VirtualDevice, unsent: Publication | None) -> None:
        """Look at nothing."""

    def connected(self, world: World, device: VirtualDevice) -> None:
        """Look at nothing."""

    def ended(self, world: World, device: VirtualDevice) -> None:
        """Look at nothing."""

    def stepped(self, world: World) -> None:
        """Look at nothing."""


class Fleet:
    """Devices, a broker, a lander and an operator, on virtual time.

    Args:
        size: how many devices: `pi-0`, `pi-1`, ...
        seed: of everything that is drawn.
        faults: what may go wrong until `settle`. Agents that are killed start again at once.
        settings: of the agents.
        terms: of the lander: for whom windows wait.
        names: of the devices, in place of `pi-0`, `pi-1`, ...; there are `size` of them.
        start_us: when it begins, in microseconds since the epoch.
        sinks: the names of those that are processes, by "gateways" and "landers"; the others are
            landers without one.

    Attributes:
        devices: by name; those that are switched off are in it, and not in the world.
        world: everything.
    """

    def __init__(  # noqa: PLR0913 - all but the first three have a default
        self,
        plan: Plan,
        *,
        size: int,
        seed: int,
        faults: FaultRates = GENTLE,
        settings: Settings | None = None,
        terms: WaitingTerms = TERMS,
        names: Sequence[str] = (),
        start_us: int = START_US,
        sinks: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    ) -> None:
        self.plan = plan
        gateways, landers = sinks.get("gateways", ()), sinks.get("landers", ())
        scenario = Scenario(
            *(seed, size, 0, faults), named=tuple(names), gateways=gateways, landers=landers
        )
        self._entries = _Entries()
        agents = settings or Settings()
        self.world = World(
            scenario, self._entries, plan, settings=agents, terms=terms, start_us=start_us
        )
        self.devices = dict(self.world.devices)
        self._faults = faults
        for name, device in self.devices.items():
            self.world.wake(name, device)

    def close(self) -> None:
        """Remove the stores."""
        self.world.close()

    @property
    def membership(self) -> Membership:
        """All that the operator commanded."""
        return self.world.operator.commands.membership

    @property
    def lander(self) -> LandedState:
        """What has landed."""
        return self.world.sinks[0].lander

    @property
    def now_us(self) -> int:
        """Virtual time, in microseconds since the epoch."""
        return self.world.now_us

    def read(
        self,
        device: str,
        event: str,
        value: Any,
        tags: Mapping[str, str] | None = None,
        time_us: int | None = None,
    ) -> None:
        """Let one device read one value, now or at an own time."""
        batch = Batch(LIVE, [event], [time_us], [value], [tags or {}])
        reader = self.devices[device]
        reader.read(batch, reader.now_us(self.now_us))

    def befall(self, kind: str, device: str = "", amount: int = 1) -> None:
        """Let one fault happen, of those in `simulations.world.faults`."""
        befall(self.world, Fault(self.world.step_number, kind, device, amount))

    def kill(self, device: str) -> None:
        """SIGKILL an agent, and start it again."""
        self.befall("kill", device, 0)
        self.world.wake(device, self.devices[device])

    def cut(self, device: str, steps: int) -> None:
        """Break an agent's connection for some steps."""
        self.befall("cut", device, steps)

    def stop(self, device: str) -> None:
        """Switch a device off; it comes back with `start`, or never."""
        self.befall("kill", device, 0)
        del self.world.devices[device]

    def start(self, device: str) -> None:
        """Switch a device on that was stopped."""
        self.world.devices[device] = self.devices[device]
        self.world.wake(device, self.devices[device])

    def retire(self, device: str) -> None:
        """An operator retires a device at what it last reported."""
        self.world.operator.retire(device)

    def admit(self, device: str) -> None:
        """An operator lets a device count again."""
        self.world.operator.admit(device)

    def calm(self) -> None:
        """End all faults."""
        self._faults = GENTLE
        heal(self.world)

    def step(self, steps: int = 1) -> None:
        """Let time pass: faults, ticks, messages.

        Raises:
            AssertionError: something ended an agent.
        """
        for _ in range(steps):
            for fault in self._faults.schedule(self.world.random, list(self.world.devices), 1):
                if fault.kind == "kill":
                    self.kill(fault.device)
                else:
                    befall(self.world, fault)
            self.world.step()
            assert not self.world.trouble, self.world.trouble

    def settle(self, steps: int = 600) -> None:
        """End all faults and run until everything landed and every agent agrees.

        Raises:
            AssertionError: that did not happen within `steps`, or within as many after one more
                event in order of a scan with local events.
        """
        self.calm()
        for _ in settling(self.world, steps):
            if at_rest(self.world):
                return
            self.step()
        raise AssertionError(f"not settled after {steps} steps: {unsettled(self.world)}")

    def running(self) -> list[VirtualDevice]:
        """Return the devices that are switched on."""
        return self.world.running()

    def results(self, name: str) -> dict[str, dict[str, Result]]:
        """Return device -> key -> result of a dynamic fold; without `key=` the one key is ""."""
        return {device.name: device.results(name) for device in self.running()}

    def values(self, name: str) -> dict[str, dict[str, Partial]]:
        """Return device -> key -> partial of a dynamic fold; see `results`."""
        return {
            device: {key: result.partial for key, result in results.items()}
            for device, results in self.results(name).items()
        }

    def entries(self, name: str) -> dict[tuple[str, str], PublishedPartial]:
        """Return (key, device) -> what a dynamic fold reads of it, the newest that was sent."""
        source, found = self.plan.dynamic_folds[name].source.name, {}
        for (variable, _, device), frame in self._entries.newest.items():
            if variable == source and frame.keys:
                partials = zip(*frame.columns, strict=True)
                for key, seq, partial in zip(frame.keys, frame.seqs, partials, strict=True):
                    version = Version.of(frame.sender, seq)
                    found[key, device] = PublishedPartial(version, partial)
        return found


__all__ = ["GENTLE", "ROUGH", "START_US", "STEP_US", "Fleet"]
