"""A fleet whose devices sign, at a broker that lets in everybody: nobody speaks for another."""

import importlib.util
from random import Random

import pytest

from crdts import Replica, Version
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.frames import AskFrame, BeatFrame, PresenceFrame
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.topics import topic_of
from lasp_edge.security.participants import read
from lasp_edge.security.signatures import Signatures, signing_key
from tests.brokers import PATIENCE_S, messages, until_connected, until_true
from tests.end_to_end.secured import DEVICES, GATEWAY, NAME, OpenFleet
from tests.lasp_edge.link.support_link import publish_when_possible
from tests.support_commands import member_command
from tests.support_missing import lacks

pytestmark = [pytest.mark.broker, pytest.mark.slow]


class SignedFleet(OpenFleet):
    """Devices, lander, gateway and operator with keys; `thief` has a key that nobody trusts."""

    def __init__(self, directory):
        super().__init__(directory)
        roles = {"kitchen": "device", "attic": "device", "lake": "lander", "ops": "operator"}
        roles[GATEWAY] = "lander"
        for name, role in roles.items():
            line = self.command("keys", "new", f"{name}.key", "--name", name, "--role", role)
            with (directory / "roster").open("a") as file:
                file.write(line)
        self.command("keys", "new", "thief.key", "--name", "kitchen")

    def login(self, user):
        return [*super().login(user), "--sign", f"{user}.key", "--trust", "roster"]

    def seal(self, name, *, trust=False):
        listed = read((self.directory / "roster").read_text()) if trust else None
        return Signatures(self.topics, signing_key(self.directory / f"{name}.key"), listed)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    if importlib.util.find_spec("cryptography") is None:
        lacks("the extra `signed` is not installed")
    pytest.importorskip("deltalake", reason="needs the extra `cloud`")
    made = SignedFleet(tmp_path_factory.mktemp("signed"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def running(fleet):
    """A fleet that agrees and has landed everything, and all messages that led there."""
    spy = fleet.link(None, "spy", subscriptions=[f"{fleet.topics.root}/#"])
    until_connected(spy)
    words = ("lander", f"{NAME}:program", "--lake", fleet.directory / "lake")
    fleet.process("lander", *words, *fleet.login("lake"))
    fleet.gateway(GATEWAY)
    for device in ("kitchen", "attic"):
        fleet.agent(device)
    heard = []

    def agreed():
        heard.extend(messages(spy.poll(0.1)))
        return fleet.agreed(*DEVICES) and acknowledging(fleet, heard) == {DEFAULT_SINK, GATEWAY}

    fleet.wait(agreed)
    return fleet, heard


def opened(fleet, heard):
    """Return the frames that were heard, and their topics; each is signed."""
    reader = fleet.seal("ops", trust=True)
    frames = [message for message in heard if "/out/" not in message.topic and message.payload]
    return [
        (decode(reader.opened(message.topic, message.payload)), message.topic) for message in frames
    ]


def acknowledging(fleet, heard):
    """Return the sinks that have acknowledged anything."""
    return {frame.sink for frame, _ in opened(fleet, heard) if isinstance(frame, AckFrame)}


def value(fleet, device="kitchen"):
    """Return what a device holds of the fleet's value, and of whom."""
    report = fleet.report(device)
    shown = report["values"]["global_average"]
    return shown["total_q"], shown["devices"], shown["settled"], report["done"]


def counted(fleet, device, wanted):
    """Wait until `status` counts a reason; return how often."""
    until_true(lambda: wanted in fleet.status(device)["frames_left_aside"])
    return fleet.status(device)["frames_left_aside"][wanted]


def test_all_that_sign_agree_and_all_that_travels_is_signed(running):
    fleet, heard = running
    assert [fleet.errors(name) for name in ("kitchen", GATEWAY)] == [""] * 2
    (line,) = fleet.errors("lander").splitlines()
    assert line.endswith(f"lander: made a new lake in {fleet.directory / 'lake'}")
    frames = opened(fleet, heard)
    assert len(frames) > 10
    for frame, topic in frames:
        assert topic_of(frame, fleet.topics) == topic
    assert fleet.kept(GATEWAY) == fleet.true_windows(*DEVICES)


def test_frames_that_others_sign_or_nobody_are_refused_and_counted(running):
    fleet, _ = running
    until_true(lambda: fleet.agreed(*DEVICES))
    before = value(fleet)
    kitchen = Replica(900, 5, "kitchen")
    forged = [
        PresenceFrame(kitchen, 1, online=False),
        BeatFrame(kitchen, 1, (), done=False, reports=()),
        AskFrame(kitchen, 1, "attic", "global_average"),
        member_command(
            Replica(1, 5, "operator"), 1, "kitchen", 1, retired=True, version=Version(1, 1, 1)
        ),
    ]
    thief = fleet.link(None, "thief", seal=fleet.seal("thief"))
    nobody = fleet.link(None, "nobody")
    attic = fleet.link(None, "insider", seal=fleet.seal("attic"))
    for link in (thief, nobody, attic):
        until_connected(link)
        for frame in forged:
            publish_when_possible(link, topic_of(frame, fleet.topics), frame.encode(), retain=True)
        until_true(lambda link=link: link.in_flight == 0)
    assert counted(fleet, "attic", "signed by a key that is not in the roster") >= 4
    assert counted(fleet, "attic", "not signed") >= 4
    assert counted(fleet, "attic", "a device may not say this") >= 4
    assert value(fleet) == value(fleet, "attic") == before
    assert fleet.report("attic")["retired"] == []
    for name in ("attic", "lander"):
        (line,) = [each for each in fleet.errors(name).splitlines() if "not in the roster" in each]
        assert "messages are refused, the first on lasp/v1/" in line


def test_signed_frames_that_are_sent_again_change_nothing(running):
    fleet, heard = running
    before = value(fleet)
    replayer = fleet.link(None, "replayer")
    until_connected(replayer)
    again = [*heard, *heard]
    Random(3).shuffle(again)
    for message in again:
        publish_when_possible(replayer, message.topic, message.payload, retain=message.retain)
    until_true(lambda: replayer.in_flight == 0)
    accepted = [fleet.report(device)["accepted"] for device in ("kitchen", "attic")]
    fleet.wait(lambda: fleet.agreed("kitchen", "attic"))
    assert value(fleet) == value(fleet, "attic") == before
    assert [fleet.report(d)["accepted"] for d in ("kitchen", "attic")] == accepted
    assert all(fleet.status(device)["clone_alarms"] == 0 for device in ("kitchen", "attic"))


def test_an_operator_who_signs_is_obeyed(running):
    fleet, _ = running
    words = (f"{NAME}:program", *fleet.login("ops"))
    assert "attic is retired" in fleet.command("retire", "attic", *words, "--force")
    fleet.wait(lambda: fleet.report("kitchen")["retired"] == ["attic"])
    assert "attic counts again" in fleet.command("admit", "attic", *words)
    fleet.wait(lambda: fleet.report("kitchen")["retired"] == [])


def test_an_agent_with_anothers_key_does_not_start(fleet):
    words = ("agent", f"{NAME}:program", "--device", "attic", "--data-dir", "other")
    login = ["--broker", fleet.broker.url, "--sign", "kitchen.key", "--trust", "roster"]
    agent = fleet.process("other", *words, "--source", "host", *login)
    assert agent.wait(timeout=PATIENCE_S) == 2
    (line,) = fleet.errors("other").splitlines()
    assert "roster does not know the key in kitchen.key as that of device attic" in line
