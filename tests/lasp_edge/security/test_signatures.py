"""Only its author can have written a signed frame; without keys nothing changes."""

import argparse
import importlib.util
import stat
import subprocess
import sys
from dataclasses import replace

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crdts import Replica, Version
from lasp_edge.errors import UsageError
from lasp_edge.link import BrokenSealError
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.envelope import unpack
from lasp_edge.protocol.fencing import HelloFrame, VouchFrame
from lasp_edge.protocol.frames import AskFrame, BeatFrame, PresenceFrame
from lasp_edge.protocol.kinds import FRAME_KINDS, Publisher, decode
from lasp_edge.protocol.sizes import MAX_FRAME_BYTES, SIGNATURE_BYTES
from lasp_edge.protocol.topics import Topics
from lasp_edge.security.access import Role
from lasp_edge.security.participants import Participant, read
from lasp_edge.security.signatures import Signatures, SigningKey, new_key
from lasp_edge.tool import keys_command
from lasp_edge.tool.broker_options import add_broker_arguments, seal_of
from tests.lasp_edge.protocol.support_strategies import FRAMES
from tests.support_commands import member_command
from tests.support_missing import lacks

TOPICS = Topics("house")
TOPIC = TOPICS.of("presence", "kitchen")
KITCHEN, ATTIC = Replica(1, 7, "kitchen"), Replica(1, 8, "attic")
PRESENCE = PresenceFrame(KITCHEN, 1, online=True)


@pytest.fixture(scope="module")
def keys():
    if importlib.util.find_spec("cryptography") is None:
        lacks("the extra `signed` is not installed")
    return {name: SigningKey(new_key()) for name in ("kitchen", "attic", "lake", "ops", "thief")}


@pytest.fixture(scope="module")
def roster(keys):
    roles = {
        "kitchen": Role.DEVICE,
        "attic": Role.DEVICE,
        "lake": Role.LANDER,
        "ops": Role.OPERATOR,
    }
    return [Participant(role, name, keys[name].public) for name, role in roles.items()]


@pytest.fixture(scope="module")
def reader(roster):
    return Signatures(TOPICS, None, roster)


def signed(keys, name, frame, topics=TOPICS):
    return Signatures(topics, keys[name], None).closed(f"{topics.root}/x", frame.encode())


def test_what_a_participant_signs_is_let_in_as_it_was(keys, reader):
    payload = signed(keys, "kitchen", PRESENCE)
    assert len(payload) == len(PRESENCE.encode()) + SIGNATURE_BYTES
    assert reader.opened(TOPIC, payload) == PRESENCE.encode()


@pytest.mark.parametrize("kind", FRAMES, ids=lambda kind: kind.__name__)
def test_whatever_a_frame_says_can_be_signed(keys, reader, kind):
    """Also what stands beside its body, for readers that know it."""
    by = {Publisher.OPERATOR: "ops", Publisher.LANDER: "lake"}
    name = by.get(FRAME_KINDS[kind.kind].publishers, "kitchen")

    @given(FRAMES[kind])
    def check(frame):
        frame = replace(frame, sender=frame.sender._replace(device=name))
        if kind is VouchFrame:
            frame = replace(frame, keeps=False)
        payload = signed(keys, name, frame)
        assert payload != frame.encode()
        assert len(payload) <= len(frame.encode()) + SIGNATURE_BYTES
        assert decode(payload) == frame
        assert reader.opened(TOPIC, payload) == frame.encode()

    check()


def test_results_as_json_are_left_out_with_a_reason_of_their_own(reader, keys):
    """Nobody signs them: that they are not signed says nothing of who wrote them."""
    topic, payload = f"{TOPICS.root}/out/gateway/gateway", b'{"waits": []}'
    assert Signatures(TOPICS, keys["lake"], None).closed(topic, payload) == payload
    with pytest.raises(BrokenSealError, match="only frames are signed, results as JSON are not"):
        reader.opened(topic, payload)


def test_a_beat_that_says_more_beside_its_body_is_its_authors_too(keys, reader):
    beat = BeatFrame(KITCHEN, 1, (), done=False, reports=(), control=9, floor_us=5)
    payload = signed(keys, "kitchen", beat)
    assert decode(reader.opened(TOPIC, payload)) == beat
    for at in range(len(payload)):
        changed = payload[:at] + bytes([payload[at] ^ 1]) + payload[at + 1 :]
        with pytest.raises(BrokenSealError):
            reader.opened(TOPIC, changed)
    with pytest.raises(BrokenSealError, match="not signed"):
        reader.opened(TOPIC, beat.encode())


