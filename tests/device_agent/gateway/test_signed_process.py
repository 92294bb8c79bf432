"""A real signed fleet with a member that lies: its windows are right, and nothing is delayed."""

import importlib.util
from random import Random

import pytest

from crdts import Replica, Version
from lasp_edge.link import BrokerUrl, Link
from lasp_edge.protocol.acks import AckFrame, Seqs
from lasp_edge.protocol.fencing import HelloFrame, SourceHigh, VouchFrame, source_id
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame
from lasp_edge.protocol.sinks import SinkLow, store_tag
from lasp_edge.protocol.topics import topic_of
from lasp_edge.security.access import Role
from lasp_edge.security.participants import Participant
from lasp_edge.security.signatures import Signatures, SigningKey, new_key
from tests.brokers import until_true
from tests.device_agent.gateway.test_process import Gateway, is_final, truth_of
from tests.device_agent.support_stage import Stage
from tests.support_commands import member_command
from tests.support_missing import lacks

pytestmark = [pytest.mark.slow, pytest.mark.broker]
ROLES = {"a": Role.DEVICE, "liar": Role.DEVICE, "gateway": Role.LANDER, "second": Role.LANDER}


@pytest.fixture
def stage(tmp_path, monkeypatch):
    if importlib.util.find_spec("cryptography") is None:
        lacks("the extra `signed` is not installed")
    stage = Stage(tmp_path, monkeypatch)
    stage.lander.link.stop(0.0)
    yield stage
    stage.close()


def keys(directory):
    """Write the roster and all keys, and return the keys."""
    found, lines = {}, []
    for name, role in ROLES.items():
        pem = new_key()
        (directory / f"{name}.key").write_bytes(pem)
        (directory / f"{name}.key").chmod(0o600)
        found[name] = SigningKey(pem)
        lines.append(str(Participant(role, name, found[name].public)))
    (directory / "roster").write_text("\n".join(lines))
    return found


def lies(name):
    """Return what a member says of others, and in the name of others."""
    me, it = Replica(1, 66, name), Replica(9, 66, "a")
    ahead = (SourceHigh(source_id("jsonl:a"), 2**50, 9_999),)
    hello = HelloFrame(it, 1, "a", challenge=5, attempt=1)
    every = (Seqs(1, nonce, ((1, 10**6),)) for nonce in (1, 66))
    yield AckFrame(me, 10**6, "a", "gateway", "s-1", tuple(every), (), 4_000_000_000)
    yield VouchFrame.of(me, 1, hello, it, it, ahead, keeps=True)
    yield VouchFrame.of(me, 1, hello, it, it, ahead)
    yield VouchFrame.hint(me, 1, "a")
    yield HelloFrame(me, 1, "a", challenge=5, attempt=1)
    yield BeatFrame(it, 10**6, (SinkLow("gateway", store_tag("s-1"), 2**50),), True, ())  # noqa: FBT003
    yield PresenceFrame(it, 10**6, online=False)
    yield member_command(me, 1, "a", 10**6, True, Version(9, 66, 60))  # noqa: FBT003


def test_a_member_that_lies_delays_nothing_and_no_other_sink_acknowledges(stage):
    signing, topics = keys(stage.directory), stage.lander.topics
    recorded = stage.record("a", 200, 0.7)
    trusted = ["--trust", str(stage.directory / "roster"), "--sign"]
    links = {
        name: Link(
            BrokerUrl.parse(stage.broker.url),
            client_id=name,
            subscriptions=[topics.every("hello")],
            jitter=Random(1),
            seal=Signatures(topics, signing[name], None),
        )
        for name in ("liar", "second")
    }
    for link in links.values():
        link.start()
    gateway = Gateway(stage, "--roster", "a", *trusted, str(stage.directory / "gateway.key"))
    try:
        agent = stage.replay("a", *trusted, str(stage.directory / "a.key"))
        truth = truth_of([recorded], stage)

        def is_right():
            for name, link in links.items():
                link.poll(0.01)
                for frame in lies(name):
                    link.publish(topic_of(frame, topics), frame.encode())
            return agent.done() and is_final(gateway.rows(), truth)

        until_true(is_right)
        report = agent.newest()
        assert report["sinks"].keys() == {"gateway"}
        assert (report["accepted"], report["doubtful"], report["retired"]) == (200, 0, [])
    finally:
        for link in links.values():
            link.stop(0.0)
        gateway.kill()
