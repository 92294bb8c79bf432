"""Structural fuzz: valid frames whose bodies are other trees of values than their kind says.

Frames of every kind in `FRAME_KINDS` are taken from real agents, and parts of their bodies are
replaced, removed, doubled, exchanged or wrapped. A kind of which there is no frame gets bodies that
are any trees at all: so a new kind is fuzzed from its first day. They go to a running core, to a
lander's acceptance and to an operator's view. None of them may raise an error, not even one that
the guard would count: a stranger's frame is refused by a rule that somebody wrote. What a device
measured itself stays as it was, and a good frame works afterwards.

`pytest tests/device_agent/agent/test_structural_fuzz.py --fuzz-frames 1000000` goes on, with
`--fuzz-seed 7` from another seed.
"""

import json
import random
from contextlib import suppress
from copy import deepcopy

import msgpack
import pytest

from crdts import BoundedLWWSet, Counter, GSet, ORSet, Replica, Version
from device_agent.agent.changes import Restored
from device_agent.agent.core import Core
from device_agent.agent.intake.batch import Batch
from device_agent.agent.settings import Settings
from device_agent.console.view.devices import KnownDevices
from device_agent.gateway.core import GatewayCore, WaitingTerms
from lasp_edge import Plan, Program
from lasp_edge.protocol.acceptance import Acceptance, Accepted, Record
from lasp_edge.protocol.commands import CommandFrame
from lasp_edge.protocol.envelope import FORMAT
from lasp_edge.protocol.frames import (
    AskFrame,
    PaneFrame,
    VariableFrame,
)
from lasp_edge.protocol.frontier import Listening
from lasp_edge.protocol.kinds import FRAME_KINDS, Subscriber, decode
from lasp_edge.protocol.topics import Topics, topic_of
from lasp_edge.units import SECOND_US
from simulations.world.disk import EmptyStore
from simulations.world.keeper import SimulatedKeeper
from simulations.world.lander import LANDER, SimulatedLander
from tests.device_agent.agent.support_rare_frames import rarely_sent
from tests.device_agent.agents import LAKE, NOW_US, is_of_frames
from tests.lasp_edge.support_folds import ONE_EACH
from tests.support_commands import member_command

PEER, ME = "pi-2", "pi-1"
FRESH = 250
"""Frames after which a new core is made: one that is retired or far ahead refuses too much."""


