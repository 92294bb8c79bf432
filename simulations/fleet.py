"""A fleet on virtual time: real cores and stores, a modelled network, one seed.

Problem: a history that loses or doubles a reading shows up once in a million messages on a real
broker. Sketch: run the agent's pure core and its real SQLite store against a network that loses,
doubles, delays and reorders messages, forgets what it retained and kills agents between two
commits, all drawn from one seed; then heal, settle, and compare with the oracle. The same seed
gives the same run.

    >>> from lasp_edge.examples.greenhouse import program
    >>> fleet = Fleet(program.plan(), size=2, seed=7)
    >>> fleet.read("pi-0", "temperature", 21.5, {"room": "kitchen"})
    >>> fleet.read("pi-1", "temperature", 22.5, {"room": "cellar"})
    >>> fleet.settle()
    >>> fleet.values("global_average")
    {'pi-0': (2, 4400), 'pi-1': (2, 4400)}
    >>> fleet.close()
"""

import heapq
from collections.abc import Collection, Mapping
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from crdts import Membership, Replica, Version
from crdts.membership import NEVER
from device_agent.core import Core
from device_agent.durable import Durable
from device_agent.fleet.variables import Result
from device_agent.intake.batch import Batch
from device_agent.parts import Publication
from device_agent.settings import SECOND_US, Settings
from device_agent.state.store import Store
from lasp_edge.folds.columns import Partial
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import AckFrame, BeatFrame, MemberFrame, PaneFrame, VariableFrame
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.topics import Topics
from simulations.oracle import Word

STEP_US = SECOND_US
LANDER = Replica(1, 1, "lander")
OPERATOR = Replica(1, 1, "operator")
START_US = 1_700_000_000 * SECOND_US


class Faults(NamedTuple):
    """What may go wrong.

    Attributes:
        loss: probability that a message is lost on one leg of its way.
        doubled: probability that it arrives twice.
        delay_us: it arrives after up to this long, so later ones overtake it.
        kill: probability, per agent and step, of a SIGKILL and restart.
        cut: probability, per agent and step, that its connection breaks for some steps.
        broker_reset: probability, per step, that the broker restarts empty.
        lander_forgets: probability, per frame, that the lander takes it but its word is lost.
        unsent: probability, per publication, that the link does not take it.
    """

    loss: float = 0.0
    doubled: float = 0.0
    delay_us: int = 0
    kill: float = 0.0
    cut: float = 0.0
    broker_reset: float = 0.0
    lander_forgets: float = 0.0
    unsent: float = 0.0


GENTLE = Faults()
ROUGH = Faults(
    loss=0.2,
    doubled=0.2,
    delay_us=5 * SECOND_US,
    kill=0.05,
    cut=0.05,
    broker_reset=0.02,
    lander_forgets=0.2,
    unsent=0.02,
)

PaneKey = tuple[int, str, int, str, int, int]
"""(stream, key, pane start, device, incarnation, nonce)."""


