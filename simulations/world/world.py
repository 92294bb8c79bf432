"""A world: devices, links, a broker, a lander and an operator on virtual time, all from one seed.

A step is a second: faults befall, devices start and connect, sources give, agents tick, messages
arrive, landers commit. A message to many receivers is one parcel, not a copy for each.

    >>> world = World(Scenario(seed=7, size=3, steps=30))
    >>> for _ in range(world.scenario.steps):
    ...     world.step(reading=True)
    >>> [device.connected for device in world.running()], world.trouble
    ([True, True, True], [])
    >>> world.close()
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from device_agent.agent.settings import Settings
from device_agent.gateway.core import WaitingTerms
from lasp_edge.language.plan import Plan, is_apart
from lasp_edge.protocol.commands import SCHEDULE
from lasp_edge.protocol.fencing import VouchFrame
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.topics import Topics
from simulations.world.broker import NOWHERE, SNAPSHOT_STEPS, LastWill, VirtualBroker
from simulations.world.device import VirtualDevice, lets_go
from simulations.world.disk import AgentDisk, FileDisk, MemoryDisk
from simulations.world.faults import FAST_US, START_US, STEP_US
from simulations.world.lander import TERMS
from simulations.world.landing import SinkMessage
from simulations.world.links import TO_BROKER, Addresses, LegMessage, Links
from simulations.world.observer import Observer
from simulations.world.odd_lines import has_odd_lines
from simulations.world.operator import SimulatedOperator
from simulations.world.peer_checks import heard
from simulations.world.process import STORE_ERRORS
from simulations.world.programs import CALLED, LIVE, plan_of, sources_of
from simulations.world.recordings import Recordings
from simulations.world.scenario import Scenario
from simulations.world.sensors import Sensors
from simulations.world.sinks import AnySink, sinks_of
from simulations.world.value_checks import wrong_calls
from simulations.world.workload import ALONE_RATE, LIVE_RATE, RECORD_RATE, rate_at, record

IN_FLIGHT = 20
"""The most publications that a link takes in a step: mosquitto's receive maximum, unless set."""
RECONNECT_STEPS = 5
"""The most steps until a broken connection is back, if nothing keeps it broken."""
QUICK_FILES = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - a fresh name in it
"""Where the files of disks lie: in memory if there is such a place, for syncing is modelled."""
KEEPALIVE_STEPS = 8
"""Steps after which the broker notices that a connection is gone."""


