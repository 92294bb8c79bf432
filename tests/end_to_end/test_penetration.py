"""Attacks on real agents at a broker that lets in everybody: they live, go on, and say what came.

Without signatures nobody can tell who wrote a frame, so what an invented device says may count; the
tests demand that it harms no other device, and that an operator can be rid of it.
"""

import contextlib
import dataclasses
import re
from itertools import count
from random import Random

import msgpack
import pytest

from crdts import Replica
from lasp_edge.link import Limits
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.envelope import FORMAT
from lasp_edge.protocol.fencing import HelloFrame, VouchFrame
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame, VariableFrame
from lasp_edge.protocol.kinds import FRAME_KINDS, decode
from lasp_edge.protocol.topics import topic_of
from tests.brokers import PATIENCE_S, messages, until_connected, until_true
from tests.end_to_end.secured import NAME, OpenFleet
from tests.lasp_edge.link.support_link import publish_when_possible

pytestmark = [pytest.mark.broker, pytest.mark.slow]
GENUINE = re.compile(r"kitchen$|attic$|lander-\w+$")
LEAVES = (None, True, -1, 0, 2**32, 2**63, -(2**63), 1e300, float("nan"), "", "a/b", b"", [], {})


class Attacked(OpenFleet):
    """Two agents and a lander that agree, and an attacker who heard everything."""

    def __init__(self, directory):
        super().__init__(directory)
        self.spy = self.link(None, "spy", subscriptions=[f"{self.topics.root}/#"])
        self.attacker = self.link(None, "attacker", limits=Limits(in_flight_bytes=1 << 22))
        for link in (self.spy, self.attacker):
            until_connected(link)
        words = ("lander", f"{NAME}:program", "--lake", directory / "lake", *self.login("lander"))
        self.lander = self.process("lander", *words)
        self.agents = {device: self.agent(device) for device in ("kitchen", "attic")}
        self.heard, self.genuine = [], []
        self.challenges = count(1)
        self.wait(lambda: self.hear() and self.agreed("kitchen", "attic"))
        self.value = self.report("kitchen")["values"]["global_average"]["total_q"]

    def hear(self):
        """Keep what came, and the genuine frames of it; always true."""
        came = messages(self.spy.poll(0.05))
        self.heard += came
        for message in came:
            with contextlib.suppress(ValueError):
                frame = decode(message.payload)
                if GENUINE.match(frame.sender.device):
                    self.genuine.append(frame)
        return True

    def frames(self, kind=object):
        """Return the genuine frames of a kind that were heard, oldest first."""
        return [frame for frame in self.genuine if isinstance(frame, kind)]

    def send(self, topic, payload, *, retain=False):
        publish_when_possible(self.attacker, topic, payload, retain=retain)

    def say(self, frame, *, retain=False):
        self.send(topic_of(frame, self.topics), frame.encode(), retain=retain)

    def has_taken_all(self):
        """Wait until both agents have taken all that was sent, or ended: they answer in order."""
        challenge = next(self.challenges)
        for device in self.agents:
            self.say(HelloFrame(Replica(1, 7, "mallory"), challenge, device, challenge, 1))
        self.wait(lambda: self.hear() and all(self.has_answered(d, challenge) for d in self.agents))

    def has_answered(self, device, challenge):
        """Return whether a device has answered a hello, or can no more."""
        vouches = [f for f in self.frames(VouchFrame) if f.sender.device == device]
        answered = any(vouch.challenge == challenge for vouch in vouches)
        return answered or self.agents[device].poll() is not None

    def is_well(self):
        """Wait until both agents hold their value again; nothing may have ended or failed them."""
        until_true(lambda: self.attacker.in_flight == 0)
        try:
            self.wait(lambda: self.hear() and self.agreed("kitchen", "attic"))
        except AssertionError:
            pytest.fail(f"no agreement: {[self.report(device) for device in self.agents]}")
        for device, agent in self.agents.items():
            assert agent.poll() is None
            assert "Traceback" not in self.errors(device)
            assert self.report(device)["values"]["global_average"]["total_q"] == self.value

    def left_aside(self, device):
        """Return how many frames a device left aside, by reason, once its notes are written."""
        return self.status(device)["frames_left_aside"]

    def retires(self, *devices):
        """Let an operator retire invented devices."""
        for device in devices:
            words = (device, f"{NAME}:program", "--force", "--listen", "3")
            assert "is retired" in self.command("retire", *words, *self.login("operator"))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    pytest.importorskip("deltalake", reason="needs the extra `cloud`")
    made = Attacked(tmp_path_factory.mktemp("attacked"))
    yield made
    made.close()


def packed(kind, device, body, incarnation=1):
    return msgpack.packb([FORMAT, kind, device, incarnation, 7, 1, None, body])


def test_garbage_that_is_retained_on_every_topic_is_counted(fleet):
    garbage = [
        b"\x00",
        b"not a frame",
        msgpack.packb({}),
        b"\x91" * 1_000 + b"\xc0",
        b"\x91" * 60_000 + b"\xc0",
        b"\xdd\xff\xff\xff\xff",
        b"x" * 70_000,
        b"x" * 300_000,
    ]
    for number, row in FRAME_KINDS.items():
        bodies = ([], [[]], [None] * 9, [{}] * 5, [[[]]] * 6, ["x"] * 4)
        frames = [packed(number, "mallory", body) for body in bodies]
        for turn, payload in enumerate([*garbage, *frames]):
            device = ("kitchen", "attic", "mallory")[turn % 3]
            fleet.send(fleet.topics.of(row.topic, device), payload, retain=True)
            fleet.send(fleet.topics.of(row.topic, device, f"v{turn}"), payload, retain=True)
    fleet.is_well()
    until_true(lambda: "not msgpack" in fleet.left_aside("kitchen"))
    left = fleet.left_aside("kitchen")
    assert left["not msgpack"] >= 5
    assert left["too large"] >= 3
    assert left["oversized"] >= 1  # the link drops it before anybody looks into it
    printed = fleet.command("status", "--data-dir", fleet.directory / "kitchen")
    assert "messages: not msgpack" in printed