class Landed:
    """What a lander has taken: the lattices of pane entries, of promises and of membership.

    Attributes:
        newest: device -> the newest version of its panes that it spoke of; none is newer.
    """

    def __init__(self, lake: str) -> None:
        self.lake = lake
        self.membership = Membership()
        self.newest: dict[str, Version] = {}
        self.panes: dict[PaneKey, tuple[int, Partial]] = {}
        self._devices: set[str] = set()
        self._acks_sent = 0
        self.promises: dict[str, tuple[tuple[int, int, int], int | None]] = {}

    def take(self, frame: Frame) -> AckFrame | None:
        """Join a frame; return what the device is told of it.

        A device of which nothing has landed is told the lake's id: it may know another one.
        """
        if isinstance(frame, BeatFrame):
            return self._take_promise(frame)
        if isinstance(frame, MemberFrame):
            self.membership |= frame.membership()
        if not isinstance(frame, PaneFrame):
            return None
        self._devices.add(frame.sender.device)
        taken = [self._take_block(frame.sender.device, block) for block in frame.blocks]
        return self._acknowledge(frame.sender, frame.number) if all(taken) else None

    def _acknowledge(self, replica: Replica, *numbers: int) -> AckFrame:
        self._acks_sent += 1
        return AckFrame(LANDER, self._acks_sent, replica, self.lake, numbers)

    def _take_block(self, device: str, block: PaneEntries) -> bool:
        """Join what counts for ever; return whether that is all. The rest is not acknowledged."""
        complete = True
        partials = zip(*block.columns, strict=True)
        for key, pane_us, seq, partial in zip(
            block.keys, block.panes_us, block.seqs, partials, strict=True
        ):
            version = Version(block.incarnation, block.nonce, seq)
            pane = (block.stream, key, pane_us, device, block.incarnation, block.nonce)
            if not self.membership.admits(device, version):
                complete = False
            elif pane not in self.panes or self.panes[pane][0] < seq:
                self.panes[pane] = (seq, partial)
        return complete

    def _take_promise(self, frame: BeatFrame) -> AckFrame | None:
        spoken_of = Version.of(frame.sender, frame.seq)
        self.newest[frame.sender.device] = max(
            spoken_of, self.newest.get(frame.sender.device, NEVER)
        )
        version = (frame.sender.incarnation, frame.sender.nonce, frame.number)
        known = self.promises.get(frame.sender.device)
        if known is None or known[0] < version:
            self.promises[frame.sender.device] = (version, frame.low_us)
        if frame.sender.device in self._devices:
            return None
        return self._acknowledge(frame.sender)

    def windows(
        self, program: Plan, name: str, without: Collection[str] = ()
    ) -> dict[tuple[str, int], Partial]:
        """Return (key, start_us) -> partial of every window, combined from the panes.

        Args:
            program: the program.
            name: a window of it.
            without: devices whose panes are left out.
        """
        window = program.windows[name]
        found: dict[tuple[str, int], Partial] = {}
        for (stream, key, pane_us, device, *_), (_, partial) in self.panes.items():
            if stream != window.stream or device in without:
                continue
            start_us = -((window.size_us - window.span_us - pane_us) // window.slide_us)
            start_us *= window.slide_us
            while start_us <= pane_us:
                before = found.get((key, start_us), window.fold.zero)
                found[key, start_us] = window.fold.combine(before, partial)
                start_us += window.slide_us
        return found


class _Agent:
    """One simulated device: a directory that outlives its process."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.directory = directory
        self.durable: Durable | None = None
        self.cut_steps = 0

    @property
    def core(self) -> Core:
        assert self.durable is not None
        return self.durable.core


class Fleet:
    """Agents, a broker and a lander, on virtual time.

    Args:
        program: what they compute.
        size: how many agents: `pi-0`, `pi-1`, ...
        seed: of everything that is drawn.
        faults: what may go wrong until `settle`.
        settings: of every agent.
    """

    def __init__(
        self,
        program: Plan,
        *,
        size: int,
        seed: int,
        faults: Faults = GENTLE,
        settings: Settings | None = None,
    ) -> None:
        self.program = program
        self.now_us = START_US
        self.faults = faults
        self.landed = Landed("lake-1")
        self._settings = settings or Settings()
        self._random = Random(seed)
        self._topics = Topics(program.name)
        self._files = TemporaryDirectory(prefix="fleet-")
        self.membership = Membership()
        self._words: list[MemberFrame] = []
        self._commands = 0
        self._retained: dict[str, bytes] = {}
        self._entries: dict[tuple[str, int, str], VariableFrame] = {}
        self._flying: list[tuple[int, int, str, str, bytes, bool]] = []
        self._count = 0
        self.kills = 0
        self.published_bytes = 0
        self.agents = {
            name: _Agent(name, Path(self._files.name) / name)
            for name in (f"pi-{number}" for number in range(size))
        }
        for agent in self.agents.values():
            self._start(agent)

    def close(self) -> None:
        """Remove the stores."""
        for agent in self.agents.values():
            self._kill(agent)
        self._files.cleanup()

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
        agent = self.agents[device]
        assert agent.durable is not None
        agent.durable.read(batch, self.now_us)

    def read_batch(self, device: str, batch: Batch) -> None:
        """Let one device read a batch."""
        agent = self.agents[device]
        assert agent.durable is not None
        agent.durable.read(batch, self.now_us)

    def kill(self, device: str) -> None:
        """SIGKILL an agent, and start it again."""
        self._kill(self.agents[device])
        self._start(self.agents[device])
        self.kills += 1

    def cut(self, device: str, steps: int) -> None:
        """Break an agent's connection for some steps."""
        self.agents[device].cut_steps = steps
        self.agents[device].core.handle_disconnected()

    def stop(self, device: str) -> None:
        """Switch a device off; it comes back with `start`, or never."""
        self._kill(self.agents[device])

    def start(self, device: str) -> None:
        """Switch a device on that was stopped."""
        self._start(self.agents[device])

    def retire(self, device: str) -> None:
        """An operator retires a device at what it last spoke of."""
        self._say(device, self.membership.retire(device, self.landed.newest.get(device, NEVER)))

    def admit(self, device: str) -> None:
        """An operator lets a device count again."""
        self._say(device, self.membership.admit(device))

    def reset_broker(self) -> None:
        """The broker restarts and has lost everything."""
        self._retained.clear()
        self._flying.clear()
        for agent in self._running():
            if agent.cut_steps == 0:
                self._connect(agent)

    def new_lake(self, name: str) -> None:
        """The lake is lost; an empty one with another id takes its place."""
        self.landed = Landed(name)
        self.landed.membership |= self.membership

    def step(self, steps: int = 1) -> None:
        """Let time pass: faults, ticks, messages."""
        for _ in range(steps):
            self.now_us += STEP_US
            self._misfortunes()
            self._repeat()
            for agent in self._running():
                self._reconnect(agent)
                self._tick(agent)
            self._deliver()

    def settle(self, steps: int = 600) -> None:
        """End all faults and run until everything landed and every agent agrees.

        Raises:
            AssertionError: that did not happen within so many steps.
        """
        self.faults = GENTLE
        for agent in self._running():
            agent.cut_steps = 0
            self._connect(agent)
            agent.core.handle_end()
        for _ in range(steps):
            if self._is_settled():
                return
            self.step()
        states = {agent.name: agent.core.report() for agent in self._running()}
        raise AssertionError(f"not settled after {steps} steps: {states}")

    def values(self, name: str) -> dict[str, Partial]:
        """Return device -> partial of a dynamic fold without keys, as each device holds it."""
        return {a.name: a.core.variables.fleet()[name].partial for a in self._running()}

    def results(self, name: str) -> dict[str, dict[str, Result]]:
        """Return device -> key -> result of a dynamic fold with keys."""
        return {a.name: a.core.variables.fleet_by_key()[name] for a in self._running()}

    def inputs(self, name: str) -> set[str]:
        """Return the `inputs` of a dynamic fold on all devices."""
        return {agent.core.variables.agreements()[name].inputs for agent in self._running()}

    def words(self, name: str) -> dict[tuple[str, str], Word]:
        """Return (key, device) -> the newest word on a fold that the broker passed on."""
        source, found = self.program.dynamic_folds[name].source.name, {}
        for (variable, _, device), frame in self._entries.items():
            if variable == source and frame.keys:
                partials = zip(*frame.columns, strict=True)
                for key, seq, partial in zip(frame.keys, frame.seqs, partials, strict=True):
                    found[key, device] = Word(Version.of(frame.sender, seq), partial)
        return found

    def _running(self) -> list[_Agent]:
        return [agent for agent in self.agents.values() if agent.durable is not None]

    def _is_settled(self) -> bool:
        running = self._running()
        held = {
            tuple((report.variable, report.digest) for report in agent.core.variables.reports())
            for agent in running
        }
        return len(held) <= 1 and all(map(self._is_at_rest, running))

    def _is_at_rest(self, agent: _Agent) -> bool:
        """Return whether a device has landed all it may, and agrees with the others."""
        agreements = agent.core.variables.agreements().values()
        return (
            (agent.core.done or agent.name in self.membership.retired)
            and agent.core.members.membership == self.membership
            and not agent.core.variables.derived.due
            and all(each.settled and not each.offline for each in agreements)
        )

    def _say(self, device: str, word: Membership) -> None:
        self.membership |= word
        self.landed.membership |= word
        self._commands += 1
        self._words.append(MemberFrame.of(OPERATOR, self._commands, device, word.entries[device]))
        self._repeat()

    def _repeat(self) -> None:
        """An operator repeats a word until some device has it."""
        held = [agent.core.members.membership for agent in self._running()]
        self._words = [
            word for word in self._words if not any(word.membership() <= one for one in held)
        ]
        for word in self._words:
            self._route(self._topics.member(word.about), word.encode(), retain=True)

    def _start(self, agent: _Agent) -> None:
        store = Store(agent.directory)
        nonce = self._random.getrandbits(32)
        core = Core(self.program, agent.name, nonce, store.restored(), self._settings)
        core.cursor("simulated")
        agent.durable = Durable(core, store)
        if agent.cut_steps == 0:
            self._connect(agent)

    def _kill(self, agent: _Agent) -> None:
        if agent.durable is not None:
            agent.durable.store.close()
            agent.durable = None

    def _connect(self, agent: _Agent) -> None:
        agent.core.handle_connected(self.now_us)
        for topic, payload in sorted(self._retained.items()):
            if self._topics.address(topic).kind in {"var", "presence", "member"}:
                self._fly(agent.name, topic, payload)

    def _reconnect(self, agent: _Agent) -> None:
        if agent.cut_steps:
            agent.cut_steps -= 1
            if not agent.cut_steps:
                self._connect(agent)

    def _misfortunes(self) -> None:
        draw, faults = self._random.random, self.faults
        if draw() < faults.broker_reset:
            self.reset_broker()
        for agent in self._running():
            if draw() < faults.kill:
                self.kill(agent.name)
            if draw() < faults.cut and not agent.cut_steps:
                self.cut(agent.name, self._random.randint(1, 20))

    def _tick(self, agent: _Agent) -> None:
        assert agent.durable is not None
        for publication in agent.durable.tick(self.now_us):
            if self._random.random() < self.faults.unsent:
                agent.core.handle_unsent(publication)
                break
            self._publish(publication)

    def _publish(self, publication: Publication) -> None:
        self.published_bytes += len(publication.topic) + len(publication.payload)
        if not publication.topic.startswith(f"{self._topics.root}/out/"):
            topic, payload, retain, _ = publication
            self._fly("broker", topic, payload, retain=retain)

    def _fly(self, to: str, topic: str, payload: bytes, *, retain: bool = False) -> None:
        """Put a message on one leg of its way, with that leg's faults."""
        if self._random.random() < self.faults.loss:
            return
        copies = 1 + (self._random.random() < self.faults.doubled)
        for _ in range(copies):
            at_us = self.now_us + self._random.randint(0, self.faults.delay_us)
            self._count += 1
            heapq.heappush(self._flying, (at_us, self._count, to, topic, payload, retain))

    def _deliver(self) -> None:
        while self._flying and self._flying[0][0] <= self.now_us:
            _, _, to, topic, payload, retain = heapq.heappop(self._flying)
            if to == "broker":
                self._route(topic, payload, retain=retain)
            elif (agent := self.agents[to].durable) and not self.agents[to].cut_steps:
                agent.hear(topic, payload, self.now_us)

    def _route(self, topic: str, payload: bytes, *, retain: bool) -> None:
        if retain:
            self._retained[topic] = payload
        kind, device = self._topics.address(topic)
        if kind == "var":
            self._note_entry(decode(payload))
        if kind in {"pane", "beat", "member"}:
            self._land(payload)
        for name in [device] if kind in {"ack", "inbox"} else self.agents:
            if kind != "pane":
                self._fly(name, topic, payload)

    def _note_entry(self, frame: Frame) -> None:
        assert isinstance(frame, VariableFrame)
        at = (frame.variable, frame.shard, frame.sender.device)
        if at not in self._entries or self._entries[at].version < frame.version:
            self._entries[at] = frame

    def _land(self, payload: bytes) -> None:
        answer = self.landed.take(decode(payload))
        if answer is not None and self._random.random() >= self.faults.lander_forgets:
            topic = self._topics.acknowledgement(answer.about)
            self._fly("broker", topic, answer.encode())