def everything() -> Plan:
    """Return a program with a window and a published fold of every built-in fold."""
    program = Program("fuzz")
    temperature = program.event("temperature", resolution="0.01")
    samples = program.declare_dynamic(BoundedLWWSet(bound=50), "samples")
    rooms = program.declare_dynamic(
        BoundedLWWSet(bound=9), "rooms", key=lambda event: event.tags["room"]
    )
    total, seen = program.declare(Counter(), "total"), program.declare(GSet(), "seen")
    marked = program.declare(ORSet(), "marked")
    program.map(seen, lambda element: element // 2, "halves")

    @program.on_event(temperature)
    def sampled(event, update):
        update(samples, "add", event.value, event.time_us)
        update(rooms, "add", event.value, event.time_us)
        update(total, "increment", 1)
        update(seen, "add", round(event.value))
        update(marked, "add", round(event.value))

    for name, fold in ONE_EACH.items():
        for source in (samples, rooms):
            local = program.fold(source, fold, f"{source.name}_{name}")
            program.fold_dynamic(local, f"all_{source.name}_{name}")
        program.window(f"w_{name}", source=temperature, fold=fold, size_s=60)
    return program.plan()


PLAN = everything()


class Agent:
    """A core without a store: what it would commit counts as committed."""

    def __init__(self, name: str, nonce: int) -> None:
        settings = Settings(results_us=SECOND_US, home_assistant="homeassistant")
        self.core = Core(PLAN, name, nonce, Restored(), settings)
        self.core.intake.sources.cursor("test")
        self.now_us = NOW_US
        self.core.handle_connected(self.now_us)

    def read(self, *values: float) -> None:
        times = [self.now_us + n for n in range(len(values))]
        tags = [{"room": f"room-{n % 2}"} for n in range(len(values))]
        batch = Batch("test", ["temperature"] * len(values), times, list(values), tags)
        self.core.hold(batch, self.now_us)
        self.core.part_list.read(EmptyStore(), self.now_us)

    def tick(self, seconds: float = 1) -> list:
        self.now_us += round(seconds * SECOND_US)
        self.core.handle_tick(self.now_us)
        self.core.prepare_commit()
        self.core.committed()
        return list(self.core.publications(self.now_us))

    def hear(self, topic: str, payload: bytes) -> None:
        self.core.handle_message(topic, payload, self.now_us)

    def own(self) -> tuple:
        """Return what only this device's readings change."""
        panes = {pane[:3]: entry.partial for pane, entry in self.core.panes.memory.entries.items()}
        local = {name: self.core.samples.partials(name) for name in PLAN.local_folds}
        return local, panes


def talk() -> list[tuple[str, bytes]]:
    """Return what a fleet of two says: at least one frame of nearly every kind."""
    peer, me = Agent(PEER, 22), Agent(ME, 11)
    lander, topics = SimulatedLander(LAKE, PLAN), Topics(PLAN.name)
    said = []
    for step in range(40):
        peer.read(20.0 + step, 21.5, -3.0)
        for agent, other in ((peer, me), (me, peer)):
            for topic, payload, *_ in agent.tick():
                if not is_of_frames(topic):
                    continue
                said.append((topic, payload))
                other.hear(topic, payload)
                answer = lander.hear(topic, payload, agent.now_us)
                if answer is not None:
                    said.append((topic_of(answer, topics), answer.encode()))
                    agent.hear(*said[-1])
    replica = peer.core.replica
    commands = (
        AskFrame(replica, 1, ME, "total"),
        member_command(replica, 1, "pi-9", 1, True, Version(2, 5, 60)),  # noqa: FBT003
        CommandFrame(replica, 1, "above", ME, ((5, 1, "ann", "30"), (9, 2, "ann", None))),
        member_command(replica, 2, PEER, 1, False, Version(2, 5, 60)),  # noqa: FBT003
    )
    more = [*commands, *rarely_sent(replica, ME, [decode(payload) for _, payload in said])]
    return said + [(topic_of(frame, topics), frame.encode()) for frame in more]


@pytest.fixture(scope="module")
def corpus() -> dict[int, list[tuple[str, bytes]]]:
    """Return kind -> frames of it, each of another shape."""
    found: dict[int, dict] = {kind: {} for kind in FRAME_KINDS}
    for topic, payload in talk():
        found[decode(payload).kind].setdefault(topic, {})[len(payload)] = topic, payload
    return {
        kind: [frame for sizes in topics.values() for frame in list(sizes.values())[-3:]]
        for kind, topics in found.items()
    }


INTEGERS = [0, 1, -1, 2, 7, 127, 2**31, 2**32 - 1, 2**40 - 1, 2**40, 2**62, 2**63 - 1, -(2**63)]
INTEGERS += [2**64 - 1, NOW_US, NOW_US + 10**15, -(2**57), 2**58]
OTHERS = [None, True, False, 0.5, float("nan"), float("inf"), "", "a", PEER, ME, "lake", "\x00"]
OTHERS += ["ä" * 200, b"", b"\xff", b"\x00" * 9, b"\x01\x02\x03" * 40, [], {}, [[]], {"a": 1}]


def a_value(drawn: random.Random, depth: int = 3):
    """Return any tree of values."""
    if depth and drawn.random() < 0.3:
        return [a_value(drawn, depth - 1) for _ in range(drawn.randrange(4))]
    if drawn.random() < 0.1:
        return drawn.randbytes(drawn.randrange(60))
    if drawn.random() < 0.1:
        return drawn.randint(-(2**63), 2**64 - 1)
    return deepcopy(drawn.choice(INTEGERS if drawn.random() < 0.5 else OTHERS))


def places(tree, found=None):
    """Return (list, index) of every place in a tree."""
    found = [] if found is None else found
    for index, value in enumerate(tree):
        found.append((tree, index))
        if isinstance(value, list):
            places(value, found)
    return found


def nearby(value, drawn: random.Random):
    """Return a value of the same type that is a little different."""
    if type(value) is int:
        return min(2**64 - 1, max(-(2**63), value + drawn.choice([-1, 1, 2, 1_000, 2**32])))
    if type(value) is bytes:
        return value[: drawn.randrange(len(value) + 1)] + drawn.randbytes(drawn.randrange(3))
    if type(value) is str:
        return value + drawn.choice(["x", "\n", "é", ""])
    if type(value) is bool:
        return not value
    return a_value(drawn)


def mutate(body: list, drawn: random.Random) -> None:  # noqa: C901 - one line a kind
    """Change a body, in one place."""
    found = places(body)
    if not found:
        body.append(a_value(drawn))
        return
    tree, index = drawn.choice(found)
    other, at = drawn.choice(found)
    how = drawn.randrange(8)
    if how == 0:
        tree[index] = a_value(drawn)
    elif how == 1:
        del tree[index]
    elif how == 2:
        tree.insert(index, deepcopy(tree[index]))
    elif how == 3:
        tree[index] = [tree[index]]
    elif how == 4:
        tree[index] = deepcopy(other[at])
    elif how == 5:
        tree.append(a_value(drawn))
    elif how == 6 and isinstance(tree[index], list):
        tree[index].clear()
    else:
        tree[index] = nearby(tree[index], drawn)


def mutate_more(envelope: list, drawn: random.Random) -> None:
    """Change a body, or what stands beside it, in one place."""
    if len(envelope) == 9 and drawn.random() < 0.5:
        beside = list(map(list, envelope[8].items()))
        mutate(beside, drawn)
        envelope[8] = {
            str(each[0]): each[1] for each in beside if type(each) is list and len(each) == 2
        }
    else:
        mutate(envelope[7], drawn)


def mutated(corpus, drawn: random.Random) -> tuple[str, bytes]:
    """Return a frame whose body was changed, on the topic that it names where it has one."""
    kind = drawn.choice(sorted(FRAME_KINDS))
    if corpus[kind] and drawn.random() < 0.95:
        topic, payload = drawn.choice(corpus[kind])
        envelope = msgpack.unpackb(payload, strict_map_key=False)
        for _ in range(drawn.choice([1, 1, 1, 2, 3])):
            mutate_more(envelope, drawn)
    else:
        topic = Topics(PLAN.name).of(FRAME_KINDS[kind].topic, drawn.choice([ME, PEER]))
        envelope = [FORMAT, kind, PEER, 2, 22, 5, drawn.choice([None, ME]), []]
        envelope[7] = [a_value(drawn) for _ in range(drawn.randrange(10))]
    if drawn.random() < 0.3:
        envelope[5] = drawn.choice([1, 2**39, envelope[5] + 1])
    payload = msgpack.packb(envelope)
    with suppress(ValueError):
        topic = topic_of(decode(payload), Topics(PLAN.name))
    return topic, payload


class Gateway:
    """A gateway's core that takes whatever comes."""

    def __init__(self, acceptance: Acceptance) -> None:
        self.keeper = SimulatedKeeper()
        self.core = GatewayCore(PLAN, acceptance, self.keeper, Replica(1, 3, "gateway"), TERMS)

    def take(self, records: list[Record]) -> Accepted:
        turn = self.core.take(records, Listening(records[0].received_us, NOW_US))
        self.keeper.commit(turn.changes)
        self.core.replies.owe(turn.accepted, NOW_US)
        self.core.replies.answer(lambda frame: bool(frame.encode()), NOW_US)
        return turn.accepted


TERMS = WaitingTerms([ME])


def fresh(seed: int) -> tuple[Agent, Gateway, KnownDevices]:
    agent = Agent(ME, 1_000 + seed)
    agent.read(20.0, 21.0, -5.5)
    agent.tick(20)
    topics = Topics(PLAN.name)
    acceptance = Acceptance(
        PLAN.windows.values(), PLAN.published_folds.values(), topics, ("lake", LAKE)
    )
    return agent, Gateway(acceptance), KnownDevices(topics)


def check(
    agent: Agent, acceptance: Gateway, known: KnownDevices, topic: str, payload: bytes
) -> None:
    before = agent.own()
    agent.hear(topic, payload)
    accepted = acceptance.take([Record(agent.now_us, topic, False, payload)])  # noqa: FBT003
    assert not [reason for _, reason in accepted.refused if reason.startswith("broken")]
    if is_taken(topic, payload):
        known.take(topic, payload)
    assert agent.core.agent.guard.reasons == []
    assert agent.own() == before


def is_taken(topic: str, payload: bytes) -> bool:
    """Return whether an operator has no rule that refuses a frame: then nothing may raise."""
    try:
        return bool(FRAME_KINDS[decode(payload).kind].subscribers & Subscriber.OPERATOR)
    except ValueError:
        return False


def test_the_fleet_says_something_of_every_kind(corpus):
    empty = {FRAME_KINDS[kind].topic for kind, frames in corpus.items() if not frames}
    assert not empty
    streams = {decode(payload).stream for _, payload in corpus[VariableFrame.kind]}
    assert len(streams) > len(ONE_EACH)


def test_no_structure_of_a_frame_ends_an_agent_a_lander_or_a_command(corpus, request):
    count = request.config.getoption("--fuzz-frames")
    first, decoded = request.config.getoption("--fuzz-seed"), 0
    agent, acceptance, known = fresh(0)
    for seed in range(first, first + count):
        if seed % FRESH == 0:
            agent, acceptance, known = fresh(seed)
        topic, payload = mutated(corpus, random.Random(seed))
        try:
            check(agent, acceptance, known, topic, payload)
            if seed % 25 == 0:
                agent.tick()
                json.dumps(agent.core.report())
                assert agent.core.agent.guard.reasons == []
        except BaseException as error:
            raise AssertionError(f"--fuzz-seed {seed}: {topic} {payload.hex()}") from error
        decoded += is_frame(payload)
    assert count // 10 < decoded, "too few mutated frames are frames at all"


def is_frame(payload: bytes) -> bool:
    try:
        decode(payload)
    except ValueError:
        return False
    return True


def test_a_good_frame_works_after_any_number_of_bad_ones(corpus):
    agent, acceptance, known = fresh(1)
    for seed in range(400):
        topic, payload = mutated(corpus, random.Random(seed))
        kind = msgpack.unpackb(payload, strict_map_key=False)[1]
        if kind != CommandFrame.kind:  # an operator's command is obeyed, whoever sends it
            check(agent, acceptance, known, topic, payload)
    peer = Replica(7, 77, "pi-3")
    local = PLAN.local_folds["samples_mean"]
    frame = VariableFrame(peer, 5, local.name, local.stream, 0, ("",), (5,), ((2,), (600,)))
    agent.hear(topic_of(frame, Topics(PLAN.name)), frame.encode())
    entries = agent.core.samples.published[local.name].entries
    assert entries.version("pi-3") == Version(7, 77, 5)
    agent.read(30.0)
    published = [decode(p.payload) for p in agent.tick(20) if is_of_frames(p.topic)]
    assert any(isinstance(frame, PaneFrame) for frame in published)
    assert agent.core.report()["accepted"] == 4


def test_what_a_lander_says_of_a_mutated_acknowledgement_lands_nothing(corpus):
    """An acknowledgement of seqs that were never sent makes no entry clean that has not landed."""
    agent, *_ = fresh(2)
    dirty = agent.core.report()["dirty"]
    for seed in range(200):
        drawn = random.Random(seed)
        topic, payload = drawn.choice(corpus[5])
        envelope = msgpack.unpackb(payload, strict_map_key=False)
        mutate(envelope[7], drawn)
        envelope[2] = LANDER.device
        agent.hear(topic, msgpack.packb(envelope))
    assert agent.core.agent.guard.reasons == []
    assert agent.core.report()["dirty"] <= dirty