def test_agents_that_start_among_garbage_agree_again(fleet):
    for device in ("kitchen", "attic"):
        fleet.agents[device].kill()
        fleet.agents[device].wait()
        (fleet.directory / f"{device}.out").write_text("")
        fleet.agents[device] = fleet.agent(device)
    fleet.is_well()


def test_an_entry_with_keys_and_no_columns_ends_no_agent(fleet):
    for frame in fleet.frames(VariableFrame):
        sender = frame.sender._replace(device="mallory")
        fleet.say(dataclasses.replace(frame, sender=sender, columns=()), retain=True)
    fleet.has_taken_all()
    fleet.retires("mallory")
    fleet.is_well()


def test_frames_with_a_changed_part_end_no_agent(fleet):
    random = Random(7)
    # A forged acknowledgement of another store looks like a new lake's: see below.
    heard = [frame for frame in fleet.frames() if not isinstance(frame, AckFrame)]
    genuine = [msgpack.unpackb(frame.encode()) for frame in heard]
    for _ in range(1_500):
        plain = msgpack.unpackb(msgpack.packb(random.choice(genuine)))
        plain[2], where, path = "mallory", plain, []
        while isinstance(where, list) and where and (not path or random.random() < 0.8):
            place = random.randrange(7 if not path else 0, len(where))
            path.append(place)
            where, parent = where[place], where
        parent[path[-1]] = random.choice(LEAVES)
        payload = msgpack.packb(plain)
        try:
            topic = topic_of(decode(payload), fleet.topics)
        except ValueError:
            topic = fleet.topics.of(FRAME_KINDS[plain[1]].topic, "mallory")
        fleet.send(topic, payload)
    fleet.has_taken_all()
    fleet.retires("mallory")
    fleet.is_well()


def test_frames_on_anothers_topic_are_counted(fleet):
    for message in fleet.heard[:300]:
        if message.payload and "/kitchen" in message.topic and "/out/" not in message.topic:
            kind = fleet.topics.address(message.topic).kind
            fleet.send(fleet.topics.of(kind, "attic", "x"), message.payload)
    fleet.is_well()
    until_true(lambda: "on another's topic" in fleet.left_aside("attic"))


def test_a_forged_farewell_is_contradicted(fleet):
    for _ in range(3):
        newest = max(frame.sender for frame in fleet.frames(BeatFrame) if frame.about == "kitchen")
        fleet.say(PresenceFrame(newest, 9, online=False), retain=True)
    fleet.is_well()
    until_true(lambda: fleet.hear() and fleet.frames(PresenceFrame)[-1].online)


def further(plain, by):
    """Return a body in which each incarnation, which stands before a nonce, is greater."""
    if not isinstance(plain, list):
        return plain
    found = [further(each, by) for each in plain]
    for place, each in enumerate(found[1:]):
        if type(each) is int and each >= 2**16 and type(found[place]) is int:
            found[place] += by
    return found


def test_forged_acknowledgements_do_not_age_a_device(fleet):
    replica = fleet.report("kitchen")["replica"]
    mine = [frame for frame in fleet.frames(AckFrame) if frame.about == "kitchen"]
    acks = [msgpack.unpackb(frame.encode()) for frame in mine]
    acks = [plain for plain in acks if plain[7] != further(plain[7], 1)]
    assert acks  # those that name entries, and so an incarnation
    for step in range(12):
        for ack in acks[-3:]:
            plain = [*ack[:2], "mallory", *ack[3:7], further(ack[7], 1_000 * (step + 1))]
            fleet.send(fleet.topics.of("ack", "kitchen"), msgpack.packb(plain))
    fleet.is_well()
    assert fleet.report("kitchen")["replica"] == replica


def test_invented_devices_do_not_end_an_agent(fleet):
    entry = next(frame for frame in fleet.frames(VariableFrame) if frame.columns)
    beat = fleet.frames(BeatFrame)[-1]
    for number in range(300):
        sender = entry.sender._replace(device=f"invented-{number}")
        fleet.say(dataclasses.replace(entry, sender=sender))
        fleet.say(dataclasses.replace(beat, sender=sender))
        greatest = sender._replace(incarnation=2**29)
        fleet.say(dataclasses.replace(entry, sender=greatest))
    until_true(lambda: fleet.attacker.in_flight == 0)
    before = [fleet.report(device) for device in fleet.agents]
    until_true(lambda: [fleet.report(device) for device in fleet.agents] != before)
    assert all(agent.poll() is None for agent in fleet.agents.values())


def test_a_clone_is_told(fleet):
    words = ("agent", f"{NAME}:program", "--device", "kitchen", "--data-dir", "clone")
    clone = fleet.process("clone", *words, "--source", "host", *fleet.login("kitchen"))
    twin = re.compile("another program uses? the client id lasp/v1/process_5ffleet/kitchen")
    fleet.wait(lambda: twin.search(fleet.errors("clone") + fleet.errors("kitchen")))
    clone.terminate()
    assert clone.wait(timeout=PATIENCE_S) == 0
    assert fleet.agents["kitchen"].poll() is None