class World:
    """All that a scenario says, running.

    Attributes:
        devices: key -> device; a clone has a key of its own, and another's name.
        trouble: what must never happen, and did.
        seen: kind of fault -> how often it happened.
        sinks: the lander, and a second sink where the scenario has one.
        by_key: key -> sink, and for a while a twin, which has a key of its own and another's name.
        former_plan: a program that lacks a window; None where the world runs another's program.
        links: messages on their way.
        bytes: of all that devices published.
        fast_until: until which step hours pass; see `faults`.
        recordings: what somebody recorded of its messages.
        addresses: of the devices, by their names.
        to_come: step -> what is to be done then.
        stores: the ids of all stores that sinks ever had.
    """

    def __init__(
        self,
        scenario: Scenario,
        observer: Observer["World"] | None = None,
        plan: Plan | None = None,
        sensors: Sensors | None = None,
        settings: Settings | None = None,
        terms: WaitingTerms = TERMS,
        start_us: int = START_US,
    ) -> None:
        CALLED.clear()
        self.scenario, self.random = scenario, Random(scenario.seed)
        self.now_us = self._start_us = start_us
        self.step_number = self.bytes = self.fast_until = 0
        self.trouble: list[str] = []
        self.seen: Counter[str] = Counter()
        self.links = Links(self.random, scenario.faults, self.seen)
        self._sensors, self.observer = sensors, observer
        self.plans = [plan or plan_of(scenario, release) for release in (0, 1)]
        self.topics = Topics(self.plans[0].name)
        self.broker = VirtualBroker(
            self.topics, keeps_sessions=scenario.sessions, are_apart=is_apart(self.plans[1])
        )
        self.operator = SimulatedOperator(self.topics)
        self.former_plan = None if plan else plan_of(scenario, -1)
        self.sinks = sinks_of(scenario, self.plans[1], terms, start_us)
        self.by_key = {f"sink {sink.sink}": sink for sink in self.sinks}
        self._files = _directory() if scenario.files else None
        self.to_come: dict[int, list[Callable[[], object]]] = defaultdict(list)
        self.recordings, self.stores = Recordings(), set[str]()
        self._kinds = {fault.kind for fault in scenario.schedule}
        self._wills: dict[int, list[LastWill]] = defaultdict(list)
        of_agent = settings or scenario.settings(), (LIVE,) if plan else sources_of(scenario)
        self._agent = (self.plans[0], *of_agent)
        self.devices, self.addresses = dict[str, VirtualDevice](), Addresses()
        self._places = {name: place for place, name in enumerate(scenario.names, scenario.first)}
        list(map(self.add, scenario.names, scenario.names))

    def add(self, key: str, name: str) -> VirtualDevice:
        """Put a device into the world; it starts in the next step."""
        disk: AgentDisk = MemoryDisk()
        if self._files is not None:
            disk = FileDisk(Path(self._files.name) / key)
        device = self.devices[key] = VirtualDevice(name, disk, *self._agent)
        device.unsynchronised = self.scenario.unsynchronised
        device.is_odd = has_odd_lines(self.scenario)
        self.addresses.note({each: of.name for each, of in self.devices.items()})
        return device

    def close(self) -> None:
        """Remove the disks."""
        for device in self.devices.values():
            device.kill()
            device.disk.remove()
        if self._files is not None:
            self._files.cleanup()

    def later(self, steps: int, action: Callable[[], object]) -> None:
        """Do something after some steps, or when all is healed."""
        self.to_come[self.step_number + steps].append(action)

    def calm(self) -> None:
        """Let messages arrive, and do at once what is to be done later."""
        self.links.calm()
        for step in sorted(self.to_come):
            for action in self.to_come.pop(step):
                action()

    def running(self) -> list[VirtualDevice]:
        """Return the devices whose process runs."""
        return [device for device in self.devices.values() if device.durable is not None]

    def step(self, *, reading: bool = False) -> None:
        """Let a step pass."""
        self.step_number += 1
        self.now_us += STEP_US if self.step_number > self.fast_until else FAST_US
        for sink in self.by_key.values():
            sink.pass_time(self.now_us, self._start_us)
        for action in self.to_come.pop(self.step_number, ()):
            action()
        if self.step_number % SNAPSHOT_STEPS == 0:
            _take_snapshots(self, self._kinds)
        for key, device in list(self.devices.items()):
            self._live(key, device, reading=reading)
        self._land()
        self._repeat_commands()
        self._deliver()
        if "unsynced_lost" in self._kinds:
            for device in self.running():
                device.disk.recent.append(device.disk.image())
        if self.observer is not None:
            self.observer.stepped(self)

    def _land(self) -> None:
        """Let the sinks commit what they have, and answer."""
        unanswered, draw = self.links.faults.unanswered, self.random.random
        for sink in self.by_key.values():
            if not sink.is_connected and sink.is_due(self.step_number):
                for topic, payload in self.broker.kept_for_landers(sink.name):
                    sink.hear(topic, payload, self.step_number, retained=True)
            for topic, payload, is_kept, frame in _committed(sink, self):
                if unanswered and draw() < unanswered:
                    self.seen["unanswered"] += 1
                    continue
                self.recordings.take_answer(topic, payload, frame)
                if isinstance(frame, VouchFrame):
                    _note_vouch(self, frame)
                message = LegMessage(TO_BROKER, topic, payload, is_kept)
                if frame is None:  # for people, and it is sent until the broker has it
                    self.route(message)
                else:
                    self.send(message)

    def _live(self, key: str, device: VirtualDevice, *, reading: bool) -> None:
        step = self.step_number
        if reading and key == device.name and self._sensors is None:
            punctual = self.scenario.punctual
            if device.records and self.random.random() < rate_at(step, RECORD_RATE):
                record(device, self.now_us, self.random, punctual=punctual)
            if device.meter is not None:
                soon = self.scenario.soon
                late = {"soon": soon, "overtakes": not self.scenario.ordered}
                device.meter.grow(self.now_us, self.random, punctual=punctual, **late)
        if device.disk_until and step >= device.disk_until:
            device.disk_until = 0
            device.disk.mend()
        if device.durable is None and step < device.start_step:
            return
        try:
            self.wake(key, device)
            self._work(device, reading=reading)
        except STORE_ERRORS:
            self.end(key, device, steps=2)
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            self.trouble.append(f"{key}: the agent ended: {type(error).__name__}: {error}")
            self.end(key, device, steps=2)

    def wake(self, key: str, device: VirtualDevice) -> None:
        """Start a device that is off, and connect it where nothing keeps it from that."""
        if device.durable is None:
            device.begin(self.random.getrandbits(32), self.now_us)
        if not device.connected and self.step_number >= device.connect_step:
            self.connect(key, device)

    def _work(self, device: VirtualDevice, *, reading: bool) -> None:
        """Let a device's sources give, and its agent tick."""
        if self._sensors is not None:
            if reading:
                place = self._places[device.name]
                given = (place, self.step_number, self.now_us, self.random)
                device.read_sensors(self._sensors, self._sensors.batch(*given), self.now_us)
            self._collect(device)
            return
        device.read_recording(self.now_us)
        usual = LIVE_RATE if device.records else ALONE_RATE
        if reading and self.random.random() < rate_at(self.step_number, usual):
            device.read_live(self.now_us)
        self._collect(device)

    def _collect(self, device: VirtualDevice) -> None:
        """Let an agent tick, and take what it publishes."""
        most = 2 if self.step_number < device.full_until else IN_FLIGHT
        unsent, draw = self.links.faults.unsent, self.random.random
        unsent_one: Publication | None = None
        for sent, publication in enumerate(device.publications(self.now_us)):
            if sent == most or (unsent and draw() < unsent):
                device.core.handle_unsent(publication)
                unsent_one = publication
                self.seen["unsent"] += 1
                break
            topic, payload, retain, *_ = publication
            self.bytes += len(topic) + len(payload)
            if payload and "hostile" in self._kinds and self.broker.route(topic) is not NOWHERE:
                self.recordings.devices.append((topic, payload))
            if self.observer is not None:
                self.observer.published(self, device, publication)
            message = LegMessage(TO_BROKER, topic, payload, retain)
            if lets_go(device, message, self.step_number):
                self.links.send(message)
        if self.observer is not None:
            self.observer.ticked(self, device, unsent_one)
        self.trouble += wrong_calls(device, self.now_us)

    def connect(self, key: str, device: VirtualDevice) -> None:
        """Connect a device; whoever has its client id is thrown out."""
        for other_key in self.addresses.of[device.name]:
            other = self.devices[other_key]
            if other_key != key and other.connected:
                self.disconnect(other, steps=self.random.randint(1, 2 * RECONNECT_STEPS))
        device.connected = True
        goodbye = device.core.beats.presence(online=False)
        device.core.handle_connected(device.now_us(self.now_us))
        if self.observer is not None:
            self.observer.connected(self, device)
        will = LastWill(goodbye.topic, goodbye.payload, goodbye.retain)
        for topic, payload in self.broker.connect(device.name, will):
            self.send(LegMessage((key,), topic, payload))

    def disconnect(self, device: VirtualDevice, steps: int, notice: int = 0) -> None:
        """Break a device's connection for some steps; the broker notices, and tells the will."""
        device.connect_step = max(device.connect_step, self.step_number + steps)
        if not device.connected:
            return
        device.connected = False
        will = self.broker.disconnect(device.name)
        if will is not None:
            self._wills[self.step_number + notice].append(will)
        if device.durable is not None:
            device.core.handle_disconnected()

    def end(self, key: str, device: VirtualDevice, steps: int) -> None:
        """End a device's process without warning; it starts again after some steps."""
        del key
        if self.observer is not None and device.durable is not None:
            self.observer.ended(self, device)
        if device.durable is not None:
            holders = {sink.name for sink in self.sinks if sink.holds(device.name)}
            answered_by = device.core.fence.answered_by
            if answered_by and answered_by >= holders:
                device.unreported.reported()
        if device.disk_until:
            device.acted.clear()  # what it did last may not be durable
        CALLED.clear()  # where it ends in its turn, its calls are not the next device's
        device.kill()
        device.start_step = max(device.start_step, self.step_number + steps)
        self.disconnect(device, steps)
        device.connect_step = min(device.connect_step, device.start_step)

    def send(self, parcel: LegMessage) -> None:
        """Put a message on a leg."""
        self.links.send(parcel)

    def _deliver(self) -> None:
        """Hand over all that arrives in this step; what is sent meanwhile may arrive too."""
        arrived = self.links.arriving()
        for will in self._wills.pop(self.step_number, ()):
            arrived.append(LegMessage(TO_BROKER, *will))
        for parcel in arrived:
            if not parcel.to:
                self.route(parcel)
            for key in parcel.to:
                sink = self.by_key.get(key)
                if sink is None:
                    self._hear(key, parcel.topic, parcel.payload)
                else:
                    sink.hear(parcel.topic, parcel.payload, self.step_number)
        self.links.arrived()

    def route(self, parcel: LegMessage) -> None:
        """Let the broker pass on a message."""
        topic, payload = parcel.topic, parcel.payload
        if parcel.retain:
            self.broker.keep(topic, payload)
        to = self.broker.route(topic)
        if not payload:
            return
        if (to.landers or to.itself) and (
            sinks := tuple([key for key, sink in self.by_key.items() if to.has(sink.name)])
        ):
            self.send(LegMessage(sinks, topic, payload))
        if keys := self.addresses.hearing(to, apart=self.scenario.apart):
            self.send(LegMessage(keys, topic, payload))
        if to.everybody:
            self.operator.hear(topic, payload)

    def _hear(self, key: str, topic: str, payload: bytes) -> None:
        device = self.devices.get(key)
        if device is None:
            return
        if not device.connected or device.durable is None:
            if key == device.name:
                self.broker.wait(device.name, topic, payload)
            return
        misses = self.step_number < device.misses_entries_until and f"/{SCHEDULE}" in topic
        if misses or self.step_number < device.deaf_until:
            return
        try:
            self.trouble += heard(self.devices, device, (topic, payload), self.now_us)
        except STORE_ERRORS:
            self.end(key, device, steps=2)
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            self.trouble.append(f"{key}: a message ended it: {type(error).__name__}: {error}")
            self.end(key, device, steps=2)

    def _repeat_commands(self) -> None:
        if self.operator.commands.subjects:
            held = [device.commands() for device in self.running()]
            landed = [sink.lander.commands for sink in self.sinks]
            for message in self.operator.repeated(landed, held):
                self.route(message)


def _note_vouch(world: World, frame: VouchFrame) -> None:
    for key in world.devices.keys() & world.addresses.of.get(frame.about, ()):
        world.devices[key].vouched.add(frame.subject)


def _directory() -> "TemporaryDirectory[str]":
    return TemporaryDirectory(prefix="world-", dir=QUICK_FILES)


def _committed(sink: AnySink, world: World) -> list[SinkMessage]:
    """Return what a sink sends in this step."""
    try:
        return list(sink.commit(world.step_number, world.now_us))
    except Exception as error:  # noqa: BLE001 - this is what is looked for
        world.trouble.append(f"{sink.name} ended: {type(error).__name__}: {error}")
        return []


def _take_snapshots(world: World, kinds: set[str]) -> None:
    """Let what is on the broker and on disks now be what a fault may bring back."""
    world.broker.take_snapshot()
    for device in world.devices.values() if kinds & {"older_image", "clone"} else ():
        device.disk.keep_image()
    for sink in world.sinks if "gateway_old" in kinds else ():
        sink.keep_image()