def test_a_reader_without_a_roster_reads_signed_frames_too(keys):
    assert decode(signed(keys, "kitchen", PRESENCE)) == PRESENCE


def test_the_longest_frame_can_be_signed(keys, reader):
    frame = AskFrame(KITCHEN, 1, "attic", "v" * (MAX_FRAME_BYTES - 60))
    frame = AskFrame(
        KITCHEN, 1, "attic", frame.variable + "v" * (MAX_FRAME_BYTES - len(frame.encode()))
    )
    assert len(frame.encode()) == MAX_FRAME_BYTES
    payload = signed(keys, "kitchen", frame)
    assert unpack(payload).body == frame.body()
    assert reader.opened(TOPIC, payload) == frame.encode()


def test_a_frame_with_any_byte_changed_is_refused(keys, reader):
    payload = signed(keys, "kitchen", PRESENCE)
    for place in range(len(payload)):
        forged = bytearray(payload)
        forged[place] ^= 1
        with pytest.raises(BrokenSealError):
            reader.opened(TOPIC, bytes(forged))


def test_a_frame_of_another_fleet_is_refused(keys, reader):
    with pytest.raises(BrokenSealError, match="the signature is wrong"):
        reader.opened(TOPIC, signed(keys, "kitchen", PRESENCE, Topics("garden")))


@pytest.mark.parametrize("name", [None, "thief"])
def test_who_is_not_in_the_roster_is_refused(keys, reader, name):
    payload = PRESENCE.encode() if name is None else signed(keys, name, PRESENCE)
    with pytest.raises(BrokenSealError, match=r"not signed|key that is not in the roster"):
        reader.opened(TOPIC, payload)


MEMBER = member_command(
    Replica(1, 9, "operator"), 1, "attic", 1, retired=True, version=Version(1, 8, 3)
)
ASK = AskFrame(KITCHEN, 1, "attic", "average")


