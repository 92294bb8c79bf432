"""The fleet: devices, network, broker, lander and operator together, step by step."""

from collections.abc import Mapping
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from crdts import Membership, Version
from device_agent.fleet.values import Result
from device_agent.intake.batch import Batch
from device_agent.settings import Settings
from lasp_edge.folds.columns import Partial
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.topics import Topics
from simulations.fleet.devices import SimulatedDevice
from simulations.fleet.faults import GENTLE, STEP_US, Faults
from simulations.fleet.hub import Hub
from simulations.fleet.lander import SimulatedLander
from simulations.oracle import PublishedPartial


class Fleet:
    """Devices, a broker, a lander and an operator, on virtual time.

    Args:
        size: how many devices: `pi-0`, `pi-1`, ...
        seed: of everything that is drawn.
        faults: what may go wrong until `settle`.

    Attributes:
        hub: broker, lander and operator.
        kills: the number of agents that were killed and started again.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        size: int,
        seed: int,
        faults: Faults = GENTLE,
        settings: Settings | None = None,
    ) -> None:
        self.plan = plan
        self.kills = 0
        self._random = Random(seed)
        lander = SimulatedLander("lake-1", plan)
        self.hub = Hub(Topics(plan.name), lander, self._random, faults)
        self._files = TemporaryDirectory(prefix="fleet-")
        folder, settings = Path(self._files.name), settings or Settings()
        names = [f"pi-{number}" for number in range(size)]
        self.devices = {
            name: SimulatedDevice(name, folder / name, plan, settings) for name in names
        }
        for name in self.devices:
            self.start(name)

    def close(self) -> None:
        """Remove the stores."""
        for device in self.devices.values():
            device.kill()
        self._files.cleanup()

    @property
    def membership(self) -> Membership:
        """All that the operator commanded."""
        return self.hub.operator.membership

    @property
    def now_us(self) -> int:
        """Virtual time, in microseconds since the epoch."""
        return self.hub.now_us

    def read(
        self,
        device: str,
        event: str,
        value: Any,
        tags: Mapping[str, str] | None = None,
        time_us: int | None = None,
    ) -> None:
        """Let one device read one value, now or at an own time."""
        batch = Batch("simulated", [event], [time_us], [value], [tags or {}])
        self.devices[device].read(batch, self.now_us)

    def kill(self, device: str) -> None:
        """SIGKILL an agent, and start it again."""
        self.stop(device)
        self.start(device)
        self.kills += 1

    def cut(self, device: str, steps: int) -> None:
        """Break an agent's connection for some steps."""
        self.devices[device].cut_steps = steps
        self.devices[device].core.handle_disconnected()

    def stop(self, device: str) -> None:
        """Switch a device off; it comes back with `start`, or never."""
        self.devices[device].kill()

    def start(self, device: str) -> None:
        """Switch a device on that was stopped."""
        self.devices[device].start(nonce=self._random.getrandbits(32))
        if not self.devices[device].cut_steps:
            self.hub.connect(self.devices[device])

    def retire(self, device: str) -> None:
        """An operator retires a device at what it last reported."""
        self.hub.operator.retire(device)
        self.hub.repeat_commands(self.devices)

    def admit(self, device: str) -> None:
        """An operator lets a device count again."""
        self.hub.operator.admit(device)
        self.hub.repeat_commands(self.devices)

    def reset_broker(self) -> None:
        """The broker restarts and has lost everything."""
        self.hub.reset_broker()
        for device in self.running():
            if not device.cut_steps:
                self.hub.connect(device)

    def new_lake(self, name: str) -> None:
        """The lake is lost; an empty one with another id takes its place."""
        self.hub.lander = SimulatedLander(name, self.plan, self.membership)

    def step(self, steps: int = 1) -> None:
        """Let time pass: faults, ticks, messages."""
        for _ in range(steps):
            self.hub.now_us += STEP_US
            self._misfortunes()
            self.hub.repeat_commands(self.devices)
            for device in self.running():
                if device.cut_steps:
                    device.cut_steps -= 1
                    if not device.cut_steps:
                        self.hub.connect(device)
                self.hub.collect(device)
            self.hub.deliver(self.devices)

    def settle(self, steps: int = 600) -> None:
        """End all faults and run until everything landed and every agent agrees.

        Raises:
            AssertionError: that did not happen within `steps`.
        """
        self.hub.faults = GENTLE
        for device in self.running():
            device.cut_steps = 0
            self.hub.connect(device)
            device.core.handle_end()
        for _ in range(steps):
            held = {device.digests() for device in self.running()}
            at_rest = (device.is_at_rest(self.membership) for device in self.running())
            if len(held) <= 1 and all(at_rest):
                return
            self.step()
        states = {device.name: device.report() for device in self.running()}
        raise AssertionError(f"not settled after {steps} steps: {states}")

    def running(self) -> list[SimulatedDevice]:
        """Return the devices that are switched on."""
        return [device for device in self.devices.values() if device.durable is not None]

    def results(self, name: str) -> dict[str, dict[str, Result]]:
        """Return device -> key -> result of a dynamic fold; without `key=` the one key is ""."""
        return {device.name: device.results(name) for device in self.running()}

    def values(self, name: str) -> dict[str, dict[str, Partial]]:
        """Return device -> key -> partial of a dynamic fold; see `results`."""
        return {
            device: {key: result.partial for key, result in results.items()}
            for device, results in self.results(name).items()
        }

    def published(self, name: str) -> dict[tuple[str, str], PublishedPartial]:
        """Return (key, device) -> what a dynamic fold reads of it, the newest that was sent."""
        source, found = self.plan.dynamic_folds[name].source.name, {}
        for (variable, _, device), frame in self.hub.broker.entries.items():
            if variable == source and frame.keys:
                partials = zip(*frame.columns, strict=True)
                for key, seq, partial in zip(frame.keys, frame.seqs, partials, strict=True):
                    version = Version.of(frame.sender, seq)
                    found[key, device] = PublishedPartial(version, partial)
        return found

    def _misfortunes(self) -> None:
        draw, faults = self._random.random, self.hub.faults
        if draw() < faults.broker_reset:
            self.reset_broker()
        for device in self.running():
            if draw() < faults.kill:
                self.kill(device.name)
            if draw() < faults.cut and not device.cut_steps:
                self.cut(device.name, self._random.randint(1, 20))