@pytest.mark.parametrize(
    ("frame", "may"),
    [(PRESENCE, "kitchen"), (ASK, "kitchen"), (MEMBER, "ops")],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("name", ["kitchen", "attic", "lake", "ops"])
def test_a_participant_says_only_what_its_role_may(keys, reader, frame, may, name):
    payload = signed(keys, name, frame)
    if name == may:
        assert reader.opened(TOPIC, payload) == frame.encode()
    else:
        with pytest.raises(BrokenSealError, match=r"a (device|lander|operator) may not say this"):
            reader.opened(TOPIC, payload)


def test_a_device_says_of_no_other_what_it_says_of_itself(keys, reader):
    envelope = msgpack.unpackb(PRESENCE.encode())
    envelope[6] = "attic"  # whom it concerns
    payload = Signatures(TOPICS, keys["kitchen"], None).closed(TOPIC, msgpack.packb(envelope))
    with pytest.raises(BrokenSealError, match="a device may not say this"):
        reader.opened(TOPIC, payload)


def test_a_lander_does_not_speak_in_the_name_of_a_device(keys, reader):
    beat = BeatFrame(KITCHEN, 1, (), done=False, reports=())
    with pytest.raises(BrokenSealError, match="a lander may not say this"):
        reader.opened(TOPIC, signed(keys, "lake", beat))


@pytest.mark.parametrize(("sink", "may"), [("lake", True), ("second", False), ("other", True)])
def test_for_a_sink_of_a_landers_name_nobody_else_acknowledges(keys, roster, sink, may):
    reader = Signatures(TOPICS, None, [*roster, Participant(Role.LANDER, "second", None)])
    payload = signed(keys, "lake", AckFrame(Replica(1, 3, "gateway"), 1, "attic", sink, "s-1"))
    if may:
        assert reader.opened(TOPIC, payload)
    else:
        with pytest.raises(BrokenSealError, match="a lander may not say this"):
            reader.opened(TOPIC, payload)


@pytest.mark.parametrize("keeps", [False, True])
def test_a_device_does_not_vouch_as_a_lander_does(keys, reader, keeps):
    hello = HelloFrame(KITCHEN, 1, "kitchen", 47, 1)
    vouch = VouchFrame.of(ATTIC, 1, hello, KITCHEN, keeps=keeps)
    if keeps:
        with pytest.raises(BrokenSealError, match="a device may not say this"):
            reader.opened(TOPIC, signed(keys, "attic", vouch))
    else:
        assert reader.opened(TOPIC, signed(keys, "attic", vouch))
    assert reader.opened(TOPIC, signed(keys, "lake", replace(vouch, sender=Replica(1, 3, "lake"))))


def test_a_device_without_a_key_may_be_listed_and_is_not_signed_for(keys, roster):
    cellar = Replica(1, 3, "cellar")
    reader = Signatures(TOPICS, None, [*roster, Participant(Role.DEVICE, "cellar")])
    frame = PresenceFrame(cellar, 1, online=True)
    assert reader.opened(TOPIC, frame.encode()) == frame.encode()
    with pytest.raises(BrokenSealError, match=r"^not signed$"):
        reader.opened(TOPIC, PRESENCE.encode())
    with pytest.raises(BrokenSealError, match="its device is not in the roster"):
        reader.opened(TOPIC, PresenceFrame(Replica(1, 3, "shed"), 1, online=True).encode())


def test_results_for_people_are_not_signed(keys):
    seal = Signatures(TOPICS, keys["kitchen"], None)
    assert seal.closed(TOPICS.result("average", "kitchen"), b'{"mean": 1}') == b'{"mean": 1}'


@given(st.binary(max_size=300))
def test_nothing_that_a_stranger_sends_does_more_than_be_refused(payload):
    reader = Signatures(TOPICS, None, [Participant(Role.DEVICE, "cellar")])
    for sent in (payload, b"\x99" + payload, b"\x91" * 3_000 + payload):
        if sent:
            with pytest.raises(BrokenSealError):
                reader.opened(TOPIC, sent)


# Keys and the roster


def run(*words):
    parser = argparse.ArgumentParser()
    keys_command.add_arguments(parser)
    return keys_command.run(parser.parse_args([*map(str, words)]))


def test_a_new_key_is_its_owners_alone_and_replaces_none(keys, tmp_path, capsys):
    file = tmp_path / "kitchen.key"
    assert run("new", file, "--name", "kitchen") == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    line = capsys.readouterr().out
    assert read(line) == [Participant(Role.DEVICE, "kitchen", SigningKey(file.read_bytes()).public)]
    with pytest.raises(UsageError, match="is there already, and is kept"):
        run("new", file, "--name", "kitchen")
    assert run("show", file, "--name", "kitchen") == 0
    assert capsys.readouterr().out == line


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("device kitchen", "line 1: `device KEY NAME` is needed"),
        ("\nboss - kitchen", "line 2: `device KEY NAME` is needed"),
        ("device abc kitchen", "line 1: 'abc' is not a public key"),
        ("device - kitchen\ndevice - kitchen", "'kitchen', or its key, is there twice"),
    ],
)
def test_a_roster_of_another_form_is_refused(text, refusal):
    with pytest.raises(ValueError, match=refusal):
        read(text)


def test_a_key_that_the_roster_knows_as_anothers_is_refused(keys, roster, tmp_path, capsys):
    run("new", tmp_path / "cellar.key", "--name", "cellar")
    file = tmp_path / "roster"
    file.write_text(
        "# all of us\n" + "".join(f"{each}\n" for each in roster) + capsys.readouterr().out
    )
    parser = argparse.ArgumentParser()
    add_broker_arguments(parser)
    words = ["--broker", "mqtt://h", "--sign", str(tmp_path / "cellar.key"), "--trust", str(file)]
    arguments = parser.parse_args(words)
    assert seal_of(arguments, TOPICS, Role.DEVICE, "cellar").author().name == "cellar"
    for role, name in ((Role.DEVICE, "kitchen"), (Role.LANDER, None)):
        with pytest.raises(UsageError, match="does not know the key in"):
            seal_of(arguments, TOPICS, role, name)


def test_without_a_key_nothing_of_it_is_imported(tmp_path):
    code = (
        "import sys, argparse, device_agent.console.command.run_agent as a\n"
        "import device_agent.console.command.members as m\n"
        "p = argparse.ArgumentParser(); a.add_arguments(p)\n"
        "print(*[n for n in sys.modules if 'cryptography' in n or 'security.sign' in n])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == []
